"""What the goals look like: utilisation and RTT over the buffer, a late comer over time."""

import statistics
from fractions import Fraction
from typing import TYPE_CHECKING

from paceline.reproduce.entry import Runs, Scale
from paceline.reproduce.mpc import BUFFERS_BDP
from paceline.reproduce.mpc_goals import measures
from paceline.reproduce.mpc_goals.cells import RTT_MS, flows_name, runs_of
from paceline.reproduce.mpc_goals.own import RATE_BPS, Own

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def buffers(own: Own, entry_id: str, scale: Scale, runs: Runs) -> "Figure":
    """Medians over the seeds at 4 Gbit/s; dashes are the goals."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 2.6))
    axes = figure.subplots(1, 2)
    panels = (("Utilisation", measures.utilization, 0.99), ("Median RTT / base RTT", measures.median_rtt_ratio(RTT_MS), 1.05))
    grid = own.grid(scale)
    for axis, (name, reading, goal) in zip(axes, panels, strict=True):
        for index, count in enumerate(dict.fromkeys(count for count, _ in grid)):
            points = []
            for buffer in (buffer for other, buffer in grid if other == count):
                values = [reading(run) for run in runs_of(entry_id, own.buffer(scale, RATE_BPS, count, buffer), scale, runs)]
                points.append((BUFFERS_BDP.index(buffer), statistics.median(value for value in values if value is not None)))
            axis.plot(*zip(*points, strict=True), color=f"C{index}", marker="o", markersize=2, label=flows_name(count))
        axis.axhline(goal, color="black", linestyle="--", linewidth=0.6)
        axis.set_xticks(range(len(BUFFERS_BDP)), [str(Fraction(buffer)) for buffer in BUFFERS_BDP], fontsize=6)
        axis.set_xlabel("Buffer (BDP)")
        axis.set_ylabel(name)
    axes[0].legend()
    return figure


def late(own: Own, entry_id: str, scale: Scale, runs: Runs) -> "Figure":
    """Throughput per two RTTs of two flows at 4 Gbit/s, 25 ms and 1 BDP, with the first seed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.5, 2.2))
    axis = figure.subplots()
    series = runs_of(entry_id, own.late_comer(scale, RATE_BPS, RTT_MS, 1.0), scale, runs)[0].series
    for part in series.partition_by("flow", maintain_order=True):
        axis.plot(part["time_s"], part["throughput_bps"] / (1e9 * scale.rate), label=part["flow"][0])
    axis.set_xlabel("Time (s)")
    axis.set_ylabel("Throughput (Gbit/s)")
    axis.set_ylim(bottom=0)
    axis.legend()
    return figure
