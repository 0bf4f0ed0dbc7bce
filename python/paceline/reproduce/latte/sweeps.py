"""Parts A to C: one parameter varied, throughput and signal delay of every value, the best by score.

In: a :class:`Sweep`. Out: the entries of its figures.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from paceline.reproduce.entry import Band, BandRow, Job, Row, Runs, Scale
from paceline.reproduce.latte.contest import Trial, power, signal_ms, throughput_mbps

#: What the report has of a trial: Mbit/s, and ms of signal delay.
Printed = tuple[float, float]
#: How near a number of ours should be to one that is printed.
NEAR = 0.05
#: A step down by less than this is none.
_LEVEL = 0.01


@dataclass(frozen=True)
class Sweep:
    """The senders of a figure, in the order of what is varied."""

    #: What is varied, as rows name it, and its unit.
    name: str
    unit: str
    trials: Mapping[float, Trial]
    printed: Mapping[float, Printed]
    #: What the text calls the best, and its score where the text has it.
    best: float
    best_score: float | None = None
    #: Whether the report says that the signal delay grows, as the throughput does.
    delay_grows: bool = True

    def jobs(self, scale: Scale) -> list[Job]:
        """Every run."""
        return [job for trial in self.values(scale).values() for job in trial.jobs(scale)]

    def values(self, scale: Scale) -> dict[float, Trial]:
        """The senders that are run at a scale."""
        return {value: trial for value, trial in self.trials.items() if not scale.few or value == self.best}

    def points(self, scale: Scale, runs: Runs) -> list[Row]:
        """Throughput and signal delay of every value, and whether they grow with it."""
        trials = self.values(scale)
        rows = [
            row
            for value, trial in trials.items()
            for row in point(f"{self.name} {value:g}", trial, self.printed.get(value), scale, runs)
        ]
        grow = [("throughput", throughput_mbps), *([("signal delay", signal_ms)] if self.delay_grows else [])]
        for quantity, reading in grow:
            means = [trial.mean(reading, scale, runs) for trial in trials.values()]
            rows.append(_steps_down(f"{quantity} falls from one {self.name} to the next", means))
        return rows

    def scores(self, scale: Scale, runs: Runs) -> list[Row]:
        """The score of every value, and the best."""
        return self._scored("score", "Mbit/s/s", lambda score: score, scale, runs)

    def log_scores(self, scale: Scale, runs: Runs) -> list[Row]:
        """The logarithm of the score of every value, and the best."""
        return self._scored("log(score)", "1", math.log, scale, runs)

    def _scored(self, name: str, unit: str, of: Callable[[float], float], scale: Scale, runs: Runs) -> list[Row]:
        rows: list[Row] = []
        for value, trial in self.values(scale).items():
            printed = self.printed.get(value)
            paper = None if printed is None else of(score_of(printed))
            # A twentieth of the score, whatever is made of it.
            band = None if printed is None else Band(((of(0.95 * score_of(printed)), of(1.05 * score_of(printed))),))
            ours = [of(score) for score in trial.values(power, scale, runs)]
            rows.append(BandRow.inside(f"{name}, {self.name} {value:g}", unit, paper, band, ours))
        found = {value: trial.mean(power, scale, runs) for value, trial in self.values(scale).items()}
        scored = {value: score for value, score in found.items() if score is not None}
        best = max(scored, key=scored.__getitem__) if scored else None
        rows.append(BandRow.inside(f"{self.name} with the best {name}", self.unit, self.best, Band.near(self.best), [best]))
        if self.best_score is not None:
            of_best = [of(max(scored.values()))] if scored else []
            printed_best = of(self.best_score)
            rows.append(BandRow.inside(f"best {name}", unit, printed_best, Band.near(printed_best, part=NEAR), of_best))
        return rows


def score_of(printed: Printed) -> float:
    """Throughput over signal delay, Mbit/s/s."""
    mbps, delay_ms = printed
    return mbps / delay_ms * 1e3


def point(name: str, trial: Trial, printed: Printed | None, scale: Scale, runs: Runs, near: float = NEAR) -> list[Row]:
    """Throughput and signal delay of a sender, beside what is printed."""
    mbps, delay_ms = printed or (None, None)
    return [
        BandRow.inside(f"{quantity}, {name}", unit, paper, None if paper is None else Band.near(paper, part=near), values)
        for quantity, unit, paper, values in (
            ("throughput", "Mbit/s", mbps, trial.values(throughput_mbps, scale, runs)),
            ("signal delay p95", "ms", delay_ms, trial.values(signal_ms, scale, runs)),
        )
    ]


def _steps_down(name: str, values: Sequence[float | None]) -> Row:
    """How often a number that should grow falls, by more than noise."""
    known = [value for value in values if value is not None]
    falls = sum(after < (1 - _LEVEL) * before for before, after in pairwise(known))
    return BandRow.inside(f"times that {name}", "times", 0.0, Band.near(0.0), [float(falls)] if known else [])
