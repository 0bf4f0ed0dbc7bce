"""Results and flows written by hand, in the shape of ``run --json``."""

import subprocess
from collections.abc import Callable

Command = Callable[..., subprocess.CompletedProcess[str]]


def stats(mean: float, p95: float) -> dict[str, float]:
    """A distribution whose other quantiles no test looks at."""
    return dict.fromkeys(("mean", "std", "min", "p5", "p25", "p50", "p75", "p99", "max"), mean) | {"p95": p95}


def result(*flows: dict[str, object], jain: float | None = None) -> dict[str, object]:
    """A result with one 10 Mbit/s link used to 90 %."""
    return {
        "scenario": "by hand",
        "world": "sim",
        "seed": 1,
        "duration_s": 10.0,
        "paceline_version": "0.1.0",
        "links": [
            {"name": "bottleneck", "capacity_bps": 10e6, "throughput_bps": 9e6, "utilization": 0.9, "drops": 3, "marks": 0}
        ],
        "flows": list(flows),
        "jain_index": jain,
        "engine": {"events": 1000, "packets": 7500, "cpu_s": 0.5},
    }


def flow(
    name: str, controller: str, throughput_bps: float, *, sent: int = 1000, lost: int = 0, p95: float = 50.0
) -> dict[str, object]:
    """A flow with a median RTT of 40 ms and queueing delay 20 ms below the RTT."""
    return {
        "name": name,
        "controller": controller,
        "throughput_bps": throughput_bps,
        "rtt_ms": stats(40.0, p95),
        "queueing_delay_ms": stats(20.0, p95 - 20.0),
        "signal_delay_ms": {"p95": None},
        "power_score": None,
        "sent_packets": sent,
        "lost_packets": lost,
        "loss_fraction": lost / sent,
    }
