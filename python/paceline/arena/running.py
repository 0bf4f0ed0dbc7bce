"""Carries the cells of an arena out, a few at a time, and keeps what each gave: an arena that was stopped goes on.

In: contestants, links, seeds and the setting. Out: :class:`Cell` s. One that fails says why and costs no other its result.
"""

import hashlib
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from paceline import __version__, _native
from paceline._native import PacelineError
from paceline.arena.setting import Setting
from paceline.arena.traces import Link
from paceline.controller import Controller
from paceline.running import Source, execute

#: Time between two reports of progress, s.
_REPORT_S = 0.2
#: A link on which any controller can begin.
_TRIAL = Source('duration = "1 ms"\n[link]\nrate = "10 Mbit/s"\nrtt = "10 ms"\n[[flows]]\ncontroller = "window"\n', None, {})


@dataclass(frozen=True)
class Contestant:
    """A controller of the arena, by name or as a class."""

    name: str
    controller: str | type[Controller]
    #: Of the file that holds the class.
    file_sha256: str | None = None

    @classmethod
    def of(cls, controller: str | type[Controller], file: Path | None) -> "Contestant":
        """The contestant of what ``paceline.run`` takes, and the file that a class is from."""
        if isinstance(controller, str):
            return cls(controller, controller)
        sha256 = None if file is None else hashlib.sha256(file.read_bytes()).hexdigest()
        return cls(controller.__name__, controller, sha256)


@dataclass(frozen=True)
class Cell:
    """What a controller did on a link with a seed. ``None`` is what was not measured."""

    controller: str
    link: str
    seed: int
    #: Of all flows together.
    throughput_bps: float | None = None
    #: Of the link that has the trace.
    capacity_bps: float | None = None
    #: 95th percentiles of the flow where they are largest.
    signal_p95_ms: float | None = None
    queueing_p95_ms: float | None = None
    rtt_p95_ms: float | None = None
    #: Packets lost over packets sent, of all flows.
    loss_fraction: float | None = None
    #: Why there is nothing.
    error: str | None = None

    @property
    def share(self) -> float:
        """Throughput over capacity; 0 where nothing was delivered."""
        return (self.throughput_bps or 0.0) / self.capacity_bps if self.capacity_bps else 0.0

    @property
    def delay_ms(self) -> float | None:
        """The signal delay, of which less than a millisecond counts as one; ``None`` where nothing was delivered."""
        return None if self.signal_p95_ms is None else max(1.0, self.signal_p95_ms)

    @property
    def power(self) -> float:
        """Throughput in Mbit/s over the signal delay in s; 0 where nothing was delivered."""
        return 0.0 if self.delay_ms is None else (self.throughput_bps or 0.0) * 1e-6 / (self.delay_ms * 1e-3)


@dataclass(frozen=True)
class Job:
    """A cell to be."""

    contestant: Contestant
    link: Link
    seed: int


@dataclass(frozen=True)
class Outcome:
    """All cells of an arena."""

    cells: Sequence[Cell]
    #: How many of them an earlier arena had left.
    reused: int


class _StoppedError(Exception):
    """Ends a run from within, once the command is interrupted."""


def check_contestants(contestants: Iterable[Contestant]) -> None:
    """Tries the names on a link of no importance, for a moment.

    Raises:
        InputError: there is no such controller, or it has no such profile or parameter.
    """
    for contestant in contestants:
        if isinstance(contestant.controller, str):
            execute(_TRIAL, contestant.controller, seed=0, out=None, overrides=(), command=sys.argv)


def run_cells(
    jobs: Sequence[Job],
    setting: Setting,
    folder: Path,
    *,
    world: str,
    realtime: bool,
    at_a_time: int,
    progress: Callable[[float, int, int], object],
) -> Outcome:
    """Runs every job that ``folder`` has no cell of, and leaves the cells there; those that failed are tried anew next time.

    ``world`` and ``realtime`` are ``on`` and ``realtime`` of ``paceline.run``. ``progress`` is called a few times a second with
    the share of the work that is done, how many cells are, and how many of them were there.

    Raises:
        OSError: ``folder`` cannot be written.
    """
    store = _Store(folder / "cells", setting, {"world": world, "realtime": realtime})
    cells = {job: found for job in jobs if (found := store.find(job)) is not None}
    reused = len(cells)
    missing = [job for job in jobs if job not in cells]
    lengths_s = [setting.length_ms(job.link) * 1e-3 for job in missing]
    reached_s = [0.0] * len(missing)
    stop = threading.Event()

    sources: dict[tuple[Link, int], Source] = {}
    writing = threading.Lock()

    def source(link: Link, seed: int) -> Source:
        with writing:
            if (link, seed) not in sources:
                sources[link, seed] = Source.of(setting.write(link, seed, folder))
            return sources[link, seed]

    def one(index: int, job: Job) -> Cell:
        def tell(simulated_s: float) -> None:
            if stop.is_set():
                raise _StoppedError
            reached_s[index] = simulated_s

        try:
            # The seed is in the scenario, so that a record of it needs nothing else.
            answer = execute(
                source(job.link, job.seed),
                job.contestant.controller,
                seed=None,
                out=None,
                overrides=(),
                command=sys.argv,
                progress=tell,
                on=world,
                realtime=realtime,
            )
        except PacelineError as error:
            return Cell(job.contestant.name, job.link.name, job.seed, error=_told(error))
        cell = _measured(job, answer["result"], setting.link_name)
        store.keep(job, cell)
        reached_s[index] = lengths_s[index]
        return cell

    pool = ThreadPoolExecutor(max_workers=at_a_time, thread_name_prefix="paceline")
    try:
        # Link by link: the scenarios of one are read by its runs alone, and turned traces are made as they are needed.
        futures: dict[Future[Cell], Job] = {pool.submit(one, index, job): job for index, job in enumerate(missing)}
        pending = set(futures)
        while pending:
            done, pending = wait(pending, timeout=_REPORT_S, return_when=FIRST_COMPLETED)
            cells |= {futures[future]: future.result() for future in done}
            progress(sum(reached_s) / sum(lengths_s), len(cells), reused)
        return Outcome([cells[job] for job in jobs], reused)
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


class _Store:
    """Cells as files, each with all that its numbers depend on."""

    def __init__(self, folder: Path, setting: Setting, world: Mapping[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._setting = setting
        self._shared = {"setting": setting.sha256(), **world, "build": build()}

    def find(self, job: Job) -> Cell | None:
        """The cell of ``job`` if it is there."""
        key = self._key(job)
        try:
            found = json.loads(self._path(job, key).read_text(encoding="utf-8"))
            return Cell(**found["cell"]) if found["key"] == key else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, job: Job, cell: Cell) -> None:
        key = self._key(job)
        path = self._path(job, key)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(json.dumps({"key": key, "cell": asdict(cell)}, indent=1) + "\n", encoding="utf-8")
        partial.replace(path)

    def _key(self, job: Job) -> dict[str, Any]:
        return {
            **self._shared,
            "controller": job.contestant.name,
            "controller_file": job.contestant.file_sha256,
            "trace": job.link.name,
            "data": job.link.data_sha256,
            "acks": job.link.acks_sha256,
            "duration_ms": self._setting.length_ms(job.link),
            "seed": job.seed,
        }

    def _path(self, job: Job, key: Mapping[str, Any]) -> Path:
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:12]
        name = re.sub(r"[^A-Za-z0-9._]+", "-", f"{job.contestant.name}.{job.link.name}.seed-{job.seed}")
        return self._folder / f"{name}.{digest}.json"


@cache
def build() -> str:
    """Version and contents of the simulator: a controller that was changed and built anew has other cells."""
    digest = hashlib.sha256(Path(str(_native.__file__)).read_bytes()).hexdigest()
    return f"{__version__} {digest[:12]}"


def _measured(job: Job, result: Mapping[str, Any], link_name: str) -> Cell:
    flows: Sequence[Mapping[str, Any]] = result["flows"]

    def worst(measure: str) -> float | None:
        values = [(flow.get(measure) or {}).get("p95") for flow in flows]
        return max((float(value) for value in values if value is not None), default=None)

    sent = sum(flow["sent_packets"] or 0 for flow in flows)
    lost = sum(flow["lost_packets"] or 0 for flow in flows)
    return Cell(
        controller=job.contestant.name,
        link=job.link.name,
        seed=job.seed,
        throughput_bps=sum(flow["throughput_bps"] or 0.0 for flow in flows),
        capacity_bps=next(link["capacity_bps"] for link in result["links"] if link["name"] == link_name),
        signal_p95_ms=worst("signal_delay_ms"),
        queueing_p95_ms=worst("queueing_delay_ms"),
        rtt_p95_ms=worst("rtt_ms"),
        loss_fraction=lost / sent if sent else None,
    )


def _told(error: PacelineError) -> str:
    """What went wrong, in one line; what a controller in Python raised is what its author looks for."""
    cause = error.__cause__
    text = str(error) if cause is None else f"{type(cause).__name__}: {cause}"
    return " ".join(text.split()) or type(error).__name__
