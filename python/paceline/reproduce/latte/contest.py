"""The contest: its link, its hosts, one sender at a time, and what is read off a run.

Data meets the queue of the cellular link first and then 20 ms, ACKs the other way round, as in two emulator shells one in the
other. Packets count as the emulator counts them, with a tunnel's header of 4 bytes.
"""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.controller import Controller
from paceline.record import Run
from paceline.reproduce.entry import Job, Runs, Scale

#: The recordings: data over the first, ACKs over the second.
TRACES = ("Verizon-LTE-short.down", "Verizon-LTE-short.up")
#: Their length, s.
DURATION_S = 140.0
#: Processing time of a host, per packet received and per pacing sleep.
OVERHEAD = "0.1 ms"
#: Between samples of the time series.
_SAMPLE_MS = 100

#: A number of a run; ``None`` where it was not measured.
Reading = Callable[[Run], float | None]


@dataclass(frozen=True)
class Trial:
    """One sender."""

    #: What figures and rows call it.
    label: str
    #: Names its records.
    slug: str
    #: A controller as a scenario names it, or a class.
    controller: str | Mapping[str, Any] | type[Controller]
    #: Between samples of the time series.
    sample_ms: int = _SAMPLE_MS

    def __hash__(self) -> int:
        return hash(self.slug)

    def jobs(self, scale: Scale) -> list[Job]:
        """A run per seed."""
        named: str | Mapping[str, Any]
        if isinstance(self.controller, type):
            named, classes = self.controller.__name__, [self.controller]
        else:
            named, classes = self.controller, []
        tables = scenario(self.slug, named, scale, sample_ms=self.sample_ms)
        return [Job.of(f"latte-{self.slug}", tables, seed, on=scale.on, classes=classes) for seed in scale.seeds]

    def runs(self, scale: Scale, runs: Runs) -> list[Run]:
        """The runs of :meth:`jobs`; fresh ones, so that their tables go with them."""
        return [Run(runs[job].directory) for job in self.jobs(scale)]

    def values(self, reading: Reading, scale: Scale, runs: Runs) -> list[float]:
        """A number of each run in which it was measured."""
        found = [reading(runs[job]) for job in self.jobs(scale)]
        return [value for value in found if value is not None]

    def mean(self, reading: Reading, scale: Scale, runs: Runs) -> float | None:
        """Its mean over the runs."""
        values = self.values(reading, scale, runs)
        return statistics.fmean(values) if values else None


def scenario(name: str, controller: str | Mapping[str, Any], scale: Scale, *, sample_ms: int = _SAMPLE_MS) -> dict[str, Any]:
    """The tables of a scenario file; as `scenarios/contest.toml` has them."""
    down, up = (name if scale.traces is None else str((scale.traces / name).resolve()) for name in TRACES)
    stack = {"kind": "datagram", "blocking": True, "overhead": OVERHEAD, "clock": "1 ms"}
    return {
        "title": f"Contest: {name}",
        "duration": f"{scale.common_s:g} s",
        "sample": f"{sample_ms} ms",
        "packets": {"data": "1504 B", "header": "80 B", "ack": "80 B"},
        "links": [
            {
                "name": "cell",
                "from": "sender",
                "to": "tower",
                "trace": down,
                "once": True,
                "delay": "0 s",
                "buffer": "unlimited",
                "reverse": {"trace": up, "once": True, "buffer": "unlimited"},
            },
            {"name": "path", "from": "tower", "to": "receiver", "rate": "unlimited", "delay": "20 ms", "buffer": "unlimited"},
        ],
        "flows": [{"controller": controller, "from": "sender", "to": "receiver", "stack": stack}],
    }


# ------------------------------------------------------------------------------------------------------------ what is read


def throughput_mbps(run: Run) -> float | None:
    """Bytes through the link, Mbit/s."""
    return float(_flow(run)["throughput_bps"]) / 1e6


def signal_ms(run: Run) -> float | None:
    """95th percentile of the signal delay, ms."""
    return _p95(run, "signal_delay_ms")


def queueing_ms(run: Run) -> float | None:
    """95th percentile of the packets' queueing delay, ms."""
    return _p95(run, "queueing_delay_ms")


def power(run: Run) -> float | None:
    """Power score, Mbit/s over s."""
    value: float | None = _flow(run)["power_score"]
    return value


def capacity_mbps(run: Run) -> float | None:
    """What the link could have carried, Mbit/s."""
    return float(run.result["links"][0]["capacity_bps"]) / 1e6


def utilization_percent(run: Run) -> float | None:
    """Throughput over capacity."""
    return 100 * float(_flow(run)["throughput_bps"]) / float(run.result["links"][0]["capacity_bps"])


def _p95(run: Run, quantity: str) -> float | None:
    found = _flow(run)[quantity]
    return None if found is None else found["p95"]


def _flow(run: Run) -> dict[str, Any]:
    flow: dict[str, Any] = run.result["flows"][0]
    return flow
