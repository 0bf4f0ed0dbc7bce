"""What an entry is: the runs behind one table or figure of a paper, and how its numbers are read off them.

In: a :class:`Scale`. Out: :class:`Job` s, and from their runs :class:`Row` s, ours beside the paper's. An entry is data and pure
functions; ``planning`` says at which scale, ``running`` carries it out, ``output`` writes it down.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from paceline.controller import Controller
from paceline.quantity import duration_s
from paceline.record import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Row:
    """One number of the paper and ours. ``None`` is what was not printed or not measured."""

    quantity: str
    unit: str
    paper: float | None
    #: Ours, one value per seed.
    values: tuple[float, ...]
    #: Whether a ratio says anything: not where ours are spread so wide that the paper's one number could be any of them.
    comparable: bool = True

    @classmethod
    def of(
        cls, quantity: str, unit: str, paper: float | None, values: Sequence[float | None], *, comparable: bool = True
    ) -> "Row":
        """The row of ``values``, one per seed; those not measured are left out."""
        return cls(quantity, unit, paper, tuple(value for value in values if value is not None), comparable)

    @property
    def ours(self) -> float | None:
        """The median over the seeds."""
        return statistics.median(self.values) if self.values else None

    @property
    def low(self) -> float | None:
        """The least over the seeds; ``None`` where there was one seed only."""
        return min(self.values) if len(self.values) > 1 else None

    @property
    def high(self) -> float | None:
        """The greatest over the seeds; ``None`` where there was one seed only."""
        return max(self.values) if len(self.values) > 1 else None

    @property
    def ratio(self) -> float | None:
        """Ours over the paper's; ``None`` where one of them is missing, the paper's is 0, or a ratio says nothing."""
        return self.ours / self.paper if self.comparable and self.ours is not None and self.paper else None

    @property
    def held(self) -> bool | None:
        """Whether ours is what it should be; ``None`` where nothing says what that is."""
        return None

    def to_dict(self) -> dict[str, Any]:
        """The row as ``paceline reproduce --json`` prints it."""
        return {
            "quantity": self.quantity,
            "unit": self.unit,
            "paper": self.paper,
            "ours": self.ours,
            "ratio": self.ratio,
            "low": self.low,
            "high": self.high,
            "seeds": len(self.values),
        }


@dataclass(frozen=True)
class Goal:
    """What a number of ours should be."""

    value: float
    #: Ours should be at least the value; otherwise at most.
    at_least: bool

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.value:.4g}"

    def held_by(self, value: float) -> bool:
        """Whether ``value`` is on the right side; the goal itself is."""
        return value >= self.value if self.at_least else value <= self.value


@dataclass(frozen=True)
class GoalRow(Row):
    """One number of ours beside a goal instead of a paper. A goal of ``None``: shown, not judged."""

    goal: Goal | None = None

    @classmethod
    def against(cls, quantity: str, unit: str, goal: Goal | None, values: Sequence[float | None]) -> "GoalRow":
        """The row of ``values``, one per seed; those not measured are left out."""
        return cls(quantity, unit, None, tuple(value for value in values if value is not None), goal=goal)

    @property
    def held(self) -> bool | None:
        """Whether the median over the seeds holds the goal; ``None`` without one of them."""
        return None if self.goal is None or self.ours is None else self.goal.held_by(self.ours)

    def to_dict(self) -> dict[str, Any]:
        """The row as ``paceline reproduce --json`` prints it."""
        return {
            "quantity": self.quantity,
            "unit": self.unit,
            "goal": None if self.goal is None else self.goal.value,
            "bound": None if self.goal is None else "at least" if self.goal.at_least else "at most",
            "ours": self.ours,
            "low": self.low,
            "high": self.high,
            "held": self.held,
            "seeds": len(self.values),
        }


@dataclass(frozen=True)
class Band:
    """Where a number of ours should lie: in one of these ranges, ends included."""

    ranges: tuple[tuple[float, float], ...]

    @classmethod
    def near(cls, *values: float, part: float = 0.0, by: float = 0.0) -> "Band":
        """No further from one of ``values`` than ``part`` of it and ``by`` together."""
        return cls(tuple((value - part * abs(value) - by, value + part * abs(value) + by) for value in values))

    def __str__(self) -> str:
        return " or ".join(f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}" for low, high in self.ranges)

    def held_by(self, value: float) -> bool:
        """Whether ``value`` lies there."""
        return any(low <= value <= high for low, high in self.ranges)


@dataclass(frozen=True)
class BandRow(Row):
    """One number of the paper and ours, with where ours should lie. A band of ``None``: shown, not judged."""

    band: Band | None = None

    @classmethod
    def inside(
        cls, quantity: str, unit: str, paper: float | None, band: Band | None, values: Sequence[float | None]
    ) -> "BandRow":
        """The row of ``values``, one per run; those not measured are left out."""
        return cls(quantity, unit, paper, tuple(value for value in values if value is not None), band=band)

    @property
    def ours(self) -> float | None:
        """The mean over the runs, which is what such papers print."""
        return statistics.fmean(self.values) if self.values else None

    @property
    def held(self) -> bool | None:
        """Whether the mean lies in the band; ``None`` without one of them."""
        return None if self.band is None or self.ours is None else self.band.held_by(self.ours)

    def to_dict(self) -> dict[str, Any]:
        """The row as ``paceline reproduce --json`` prints it."""
        return {
            **super().to_dict(),
            "bound": None if self.band is None else [list(ends) for ends in self.band.ranges],
            "held": self.held,
        }


@dataclass(frozen=True)
class Scale:
    """How large the runs are."""

    #: Link rate over that of a full run. Rates in rows are divided by it.
    rate: float
    #: Of every run; ``None``: the entry says for each of its runs.
    duration_s: float | None
    seeds: tuple[int, ...]
    #: Only those cells of a table that tell most.
    few: bool = False
    #: Folder of recorded link traces. Without it entries about such links take a generated trace, or cannot be run
    #: (:attr:`Entry.traces`).
    traces: Path | None = None
    #: The world that carries the packets.
    on: str = "sim"

    @property
    def common_s(self) -> float:
        """The duration of every run, s, of an entry where they have one."""
        assert self.duration_s is not None
        return self.duration_s

    def __str__(self) -> str:
        whose = "full" if self.duration_s is None else "the paper's"
        rate = f"{whose} rates" if self.rate == 1 else f"{self.rate:g} of {whose} rates"
        duration = "" if self.duration_s is None else f" {self.duration_s:g} s,"
        seeds = f"seed {self.seeds[0]}" if len(self.seeds) == 1 else f"seeds {', '.join(map(str, self.seeds))}"
        if self.on != "sim":
            return f"{rate} in world `{self.on}`,{duration} {len(self.seeds)} run{'s' if len(self.seeds) > 1 else ''}"
        return f"{rate},{duration} {seeds}"


@dataclass(frozen=True)
class Job:
    """One run. Equal jobs of several entries are run once."""

    #: Names the record.
    label: str
    #: TOML text.
    scenario: str
    seed: int
    duration_s: float
    #: The world that carries the packets.
    on: str = "sim"
    #: Controllers written in Python that the scenario names by their class.
    classes: tuple[type[Controller], ...] = ()

    @classmethod
    def of(
        cls, label: str, scenario: Mapping[str, Any], seed: int, *, on: str = "sim", classes: Sequence[type[Controller]] = ()
    ) -> "Job":
        """The run of ``scenario`` (the tables of a scenario file) with ``seed``; in a world without seeds, its repetition."""
        world = "" if on == "sim" else f"-{on}"
        length_s = duration_s("duration", scenario["duration"])
        return cls(f"{label}{world}-seed-{seed}", tomli_w.dumps(scenario), seed, length_s, on, tuple(classes))


#: The run of every job.
Runs = Mapping[Job, Run]


@dataclass(frozen=True)
class Entry:
    """A table or figure of a paper."""

    #: The paper's key, a dash, ``table1`` or ``figure3``, and behind another dash what differs in a variant.
    id: str
    title: str
    #: Where in the paper.
    source: str
    #: What is run, and how the paper is read where it leaves something open: one sentence or two each.
    readings: tuple[str, ...]
    full: Scale
    quick: Scale
    jobs: Callable[[Scale], Sequence[Job]]
    rows: Callable[[Scale, Runs], Sequence[Row]]
    #: Draws what the paper shows. Called in the style of ``report.figures``.
    draw: Callable[[Scale, Runs], "Figure"] | None = None
    #: What came out at full size, and what was tried where it did not: one to four sentences for the page.
    verdict: str = ""
    #: Recorded traces that it cannot do without, by the names of their files.
    traces: tuple[str, ...] = ()
    #: Says what the machine lacks for its runs; ``None``: nothing. Asked before they are planned.
    needs: Callable[[], str | None] | None = None
    #: Its runs in world `live`, in real time; ``None``: it has none.
    live: Scale | None = None
    #: Whether they are so many that they have to be asked for.
    live_is_long: bool = False


@dataclass(frozen=True)
class Paper:
    """A paper and the entries that are there."""

    key: str
    citation: str
    entries: tuple[Entry, ...]
