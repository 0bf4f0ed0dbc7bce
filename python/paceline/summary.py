"""The comparison table: which numbers of a result it shows, and how.

In: results as ``paceline run --json`` prints them. Out: rows of text, one per flow or one per run, for the terminal and for
notebooks. Nothing is computed that the result does not hold, but for sums over flows and the worst of several flows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

#: Column headings, with units.
HEADINGS = (
    "run",
    "throughput Mbit/s",
    "utilisation %",
    "RTT p50 ms",
    "RTT p95 ms",
    "queueing p95 ms",
    "signal p95 ms",
    "power",
    "loss %",
    "Jain",
)

#: Digits shown of each number, and the scale from the result's unit to the heading's.
FORMATS = ((3, 1, 2, 2, 2, 2, 2, 3, 3), (1e-6, 100, 1, 1, 1, 1, 1, 100, 1))

ABSENT = "–"


@dataclass(frozen=True)
class Row:
    """One line of the table. ``None`` is shown as a dash."""

    label: str
    throughput_bps: float | None
    utilization: float | None
    rtt_p50_ms: float | None
    rtt_p95_ms: float | None
    queueing_p95_ms: float | None
    signal_p95_ms: float | None
    power_score: float | None
    loss_fraction: float | None
    jain_index: float | None

    @classmethod
    def of_flow(cls, flow: Mapping[str, Any], result: Mapping[str, Any]) -> "Row":
        """The line of one flow. Utilisation is the flow's throughput over the bottleneck's capacity; Jain is the run's."""
        capacity = _number(_bottleneck(result), "capacity_bps")
        throughput = _number(flow, "throughput_bps")
        return cls(
            label=f"{flow.get('name')} ({flow.get('controller')})",
            throughput_bps=throughput,
            utilization=throughput / capacity if capacity and throughput is not None else None,
            rtt_p50_ms=_number(flow, "rtt_ms", "p50"),
            rtt_p95_ms=_number(flow, "rtt_ms", "p95"),
            queueing_p95_ms=_number(flow, "queueing_delay_ms", "p95"),
            signal_p95_ms=_number(flow, "signal_delay_ms", "p95"),
            power_score=_number(flow, "power_score"),
            loss_fraction=_number(flow, "loss_fraction"),
            jain_index=_number(result, "jain_index"),
        )

    @classmethod
    def of_run(cls, label: str, result: Mapping[str, Any]) -> "Row":
        """The line of one run: throughput and losses of all flows together, delays and power of the worst flow."""
        flows: Sequence[Mapping[str, Any]] = result.get("flows") or []

        def worst(*path: str) -> float | None:
            return max(_present(_number(flow, *path) for flow in flows), default=None)

        throughputs = _present(_number(flow, "throughput_bps") for flow in flows)
        sent = sum(_present(_number(flow, "sent_packets") for flow in flows))
        lost = sum(_present(_number(flow, "lost_packets") for flow in flows))
        return cls(
            label=label,
            throughput_bps=sum(throughputs) if throughputs else None,
            utilization=_number(_bottleneck(result), "utilization"),
            rtt_p50_ms=worst("rtt_ms", "p50"),
            rtt_p95_ms=worst("rtt_ms", "p95"),
            queueing_p95_ms=worst("queueing_delay_ms", "p95"),
            signal_p95_ms=worst("signal_delay_ms", "p95"),
            power_score=min(_present(_number(flow, "power_score") for flow in flows), default=None),
            loss_fraction=lost / sent if sent else None,
            jain_index=_number(result, "jain_index"),
        )

    def numbers(self) -> tuple[float | None, ...]:
        """Everything but the label, in the order of :data:`HEADINGS`."""
        return tuple(getattr(self, field.name) for field in fields(self)[1:])

    def cells(self) -> tuple[str, ...]:
        """The line as text, in the order of :data:`HEADINGS`."""
        return (self.label, *(_text(*number) for number in zip(self.numbers(), *FORMATS, strict=True)))


@dataclass(frozen=True)
class Repeated:
    """One line for several runs that differ in their seed alone: means and 95 % confidence intervals."""

    label: str
    rows: Sequence[Row]

    def cells(self) -> tuple[str, ...]:
        """The line as text, in the order of :data:`HEADINGS`: ``mean ± half the interval``."""
        columns = zip(*(row.numbers() for row in self.rows), strict=True)
        return (self.label, *(_interval_text(*column) for column in zip(columns, *FORMATS, strict=True)))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean of a sample and half the width of the 95 % confidence interval of the mean (Student's t); at least two values."""
    n = len(values)
    mean = sum(values) / n
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1))
    return mean, _student_t(n - 1) * deviation / math.sqrt(n)


def _student_t(freedom: int) -> float:
    """97.5 % quantile of Student's t distribution, to three digits."""
    table = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
    if freedom <= len(table):
        return table[freedom - 1]
    # Beyond the table the leading terms of the Cornish-Fisher expansion are within 0.001.
    z = 1.959964
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def label_of(result: Mapping[str, Any]) -> str:
    """The controllers of a run, each once: ``cubic + bbr1``."""
    return " + ".join(dict.fromkeys(str(flow.get("controller")) for flow in result.get("flows") or [])) or ABSENT


def _bottleneck(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """The recorded link with the least capacity; empty if none states one."""
    links = [link for link in result.get("links") or [] if _number(link, "capacity_bps") is not None]
    return min(links, key=lambda link: _number(link, "capacity_bps") or 0.0, default={})


def _number(tree: Mapping[str, Any], *path: str) -> float | None:
    value: Any = tree
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _present(values: Any) -> list[float]:
    return [value for value in values if value is not None]


def _text(value: float | None, digits: int, scale: float) -> str:
    return ABSENT if value is None else f"{value * scale:.{digits}f}"


def _interval_text(values: Sequence[float | None], digits: int, scale: float) -> str:
    present = _present(values)
    if len(present) < len(values):
        return ABSENT
    mean, half = interval(present)
    return f"{mean * scale:.{digits}f} ± {half * scale:.{digits}f}"
