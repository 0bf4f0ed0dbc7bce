"""The quick figure of one run for notebooks: throughput, RTT and window over time. Publication figures: ``paceline report``."""

from typing import TYPE_CHECKING

from paceline._native import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from paceline.record import Run

#: Panels from top to bottom: column of ``series.parquet``, axis label, factor to that unit.
PANELS = (
    ("throughput_bps", "throughput, Mbit/s", 1e-6),
    ("rtt_ms", "RTT, ms", 1.0),
    ("cwnd_bytes", "window, KiB", 1 / 1024),
)


def plot_run(run: "Run") -> "Figure":
    """The figure; a panel whose column the record lacks is left out.

    Raises:
        InputError: Matplotlib is not installed, or the record has no series to draw.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("plots need Matplotlib: pip install 'paceline[plot]'") from None

    series = run.series
    panels = [panel for panel in PANELS if panel[0] in series.columns]
    if not panels:
        raise InputError(f"{run.directory}: series.parquet has none of {', '.join(name for name, _, _ in PANELS)}")
    figure = Figure(figsize=(8, 2.2 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for (flow,), rows in series.group_by(["flow"], maintain_order=True):
        for axis, (name, _, factor) in zip(axes, panels, strict=True):
            axis.plot(rows["time_s"], rows[name] * factor, label=str(flow), linewidth=1)
    for axis, (_, label, _) in zip(axes, panels, strict=True):
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)
    axes[0].legend(loc="upper right", fontsize="small")
    axes[-1].set_xlabel("time, s")
    return figure
