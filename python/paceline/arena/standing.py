"""Who is ahead: the ranking of an arena and how sure it is.

In: cells. Out: a :class:`Standing` per controller. Means are geometric throughout, over traces and seeds alike: a trace ten times
as fast as another then counts as much, and power is throughput over delay in every mean as in every cell.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.arena.running import Cell
from paceline.summary import interval


@dataclass(frozen=True)
class OnLink:
    """A controller on one link: geometric means over the seeds."""

    link: str
    power: float
    #: Power over the reference's on this link; ``None`` where the reference has none.
    relative: float | None
    share: float
    throughput_bps: float
    delay_ms: float | None
    #: Least and greatest power over the seeds.
    power_least: float
    power_most: float
    #: No other controller has more throughput at no more delay, or less delay at no less throughput.
    on_front: bool


@dataclass(frozen=True)
class Standing:
    """A controller over all links."""

    controller: str
    #: Place by power; equal powers share one. ``None`` for a controller whose cells are not all there.
    rank: int | None = None
    #: Best and worst place over the seeds, each ranked by itself.
    rank_best: int | None = None
    rank_worst: int | None = None
    power: float | None = None
    #: Power over the reference's, and the 95 % interval of it over the seeds (two or more).
    relative: float | None = None
    relative_low: float | None = None
    relative_high: float | None = None
    #: Throughput over capacity.
    share: float | None = None
    delay_ms: float | None = None
    on_front: bool = False
    #: With how many of the seeds it is on the front.
    front_seeds: int = 0
    links: Sequence[OnLink] = ()
    #: How many cells failed, and what the first of them said.
    failed: int = 0
    error: str | None = None


def rank(cells: Sequence[Cell], reference: str) -> list[Standing]:
    """The controllers from the best on; behind them, in the order of the cells, those that failed."""
    by_controller: dict[str, list[Cell]] = {}
    for cell in cells:
        by_controller.setdefault(cell.controller, []).append(cell)
    there = {name: members for name, members in by_controller.items() if all(cell.error is None for cell in members)}
    dead = set(deserted(cells))
    whole = {name: [cell for cell in members if (cell.link, cell.seed) not in dead] or members for name, members in there.items()}
    seeds = sorted({cell.seed for members in whole.values() for cell in members})
    links = list(dict.fromkeys(cell.link for cell in cells))

    power = {name: geometric_mean([cell.power for cell in members]) for name, members in whole.items()}
    per_seed = {
        seed: {name: geometric_mean([cell.power for cell in members if cell.seed == seed]) for name, members in whole.items()}
        for seed in seeds
    }
    places = _places(power)
    seed_places = [_places(powers) for powers in per_seed.values()]
    front = _front(whole)
    seed_fronts = [_front({n: [c for c in members if c.seed == seed] for n, members in whole.items()}) for seed in seeds]
    on_links = {link: _on_link(link, there, reference) for link in links}

    standings = []
    for name in sorted(whole, key=lambda each: places[each]):
        ratios = [_ratio(powers[name], powers.get(reference)) for powers in per_seed.values()]
        low, high = _ratio_interval(ratios) if name != reference else (None, None)
        standings.append(
            Standing(
                controller=name,
                rank=places[name],
                rank_best=min(found[name] for found in seed_places),
                rank_worst=max(found[name] for found in seed_places),
                power=power[name],
                relative=_ratio(power[name], power.get(reference)),
                relative_low=low,
                relative_high=high,
                share=geometric_mean([cell.share for cell in whole[name]]),
                delay_ms=_mean_delay(whole[name]),
                on_front=name in front,
                front_seeds=sum(name in found for found in seed_fronts),
                links=[on_links[link][name] for link in links],
            )
        )
    for name, members in by_controller.items():
        if name not in whole:
            errors = [cell.error for cell in members if cell.error is not None]
            standings.append(Standing(name, failed=len(errors), error=errors[0]))
    return standings


def deserted(cells: Sequence[Cell]) -> list[tuple[str, int]]:
    """Links and seeds with which nobody delivered anything, as when a run falls into a gap of the trace: they say nothing."""
    best: dict[tuple[str, int], float] = {}
    for cell in cells:
        if cell.error is None:
            place = cell.link, cell.seed
            best[place] = max(best.get(place, 0.0), cell.power)
    return [place for place, power in best.items() if power == 0]


def alike(cells: Sequence[Cell]) -> list[list[str]]:
    """Controllers that did the same in every cell, to the last digit: on these links nothing tells them apart."""
    found: dict[tuple[object, ...], list[str]] = {}
    by_controller: dict[str, list[Cell]] = {}
    for cell in cells:
        by_controller.setdefault(cell.controller, []).append(cell)
    for name, members in by_controller.items():
        if all(cell.error is None for cell in members):
            did = tuple((c.throughput_bps, c.signal_p95_ms, c.queueing_p95_ms, c.rtt_p95_ms, c.loss_fraction) for c in members)
            found.setdefault(did, []).append(name)
    return [names for names in found.values() if len(names) > 1]


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean; 0 if one of the values is."""
    if min(values) <= 0:
        return 0.0
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def front(points: Mapping[str, tuple[float, float | None]]) -> set[str]:
    """Whoever no other beats in share and delay: ``points`` holds both by name. Without a delay nobody is on it."""
    known = {name: (share, delay) for name, (share, delay) in points.items() if delay is not None}

    def beaten(share: float, delay: float) -> bool:
        return any(s >= share and d <= delay and (s, d) != (share, delay) for s, d in known.values())

    return {name for name, point in known.items() if not beaten(*point)}


def _on_link(link: str, whole: Mapping[str, Sequence[Cell]], reference: str) -> dict[str, OnLink]:
    there = {name: [cell for cell in members if cell.link == link] for name, members in whole.items()}
    powers = {name: geometric_mean([cell.power for cell in members]) for name, members in there.items()}
    on_front = _front(there)
    return {
        name: OnLink(
            link=link,
            power=powers[name],
            relative=_ratio(powers[name], powers.get(reference)),
            share=geometric_mean([cell.share for cell in members]),
            throughput_bps=geometric_mean([cell.throughput_bps or 0.0 for cell in members]),
            delay_ms=_mean_delay(members),
            power_least=min(cell.power for cell in members),
            power_most=max(cell.power for cell in members),
            on_front=name in on_front,
        )
        for name, members in there.items()
    }


def _front(members: Mapping[str, Sequence[Cell]]) -> set[str]:
    return front({name: (geometric_mean([cell.share for cell in cells]), _mean_delay(cells)) for name, cells in members.items()})


def _mean_delay(cells: Sequence[Cell]) -> float | None:
    delays = [cell.delay_ms for cell in cells if cell.delay_ms is not None]
    return geometric_mean(delays) if len(delays) == len(cells) else None


def _places(power: Mapping[str, float]) -> dict[str, int]:
    """One more than how many have more; equal powers share a place."""
    return {name: 1 + sum(other > own for other in power.values()) for name, own in power.items()}


def _ratio(power: float, reference: float | None) -> float | None:
    return power / reference if reference else None


def _ratio_interval(ratios: Sequence[float | None]) -> tuple[float | None, float | None]:
    """The 95 % confidence interval of the geometric mean."""
    known = [ratio for ratio in ratios if ratio]
    if len(known) < len(ratios) or len(known) < 2:
        return None, None
    mean, half = interval([math.log(ratio) for ratio in known])
    return math.exp(mean - half), math.exp(mean + half)
