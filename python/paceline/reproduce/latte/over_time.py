"""Figures 12 and 13: capacity and throughput, signal delay and packets' delay of the final Latte over time."""

from typing import TYPE_CHECKING

import numpy as np

from paceline.record import Run
from paceline.reproduce.entry import Band, BandRow, Job, Row, Runs, Scale
from paceline.reproduce.latte.contest import capacity_mbps, queueing_ms, signal_ms, throughput_mbps
from paceline.reproduce.latte.designs import FINAL
from paceline.reproduce.latte.sweeps import NEAR

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

#: The bins of figure 12, s.
_BIN_S = 0.5
#: Propagation from the link to the receiver, which samples by arrival have beside the delay, ms.
_BEHIND_MS = 20.0


def jobs(scale: Scale) -> list[Job]:
    """The runs of the final Latte."""
    return FINAL.jobs(scale)


def rate_rows(scale: Scale, runs: Runs) -> list[Row]:
    """The means in the key of figure 12."""
    sent = [_sent_mbps(run) for run in FINAL.runs(scale, runs)]
    return [
        BandRow.inside(name, "Mbit/s", paper, Band.near(paper, part=part), values)
        for name, paper, part, values in (
            ("mean capacity", 5.04, 0.01, FINAL.values(capacity_mbps, scale, runs)),
            ("mean rate into the link", 3.83, NEAR, sent),
            ("mean rate out of the link", 3.83, NEAR, FINAL.values(throughput_mbps, scale, runs)),
        )
    ]


def delay_rows(scale: Scale, runs: Runs) -> list[Row]:
    """The percentiles in the key of figure 13."""
    return [
        BandRow.inside(name, "ms", paper, Band.near(paper, part=NEAR), values)
        for name, paper, values in (
            ("signal delay p95", 93.0, FINAL.values(signal_ms, scale, runs)),
            ("per-packet delay p95", 49.0, FINAL.values(queueing_ms, scale, runs)),
        )
    ]


def draw_rates(scale: Scale, runs: Runs) -> "Figure":
    """Capacity and throughput of the first run."""
    from matplotlib.figure import Figure

    run = FINAL.runs(scale, runs)[0]
    figure = Figure(figsize=(6.4, 2.6))
    axes = figure.subplots()
    cell = run.links.filter(run.links["link"] == run.links["link"][0])
    time_s, capacity_bps = _binned(cell["time_s"].to_numpy(), cell["capacity_bps"].to_numpy())
    axes.fill_between(time_s, capacity_bps / 1e6, step="mid", color="#DFE3E8", linewidth=0, label="capacity")
    for column, label in (("send_bps", "into the link"), ("throughput_bps", "out of the link")):
        time_s, rate_bps = _binned(run.series["time_s"].to_numpy(), run.series[column].to_numpy())
        axes.plot(time_s, rate_bps / 1e6, label=label)
    axes.set_xlim(0, scale.common_s)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("Time (s)")
    axes.set_ylabel("Throughput (Mbit/s)")
    figure.legend(loc="outside upper right", ncols=3)
    return figure


def draw_delays(scale: Scale, runs: Runs) -> "Figure":
    """Both delays of the first run; dashes are their 95th percentiles. Of every half second the least and the most."""
    from matplotlib.figure import Figure

    run = FINAL.runs(scale, runs)[0]
    figure = Figure(figsize=(6.4, 2.6))
    axes = figure.subplots()
    arrived_s, delay_ms = _delays(run)
    _draw_delay(axes, "C0", "signal delay", *signal_over_time(arrived_s, delay_ms), signal_ms(run))
    _draw_delay(axes, "C1", "per-packet delay", arrived_s - (delay_ms + _BEHIND_MS) / 1e3, delay_ms, queueing_ms(run))
    axes.set_yscale("log")
    axes.set_ylim(bottom=1)
    axes.set_xlim(0, scale.common_s)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("Time (s)")
    axes.set_ylabel("Delay (ms)")
    figure.legend(loc="outside upper right", ncols=2)
    return figure


def _draw_delay(axes: "Axes", colour: str, name: str, time_s: "Values", delay_ms: "Values", p95_ms: float | None) -> None:
    label = name if p95_ms is None else f"{name} (95th percentile {p95_ms:.0f} ms)"
    axes.plot(*_extremes(time_s, delay_ms), color=colour, linewidth=0.6, label=label)
    if p95_ms is not None:
        axes.axhline(p95_ms, color=colour, linestyle="--", linewidth=0.6)


def signal_over_time(arrived_s: "Values", delay_ms: "Values") -> "tuple[Values, Values]":
    """Time, s, and signal delay, ms, at every ms from the first sending to the last.

    A ms in which something was sent has the least delay of what was sent in it, any other one more than the ms after it.
    """
    sent_ms = np.floor(1e3 * arrived_s - delay_ms - _BEHIND_MS).astype(int)
    if not len(sent_ms):
        return np.array([]), np.array([])
    first = sent_ms.min()
    least = np.full(sent_ms.max() - first + 1, np.inf)
    np.minimum.at(least, sent_ms - first, delay_ms)
    for place in range(len(least) - 2, -1, -1):
        if np.isinf(least[place]):
            least[place] = least[place + 1] + 1
    return (first + np.arange(len(least))) / 1e3, least


def _delays(run: Run) -> "tuple[Values, Values]":
    """When samples ended, s, and the mean delay of the packets that arrived in them, ms."""
    known = run.series.drop_nulls("queueing_delay_ms")
    return known["time_s"].to_numpy(), known["queueing_delay_ms"].to_numpy()


def _sent_mbps(run: Run) -> float:
    return float(run.series["send_bps"].mean() or 0.0) / 1e6  # type: ignore[arg-type]


def _binned(time_s: "Values", values: "Values") -> "tuple[Values, Values]":
    """Means over the bins of figure 12, at their middles."""
    # A sample belongs to the time before it.
    places = np.ceil(time_s / _BIN_S - 1e-9).astype(int) - 1
    counts = np.bincount(places)
    means: Values = np.bincount(places, values) / np.maximum(counts, 1)
    middles_s = (np.arange(len(counts), dtype=np.float64) + 0.5) * _BIN_S
    return middles_s, means


def _extremes(time_s: "Values", values: "Values") -> "tuple[Values, Values]":
    """Least and most of every bin, one after the other: a figure has fewer points across than a run has samples."""
    places = np.floor(time_s / _BIN_S).astype(int)
    kept_s, kept = [], []
    for place in np.unique(places):
        inside = values[places == place]
        kept_s += [place * _BIN_S, (place + 0.5) * _BIN_S]
        kept += [inside.min(), inside.max()]
    return np.array(kept_s), np.array(kept)
