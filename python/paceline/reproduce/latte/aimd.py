"""Part B: AIMD with every combination of the parameters that the report names."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise, product

from paceline.reproduce.entry import Band, BandRow, Job, Row, Runs, Scale
from paceline.reproduce.latte.contest import Reading, Trial, power, signal_ms, throughput_mbps
from paceline.reproduce.latte.sweeps import NEAR, point, score_of

_STARTS = (12, 50)
_INCREASES = (1, 5, 10)
_TIMEOUTS_MS = (1000, 100)
#: The labels of the figures: Mbit/s and ms of signal delay, from the results beside the author's code (commit 57f1336).
_PRINTED = {
    (12, 1, 100): (4.64, 907.0),
    (12, 5, 100): (4.74, 2302.0),
    (12, 10, 100): (4.98, 2738.0),
    (12, 1, 1000): (4.94, 1725.0),
    (12, 5, 1000): (4.99, 3705.0),
    (12, 10, 1000): (5.00, 4918.0),
    (50, 1, 1000): (5.00, 1778.0),
}
_DECREASE = 2


@dataclass(frozen=True)
class Parameters:
    """A label of the figures: (initial window, additive increase, decrease, timeout)."""

    start: int
    increase: int
    timeout_ms: int

    def __str__(self) -> str:
        return f"({self.start}, {self.increase}, {_DECREASE}, {self.timeout_ms})"

    @property
    def trial(self) -> Trial:
        """The sender."""
        controller = {
            "name": "aimd",
            "initial_window": self.start,
            "a": self.increase,
            "d": _DECREASE,
            "timeout": f"{self.timeout_ms} ms",
        }
        return Trial(str(self), f"aimd-{self.start}-{self.increase}-{_DECREASE}-{self.timeout_ms}", controller)

    @property
    def printed(self) -> tuple[float, float] | None:
        """Throughput, Mbit/s, and signal delay, ms."""
        return _PRINTED.get((self.start, self.increase, self.timeout_ms))


def parameters(scale: Scale) -> list[Parameters]:
    """All of them, or with few those of the shorter timeouts of one start."""
    found = [Parameters(*values) for values in product(_STARTS, _INCREASES, _TIMEOUTS_MS)]
    return [each for each in found if each.start == _STARTS[1] and each.timeout_ms == _TIMEOUTS_MS[0]] if scale.few else found


def jobs(scale: Scale) -> list[Job]:
    """Every run."""
    return [job for each in parameters(scale) for job in each.trial.jobs(scale)]


def points(scale: Scale, runs: Runs) -> list[Row]:
    """Throughput and signal delay of every set, and what the text says of them."""
    rows = [row for each in parameters(scale) for row in point(str(each), each.trial, each.printed, scale, runs)]
    for name, reading in (("throughput", throughput_mbps), ("signal delay", signal_ms)):
        rows.append(_exceptions(f"a larger increase has less {name}", reading, lambda less, more: more < less, scale, runs))
    return [*rows, *([] if scale.few else [_effect_of_start(scale, runs)])]


def scores(scale: Scale, runs: Runs) -> list[Row]:
    """The score of every set, and what the text says of them."""
    rows: list[Row] = []
    for each in parameters(scale):
        paper = None if each.printed is None else score_of(each.printed)
        band = None if paper is None else Band.near(paper, part=NEAR)
        rows.append(BandRow.inside(f"score, {each}", "Mbit/s/s", paper, band, each.trial.values(power, scale, runs)))
    return [*rows, _exceptions("a larger increase has more score", power, lambda less, more: more > less, scale, runs)]


def _exceptions(name: str, reading: Reading, breaks: Callable[[float, float], bool], scale: Scale, runs: Runs) -> Row:
    """How often a step in the increase, all else equal, does what the text excludes."""
    chosen = parameters(scale)
    found = {each: each.trial.mean(reading, scale, runs) for each in chosen}
    count = 0
    for start, timeout_ms in dict.fromkeys((each.start, each.timeout_ms) for each in chosen):
        values = [found[Parameters(start, increase, timeout_ms)] for increase in _INCREASES]
        count += sum(less is not None and more is not None and breaks(less, more) for less, more in pairwise(values))
    return BandRow.inside(f"times that {name}", "times", 0.0, Band.near(0.0), [float(count)])


def _effect_of_start(scale: Scale, runs: Runs) -> Row:
    """The largest change of a throughput when the run starts with the other window."""
    changes = []
    for increase, timeout_ms in product(_INCREASES, _TIMEOUTS_MS):
        low, high = (Parameters(start, increase, timeout_ms).trial.mean(throughput_mbps, scale, runs) for start in _STARTS)
        if low and high:
            changes.append(abs(high / low - 1))
    worst = max(changes) if changes else None
    return BandRow.inside("largest effect of the initial window on throughput", "1", None, Band(((0.0, NEAR),)), [worst])
