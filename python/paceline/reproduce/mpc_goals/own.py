"""The goals for the controller by itself: buffers, late comers, RTTs, caps, steps, noise, range, hosts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from paceline.controller import ParamSpec, controllers
from paceline.reproduce.entry import Goal, Scale
from paceline.reproduce.mpc import BUFFERS_BDP
from paceline.reproduce.mpc2020 import TABLE_5
from paceline.reproduce.mpc_goals import measures as read
from paceline.reproduce.mpc_goals.cells import (
    RTT_MS,
    TICK_TRACE,
    Cell,
    Measure,
    at_least,
    at_most,
    flows_name,
    hosts,
    link,
    rate_name,
    rate_text,
    scenario,
)
from paceline.reproduce.mpc_goals.senders import Sender

#: The links of most goals, bit/s.
RATE_BPS = 4e9
FAST_BPS = 40e9
#: Bits of a full packet.
_PACKET_BITS = 12_000
#: Table I of the 2020 paper, uncapped: the mean among its four flows of the pacing rate's deviation, over the capacity.
_RATE_STD_2020 = (0.1 + 0.1 + 0.1 + 0.3) / 4 / 40
#: 100 million packets of 1500 bytes at 40 Gbit/s, the length of the paper's runs, s.
_PAPER_RUN_S = 30.0

_USED = at_least(0.99)
_NEAR_BASE = at_most(1.05)
_NO_LOSS = at_most(0.0)


def _utilization(goal: Goal = _USED) -> Measure:
    return Measure("utilisation", "1", read.utilization, goal)


def _rtt(base_ms: float | Sequence[float], goal: Goal | None = _NEAR_BASE) -> Measure:
    return Measure("median RTT over base RTT", "1", read.median_rtt_ratio(base_ms), goal)


def _jain(goal: Goal | None) -> Measure:
    return Measure("Jain index", "1", read.jain_index, goal)


@dataclass(frozen=True)
class Own:
    """The experiments of one controller by itself; every method gives the cells of an entry."""

    sender: Sender

    def _group(self, capacity_bps: float, count: int, **keys: Any) -> list[dict[str, Any]]:
        """``count`` equal flows."""
        return [self.sender.flow(capacity_bps, count, count=count, **keys)]

    # ------------------------------------------------------------------------------------------------------- buffers

    def buffers(self, scale: Scale) -> list[Cell]:
        """Utilisation, delay and loss over buffer and number of flows."""
        cells = [self.buffer(scale, RATE_BPS, count, buffer) for count, buffer in self.grid(scale)]
        fast = ((1, 1 / 16), (8, 1 / 16), (8, 1 / 8), (1, 1.0), (4, 1.0), (8, 16.0))
        return cells if scale.few else cells + [self.buffer(scale, FAST_BPS, *cell) for cell in fast]

    def grid(self, scale: Scale) -> list[tuple[int, float]]:
        """Flows and buffer, BDP, of every cell at 4 Gbit/s."""
        if scale.few:
            return [(1, 1 / 16), (4, 1.0), (8, 16.0)]
        return [(count, buffer) for count in (1, 2, 4, 8) for buffer in BUFFERS_BDP]

    def buffer(self, scale: Scale, rate_bps: float, count: int, buffer: float) -> Cell:
        """``count`` equal flows over one buffer."""
        capacity_bps = rate_bps * scale.rate
        warmup_s, duration_s = (3.0, 8.0) if rate_bps < FAST_BPS else (3.0, 5.0)
        whole = at_most(TABLE_5["loss"][count][0]) if buffer < 1 / 8 else _NO_LOSS
        std = at_most(_RATE_STD_2020) if (count, buffer) == (4, 1.0) else None
        return Cell(
            f"{rate_name(rate_bps)}, {flows_name(count)}, {Fraction(buffer)} BDP",
            scenario(link(capacity_bps, buffer_bdp=buffer), self._group(capacity_bps, count), duration_s, warmup_s=warmup_s),
            (
                _utilization(),
                _rtt(RTT_MS),
                Measure("packets lost after start-up", "packets", read.lost_since(warmup_s), _NO_LOSS),
                Measure(
                    "losses over packets sent in a run of 30 s",
                    "1",
                    read.loss_projected(warmup_s, _PAPER_RUN_S * capacity_bps / _PACKET_BITS),
                    whole,
                ),
                Measure("pacing rate std over capacity", "1", read.pacing_std_part(capacity_bps), std),
                Measure("queue std", "ms", read.queue_std_ms, at_most(0.2)),
            ),
        )

    # ---------------------------------------------------------------------------------------------------- late comer

    def late(self, scale: Scale) -> list[Cell]:
        """A second flow joins the first."""
        if scale.few:
            return [self.late_comer(scale, RATE_BPS, rtt_ms, 1.0) for rtt_ms in (5.0, RTT_MS, 100.0)]
        by_buffer = [(RATE_BPS, RTT_MS, buffer) for buffer in (1 / 16, 1.0, 16.0)]
        by_rtt = [(RATE_BPS, rtt_ms, 1.0) for rtt_ms in (1.0, 5.0, 100.0, 200.0, 300.0)]
        return [self.late_comer(scale, *cell) for cell in (*by_buffer, (FAST_BPS, RTT_MS, 1.0), *by_rtt)]

    def late_comer(self, scale: Scale, rate_bps: float, rtt_ms: float, buffer: float) -> Cell:
        """Two flows, the second when the first has the link."""
        capacity_bps = rate_bps * scale.rate
        # As long as the first flow needs for its start where the RTT is long; then twice the goal, and more where it is cheap.
        start_s = max(10.0, 0.12 * rtt_ms)
        tail_s = 6.0 if rtt_ms == RTT_MS and rate_bps < FAST_BPS else max(1.0, 0.16 * rtt_ms)
        flows = [
            self.sender.flow(capacity_bps, 2, name=name, start=f"{at:g} s") for name, at in (("first", 0.0), ("second", start_s))
        ]
        fair = read.fair_after_s(start_s)
        measure = (
            Measure("time until Jain ≥ 0.9", "s", fair, at_most(2))
            if rtt_ms == RTT_MS
            else Measure("RTTs until Jain ≥ 0.9", "RTT", read.times(1e3 / rtt_ms, fair), at_most(80))
        )
        return Cell(
            f"{rate_name(rate_bps)}, {rtt_ms:g} ms, {Fraction(buffer)} BDP",
            scenario(link(capacity_bps, rtt_ms=rtt_ms, buffer_bdp=buffer), flows, start_s + tail_s, sample_s=2e-3 * rtt_ms),
            (measure,),
        )

    # ---------------------------------------------------------------------------------------------------------- RTTs

    def rtts(self, scale: Scale) -> list[Cell]:
        """Flows of four RTTs, and that again with every constant of the controller off in turn."""
        large = [(RATE_BPS, buffer) for buffer in ((1.0,) if scale.few else (1 / 8, 1.0))]
        cells = [
            self._four_rtts(scale, rate_bps, f"{rate_name(rate_bps)}, {Fraction(buffer)} BDP", buffer=buffer, changed={})
            for rate_bps, buffer in large
        ]
        changes = list(changes_of(self.sender.name))
        for name, changed in changes[:2] if scale.few else changes:
            cells.append(self._four_rtts(scale, RATE_BPS / 4, f"{rate_name(RATE_BPS / 4)}, {name}", buffer=1.0, changed=changed))
        return cells

    def _four_rtts(self, scale: Scale, rate_bps: float, label: str, *, buffer: float, changed: dict[str, Any]) -> Cell:
        capacity_bps = rate_bps * scale.rate
        rtts_ms = (25.0, 35.0, 45.0, 55.0)
        flows = [
            self.sender.flow(capacity_bps, len(rtts_ms), changed=changed, name=f"flow-{rtt_ms:g}-ms", rtt=f"{rtt_ms:g} ms")
            for rtt_ms in rtts_ms
        ]
        measures = (_jain(at_least(0.95)), _utilization(), _rtt(rtts_ms, None))
        return Cell(label, scenario(link(capacity_bps, buffer_bdp=buffer), flows, 20, warmup_s=10), measures)

    # ---------------------------------------------------------------------------------------------------------- caps

    def caps(self, scale: Scale) -> list[Cell]:
        """Flows that are told a highest rate."""
        cases: tuple[tuple[str, tuple[float | None, ...]], ...] = (
            ("caps of 0.3, 0.7, 1 and 2 Gbit/s, the whole link", (0.3e9, 0.7e9, 1e9, 2e9)),
            ("caps of 0.5, 1 and 1 Gbit/s, a flow without", (0.5e9, 1e9, 1e9, None)),
            ("four caps of 0.5 Gbit/s, half the link", (0.5e9,) * 4),
        )
        return [self._capped(scale, label, caps_bps) for label, caps_bps in (cases[1:2] if scale.few else cases)]

    def _capped(self, scale: Scale, label: str, caps_bps: Sequence[float | None]) -> Cell:
        capacity_bps = RATE_BPS * scale.rate
        flows = []
        measures = [] if None not in caps_bps else [_utilization()]
        for index, full_bps in enumerate(caps_bps):
            keys: dict[str, Any] = {}
            if full_bps is not None:
                cap_bps = full_bps * scale.rate
                keys = self._cap(cap_bps)
                named = f"of flow {index + 1}"
                measures += [
                    Measure(f"distance from its cap, {named}", "1", read.cap_error(index, cap_bps), at_most(0.01)),
                    Measure(f"rate std over mean, {named}", "1", read.rate_std_part(index), at_most(0.01)),
                ]
            flows.append(self.sender.flow(capacity_bps, len(caps_bps), name=f"flow-{index + 1}", **keys))
        return Cell(label, scenario(link(capacity_bps), flows, 10, warmup_s=5, sample_s=2e-3 * RTT_MS), tuple(measures))

    def _cap(self, cap_bps: float) -> dict[str, Any]:
        """How a flow is told its cap: by the controller's parameter, or by the host where it has none."""
        has_parameter = any(param.name == "cap" for param in controllers()[self.sender.name].params)
        return {"changed": {"cap": rate_text(cap_bps)}} if has_parameter else {"cap": rate_text(cap_bps)}

    # --------------------------------------------------------------------------------------------------------- steps

    def steps(self, scale: Scale) -> list[Cell]:
        """The capacity halves, or doubles."""
        buffers = (1 / 4, 1.0) if scale.few else (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
        return [
            self._step(scale, count, buffer, halves=halves)
            for halves in (True, False)
            for count in ((1,) if scale.few else (1, 4))
            for buffer in buffers
        ]

    def _step(self, scale: Scale, count: int, buffer: float, *, halves: bool) -> Cell:
        at_s, duration_s = 6.0, 8.0
        before_bps, after_bps = (RATE_BPS * scale.rate * factor for factor in ((1, 0.5) if halves else (0.5, 1)))
        steps = [{"at": f"{at_s:g} s", "rate": rate_text(after_bps)}]
        settled = read.times(1e3 / RTT_MS, read.settled_after_s(at_s, after_bps))
        within = at_most(10) if halves or buffer >= 1 / 4 else at_most(20)
        no_loss = _NO_LOSS if halves and buffer >= 1 / 2 else None
        return Cell(
            f"capacity {'halves' if halves else 'doubles'}, {flows_name(count)}, {Fraction(buffer)} BDP",
            scenario(
                link(before_bps, buffer_bdp=buffer, steps=steps),
                self._group(before_bps, count),
                duration_s,
                sample_s=2e-3 * RTT_MS,
            ),
            (
                Measure("RTTs until within 5 % of the capacity", "RTT", settled, within),
                Measure("packets lost after the step", "packets", read.lost_since(at_s), no_loss),
            ),
        )

    # ---------------------------------------------------------------------------------------------- noise and losses

    def noise(self, scale: Scale) -> list[Cell]:
        """ACKs delayed by 5 % of the RTT in the mean; packets lost at random."""
        noisy: dict[str, Any] = {"noise": {"kind": "exponential", "mean": "5% rtt", "reorder": True}}
        lossy: dict[str, Any] = {"loss": "0.1%"}
        cases = [("noise of 5 % of the RTT", noisy, count) for count in (1, 4, 8)]
        cases += [("random loss of 0.1 %", lossy, count) for count in (1, 2, 4)]
        return [
            self._impaired(scale, f"{label}, {flows_name(count)}", changes, count)
            for label, changes, count in (cases[1:5:3] if scale.few else cases)
        ]

    def _impaired(self, scale: Scale, label: str, changes: dict[str, Any], count: int) -> Cell:
        capacity_bps = RATE_BPS * scale.rate
        return Cell(
            label,
            scenario(link(capacity_bps, **changes), self._group(capacity_bps, count), 8, warmup_s=3),
            (_utilization(at_least(0.98)), _rtt(RTT_MS, None), _jain(None)),
        )

    # --------------------------------------------------------------------------------------------------------- range

    def range(self, scale: Scale) -> list[Cell]:
        """From 1 to 300 ms, and from 1 Mbit/s to 400 Gbit/s."""
        rtts_ms = (5.0, 100.0) if scale.few else (1.0, 5.0, RTT_MS, 100.0, 200.0, 300.0)
        by_rtt = [(RATE_BPS, rtt_ms, 4, 1.0, max(3.0, 0.1 * rtt_ms), max(6.0, 0.2 * rtt_ms)) for rtt_ms in rtts_ms]
        # A buffer of 1 BDP would be 2 packets at 1 Mbit/s.
        by_rate = [
            (1e6, RTT_MS, 2, 32.0, 75.0, 150.0),
            (10e6, RTT_MS, 2, 4.0, 20.0, 40.0),
            (100e6, RTT_MS, 2, 1.0, 10.0, 20.0),
            (1e9, RTT_MS, 2, 1.0, 5.0, 10.0),
            (FAST_BPS, RTT_MS, 2, 1.0, 3.0, 5.0),
            (400e9, 5.0, 2, 1.0, 1.0, 1.5),
            # The corners that can be had.
            (1e6, 300.0, 2, 4.0, 75.0, 150.0),
            (400e9, 1.0, 2, 1.0, 0.4, 0.6),
        ]
        return [self._of_range(scale, *case) for case in by_rtt + (by_rate[1:2] if scale.few else by_rate)]

    def _of_range(
        self, scale: Scale, rate_bps: float, rtt_ms: float, count: int, buffer: float, warmup_s: float, duration_s: float
    ) -> Cell:
        # Slow links are cheap, and slower still they would be others.
        capacity_bps = rate_bps if rate_bps <= 1e9 else rate_bps * scale.rate
        return Cell(
            f"{rate_name(rate_bps)}, {rtt_ms:g} ms, {flows_name(count)}",
            scenario(
                link(capacity_bps, rtt_ms=rtt_ms, buffer_bdp=buffer),
                self._group(capacity_bps, count),
                duration_s,
                warmup_s=warmup_s,
                sample_s=2e-3 * rtt_ms,
            ),
            (
                _utilization(),
                _jain(at_least(0.95)),
                _rtt(rtt_ms),
                Measure("queue std over base RTT", "1", read.times(1 / rtt_ms, read.queue_std_ms)),
                Measure("packets lost after start-up", "packets", read.lost_since(warmup_s), _NO_LOSS),
            ),
        )

    # --------------------------------------------------------------------------------------------------------- hosts

    def hosts(self, scale: Scale) -> list[Cell]:
        """What a real host and its way do: bursts, late timers, ACKs in bunches, delays ahead of the bottleneck."""
        near = (0.0,) * 4
        # Their ticks are 0.25 ms apart.
        apart = (0.0, 0.25, 0.5, 0.75)
        tick = {"trace": str(TICK_TRACE), "buffer": "unlimited"}
        late = {"rate": "unlimited", "jitter": {"kind": "exponential", "mean": "50 us"}}
        free = {"rate": "unlimited"}
        quarter = [0.2 * RTT_MS * index for index in range(4)]
        # At an equal share a host sends 16 or 64 packets in a millisecond; other rates would be other bursts.
        sixteen_bps, sixty_four_bps = (packets * len(near) * _PACKET_BITS * 1e3 for packets in (16, 64))
        capacity_bps = RATE_BPS * scale.rate
        cells = [
            self._host("bursts of 16 packets, 768 Mbit/s", sixteen_bps, apart, tick),
            self._host("bursts of 64 packets, 3.072 Gbit/s", sixty_four_bps, apart, tick),
            self._host("timer slack of 50 us", capacity_bps, near, late),
            self._host("forward delays of 0, 5, 10 and 15 ms", capacity_bps, quarter, free),
            self._aggregation(capacity_bps),
        ]
        return [cells[0], *cells[2:]] if scale.few else cells

    def _host(self, label: str, capacity_bps: float, forward_ms: Sequence[float], access: dict[str, Any]) -> Cell:
        network, flows = hosts(capacity_bps, forward_ms, access, self.sender.flow(capacity_bps, len(forward_ms)))
        return Cell(label, scenario(network, flows, 12, warmup_s=6), self._host_measures())

    def _aggregation(self, capacity_bps: float) -> Cell:
        back = {"trace": str(TICK_TRACE), "buffer": "unlimited"}
        flows = self._group(capacity_bps, 4)
        return Cell(
            "ACKs in bunches of 1 ms",
            scenario(link(capacity_bps, reverse=back), flows, 12, warmup_s=6),
            self._host_measures(),
        )

    def _host_measures(self) -> tuple[Measure, ...]:
        return (_utilization(at_least(0.97)), _rtt(RTT_MS, at_most(1.1)), _jain(at_least(0.8)))


def changes_of(controller: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every constant of a controller 20 % up and 20 % down, each by itself, as far as its range allows.

    Rates are no constants but what the controller is told of the path; a constant of 0 stays 0.
    """
    for param in controllers()[controller].params:
        for percent in (20, -20):
            if (value := _changed(param, 1 + percent / 100)) is not None:
                yield f"{param.name} {percent:+} %", {param.name: value}


def _changed(param: ParamSpec, factor: float) -> float | int | str | None:
    if param.kind not in ("number", "integer", "duration") or isinstance(param.default, bool | str):
        return None
    value = param.default * factor
    value = value if param.max is None else min(value, param.max)
    value = value if param.min is None else max(value, param.min)
    if param.kind == "integer":
        value = round(value)
    if value == param.default:
        return None
    return f"{value:.12g} s" if param.kind == "duration" else value
