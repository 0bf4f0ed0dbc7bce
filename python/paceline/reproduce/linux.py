"""Linux beside the simulator: the kernel's controllers against what iperf3 measured of them, and `mpc` in the kernel.

Every condition is run in world `vm` and in world `sim`; what was measured stands beside both, or the simulator beside the kernel.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from paceline import _native
from paceline.record import Run
from paceline.reproduce.entry import Band, BandRow, Entry, Job, Paper, Row, Runs, Scale
from paceline.running import GUEST

_WORLDS = ("vm", "sim")

#: Further from the other one than this no utilisation should be, …
_POINTS = 0.03
#: … nor a mean RTT, as a share of it; of controllers that probe, …
_PART, _PART_OF_PROBES = 0.10, 0.15
#: … which are these.
_PROBE = ("bbr1", "cdg")


def _missing() -> str | None:
    """What the machine lacks for world `vm`."""
    if not GUEST.is_file():
        return "the guest of world `vm` is not part of this build (make build)"
    return _native.vm_missing()


def _tables(link: dict[str, Any], flows: Sequence[dict[str, Any]], **others: Any) -> dict[str, Any]:
    return {**others, "link": link, "flows": [{"stack": {"kind": "tcp", "delayed_ack": "40 ms"}, **flow} for flow in flows]}


def _mean_rtt_ms(run: Run, index: int = 0) -> float:
    return float(run.result["flows"][index]["rtt_ms"]["mean"])


# ----------------------------------------------------------------------------------------------- the kernel's controllers

_RATE_BPS = 20e6


@dataclass(frozen=True)
class _Measured:
    """One run of iperf3."""

    controller: str
    buffer_packets: int
    #: Payload over the link's rate after the first quarter of the run.
    utilisation: float
    #: Of the samples once a second in the same time.
    mean_srtt_ms: float
    #: At the bottleneck, over the whole run.
    drops: int

    @property
    def name(self) -> str:
        return f"{self.controller}, {self.buffer_packets} packets"

    def jobs(self, scale: Scale) -> dict[str, Job]:
        """By world."""
        choice = self.controller if self.controller == "reno" else f"{self.controller}:linux"
        link = {
            "rate": "unlimited",
            "delay": "0 s",
            "buffer": f"{self.buffer_packets * 1514} B",
            "queue": {"kind": "tbf", "rate": "20 Mbit/s", "burst": "3028 B"},
            "reverse": {"delay": "40 ms"},
        }
        packets = {"data": "1514 B", "header": "66 B", "ack": "66 B"}
        duration_s = scale.common_s
        tables = _tables(
            link, [{"controller": choice}], duration=f"{duration_s:g} s", warmup=f"{duration_s / 4:g} s", packets=packets
        )
        label = f"linux-{self.controller}-{self.buffer_packets}"
        return {world: Job.of(label, tables, seed, on=world) for world in _WORLDS for seed in scale.seeds[:1]}

    def rows(self, scale: Scale, runs: Runs) -> list[Row]:
        found: list[Row] = []
        part = _PART_OF_PROBES if self.controller in _PROBE else _PART
        for world, job in self.jobs(scale).items():
            run = runs[job]
            used = float(run.result["flows"][0]["goodput_bps"]) / _RATE_BPS
            near = Band.near(self.utilisation, by=_POINTS)
            found.append(BandRow.inside(f"{self.name}: utilisation, {world}", "1", self.utilisation, near, [used]))
            near = Band.near(self.mean_srtt_ms, part=part)
            rtt = _mean_rtt_ms(run)
            found.append(BandRow.inside(f"{self.name}: mean RTT, {world}", "ms", self.mean_srtt_ms, near, [rtt]))
            drops = float(run.result["links"][0]["drops"])
            found.append(BandRow.inside(f"{self.name}: drops, {world}", "packets", self.drops, None, [drops]))
        return found


#: Debian's kernel 6.1 under virtual time, iperf3, 30 s: 20 Mbit/s by tbf (burst 3028 bytes), 40 ms by netem on the way back.
_MEASURED = (
    _Measured("reno", 33, 0.911, 47.143, 62),
    _Measured("reno", 267, 0.952, 162.353, 337),
    _Measured("cubic", 33, 0.957, 56.000, 14),
    _Measured("cubic", 267, 0.955, 172.142, 28),
    _Measured("bbr1", 33, 0.937, 44.400, 304),
    _Measured("bbr1", 267, 0.940, 43.165, 0),
    _Measured("bic", 33, 0.958, 58.016, 86),
    _Measured("bic", 267, 0.957, 188.737, 903),
    _Measured("hstcp", 33, 0.939, 49.208, 65),
    _Measured("hstcp", 267, 0.972, 165.470, 339),
    _Measured("htcp", 33, 0.956, 52.244, 84),
    _Measured("htcp", 267, 0.956, 143.497, 406),
    _Measured("scalable", 33, 0.954, 56.896, 134),
    _Measured("scalable", 267, 0.957, 189.971, 988),
    _Measured("illinois", 33, 0.944, 53.481, 52),
    _Measured("illinois", 267, 0.971, 153.125, 377),
    _Measured("vegas", 33, 0.959, 43.114, 54),
    _Measured("vegas", 267, 0.949, 43.683, 19),
    _Measured("westwood", 33, 0.947, 51.734, 64),
    _Measured("westwood", 267, 0.953, 142.875, 334),
    _Measured("yeah", 33, 0.915, 47.703, 97),
    _Measured("yeah", 267, 0.942, 152.152, 291),
    _Measured("cdg", 33, 0.863, 41.971, 6),
    _Measured("cdg", 267, 0.896, 43.440, 0),
)


def _measured(scale: Scale) -> Sequence[_Measured]:
    return tuple(row for row in _MEASURED if row.name in ("cubic, 33 packets", "reno, 33 packets")) if scale.few else _MEASURED


# ----------------------------------------------------------------------------------------------------- mpc in the kernel


@dataclass(frozen=True)
class _Case:
    """A condition of `mpc`. Rates are those of whole packets."""

    name: str
    rate_bps: float
    rtt: str
    #: Of each flow: the cap, bit/s; `None` = none.
    caps_bps: tuple[float | None, ...]
    #: What the paper printed of each flow: rate, bit/s, and RTT, ms.
    printed: tuple[tuple[float, float], ...] = ()
    #: Of each flow, where they have RTTs of their own.
    rtts: tuple[str, ...] = ()

    def jobs(self, scale: Scale) -> dict[str, list[Job]]:
        """By world, one per seed."""
        duration_s = scale.common_s
        flows = [
            {"name": f"flow {number}", "controller": "mpc" if cap is None else f"mpc,cap={cap / 1e6:g} Mbit/s"}
            for number, cap in enumerate(self.caps_bps, start=1)
        ]
        for flow, rtt in zip(flows, self.rtts, strict=False):
            flow["rtt"] = rtt
        link = {"rate": f"{self.rate_bps / 1e6:g} Mbit/s", "rtt": self.rtt}
        tables = _tables(link, flows, duration=f"{duration_s:g} s", warmup=f"{duration_s / 3:g} s")
        label = f"kernel-mpc-{self.name.replace(' ', '-').replace(',', '').replace('/', '')}"
        return {world: [Job.of(label, tables, seed, on=world) for seed in scale.seeds] for world in _WORLDS}

    def rows(self, scale: Scale, runs: Runs) -> list[Row]:
        jobs = self.jobs(scale)
        found: list[Row] = []
        for index, cap in enumerate(self.caps_bps):
            of = f"{self.name}: " if len(self.caps_bps) == 1 else f"{self.name}, flow {index + 1}: "
            rate_bps, rtt_ms = self.printed[index] if self.printed else (cap, None)
            printed = None if rate_bps is None else rate_bps / self.rate_bps

            def used(run: Run, index: int = index) -> float:
                return float(run.result["flows"][index]["throughput_bps"]) / self.rate_bps

            def rtt(run: Run, index: int = index) -> float:
                return _mean_rtt_ms(run, index)

            ours = {world: [used(runs[job]) for job in jobs[world]] for world in _WORLDS}
            found.append(BandRow.inside(f"{of}share of the link, sim", "1", printed, None, ours["sim"]))
            mean = sum(ours["sim"]) / len(ours["sim"])
            near = Band.near(mean, by=_POINTS)
            found.append(BandRow.inside(f"{of}share of the link, vm", "1", printed, near, ours["vm"]))
            ours = {world: [rtt(runs[job]) for job in jobs[world]] for world in _WORLDS}
            found.append(BandRow.inside(f"{of}mean RTT, sim", "ms", rtt_ms, None, ours["sim"]))
            mean = sum(ours["sim"]) / len(ours["sim"])
            found.append(BandRow.inside(f"{of}mean RTT, vm", "ms", rtt_ms, Band.near(mean, part=_PART), ours["vm"]))
        return found


#: Of 10 Gbit/s of Ethernet to Denver a tenth (mpc2020_sites).
_TENTH_BPS = 1e9 * 1500 / 1538
#: To Denver and to New York.
_SITES = ("26.4 ms", "70.9 ms")
_CASES = (
    _Case("100 Mbit/s", 100e6, "25 ms", (None,)),
    _Case("1 Gbit/s", 1e9, "25 ms", (None,)),
    _Case("1 Gbit/s, cap 300 Mbit/s", 1e9, "25 ms", (300e6,)),
    _Case("1 Gbit/s, cap 640 Mbit/s", 1e9, "25 ms", (640e6,)),
    _Case("table III, uncapped", _TENTH_BPS, "26.4 ms", (None, None), ((470e6, 27.1), (450e6, 27.1))),
    _Case("table III, capped", _TENTH_BPS, "26.4 ms", (300e6, 640e6), ((290e6, 27.1), (640e6, 26.6))),
    _Case("table IV, uncapped", _TENTH_BPS, "26.4 ms", (None, None), ((860e6, 27.0), (230e6, 72.5)), _SITES),
    _Case("table IV, capped", _TENTH_BPS, "26.4 ms", (700e6, 300e6), ((690e6, 26.5), (250e6, 71.0)), _SITES),
)


def _cases(scale: Scale) -> Sequence[_Case]:
    return _CASES[:1] if scale.few else _CASES


# ------------------------------------------------------------------------------------------------------------ what there is

_COUNTING = (
    "Measured by iperf3 through tbf and netem in namespaces, with veth between them. Ours cross the link models of the "
    "simulator, in world `vm` inside the guest: a token bucket with the same burst and a drop-tail queue of the same bytes, "
    "40 ms on the way back. Utilisation is payload over the link's rate after the first quarter of the run, RTT the mean in "
    "the same time (smoothed, in the kernel), drops those at the bottleneck over the whole run."
)
_ONE_RUN = "One run of each: the kernel's clock counts instructions, so another run gives the same numbers."
_IN_THE_KERNEL = (
    "`mpc` is the same C source in both worlds, by BPF in the kernel. The buffer is 1 BDP, the first third of the run is "
    "left out, and the bounds are 3 points and 10 % of what the simulator has."
)
_SITES_READING = (
    "Tables III and IV are at a tenth of their rates, with `mpc` in the place of the paper's controller. In table IV flow 1 "
    "goes to Denver and flow 2 to New York, over the link that both share and a delay of its own. A second bottleneck, of "
    "half the rate, that the paper's flow to New York had beyond Denver is left out in both worlds: the emulator has one "
    "link with a queue. In the simulator it changes nothing where flows are capped; the uncapped flow to New York has 0.49 "
    "of the link with it."
)

_VERDICT = (
    "In every condition the kernel's flow has the simulator's share of the link within a point, and its RTT within 2 %. It "
    "is so since the kernel's host tells the law how long its own segments take: the kernel sends a millisecond's worth of "
    "packets at once, and before, the law took that for a queue. The single flow over 1 Gbit/s then stalled at a quarter of "
    "the link and had 0.845 of it here. Of two uncapped flows with different RTTs (table IV) that to New York is ahead in both "
    "worlds, where the paper's controller favoured Denver; capped flows keep their rates."
)
_VERDICT_OF_ALL = (
    "In the guest everything comes out: utilisation within 1.6 points of what was measured, mean RTT within 7 %. So it does "
    "in the simulator, but for CDG with the large buffer, 84 % for 90: it backs off at random, and there is one run of "
    "each. Least alike are the losses of BIC in the small buffer, another limit cycle, and of Vegas in the large one, none "
    "for 19 in the guest, where no greeting of iperf3's goes before the data. A utilisation of 0.956 is all that headers "
    "leave; the few that were measured above it are edges of one-second bins."
)

PAPER = Paper(
    key="linux",
    citation="The controllers of Linux 6.1, in that kernel and in the simulator",
    entries=(
        Entry(
            id="linux-controllers",
            title="Twelve controllers of the kernel over 20 Mbit/s and 40 ms, small and large buffer",
            source="Measured with iperf3 on Debian's kernel 6.1",
            readings=(_COUNTING, _ONE_RUN),
            verdict=_VERDICT_OF_ALL,
            full=Scale(rate=1, duration_s=30, seeds=(1,)),
            quick=Scale(rate=1, duration_s=4, seeds=(1,), few=True),
            jobs=lambda scale: [job for row in _measured(scale) for job in row.jobs(scale).values()],
            rows=lambda scale, runs: [row for each in _measured(scale) for row in each.rows(scale, runs)],
            needs=_missing,
        ),
    ),
)
#: A paper of its own, so that it is published by itself.
MPC_PAPER = Paper(
    key="kernel",
    citation="Paceline's MPC in Linux 6.1 and in the simulator",
    entries=(
        Entry(
            id="kernel-mpc",
            title="`mpc` in the kernel beside `mpc` in the simulator",
            source="Single flows, caps, and tables III and IV of the MPC paper of 2020",
            readings=(_IN_THE_KERNEL, _SITES_READING),
            verdict=_VERDICT,
            full=Scale(rate=1, duration_s=9, seeds=(1,)),
            quick=Scale(rate=1, duration_s=3, seeds=(1,), few=True),
            jobs=lambda scale: [job for case in _cases(scale) for jobs in case.jobs(scale).values() for job in jobs],
            rows=lambda scale, runs: [row for case in _cases(scale) for row in case.rows(scale, runs)],
            needs=_missing,
        ),
    ),
)
