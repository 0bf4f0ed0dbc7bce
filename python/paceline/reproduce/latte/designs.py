"""Part D: the designs that Latte's author considered, the parameters chosen, the two senders with a printed score."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.reproduce.entry import Band, BandRow, Job, Row, Runs, Scale
from paceline.reproduce.latte import aimd
from paceline.reproduce.latte.contest import (
    Reading,
    Trial,
    capacity_mbps,
    power,
    queueing_ms,
    signal_ms,
    throughput_mbps,
    utilization_percent,
)
from paceline.reproduce.latte.senders import delay_threshold
from paceline.reproduce.latte.sweeps import NEAR, point

#: The code that was handed in; its runs are also drawn over time.
FINAL = Trial("Latte", "final", "latte:released", sample_ms=5)
FIXED = Trial("Latte with lambda 1.7", "lambda-1.7", "latte:fixed")
#: Throughput, Mbit/s, and signal delay, ms, of the final one.
FINAL_POINT = (3.83, 93.0)
#: Two runs' scores differ by as much in the report and in reruns of its code.
_POWER = 1.5

# ------------------------------------------------------------------------------------------------------------- the results

_RESULTS: tuple[tuple[str, str, Reading, float | None, float, float], ...] = (
    ("capacity", "Mbit/s", capacity_mbps, 0.01, 5.04, 5.04),
    ("throughput", "Mbit/s", throughput_mbps, NEAR, 3.83, 3.83),
    ("utilisation", "%", utilization_percent, NEAR, 75.9, 76.0),
    ("queueing delay p95", "ms", queueing_ms, NEAR, 50.0, 49.0),
    ("signal delay p95", "ms", signal_ms, NEAR, 90.0, 93.0),
    ("power score", "Mbit/s/s", power, None, 42.56, 41.18),
)


def result_jobs(scale: Scale) -> list[Job]:
    """The runs of both."""
    return [job for trial in (FIXED, FINAL) for job in trial.jobs(scale)]


def result_rows(scale: Scale, runs: Runs) -> list[Row]:
    """What the contest's server printed of both."""
    rows: list[Row] = []
    for trial, column in ((FIXED, 0), (FINAL, 1)):
        for name, unit, reading, part, *printed in _RESULTS:
            paper = printed[column]
            band = Band.near(paper, by=_POWER) if part is None else Band.near(paper, part=part)
            rows.append(BandRow.inside(f"{name}, {trial.label}", unit, paper, band, trial.values(reading, scale, runs)))
    return rows


# -------------------------------------------------------------------------------------------------------------- the bounds

WINDOW_12 = Trial("window 12", "window-12", {"name": "window", "packets": 12})
_RTT_AIMD = Trial("RTT + AIMD 120 ms", "rtt-aimd-120", {"name": "rtt-aimd", "threshold": "120 ms"})
_THRESHOLD = Trial("delay threshold 75 ms", "threshold-75", delay_threshold(75))
_AIMD = aimd.Parameters(50, 1, 1000).trial
#: Sender, Mbit/s, ms, and how near; the delay of the threshold has two modes, of which the report met the first.
_BOUNDS: tuple[tuple[Trial, float, float, float], ...] = (
    (WINDOW_12, 2.282, 177.2, 0.03),
    (_RTT_AIMD, 3.10, 142.0, NEAR),
    (_AIMD, 5.00, 1778.0, NEAR),
)
_MODES_MS = (300.0, 415.0)


def bound_jobs(scale: Scale) -> list[Job]:
    """The runs of all six."""
    trials = (FINAL, FIXED, WINDOW_12, _RTT_AIMD, _AIMD, _THRESHOLD)
    return [job for trial in trials for job in trial.jobs(scale)]


def bound_rows(scale: Scale, runs: Runs) -> list[Row]:
    """What must hold, and throughput and delay of all six, in which the worlds must agree."""
    rows: list[Row] = []
    for trial, paper, goal, mbps, delay_ms in ((FINAL, 41.18, 41.2, 3.83, 93.0), (FIXED, 42.56, 42.6, 3.83, 90.0)):
        band = Band.near(goal, by=_POWER)
        rows.append(BandRow.inside(f"power score, {trial.label}", "Mbit/s/s", paper, band, trial.values(power, scale, runs)))
        rows.append(_unjudged("throughput", "Mbit/s", trial, mbps, throughput_mbps, scale, runs))
        rows.append(_unjudged("signal delay p95", "ms", trial, delay_ms, signal_ms, scale, runs))
    for trial, mbps, delay_ms, near in _BOUNDS:
        rows += point(trial.label, trial, (mbps, delay_ms), scale, runs, near)
    fast = _THRESHOLD.values(throughput_mbps, scale, runs)
    slow = _THRESHOLD.values(signal_ms, scale, runs)
    rows.append(BandRow.inside(f"throughput, {_THRESHOLD.label}", "Mbit/s", 4.61, Band.near(4.61, part=NEAR), fast))
    modes = Band.near(*_MODES_MS, part=NEAR)
    rows.append(BandRow.inside(f"signal delay p95, {_THRESHOLD.label}", "ms", 299.0, modes, slow))
    return rows


def _unjudged(name: str, unit: str, trial: Trial, paper: float, reading: Reading, scale: Scale, runs: Runs) -> Row:
    return BandRow.inside(f"{name}, {trial.label}", unit, paper, None, trial.values(reading, scale, runs))


# ------------------------------------------------------------------------------------------------------------- the designs

#: The steady state alone is the RTT gradient's sender without its cut.
STEADY = Trial("steady state, lambda 2", "steady-2", {"name": "rtt-gradient", "beta": 0})
STEADY_FIXED = Trial("steady state, lambda 1.7", "steady-1.7", {"name": "rtt-gradient", "beta": 0, "lambda": 1.7})
PENALTY = Trial("exponential penalty", "exp-penalty", "exp-penalty")
GRADIENT = Trial("RTT gradient", "rtt-gradient", "rtt-gradient")
GRADIENT_RELEASED = Trial("RTT gradient of the last code", "rtt-gradient-released", "rtt-gradient:released")
CYCLE = Trial("cycle gain", "cycle-gain", "cycle-gain")
CYCLE_BBR = Trial("cycle gain of BBR", "cycle-gain-bbr", "cycle-gain:bbr")
REPORT = Trial("Latte without the gradient cut", "report", "latte:report")
DESIGNS = (STEADY, STEADY_FIXED, PENALTY, GRADIENT, GRADIENT_RELEASED, CYCLE, CYCLE_BBR, REPORT, FINAL)
#: What was tried on the way and dropped.
_DROPPED = (STEADY, STEADY_FIXED, PENALTY, GRADIENT, GRADIENT_RELEASED, CYCLE, CYCLE_BBR)


def design_jobs(scale: Scale) -> list[Job]:
    """The runs of all."""
    return [job for trial in DESIGNS for job in trial.jobs(scale)]


def design_rows(scale: Scale, runs: Runs) -> list[Row]:
    """Throughput, delay and score of all, and what the text says of them."""
    rows: list[Row] = []
    scores = {trial: trial.mean(power, scale, runs) for trial in DESIGNS}
    for trial in DESIGNS:
        rows += point(trial.label, trial, FINAL_POINT if trial is FINAL else None, scale, runs)
        paper, band = (41.18, Band.near(41.18, by=_POWER)) if trial is FINAL else (None, None)
        rows.append(BandRow.inside(f"power score, {trial.label}", "Mbit/s/s", paper, band, trial.values(power, scale, runs)))
    final = scores[FINAL]
    better = [trial for trial in _DROPPED if final is not None and (scores[trial] or 0.0) >= final]
    rows.append(BandRow.inside("dropped designs that score Latte's or more", "designs", 0.0, Band.near(0.0), [len(better)]))
    # No gain worth having: less than a tenth of the score.
    for name, trial in (("RTT gradient", GRADIENT), ("cycle gain", CYCLE)):
        gain = _over(scores[trial], scores[STEADY_FIXED])
        label = f"score, {name} over the steady state with lambda 1.7"
        rows.append(BandRow.inside(label, "1", None, Band(((0.0, 1.1),)), [gain]))
    return rows


def _over(one: float | None, other: float | None) -> float | None:
    return None if one is None or not other else one / other


# ------------------------------------------------------------------------------------------------------- the constants


@dataclass(frozen=True)
class Constant:
    """A constant of the sender with a fixed lambda, around what the report chose."""

    name: str
    key: str
    unit: str
    chosen: float
    values: Sequence[float]

    def trial(self, value: float) -> Trial:
        """The sender with that value; the chosen one is :data:`FIXED`."""
        if value == self.chosen:
            return FIXED
        controller = {"name": "latte", "profile": "fixed", self.key: value}
        return Trial(f"{self.name} {value:g}", f"{self.key}-{value:g}", controller)

    def scores(self, scale: Scale, runs: Runs) -> dict[float, float]:
        """The mean score of every value that has one."""
        found = {value: self.trial(value).mean(power, scale, runs) for value in self.values}
        return {value: score for value, score in found.items() if score is not None}


CONSTANTS = (
    Constant("lambda", "lambda", "1", 1.7, (1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0, 2.2)),
    Constant("gamma", "gamma", "1", 0.8, (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
    Constant("timeout", "timeout", "min RTTs", 1.5, (1.0, 1.25, 1.5, 2.0, 3.0, 5.0)),
)


def constant_jobs(scale: Scale) -> list[Job]:
    """The runs of every value."""
    return [job for constant in CONSTANTS for value in constant.values for job in constant.trial(value).jobs(scale)]


def constant_rows(scale: Scale, runs: Runs) -> list[Row]:
    """The score of every value, the best of each constant, and by how much it is better than the report's choice."""
    rows: list[Row] = []
    for constant in CONSTANTS:
        for value in constant.values:
            scores = constant.trial(value).values(power, scale, runs)
            rows.append(BandRow.inside(f"power score, {constant.name} {value:g}", "Mbit/s/s", None, None, scores))
        known = constant.scores(scale, runs)
        chosen = constant.chosen
        best = max(known, key=known.__getitem__) if known else None
        lead = known[best] - known[chosen] if best is not None and chosen in known else None
        rows.append(BandRow.inside(f"{constant.name} with the best score", constant.unit, chosen, None, [best]))
        label = f"score of the best {constant.name} less that of {chosen:g}"
        rows.append(BandRow.inside(label, "Mbit/s/s", None, Band(((0.0, _POWER),)), [lead]))
    return rows
