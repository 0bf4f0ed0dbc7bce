"""Cells: one experiment each, with what is read off it, and how cells make an entry.

In: a :class:`Scale`. Out: jobs and rows, quantity by quantity and cell by cell.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.record import Run
from paceline.reproduce.entry import Goal, GoalRow, Job, Row, Runs, Scale
from paceline.reproduce.mpc_goals.measures import Reading

#: The standard link: its RTT, ms, and the ACK noise of the papers.
RTT_MS = 25.0
NOISE: dict[str, Any] = {"kind": "exponential", "mean": "1% rtt", "max": "10% rtt", "reorder": True}
#: An opportunity of 1504 bytes a thousand times each millisecond, and none between: what passes leaves in bursts.
TICK_TRACE = Path(__file__).with_name("tick-1ms.trace")


def at_least(value: float) -> Goal:
    """Ours should be no less."""
    return Goal(value, at_least=True)


def at_most(value: float) -> Goal:
    """Ours should be no more."""
    return Goal(value, at_least=False)


@dataclass(frozen=True)
class Measure:
    """One number of a cell. Without a goal it is shown and not judged."""

    quantity: str
    unit: str
    read: Reading
    goal: Goal | None = None


@dataclass(frozen=True)
class Cell:
    """One experiment, run once per seed."""

    #: What sets it apart from the other cells of its entry, for people.
    label: str
    #: The tables of a scenario file, without title.
    scenario: Mapping[str, Any]
    measures: tuple[Measure, ...]


#: The cells of an entry at a scale.
Cells = Callable[[Scale], Sequence[Cell]]


def jobs_of(entry_id: str, cells: Cells) -> Callable[[Scale], list[Job]]:
    """The runs of an entry: every cell with every seed."""
    return lambda scale: [job(entry_id, cell, seed) for cell in cells(scale) for seed in scale.seeds]


def runs_of(entry_id: str, cell: Cell, scale: Scale, runs: Runs) -> list[Run]:
    """The runs of a cell, one per seed; fresh ones, so that their tables go with them: all entries' would be gigabytes."""
    return [Run(runs[job(entry_id, cell, seed)].directory) for seed in scale.seeds]


def rows_of(entry_id: str, cells: Cells) -> Callable[[Scale, Runs], list[Row]]:
    """The rows of an entry, in the order in which the cells first name a quantity."""

    def rows(scale: Scale, runs: Runs) -> list[Row]:
        by_quantity: dict[str, list[Row]] = {}
        for cell in cells(scale):
            of_seeds = runs_of(entry_id, cell, scale, runs)
            for measure in cell.measures:
                row = GoalRow.against(
                    f"{measure.quantity}, {cell.label}", measure.unit, measure.goal, [measure.read(run) for run in of_seeds]
                )
                by_quantity.setdefault(measure.quantity, []).append(row)
        return [row for found in by_quantity.values() for row in found]

    return rows


def job(entry_id: str, cell: Cell, seed: int) -> Job:
    """The run of a cell with a seed."""
    slug = re.sub(r"[^a-z0-9.+]+", "-", cell.label.lower()).strip("-")
    return Job.of(f"{entry_id}-{slug}", {"title": f"{entry_id}: {cell.label}", **cell.scenario}, seed)


# ---------------------------------------------------------------------------------------------------- parts of a scenario


def rate_text(rate_bps: float) -> str:
    """A rate as a scenario writes it."""
    return f"{rate_bps / 1e6:.12g} Mbit/s"


def rate_name(rate_bps: float) -> str:
    """A rate as a row names it."""
    value, unit = next(((rate_bps / size, unit) for size, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s")) if rate_bps >= size))
    return f"{value:g} {unit}"


def flows_name(count: int) -> str:
    """A number of flows as a row names it."""
    return "1 flow" if count == 1 else f"{count} flows"


def link(rate_bps: float, *, rtt_ms: float = RTT_MS, buffer_bdp: float = 1.0, **other: Any) -> dict[str, Any]:
    """The standard link; ``other`` replaces or adds keys."""
    return {"rate": rate_text(rate_bps), "rtt": f"{rtt_ms:g} ms", "buffer": f"{buffer_bdp:g} BDP", "noise": NOISE, **other}


def scenario(
    network: Mapping[str, Any],
    flows: Sequence[Mapping[str, Any]],
    duration_s: float,
    *,
    warmup_s: float = 0.0,
    sample_s: float = 0.005,
) -> dict[str, Any]:
    """A scenario over one link, or over ``{"links": …}``."""
    return {
        "duration": f"{duration_s:.9g} s",
        "warmup": f"{warmup_s:.9g} s",
        "sample": f"{sample_s * 1e3:.9g} ms",
        **(network if "links" in network else {"link": dict(network)}),
        "flows": [dict(flow) for flow in flows],
    }


def hosts(
    rate_bps: float, forward_ms: Sequence[float], access: Mapping[str, Any], flow: Mapping[str, Any]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A host per flow in front of one bottleneck, ``forward_ms`` away from it; all have the standard RTT.

    ``access`` is what a host's own link does, on the way out; ACKs have a free way back.
    """
    free = {"rate": "unlimited"}
    links: list[dict[str, Any]] = [
        {
            "name": "bottleneck",
            "from": "switch",
            "to": "receivers",
            "rate": rate_text(rate_bps),
            "delay": "0 ms",
            "buffer": "1 BDP",
            "noise": NOISE,
            "reverse": {**free, "delay": "0 ms"},
        }
    ]
    flows = []
    for number, ahead_ms in enumerate(forward_ms, start=1):
        back = {**free, "delay": f"{RTT_MS - ahead_ms:g} ms"}
        host = f"host-{number}"
        links.append({"name": host, "from": host, "to": "switch", "delay": f"{ahead_ms:g} ms", **access, "reverse": back})
        flows.append({**flow, "name": f"flow-{number}", "from": host, "to": "receivers"})
    return {"links": links}, flows
