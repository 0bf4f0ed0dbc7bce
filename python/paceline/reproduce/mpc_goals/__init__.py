"""The goals of Paceline's own MPC, run in world `sim`: a number, its goal, whether it holds.

``senders`` says who is measured, ``own`` and ``beside`` what is run, ``measures`` how a number is read off a run, ``cells`` makes
jobs and rows of that.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from paceline.reproduce.entry import Entry, Paper, Runs, Scale
from paceline.reproduce.mpc_goals import drawing
from paceline.reproduce.mpc_goals.beside import Beside
from paceline.reproduce.mpc_goals.cells import Cells, jobs_of, rows_of
from paceline.reproduce.mpc_goals.own import Own
from paceline.reproduce.mpc_goals.readings import READINGS, SCALED, STANDARD, VERDICTS
from paceline.reproduce.mpc_goals.senders import MPC, Sender

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MPC", "paper"]

_FULL = Scale(rate=1, duration_s=None, seeds=(1, 2, 3, 4, 5))
_QUICK = Scale(rate=0.1, duration_s=None, seeds=(1, 2), few=True)


def paper(sender: Sender) -> Paper:
    """The goals, with ``sender`` for the controller under test."""
    own, beside = Own(sender), Beside(sender)
    return Paper(
        key="mpc-goals",
        citation=f"Goals of Paceline's own MPC, for {sender.label}",
        entries=(
            _own(
                "buffers",
                "Utilisation, RTT and losses of one to eight flows over buffers of 1/16 to 16 BDP",
                "Links used, queues short, nothing lost",
                own.buffers,
                partial(drawing.buffers, own, "mpc-goals-buffers"),
            ),
            _own(
                "late",
                "A second flow 10 s after the first, at RTTs of 1 to 300 ms",
                "Fair within 2 s and 80 RTTs",
                own.late,
                partial(drawing.late, own, "mpc-goals-late"),
            ),
            _own("rtts", "Flows with RTTs of 25 to 55 ms, every constant 20 % off", "Fair and not fragile", own.rtts),
            _own("caps", "Flows that are told a highest rate", "Caps kept", own.caps),
            _own("steps", "The capacity goes from 4 to 2 Gbit/s, or from 2 to 4", "Changes followed", own.steps),
            _own("noise", "ACK noise of 5 % of the RTT, random loss of 0.1 %", "Noise and random loss borne", own.noise),
            _own("range", "From 1 to 300 ms and from 1 Mbit/s to 400 Gbit/s", "Stable and fair everywhere", own.range),
            _own("hosts", "Bursts, timer slack, ACKs in bunches, unequal forward delays", "Real hosts borne", own.hosts),
            _entry("rivals", "CUBIC, BBR and others on constant links, each alone", "Beside others", beside.constant),
            _entry("cellular", "CUBIC, BBR and others on cellular links, each alone", "Beside others", beside.cellular),
            _entry("contest", "Against CUBIC, BBR and others, one flow each", "Against others", beside.contest),
        ),
    )


def _own(name: str, title: str, source: str, cells: Cells, draw: Callable[[Scale, Runs], "Figure"] | None = None) -> Entry:
    """An entry about the controller by itself."""
    entry = _entry(name, title, source, cells)
    return replace(entry, readings=(STANDARD, *entry.readings, SCALED), draw=draw)


def _entry(name: str, title: str, source: str, cells: Cells) -> Entry:
    identity = f"mpc-goals-{name}"
    return Entry(
        id=identity,
        title=title,
        source=source,
        readings=READINGS[name],
        verdict=VERDICTS[name],
        full=_FULL,
        quick=_QUICK,
        jobs=jobs_of(identity, cells),
        rows=rows_of(identity, cells),
    )
