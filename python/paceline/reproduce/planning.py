"""At which scale entries are run, and which cannot be run.

In: entries, and what was asked for. Out: entries with their scales, and why others are left out.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

from paceline._native import InputError
from paceline.reproduce.entry import Entry, Scale

#: Names the folder of recorded traces, where nothing else does.
TRACES_VARIABLE = "PACELINE_TRACES"
#: Runs at a time in world `live`: they share the machine with each other, and take real time.
LIVE_AT_ONCE = 3


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    quick: bool = False
    #: The world that carries the packets.
    on: str = "sim"
    #: Also entries whose runs in world `live` are many.
    sweeps: bool = False
    live_at_once: int = LIVE_AT_ONCE
    #: Folder of recorded link traces.
    traces: Path | None = None


@dataclass(frozen=True)
class Plan:
    """What is run, and what is not."""

    entries: tuple[tuple[Entry, Scale], ...]
    #: By reason the IDs of entries that are left out.
    left_out: Mapping[str, tuple[str, ...]]


def plan(chosen: Iterable[Entry], request: Request) -> Plan:
    """The scales of ``chosen``.

    Raises:
        InputError: not one of them can be run.
    """
    entries: list[tuple[Entry, Scale]] = []
    left_out: dict[str, tuple[str, ...]] = {}
    for entry in chosen:
        scale = _scale(entry, request)
        reason = _live_reason(entry, scale, request) or _traces_reason(entry, scale) or (entry.needs and entry.needs())
        if scale is not None and reason is None:
            entries.append((entry, scale))
        elif reason is not None:
            left_out[reason] = (*left_out.get(reason, ()), entry.id)
    if not entries:
        raise InputError("; ".join(f"{', '.join(names)}: {reason}" for reason, names in left_out.items()))
    return Plan(tuple(entries), left_out)


def _scale(entry: Entry, request: Request) -> Scale | None:
    size = entry.quick if request.quick else entry.full
    if request.on != "sim":
        if entry.live is None:
            return None
        # A short run says the same of one repetition.
        size = replace(entry.live, duration_s=size.duration_s, seeds=entry.live.seeds[:1] if request.quick else entry.live.seeds)
    traces = request.traces
    if traces is None and entry.traces and (named := os.environ.get(TRACES_VARIABLE)):
        traces = Path(named)
    return replace(size, traces=traces, on=request.on)


def _live_reason(entry: Entry, scale: Scale | None, request: Request) -> str | None:
    if scale is None:
        return f"not run in world `{request.on}`"
    if request.on == "sim" or not entry.live_is_long or request.sweeps or request.quick:
        return None
    jobs = entry.jobs(scale)
    minutes = ceil(len(jobs) / request.live_at_once) * max(job.duration_s for job in jobs) / 60
    return (
        f"in world `{request.on}` {len(jobs)} runs, {request.live_at_once} at a time, take {minutes:.0f} minutes: "
        "ask for them with --sweeps"
    )


def _traces_reason(entry: Entry, scale: Scale | None) -> str | None:
    if scale is None:
        return None
    missing = [name for name in entry.traces if scale.traces is None or not (scale.traces / name).is_file()]
    if not missing:
        return None
    where = "" if scale.traces is None else f"{scale.traces} has no {' and no '.join(missing)}; "
    return (
        f"{where}{' and '.join(entry.traces)} are recordings that come with the mahimahi emulator (github.com/ravinet/mahimahi, "
        f"folder traces) and not with Paceline: name their folder with --traces DIR or {TRACES_VARIABLE}"
    )
