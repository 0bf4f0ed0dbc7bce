"""The controller beside others: the same table for each alone, and against each of them on one link."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from paceline import _native
from paceline._native import InputError
from paceline.reproduce.entry import Scale
from paceline.reproduce.mpc_goals import measures as read
from paceline.reproduce.mpc_goals.cells import Cell, Measure, flows_name, link, scenario
from paceline.reproduce.mpc_goals.senders import RIVALS, Sender

#: CUBIC needs minutes to fill 4 Gbit/s again after a loss.
RATE_BPS = 400e6
#: The generated trace, and its mean.
_SYNTHETIC = ("synth:lte", 5e6)
#: As scenarios/demo.toml has them.
_CELLULAR: dict[str, Any] = {"delay": "20 ms", "buffer": "1000 packets"}
_CELLULAR_S, _CELLULAR_WARMUP_S = 60.0, 5.0


@dataclass(frozen=True)
class Beside:
    """The experiments of one controller beside the others; every method gives the cells of an entry."""

    sender: Sender

    def _senders(self) -> list[Sender]:
        """It, it over TCP, and the others."""
        rivals = [rival for rival in RIVALS if rival.name != self.sender.name]
        return [self.sender, *([replace(self.sender, stack="tcp")] if self.sender.stack != "tcp" else []), *rivals]

    # ---------------------------------------------------------------------------------------------------------- alone

    def constant(self, scale: Scale) -> list[Cell]:
        """Each controller by itself on constant links."""
        places = [(4, 1.0)] if scale.few else [(count, buffer) for count in (1, 4) for buffer in (1 / 4, 1.0, 4.0)]
        return [self._constant(sender, count, buffer) for count, buffer in places for sender in self._senders()]

    def _constant(self, sender: Sender, count: int, buffer: float) -> Cell:
        fairness = [] if count == 1 else [Measure("Jain index", "1", read.jain_index)]
        return Cell(
            f"{flows_name(count)}, {Fraction(buffer)} BDP, {sender.label}",
            scenario(
                link(RATE_BPS, buffer_bdp=buffer), [sender.flow(RATE_BPS, count, count=count)], 30, warmup_s=10, sample_s=0.05
            ),
            (
                Measure("utilisation", "1", read.utilization),
                Measure("median RTT", "ms", read.median_rtt_ms),
                Measure("losses over packets sent", "1", read.loss_fraction),
                *fairness,
            ),
        )

    def cellular(self, scale: Scale) -> list[Cell]:
        """Each controller by itself on links whose capacity varies."""
        places = traces(scale)
        return [
            self._on_trace(name, path, mean_bps, sender)
            for name, (path, mean_bps) in (list(places.items())[:1] if scale.few else places.items())
            for sender in self._senders()
        ]

    def _on_trace(self, name: str, path: str, mean_bps: float, sender: Sender) -> Cell:
        return Cell(
            f"{name}, {sender.label}",
            scenario(
                {"trace": path, **_CELLULAR},
                [sender.flow(mean_bps, 1)],
                _CELLULAR_S,
                warmup_s=_CELLULAR_WARMUP_S,
                sample_s=0.05,
            ),
            (
                Measure("utilisation", "1", read.utilization),
                Measure("median RTT", "ms", read.median_rtt_ms),
                Measure("95th percentile of the queueing delay", "ms", read.queueing_p95_ms),
                Measure("losses over packets sent", "1", read.loss_fraction),
            ),
        )

    # ---------------------------------------------------------------------------------------------------- competition

    def contest(self, scale: Scale) -> list[Cell]:
        """It against each of the others, one flow each, both from the beginning."""
        buffers = (1.0,) if scale.few else (1 / 2, 1.0, 4.0)
        rivals = self._senders()[1:]
        cells = [
            self._against(
                rival,
                f"{Fraction(buffer)} BDP",
                link(RATE_BPS, buffer_bdp=buffer),
                RATE_BPS,
                duration_s=30,
                warmup_s=10,
            )
            for buffer in buffers
            for rival in rivals
        ]
        if scale.few:
            return cells
        return cells + [
            self._against(
                rival, name, {"trace": path, **_CELLULAR}, mean_bps, duration_s=_CELLULAR_S, warmup_s=_CELLULAR_WARMUP_S
            )
            for name, (path, mean_bps) in traces(scale).items()
            for rival in rivals
        ]

    def _against(
        self, rival: Sender, place: str, network: Mapping[str, Any], capacity_bps: float, *, duration_s: float, warmup_s: float
    ) -> Cell:
        flows = [self.sender.flow(capacity_bps, 2, name="own"), rival.flow(capacity_bps, 2, name="rival")]
        return Cell(
            f"{place}, against {rival.label}",
            scenario(network, flows, duration_s, warmup_s=warmup_s, sample_s=0.05),
            (
                Measure(f"share of {self.sender.name}", "1", read.share(0)),
                Measure("utilisation", "1", read.utilization),
                Measure("median RTT", "ms", read.median_rtt_ms),
                Measure("losses over packets sent", "1", read.loss_fraction),
            ),
        )


def traces(scale: Scale) -> dict[str, tuple[str, float]]:
    """By name every trace that is run, and its mean capacity, bit/s.

    Raises:
        InputError: the folder holds no trace.
    """
    if scale.traces is None:
        return {_SYNTHETIC[0]: _SYNTHETIC}
    found = sorted(scale.traces.glob("*.down"))
    if not found:
        raise InputError(f"{scale.traces}: no trace in it is called *.down")
    return {file.stem: (str(file.resolve()), _mean_bps(file)) for file in found}


def _mean_bps(file: Path) -> float:
    mean: float = json.loads(_native.trace_info(str(file)))["mean_mbps"]
    return mean * 1e6
