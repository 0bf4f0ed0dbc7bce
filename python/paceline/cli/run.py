"""``paceline run`` and ``paceline schema``."""

import importlib.util
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from paceline import _native
from paceline._native import InputError
from paceline.cli.output import console, print_json, print_rows, print_runs
from paceline.controller import Controller
from paceline.record import MANIFEST
from paceline.running import Source, check, execute
from paceline.summary import Row, label_of

#: Progress appears when a command takes longer than this, s.
PATIENCE_S = 2.0
#: Largest number of seeds: each is a record, and all are shown together.
MOST_SEEDS = 100_000
#: More records than this are named by the directory that holds them.
MOST_RECORDS = 8


class World(StrEnum):
    """What carries the packets."""

    SIM = "sim"
    LIVE = "live"
    VM = "vm"


@dataclass(frozen=True)
class Job:
    """One run of the command: which controller, under which name, with which seed, into which directory."""

    name: str
    controller: str | type[Controller] | None
    out: Path
    seed: int | None = None


def run(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="Scenario file, TOML.", show_default=False)],
    controller: Annotated[
        list[str] | None,
        typer.Option(
            "--controller",
            "-c",
            metavar="NAME",
            help="Controller of every flow, instead of the scenario's; repeat to compare. "
            "NAME, NAME:PROFILE, NAME,KEY=VALUE or FILE.py:CLASS.",
        ),
    ] = None,
    on: Annotated[World, typer.Option("--on", help="The world that carries the packets.")] = World.SIM,
    realtime: Annotated[
        bool,
        typer.Option("--realtime", help="On live: real-time priority for emulator and endpoints, exact on a busy machine."),
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Replaces the scenario's seed.", min=0)] = None,
    seeds: Annotated[
        int,
        typer.Option(metavar="N", min=1, max=MOST_SEEDS, help="Repeat with N seeds in a row and show means with 95 % intervals."),
    ] = 1,
    override: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help='Change one key of the scenario: --set link.rate="10 Mbit/s".'),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Directory of the records [default: under runs/SCENARIO].", show_default=False),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write what controllers in integer C hear and answer, for `paceline replay`: some 220 bytes per ACK, in memory "
            "until the run's end. One run at a time.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at a time [default: one per core].", show_default=False)] = None,
    check_only: Annotated[bool, typer.Option("--check", help="Print the resolved scenario as JSON; run nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")] = False,
) -> None:
    """Run a scenario, print the table, write records.

    With --controller one record per controller is written, in a subdirectory of the output directory named after it;
    without, one record, which is the output directory itself (default: runs/SCENARIO/as-written). With --seeds each of these
    holds one record per seed (default: under runs/SCENARIO/seeds).
    """
    if realtime and on is not World.LIVE:
        raise InputError("--realtime: is for runs in real time; allowed with --on live")
    overrides = override or []
    for item in overrides:
        if not re.match(r"[A-Za-z0-9_.\-\[\]]+\s*=", item):
            raise InputError(f"--set {item}: expected KEY=VALUE, with a dotted key: link.rate=10 Mbit/s")
    if check_only:
        print_json(check(scenario, overrides=overrides))
        return
    # Apart from the records of single runs, which have the same names and hold nothing else.
    base = Path("runs") / scenario.stem / ("seeds" if seeds > 1 else "")
    planned = _plan(controller, out or base) if controller else [Job("", None, out or base / "as-written")]
    source = Source.of(scenario)
    if seeds > 1:
        first = seed if seed is not None else check(scenario, overrides=overrides)["seed"]
        planned = [
            replace(job, out=job.out / f"seed-{number}", seed=number) for job in planned for number in range(first, first + seeds)
        ]
    else:
        planned = [replace(job, seed=seed) for job in planned]
    _keep_out_of_records(planned, out or base)
    if events is not None and len(planned) > 1:
        raise InputError(f"--events {events}: takes one run, and this is {len(planned)}")
    # Runs in real time that share the cores would disturb each other, unless asked for.
    at_a_time = jobs or (1 if on is World.LIVE else os.cpu_count() or 1)
    answers = _run_all(source, planned, overrides, at_a_time, on, realtime, events)
    objects = [{**answer["result"], "record": answer["record"]} for answer in answers]
    if as_json:
        print_json(objects[0] if len(objects) == 1 else {"runs": objects})
    else:
        _print_answers(planned, objects)


def schema() -> None:
    """Print the JSON Schema of scenario files."""
    print_json(json.loads(_native.scenario_schema()))


def _plan(names: Sequence[str], out: Path) -> list[Job]:
    planned: list[Job] = []
    for text in names:
        chosen = controller_class(text)
        name = chosen if isinstance(chosen, str) else chosen.__name__
        directory = out / (re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.") or "controller")
        if any(job.out == directory for job in planned):
            raise InputError(f"--controller {text}: a second record would go to {directory}; run it with another --out")
        planned.append(Job(name, chosen, directory))
    return planned


def _keep_out_of_records(planned: Sequence[Job], top: Path) -> None:
    """A record in a record would be neither shown nor replaceable."""
    for job in planned:
        for folder in job.out.parents:
            if folder.is_relative_to(top) and (folder / MANIFEST).is_file():
                raise InputError(f"--out {folder}: is a record, and {job.out} would lie in it; choose another directory")


def controller_class(text: str) -> str | type[Controller]:
    """``NAME``, ``NAME:PROFILE`` or ``NAME,KEY=VALUE``, all checked with the scenario; or ``FILE.py:CLASS``, loaded here."""
    path, _, name = text.rpartition(":")
    file = Path(path)
    if file.suffix != ".py":
        return text
    if not file.is_file():
        raise InputError(f"--controller {text}: {path}: no such file")
    spec = importlib.util.spec_from_file_location(f"paceline_user_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise InputError(f"--controller {text}: {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(f"--controller {text}: {path} raised {type(error).__name__}: {error}") from error
    found = getattr(module, name, None)
    if not (isinstance(found, type) and issubclass(found, Controller)):
        raise InputError(f"--controller {text}: {path} has no subclass of paceline.Controller called {name}")
    return found


def _run_all(
    source: Source,
    planned: Sequence[Job],
    overrides: Sequence[str],
    jobs: int,
    on: World,
    realtime: bool,
    events: Path | None,
) -> list[dict[str, Any]]:
    """Runs every job, `jobs` at a time; answers come in the order of `planned` whichever ends first.

    The first failure ends the command; runs that had already ended keep their records.
    """
    reached = [0.0] * len(planned)
    pool = ThreadPoolExecutor(max_workers=min(jobs, len(planned)), thread_name_prefix="paceline")
    futures: list[Future[dict[str, Any]]] = [
        pool.submit(
            execute,
            source,
            job.controller,
            seed=job.seed,
            out=job.out,
            overrides=overrides,
            command=sys.argv,
            progress=partial(reached.__setitem__, index),
            on=on.value,
            realtime=realtime,
            events=events,
        )
        for index, job in enumerate(planned)
    ]
    _wait(futures, reached, on)
    failed = next((future for future in futures if future.done() and future.exception() is not None), None)
    pool.shutdown(wait=failed is None, cancel_futures=True)
    if failed is not None:
        failed.result()
    return [future.result() for future in futures]


def _wait(futures: Sequence[Future[dict[str, Any]]], reached: Sequence[float], on: World) -> None:
    """Until all are done or one has failed. Past :data:`PATIENCE_S` a terminal's stderr shows how far things are.

    ``reached`` holds the time of each run that is over, s.
    """
    began = time.monotonic()
    terminal = console(stderr=True)
    status = terminal.status("", spinner="dots")
    shown = False
    try:
        pending = set(futures)
        while pending:
            done, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
            if any(future.exception() is not None for future in done):
                return
            elapsed = time.monotonic() - began
            if elapsed < PATIENCE_S or not terminal.is_terminal:
                continue
            passed = sum(reached)
            done_of_all = f"{len(futures) - len(pending)} of {len(futures)} runs done"
            if on is World.SIM:
                status.update(
                    f"simulating: {done_of_all}, "
                    f"{passed:.1f} s simulated in {elapsed:.0f} s ({passed / elapsed:.3g} times real time)"
                )
            else:
                how = "in real time" if on is World.LIVE else "under virtual time"
                status.update(f"running {how}: {done_of_all}, {passed:.0f} s carried out in {elapsed:.0f} s")
            if not shown:
                status.start()
                shown = True
    finally:
        if shown:
            status.stop()


def _print_answers(planned: Sequence[Job], results: Sequence[dict[str, Any]]) -> None:
    plain = console()
    if len(results) == 1:
        result = results[0]
        print_rows([Row.of_flow(flow, result) for flow in result["flows"]])
    else:
        labels = [job.name or label_of(result) for job, result in zip(planned, results, strict=True)]
        print_runs(labels, results)
    plain.print()
    if len(results) <= MOST_RECORDS:
        for result in results:
            plain.print(f"record  {result['record']}", soft_wrap=True)
    else:
        plain.print(f"records {os.path.commonpath([result['record'] for result in results])}: {len(results)}", soft_wrap=True)
    simulated = sum(result.get("duration_s") or 0.0 for result in results)
    cpu = sum((result.get("engine") or {}).get("cpu_s") or 0.0 for result in results)
    if simulated and cpu and results[0].get("world") == "sim":
        plain.print(f"{simulated:g} s simulated in {cpu:.2f} CPU s: {simulated / cpu:.0f} times real time")
