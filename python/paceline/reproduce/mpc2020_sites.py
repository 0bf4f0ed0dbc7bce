"""The 2020 MPC paper's experiments on a real network, in the simulator at their rates: tables III and IV, figure 4.

A link of 10 Gbit/s from Davis to Denver, and one of 4.7 Gbit/s further on to New York. What the paper measured there holds for
its hosts and its network; what can be run again is the law, over links of those rates and RTTs.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from paceline.record import Run
from paceline.reproduce.entry import Entry, Job, Row, Runs, Scale
from paceline.reproduce.mpc import Setting, draw_rate_and_rtt

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Of a packet of 1500 bytes 1538 are on the wire of an Ethernet.
_IP_PART = 1500 / 1538
#: Davis to Denver: the least RTT is what is left of the paper's means below their deviations.
_DENVER = Setting(
    label="mpc2020-sites",
    title="MPC 2020, sites",
    controller={"name": "mpc-2020"},
    stack={"kind": "tcp"},
    capacity_bps=10e9 * _IP_PART,
    rtt_ms=26.4,
    noise_ms=(0.1, 1.0),
    sample="100 ms",
)
#: Davis to New York: RTT, and the rate of what lies beyond Denver.
_NEW_YORK_RTT_MS = 70.9
_NEW_YORK_BPS = 5e9 * _IP_PART

#: The controllers of uncapped flows, by what rows call them. What the paper's hosts were set to is not printed.
_CONSTANTS: dict[str, dict[str, Any]] = {
    "as printed": {"name": "mpc-2020"},
    "gentle probes": {"name": "mpc-2020", "profile": "gentle"},
    "the module's constants": {"name": "mpc-2020", "profile": "kernel"},
}
#: What is different in a capped flow, r_max apart: as in tables I and II.
_CAPPED: dict[str, Any] = {"name": "mpc-2020", "probe": "none"}

# ------------------------------------------------------------------------------------------------------- what is measured

_MEASURES: tuple[tuple[str, str, Callable[[Run, int, Scale], float]], ...] = (
    ("mean rate", "Gbit/s", lambda run, index, scale: _goodput_gbps(run, index, scale)),
    ("rate std", "Gbit/s", lambda run, index, scale: float(np.std(_throughput_gbps(run, index, scale)))),
    ("mean RTT", "ms", lambda run, index, _: float(run.result["flows"][index]["rtt_ms"]["mean"])),
    ("RTT std", "ms", lambda run, index, _: float(run.result["flows"][index]["rtt_ms"]["std"])),
    ("losses", "packets", lambda run, index, scale: float(run.result["flows"][index]["lost_packets"] / scale.rate)),
)


def _goodput_gbps(run: Run, index: int, scale: Scale) -> float:
    return float(run.result["flows"][index]["goodput_bps"] / (1e9 * scale.rate))


def _throughput_gbps(run: Run, index: int, scale: Scale) -> np.ndarray:
    """What a flow delivered, sample by sample."""
    of_flow = run.series.filter(run.series["flow"] == run.result["flows"][index]["name"])
    return np.asarray(of_flow["throughput_bps"].to_numpy()) / (1e9 * scale.rate)


# ------------------------------------------------------------------------------------------------------ tables III and IV


@dataclasses.dataclass(frozen=True)
class _TwoFlows:
    """A table of two flows, uncapped and capped."""

    table: str
    names: tuple[str, str]
    caps_bps: tuple[float, float]
    #: Per case a pair for each of :data:`_MEASURES`.
    printed: dict[str, tuple[tuple[float, float], ...]]
    rtts_ms: Sequence[float] = ()
    rates_bps: Sequence[float | None] = ()

    def jobs(self, scale: Scale) -> list[Job]:
        return [job for _, _, of_case in self._cases(scale) for job in of_case]

    def rows(self, scale: Scale, runs: Runs) -> list[Row]:
        found = []
        for title, case, of_case in self._cases(scale):
            for (name, unit, measure), paper in zip(_MEASURES, self.printed[case], strict=True):
                for index, flow in enumerate(self.names):
                    ours = [measure(runs[job], index, scale) for job in of_case]
                    found.append(Row.of(f"{title}: {name}, {flow}", unit, paper[index], ours))
        return found

    def _cases(self, scale: Scale) -> list[tuple[str, str, list[Job]]]:
        """Title, key of what is printed, and runs of every case."""
        cases = [
            (f"uncapped, {constants}", "uncapped", [self._job(controller, (None, None), scale, seed) for seed in scale.seeds])
            for constants, controller in _CONSTANTS.items()
        ]
        return [*cases, ("capped", "capped", [self._job(_CAPPED, self.caps_bps, scale, seed) for seed in scale.seeds])]

    def _job(self, controller: dict[str, Any], caps_bps: tuple[float | None, float | None], scale: Scale, seed: int) -> Job:
        setting = dataclasses.replace(_DENVER, controller=controller)
        flows = [
            {"name": name, "controller": setting.controller_of(2, scale, cap_bps=cap_bps)}
            for name, cap_bps in zip(self.names, caps_bps, strict=True)
        ]
        case = controller.get("profile", "printed") if caps_bps == (None, None) else "capped"
        label = f"{self.table}-{case}"
        return setting.job(label, flows, scale, seed, rtts_ms=self.rtts_ms, rates_bps=self.rates_bps)


_TABLE_3 = _TwoFlows(
    table="table3",
    names=("flow 1", "flow 2"),
    caps_bps=(3.0e9, 6.4e9),
    printed={
        "uncapped": ((4.7, 4.5), (1.2, 1.2), (27.1, 27.1), (0.4, 0.5), (4, 3)),
        "capped": ((2.9, 6.4), (0.1, 0.2), (27.1, 26.6), (0.2, 0.1), (2, 4)),
    },
)
_TABLE_4 = _TwoFlows(
    table="table4",
    names=("Denver", "New York"),
    caps_bps=(7e9, 3e9),
    printed={
        "uncapped": ((8.6, 2.3), (1.7, 0.6), (27.0, 72.5), (0.4, 0.2), (2, 327_435)),
        "capped": ((6.9, 2.5), (1.9, 0.2), (26.5, 71.0), (0.2, 0.1), (0, 2)),
    },
    rtts_ms=(_DENVER.rtt_ms, _NEW_YORK_RTT_MS),
    rates_bps=(None, _NEW_YORK_BPS),
)

# ---------------------------------------------------------------------------------------------------------------- figure 4

#: What the text to figure 4 has for each of :data:`_MEASURES`: 9.4 Gbit/s, as other controllers, and no losses.
_FIGURE_4 = (9.4, None, None, None, 0.0)


def _figure_4_cases(scale: Scale) -> dict[str, list[Job]]:
    """The runs of a single flow, by what rows call its controller."""

    def job(label: str, controller: dict[str, Any], seed: int) -> Job:
        return _DENVER.job(f"figure4-{label}", [{"name": "flow", "controller": controller}], scale, seed)

    cases = {}
    for constants, controller in _CONSTANTS.items():
        setting = dataclasses.replace(_DENVER, controller=controller)
        label = controller.get("profile", "printed")
        cases[f"mpc-2020, {constants}"] = [job(label, setting.controller_of(1, scale), seed) for seed in scale.seeds]
    return cases | {"cubic": [job("cubic", {"name": "cubic"}, seed) for seed in scale.seeds]}


def _figure_4_rows(scale: Scale, runs: Runs) -> list[Row]:
    found = []
    for case, jobs in _figure_4_cases(scale).items():
        for (name, unit, measure), paper in zip(_MEASURES, _FIGURE_4, strict=True):
            counterpart = paper if name == "mean rate" or case != "cubic" else None
            found.append(Row.of(f"{case}: {name}", unit, counterpart, [measure(runs[job], 0, scale) for job in jobs]))
    return found


def _draw_figure_4(scale: Scale, runs: Runs) -> "Figure":
    """Throughput and RTT of the flow as printed, of the first seed."""
    job = _figure_4_cases(scale)["mpc-2020, as printed"][0]
    return draw_rate_and_rtt(runs[job], scale, "throughput_bps", "Throughput")


# ------------------------------------------------------------------------------------------------------------ what there is

_LINK_READING = (
    "The paper's 9.4 of 10 Gbit/s is what 1448 bytes of payload are of the 1538 that a packet takes on the wire: the link "
    "carries 9.75 Gbit/s of IP packets, rates of ours are goodput, and deviations those of samples of 0.1 s. RTTs without a "
    "queue are 26.4 ms to Denver and 70.9 ms to New York, just below the paper's least means; the noise of 0.1 ms is its least "
    "deviation. Buffers and durations are not printed: 1 BDP and 30 s."
)
_HOST_READING = (
    "The flows are TCP, told of losses by ACKs. What the kernel module was set to is not printed beyond that it was more "
    "aggressive than in simulation. Three sets are run: as in the simulations; the same with probes of 1.25 and 0.5 r_B; the "
    "constants of the module that was released (target fill 0.95, weights 0.98, 0.01, 0.01). Caps are r_max, without probes, as "
    "in tables I and II."
)

_FULL = Scale(rate=1, duration_s=30, seeds=(1,))
_FULL_SEEDS = Scale(rate=1, duration_s=30, seeds=(1, 2, 3))
_QUICK = Scale(rate=0.05, duration_s=12, seeds=(1,))

TABLE_3 = Entry(
    id="mpc2020-table3",
    title="Two flows from Davis to Denver, uncapped and capped to 3.0 and 6.4 Gbit/s",
    source="Table III, section III-B",
    readings=(_LINK_READING, _HOST_READING),
    verdict=(
        "The flows share the link, though less evenly than in the paper: as printed one has 3.3 to 3.5 and the other 5.0 to 5.2 "
        "Gbit/s, which of them changes with the seed. Deviations of rates are near the paper's, RTTs 2 ms above. Every probe "
        "overflows the buffer, so that losses are 40,000 times the paper's and more; what held its probes back is not printed "
        "(figure 4). Capped flows keep within 10 % of their rates and lose nothing. The module's constants give half of the "
        "link."
    ),
    full=_FULL_SEEDS,
    quick=_QUICK,
    jobs=_TABLE_3.jobs,
    rows=_TABLE_3.rows,
)
TABLE_4 = Entry(
    id="mpc2020-table4",
    title="A flow from Davis to Denver and one to New York, uncapped and capped to 7 and 3 Gbit/s",
    source="Table IV, section III-B",
    readings=(
        _LINK_READING,
        _HOST_READING,
        "To New York 4.7 Gbit/s of payload could pass: a second link, behind that to Denver, with a buffer of 1 BDP of its own.",
    ),
    verdict=(
        "Denver is ahead, as in the paper, but by 4.7 to 3.5 Gbit/s where the paper has 8.6 to 2.3. The paper's rates add up to "
        "10.9 Gbit/s, more than the link that both flows are said to share carries, so that no reading gives both. The flow to "
        "New York loses hundreds of thousands of packets in both, that to Denver with us only. Capped flows come out within 6 % "
        "and, to New York, where the paper found less than its cap free, 14 %."
    ),
    full=_FULL_SEEDS,
    quick=_QUICK,
    jobs=_TABLE_4.jobs,
    rows=_TABLE_4.rows,
)
FIGURE_4 = Entry(
    id="mpc2020-figure4",
    title="Rate and RTT of a single flow from Davis to Denver over time, and of CUBIC",
    source="Figure 4, section III-B",
    readings=(_LINK_READING, _HOST_READING),
    verdict=(
        "The flow as in the simulations has 8.6 of the paper's 9.4 Gbit/s, and loses 123,000 packets at its probes where the "
        "paper lost none; with gentle probes it loses 37,000. The module's released constants fill the buffer and get 4.0 "
        "Gbit/s. CUBIC has 9.3. On the paper's path a probe cannot have overfilled a buffer, most likely because the sender's "
        "own interface has the rate of the bottleneck; with that rate as r_max (tried at a tenth) a single flow loses nothing, "
        "and has 5.2 of 9.4 Gbit/s."
    ),
    full=_FULL,
    quick=_QUICK,
    jobs=lambda scale: [job for jobs in _figure_4_cases(scale).values() for job in jobs],
    rows=_figure_4_rows,
    draw=_draw_figure_4,
)
