"""What the goals speak of, read off runs: shares, when they became fair, when a change was followed, losses by phase.

In: a run, or its time series as arrays. Out: a number, or ``None`` where there is nothing to measure.
"""

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from paceline.record import Run

#: Fairness from which flows count as having converged, and how near a link's capacity a rate counts as settled.
FAIR_JAIN = 0.9
SETTLED = 0.05

#: Reads a number off a run.
Reading = Callable[[Run], float | None]

# ------------------------------------------------------------------------------------------------------------ of arrays


def jain(rates: np.ndarray) -> np.ndarray:
    """Jain's index of every row of ``rates`` (a row per window, a column per flow); 0 where nobody got anything."""
    total = rates.sum(axis=1)
    squares = (rates**2).sum(axis=1) * rates.shape[1]
    index: np.ndarray = np.divide(total**2, squares, out=np.zeros(len(rates)), where=squares > 0)
    return index


def time_to_stay(ends_s: np.ndarray, good: np.ndarray, since_s: float) -> float:
    """How long after ``since_s`` the last window ends that is not good, s; 0 where all are.

    ``ends_s`` are the ends of the windows. If the last is not good, this is the rest of the run: it took at least as long.
    """
    bad = ends_s[(ends_s > since_s) & ~good]
    return float(bad[-1] - since_s) if len(bad) else 0.0


def counted_since(times_s: np.ndarray, totals: np.ndarray, since_s: float) -> float:
    """By how much a running total has grown after ``since_s``."""
    before = totals[times_s <= since_s]
    return float(totals[-1] - (before[-1] if len(before) else 0))


# -------------------------------------------------------------------------------------------------------------- of runs


def utilization(run: Run) -> float | None:
    """Of the bottleneck, after the warm-up."""
    value: float | None = run.result["links"][0]["utilization"]
    return value


def queue_std_ms(run: Run) -> float | None:
    """Standard deviation of the time in the bottleneck, packet by packet, after the warm-up."""
    value: float | None = run.result["links"][0]["queue_ms"]["std"]
    return value


def jain_index(run: Run) -> float | None:
    """Of the flows' throughputs after the warm-up."""
    value: float | None = run.result["jain_index"]
    return value


def loss_fraction(run: Run) -> float | None:
    """Packets lost over packets sent, of all flows and the whole run."""
    flows = run.result["flows"]
    sent = sum(flow["sent_packets"] for flow in flows)
    return sum(flow["lost_packets"] for flow in flows) / sent if sent else None


def median_rtt_ms(run: Run) -> float | None:
    """Mean among the flows of their median RTTs."""
    return _mean_of_flows(run, "rtt_ms", "p50")


def queueing_p95_ms(run: Run) -> float | None:
    """Mean among the flows of the 95th percentile of their queueing delays."""
    return _mean_of_flows(run, "queueing_delay_ms", "p95")


def median_rtt_ratio(base_ms: float | Sequence[float]) -> Reading:
    """Mean among the flows of the median RTT over the base RTT, which is one for all or one per flow."""

    def read(run: Run) -> float | None:
        # A flow that was never answered has no RTT.
        medians = [(flow["rtt_ms"] or {}).get("p50") for flow in run.result["flows"]]
        bases = [base_ms] * len(medians) if isinstance(base_ms, int | float) else base_ms
        ratios = [median / base for median, base in zip(medians, bases, strict=True) if median is not None]
        return statistics.fmean(ratios) if ratios else None

    return read


def pacing_std_part(capacity_bps: float) -> Reading:
    """Mean among the flows of the pacing rate's standard deviation, over the link's capacity."""

    def read(run: Run) -> float | None:
        std = _mean_of_flows(run, "pacing_bps", "std")
        return None if std is None else std / capacity_bps

    return read


def lost_since(since_s: float) -> Reading:
    """Packets lost after ``since_s``, a time of the run's samples."""
    return lambda run: sum(counted_since(times, totals, since_s) for times, totals in _totals(run, "lost_packets"))


def loss_projected(since_s: float, packets: float) -> Reading:
    """Losses over packets sent, were the run as long as ``packets`` take.

    What was lost up to ``since_s`` is lost once; from there on losses go on at their rate.
    """

    def read(run: Run) -> float | None:
        lost = sum(float(totals[-1]) for _, totals in _totals(run, "lost_packets"))
        later = sum(counted_since(times, totals, since_s) for times, totals in _totals(run, "lost_packets"))
        sent_later = sum(counted_since(times, totals, since_s) for times, totals in _totals(run, "sent_packets"))
        return (lost - later) / packets + later / sent_later if sent_later else None

    return read


def fair_after_s(since_s: float) -> Reading:
    """How long after ``since_s`` the flows' throughputs have a Jain index of at least 0.9 for good, s."""

    def read(run: Run) -> float:
        ends_s, rates = _windows(run, "throughput_bps")
        return time_to_stay(ends_s, jain(rates) >= FAIR_JAIN, since_s)

    return read


def settled_after_s(since_s: float, capacity_bps: float) -> Reading:
    """How long after ``since_s`` all flows together send within 5 % of ``capacity_bps`` for good, s."""

    def read(run: Run) -> float:
        ends_s, rates = _windows(run, "send_bps")
        return time_to_stay(ends_s, np.abs(rates.sum(axis=1) / capacity_bps - 1) <= SETTLED, since_s)

    return read


def times(factor: float, reading: Reading) -> Reading:
    """``reading`` in another unit."""

    def read(run: Run) -> float | None:
        value = reading(run)
        return None if value is None else value * factor

    return read


def cap_error(index: int, cap_bps: float) -> Reading:
    """By what part of its cap the throughput of flow ``index`` is off it, after the warm-up."""
    return lambda run: abs(run.result["flows"][index]["throughput_bps"] / cap_bps - 1)


def rate_std_part(index: int) -> Reading:
    """Standard deviation over mean of the throughput of flow ``index`` per sample interval, after the warm-up."""

    def read(run: Run) -> float | None:
        rate = run.result["flows"][index]["rate_bps"]
        return rate["std"] / rate["mean"] if rate["mean"] else None

    return read


def share(index: int) -> Reading:
    """Part of all throughput that flow ``index`` has, after the warm-up."""

    def read(run: Run) -> float | None:
        rates = [flow["throughput_bps"] for flow in run.result["flows"]]
        return rates[index] / sum(rates) if sum(rates) else None

    return read


def _mean_of_flows(run: Run, distribution: str, key: str) -> float | None:
    found = [(flow[distribution] or {}).get(key) for flow in run.result["flows"]]
    values = [value for value in found if value is not None]
    return statistics.fmean(values) if values else None


def _windows(run: Run, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the sample intervals, s, and per interval a rate of every flow; 0 where one is not there yet."""
    table = run.series.pivot(on="flow", index="time_s", values=column).fill_null(0.0).sort("time_s")
    return np.asarray(table["time_s"].to_numpy()), np.asarray(table.drop("time_s").to_numpy())


def _totals(run: Run, column: str) -> list[tuple[np.ndarray, Any]]:
    """Per flow its sample times, s, and a running total."""
    return [
        (part["time_s"].to_numpy(), part[column].fill_null(0).to_numpy())
        for part in run.series.sort("time_s").partition_by("flow", maintain_order=True)
    ]
