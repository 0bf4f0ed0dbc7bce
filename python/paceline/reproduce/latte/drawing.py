"""Throughput against signal delay with labels, and the score over what is varied."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from paceline.report.figures import delay_axis, label_points, throughput_axis
from paceline.reproduce.entry import Runs, Scale
from paceline.reproduce.latte import aimd
from paceline.reproduce.latte.contest import Trial, power, signal_ms, throughput_mbps
from paceline.reproduce.latte.designs import DESIGNS, FINAL, FINAL_POINT, Constant
from paceline.reproduce.latte.sweeps import Printed, Sweep, score_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_OURS, _THEIRS = "C0", "C1"


def throughput_over_delay(trials: Mapping[str, Trial], printed: Mapping[str, Printed], scale: Scale, runs: Runs) -> "Figure":
    """A point per sender, the mean over its runs; crosses are what is printed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 3.4))
    axes = figure.add_subplot()
    places = {}
    for label, trial in trials.items():
        delay_ms, mbps = trial.mean(signal_ms, scale, runs), trial.mean(throughput_mbps, scale, runs)
        if delay_ms is not None and mbps is not None:
            places[label] = (delay_ms, mbps)
    axes.plot(*zip(*places.values(), strict=True), "o", color=_OURS, markersize=3, label="ours")
    theirs = [(delay_ms, mbps) for label, (mbps, delay_ms) in printed.items() if label in trials]
    if theirs:
        axes.plot(*zip(*theirs, strict=True), "x", color=_THEIRS, label="the report's")
    shown = [*places.values(), *theirs]
    delay_axis(axes, [delay_ms for delay_ms, _ in shown])
    throughput_axis(axes, [mbps for _, mbps in shown])
    axes.set_xlabel("95th percentile of the signal delay (ms)")
    axes.set_ylabel("Throughput (Mbit/s)")
    figure.legend(loc="outside upper right", ncols=2)
    label_points(axes, [(label, _OURS, *place) for label, place in places.items()])
    return figure


def points(sweep: Sweep, scale: Scale, runs: Runs) -> "Figure":
    """Throughput against signal delay of a sweep."""
    trials = {f"{value:g}": trial for value, trial in sweep.values(scale).items()}
    printed = {f"{value:g}": numbers for value, numbers in sweep.printed.items()}
    return throughput_over_delay(trials, printed, scale, runs)


def scores(sweep: Sweep, scale: Scale, runs: Runs) -> "Figure":
    """The score of a sweep."""
    return _scored(sweep, scale, runs, log=False)


def log_scores(sweep: Sweep, scale: Scale, runs: Runs) -> "Figure":
    """Its logarithm."""
    return _scored(sweep, scale, runs, log=True)


def _scored(sweep: Sweep, scale: Scale, runs: Runs, *, log: bool) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 2.8))
    axes = figure.add_subplot()
    found = {value: trial.mean(power, scale, runs) for value, trial in sweep.values(scale).items()}
    ours = {value: _shown(score, log=log) for value, score in found.items() if score is not None}
    axes.plot(list(ours), list(ours.values()), marker="o", markersize=3, color=_OURS, label="ours")
    theirs = {value: _shown(score_of(numbers), log=log) for value, numbers in sweep.printed.items()}
    axes.plot(list(theirs), list(theirs.values()), "x", color=_THEIRS, label="the report's")
    _value_axis(axes, sweep)
    axes.set_ylabel("log(score)" if log else "Score (Mbit/s/s)")
    figure.legend(loc="outside upper right", ncols=2)
    return figure


def _shown(score: float, *, log: bool) -> float:
    return math.log(score) if log else score


def _value_axis(axes: "Axes", sweep: Sweep) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    values = list(sweep.trials)
    if max(values) > 20 * min(values):
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel(f"{sweep.name[0].upper()}{sweep.name[1:]} ({sweep.unit})")


def bars(values: Mapping[str, float], quantity: str, printed: Mapping[str, float]) -> "Figure":
    """A number per sender, and what is printed of some."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 0.6 + 0.22 * len(values)))
    axes = figure.add_subplot()
    axes.barh(list(values), list(values.values()), height=0.6, color=_OURS, label="ours")
    shown = {label: value for label, value in printed.items() if label in values}
    if shown:
        axes.plot(list(shown.values()), list(shown), "x", color=_THEIRS, label="the report's")
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(quantity)
    figure.legend(loc="outside upper right", ncols=2)
    return figure


def aimd_points(scale: Scale, runs: Runs) -> "Figure":
    """Throughput against signal delay of AIMD."""
    chosen = aimd.parameters(scale)
    printed = {str(each): each.printed for each in chosen if each.printed is not None}
    return throughput_over_delay({str(each): each.trial for each in chosen}, printed, scale, runs)


def aimd_scores(scale: Scale, runs: Runs) -> "Figure":
    """The score of AIMD."""
    chosen = aimd.parameters(scale)
    found = {str(each): each.trial.mean(power, scale, runs) for each in chosen}
    printed = {str(each): score_of(each.printed) for each in chosen if each.printed is not None}
    return bars({label: score for label, score in found.items() if score is not None}, "Score (Mbit/s/s)", printed)


def design_points(scale: Scale, runs: Runs) -> "Figure":
    """Throughput against signal delay of the designs considered."""
    return throughput_over_delay({trial.label: trial for trial in DESIGNS}, {FINAL.label: FINAL_POINT}, scale, runs)


def best_constants(constants: Sequence[Constant], scale: Scale, runs: Runs) -> "Figure":
    """The score over each constant; a dashed line is at the report's."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 2.2))
    for axes, constant in zip(figure.subplots(1, len(constants), sharey=True), constants, strict=True):
        shown = constant.scores(scale, runs)
        axes.plot(list(shown), list(shown.values()), marker="o", markersize=3, color=_OURS)
        axes.axvline(constant.chosen, color="black", linestyle="--", linewidth=0.6)
        unit = "" if constant.unit == "1" else f" ({constant.unit})"
        axes.set_xlabel(f"{constant.name[0].upper()}{constant.name[1:]}{unit}")
    figure.axes[0].set_ylabel("Score (Mbit/s/s)")
    return figure
