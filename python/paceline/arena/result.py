"""What an arena gave, as tables for the terminal and as one JSON object.

In: links, cells and the ranking. Out: rows of text with their headings, and the object of ``--json`` and ``arena.json``.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from paceline.arena.running import Cell, Contestant, build
from paceline.arena.setting import Setting
from paceline.arena.standing import Standing, alike, deserted, rank
from paceline.arena.traces import Link
from paceline.summary import ABSENT

#: What is smaller is not worth its digits.
_LEAST = 0.001


@dataclass(frozen=True)
class Arena:
    """An arena that was held."""

    links: Sequence[Link]
    contestants: Sequence[Contestant]
    seeds: Sequence[int]
    reference: str
    world: str
    setting: Setting
    cells: Sequence[Cell]
    #: What a shell is given to hold it again.
    command: str

    @cached_property
    def standings(self) -> list[Standing]:
        """The ranking."""
        return rank(self.cells, self.reference)

    @property
    def size(self) -> str:
        """How large it is, in words."""
        seeds = "as recorded" if len(self.seeds) == 1 else f"{len(self.seeds)} seeds"
        return f"{_count(self.contestants, 'controller')}, {_count(self.links, 'trace')}, {seeds}"

    def to_dict(self) -> dict[str, Any]:
        """The arena as ``--json`` prints it."""
        return {
            "build": build(),
            "command": self.command,
            "world": self.world,
            "scenario": self.setting.source or None,
            "reference": self.reference,
            "seeds": list(self.seeds),
            "traces": [self._trace(link) for link in self.links],
            "ranking": [asdict(standing) for standing in self.standings],
            "alike": alike(self.cells),
            "cells": [asdict(cell) | {"share": cell.share, "power": cell.power} for cell in self.cells],
        }

    def _trace(self, link: Link) -> dict[str, Any]:
        return {
            "name": link.name,
            "acks": None if link.acks is None else link.acks.name,
            "period_ms": link.period_ms,
            "mean_bps": link.mean_bps,
            "duration_ms": self.setting.length_ms(link),
            "starts_ms": [link.start_ms(seed) for seed in self.seeds],
            "sha256": link.data_sha256,
            "acks_sha256": link.acks_sha256,
        }


def headings(arena: Arena) -> list[str]:
    """Columns of :func:`row`."""
    names = ["rank", "controller", f"power over {arena.reference}"]
    if len(arena.seeds) > 1:
        names += ["95 % interval", "rank over seeds"]
    if len(arena.links) > 1:
        names += ["over traces"]
    return [*names, "power", "share of capacity %", "signal p95 ms", "on front"]


def row(standing: Standing, arena: Arena) -> list[str]:
    """A controller as text, in the order of :func:`headings`."""
    rank_ = ABSENT if standing.rank is None else str(standing.rank)
    cells = [rank_, standing.controller, number(standing.relative)]
    if len(arena.seeds) > 1:
        cells.append(between(standing.relative_low, standing.relative_high))
        cells.append(ABSENT if standing.rank_best is None else _places(standing))
    if len(arena.links) > 1:
        known = [link.relative for link in standing.links if link.relative is not None]
        cells.append(between(min(known), max(known)) if known else ABSENT)
    share = ABSENT if standing.share is None else f"{100 * standing.share:.1f}"
    delay = ABSENT if standing.delay_ms is None else f"{standing.delay_ms:.0f}"
    return [*cells, number(standing.power), share, delay, front_text(standing, arena)]


def front_text(standing: Standing, arena: Arena) -> str:
    """Whether a controller is on the front, and with how many of the seeds."""
    if standing.rank is None:
        return ABSENT
    if len(arena.seeds) == 1:
        return "yes" if standing.on_front else ""
    return f"{'yes, ' if standing.on_front else ''}{standing.front_seeds}/{len(arena.seeds)}" if standing.front_seeds else ""


def notes(arena: Arena) -> list[str]:
    """What a reader of the table must know: how to take the numbers, which controllers nothing tells apart, what failed."""
    said = ["Means over traces and seeds are geometric; power is Mbit/s over s, delays leave propagation out."]
    if len(arena.seeds) > 1:
        said.append(
            "Seeds begin at other moments of the same traces: the interval says how much that moment matters, not how another "
            "link would turn out."
        )
    for link, seed in deserted(arena.cells):
        said.append(f"{link} with seed {seed} is in no mean: nobody delivered anything.")
    for names in alike(arena.cells):
        said.append(f"The same in every cell: {', '.join(names)}.")
    failed: dict[tuple[int, str], list[str]] = {}
    for standing in arena.standings:
        if standing.error is not None:
            failed.setdefault((standing.failed, standing.error), []).append(standing.controller)
    total = len(arena.links) * len(arena.seeds)
    for (cells, error), names in failed.items():
        said.append(f"Not ranked, with {cells} of {total} cells failed: {', '.join(names)}. {error}")
        if arena.reference in names:
            said.append(f"{arena.reference} is the reference: no ratio can be given.")
    return said


def links_text(arena: Arena) -> list[str]:
    """What the traces are, a line each."""
    lines = []
    for link in arena.links:
        acks = "ACKs over a link without limit" if link.acks is None else f"ACKs over {link.acks.name}"
        seconds = arena.setting.length_ms(link) / 1e3
        lines.append(f"{link.name}: {link.mean_bps * 1e-6:.2f} Mbit/s, {seconds:g} s of {link.period_ms / 1e3:g} s, {acks}")
    return lines


def number(value: float | None) -> str:
    """Two decimals, of large numbers fewer, and of small ones as many as show two digits."""
    if value is None:
        return ABSENT
    if value == 0:
        return "0"
    if value < _LEAST:
        return f"<{_LEAST}"
    size = math.floor(math.log10(value))
    return f"{value:.{max(0, 2 - max(size, 0)) if size >= -1 else 1 - size}f}"


def between(low: float | None, high: float | None) -> str:
    """A range as text."""
    return ABSENT if low is None or high is None else f"{number(low)} to {number(high)}"


def _places(standing: Standing) -> str:
    same = standing.rank_best == standing.rank_worst
    return str(standing.rank_best) if same else f"{standing.rank_best} to {standing.rank_worst}"


def _count(items: Sequence[object], name: str) -> str:
    return f"{len(items)} {name}{'' if len(items) == 1 else 's'}"
