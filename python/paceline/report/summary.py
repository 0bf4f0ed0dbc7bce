"""The numbers of the report's tables and of the throughput-against-delay plot.

In: loaded runs. Out: typed columns of text with their sort keys, and plot points. Nothing here is computed from the time series:
every number is the record's own, so that the page and ``paceline run --json`` can never disagree.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from paceline.report import units
from paceline.report.loading import Flow, Link, Run

#: Delays a flow can be judged by: key, title, path in the flow's result. The first that any flow has is the default.
DELAYS = (
    ("queueing", "95th percentile of queueing delay", ("queueing_delay_ms", "p95")),
    ("rtt", "95th percentile of RTT", ("rtt_ms", "p95")),
    ("signal", "95th percentile of signal delay", ("signal_delay_ms", "p95")),
)


@dataclass(frozen=True)
class TableColumn:
    """A column ready to print: heading, unit, what it means, and per row the text and the number to sort by."""

    heading: str
    unit: str
    meaning: str
    texts: list[str]
    keys: list[float | None]


@dataclass(frozen=True)
class Point:
    """A point of throughput against delay: one flow, or (``mean``) all flows of a controller in repeated runs."""

    name: str
    controller: str
    group: int
    mean: bool
    throughput_bps: float
    delay_ms: dict[str, float]


def flow_columns(rows: Sequence[tuple[Run, Flow]]) -> list[TableColumn]:
    """The summary table: one row per run and flow. A column that no row has a value for is left out."""
    measures: list[tuple[str, str, str, Callable[[Run, Flow], float | None], int]] = [
        ("Throughput", "bit/s", "Bytes on the wire that were delivered, after warm-up", _flow_number("throughput_bps"), 3),
        ("Link utilisation", "%", "Throughput of the bottleneck link over its capacity", _utilization, 1),
        ("RTT p50", "ms", "Median round-trip time", _flow_number("rtt_ms", "p50"), 2),
        ("RTT p95", "ms", "95th percentile of round-trip time", _flow_number("rtt_ms", "p95"), 2),
        ("Queueing p95", "ms", "95th percentile of time in queues, per packet", _flow_number("queueing_delay_ms", "p95"), 2),
        ("Signal p95", "ms", "95th percentile of signal delay", _flow_number("signal_delay_ms", "p95"), 2),
        ("Power", "", "Throughput in Mbit/s over p95 signal delay in s", _flow_number("power_score"), 2),
        ("Loss", "%", "Packets lost over packets sent", _loss, 3),
        ("Retrans.", "packets", "Packets retransmitted, whole run", _flow_number("retransmitted_packets"), 0),
        ("Timeouts", "", "Retransmission timeouts, whole run", _flow_number("timeouts"), 0),
        ("Jain", "", "Jain's fairness index over the run's flows (1 = equal)", _jain, 3),
    ]
    return _columns([(*head, [value(*row) for row in rows], most) for *head, value, most in measures])


def link_columns(rows: Sequence[tuple[Run, Link]]) -> list[TableColumn]:
    """The table of links: one row per run and link."""
    measures: list[tuple[str, str, str, tuple[str, ...], float, int]] = [
        ("Capacity", "bit/s", "Mean capacity offered", ("capacity_bps",), 1, 3),
        ("Throughput", "bit/s", "Bytes that left the link", ("throughput_bps",), 1, 3),
        ("Utilisation", "%", "Throughput over capacity", ("utilization",), 100, 1),
        ("Queue p50", "ms", "Median time in the queue and in service", ("queue_ms", "p50"), 1, 2),
        ("Queue p95", "ms", "95th percentile of time in the queue and in service", ("queue_ms", "p95"), 1, 2),
        ("Drops", "packets", "Packets dropped, whole run", ("drops",), 1, 0),
        ("Marks", "packets", "Packets marked, whole run", ("marks",), 1, 0),
    ]
    return _columns(
        [(*head, [_times(link.summary.number(*path), by) for _, link in rows], most) for *head, path, by, most in measures]
    )


def points(runs: Sequence[Run]) -> list[Point]:
    """Points of throughput against delay: one per flow, and a mean for each controller that has several.

    Flows are averaged only over runs of one scenario text (overrides are part of it) with the same controllers in one world:
    over flows and seeds, never over what they competed with.
    """
    groups: dict[tuple[Any, ...], list[Point]] = {}
    for run in runs:
        for flow in run.flows:
            throughput = flow.summary.number("throughput_bps")
            measured = {key: flow.summary.number(*path) for key, _, path in DELAYS}
            delay = {key: value for key, value in measured.items() if value is not None}
            if throughput is not None and delay:
                key = (flow.controller, _others(run, flow), run.scenario_id, str(run.manifest.get("world")))
                name = f"{run.label}, {flow.name}"
                groups.setdefault(key, []).append(Point(name, flow.controller, 0, False, throughput, delay))
    names = [key[0] for key in groups]
    mixes = [key[:2] for key in groups]
    result = []
    for number, ((controller, others, *_), members) in enumerate(groups.items()):
        name = controller
        if names.count(controller) > 1:
            name = f"{controller} (with {', '.join(others)})" if others else controller
        if mixes.count((controller, others)) > 1:
            # The same controllers in two scenarios or worlds: only the run's label says which is which.
            name = members[0].name
        result += [Point(p.name, controller, number, False, p.throughput_bps, p.delay_ms) for p in members if len(members) > 1]
        shared = [key for key in members[0].delay_ms if all(key in point.delay_ms for point in members)]
        mean_delay = {key: fmean(point.delay_ms[key] for point in members) for key in shared}
        result.append(Point(name, controller, number, True, fmean(p.throughput_bps for p in members), mean_delay))
    return result


def delays(found: Sequence[Point]) -> list[tuple[str, str]]:
    """Key and title of each delay of :data:`DELAYS` that at least one point has."""
    return [(key, title) for key, title, _ in DELAYS if any(key in point.delay_ms for point in found)]


def _columns(measures: list[tuple[Any, ...]]) -> list[TableColumn]:
    columns = []
    for heading, unit, meaning, values, most in measures:
        known = [value for value in values if value is not None]
        if not known:
            continue
        factor, printed = units.scale(unit, max(known)) if unit == "bit/s" else (1.0, unit)
        texts = units.column([None if value is None else factor * value for value in values], most)
        columns.append(TableColumn(heading, printed, meaning, texts, values))
    return columns


def _flow_number(*path: str) -> Callable[[Run, Flow], float | None]:
    return lambda _, flow: flow.summary.number(*path)


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else factor * value


def _loss(_: Run, flow: Flow) -> float | None:
    return _times(flow.summary.number("loss_fraction"), 100)


def _jain(run: Run, _: Flow) -> float | None:
    return run.jain_index if len(run.flows) > 1 else None


def _utilization(run: Run, _: Flow) -> float | None:
    return _times(run.bottleneck.summary.number("utilization"), 100) if run.bottleneck else None


def _others(run: Run, flow: Flow) -> tuple[str, ...]:
    """The controllers that a flow shared the run with, its own apart."""
    return tuple(sorted({other.controller for other in run.flows} - {flow.controller}))
