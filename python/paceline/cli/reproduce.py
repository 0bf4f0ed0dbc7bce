"""``paceline reproduce``: tables and figures of the papers, ours beside theirs."""

import importlib.util
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from paceline._native import InputError
from paceline.cli.output import console, print_json, print_table
from paceline.cli.run import PATIENCE_S, World
from paceline.reproduce import PAPERS, select
from paceline.reproduce.entry import Entry, Job, Runs
from paceline.reproduce.output import Done, cells, count_held, document, headings, write
from paceline.reproduce.pages import publish
from paceline.reproduce.planning import LIVE_AT_ONCE, TRACES_VARIABLE, Request, plan
from paceline.reproduce.running import run_jobs
from paceline.summary import ABSENT


def reproduce(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...", help="Tables and figures, or the beginning of several IDs [default: all].", show_default=False
        ),
    ] = None,
    list_only: Annotated[bool, typer.Option("--list", help="List what there is, by paper; run nothing.")] = False,
    on: Annotated[World, typer.Option("--on", help="The world that carries the packets; few entries have another than sim.")] = (
        World.SIM
    ),
    sweeps: Annotated[
        bool, typer.Option("--sweeps", help="With --on live: also the entries whose runs take more than some minutes.")
    ] = False,
    realtime: Annotated[
        bool,
        typer.Option(
            "--realtime", help="With --on live: real-time priority for emulator and endpoints, exact on a busy machine."
        ),
    ] = False,
    live_at_once: Annotated[int, typer.Option(metavar="N", min=1, help="With --on live: runs at a time.")] = LIVE_AT_ONCE,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller runs, and of large tables a few cells: seconds.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write rows.json, rows.csv, and a page and figure of each to this directory.", show_default=False
        ),
    ] = None,
    pages: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Publish them on the pages of this directory, a page per paper (needs Matplotlib).",
            show_default=False,
        ),
    ] = None,
    records: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the records of the runs in this directory.", show_default=False)
    ] = None,
    traces: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of recorded link traces (*.down) for the entries about cellular links [default: a generated trace; "
            f"where only a recording will do, the folder in {TRACES_VARIABLE}].",
            show_default=False,
            exists=True,
            file_okay=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")] = False,
) -> None:
    """Run tables and figures of the papers again and print ours beside theirs."""
    chosen = select(ids or [])
    if list_only:
        _list(chosen, as_json=as_json)
        return
    if on is World.VM:
        raise InputError("--on vm: entries say themselves what runs in world `vm` (paceline reproduce linux); allowed: sim, live")
    if realtime and on is not World.LIVE:
        raise InputError("--realtime: is for runs in real time; allowed with --on live")
    if pages is not None:
        _check_pages(quick=quick)
    for directory in (out, pages, records):
        if directory is not None:
            _make(directory)
    request = Request(quick=quick, on=on.value, sweeps=sweeps, live_at_once=live_at_once, traces=traces)
    planned = plan(chosen, request)
    for reason, names in planned.left_out.items():
        console(stderr=True).print(f"left out: {', '.join(names)}: {reason}", soft_wrap=True)
    with ExitStack() as stack:
        if records is None:
            # An interrupted run may still be writing.
            temporary = tempfile.TemporaryDirectory(prefix="paceline-", ignore_cleanup_errors=True)
            records = Path(stack.enter_context(temporary))
        at_once = None if on is World.SIM else live_at_once
        runs = _run([job for entry, scale in planned.entries for job in entry.jobs(scale)], records, at_once, realtime)
        done = [Done(entry, scale, runs, entry.rows(scale, runs)) for entry, scale in planned.entries]
        if out is not None:
            options = [
                *(["--on", on.value] if on is not World.SIM else []),
                *(["--quick"] if quick else []),
                *(["--traces DIR"] if traces is not None else []),
            ]
            _write(done, out, command=" ".join(["paceline reproduce", *options]))
        if pages is not None:
            _publish(done, pages)
    if as_json:
        print_json(document(done))
    else:
        _print(done, out)


def _list(chosen: Sequence[Entry], *, as_json: bool) -> None:
    papers = [(paper, [entry for entry in paper.entries if entry in chosen]) for paper in PAPERS]
    if as_json:
        listed = [
            {"id": entry.id, "title": entry.title, "source": entry.source, "paper": paper.citation, "readings": entry.readings}
            for paper, members in papers
            for entry in members
        ]
        print_json({"entries": listed})
        return
    plain = console()
    for paper, members in papers:
        if members:
            plain.print(f"[bold]{paper.key}[/bold]: {paper.citation}", markup=True, soft_wrap=True)
            print_table(
                ["id", "title", "runs", "quick"],
                [(e.id, e.title, str(len(e.jobs(e.full))), str(len(e.jobs(e.quick)))) for e in members],
                left=2,
            )
            plain.print()


def _run(jobs: Sequence[Job], records: Path, at_once: int | None, realtime: bool) -> Runs:
    """Runs them, with a bar on a terminal's stderr once it takes longer than :data:`PATIENCE_S`."""
    terminal = console(stderr=True)
    began = time.monotonic()
    different = set(jobs)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=terminal, transient=True)
    task = bar.add_task("", total=sum(job.duration_s for job in different))

    def show(simulated_s: float, done: int) -> None:
        bar.update(task, completed=simulated_s, description=f"{done} of {len(different)} runs done")
        if terminal.is_terminal and not bar.live.is_started and time.monotonic() - began > PATIENCE_S:
            bar.start()

    try:
        return run_jobs(jobs, records, show, at_once=at_once, realtime=realtime)
    finally:
        bar.stop()


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{directory}: {error.strerror}") from None


def _write(done: Sequence[Done], out: Path, *, command: str) -> None:
    figures = importlib.util.find_spec("matplotlib") is not None
    if not figures:
        console(stderr=True).print("no figures are drawn: they need Matplotlib, pip install 'paceline[plot]'")
    try:
        write(done, out, figures=figures, command=command)
    except OSError as error:
        raise InputError(f"{error.filename or out}: {error.strerror}") from None


def _check_pages(*, quick: bool) -> None:
    """Before a run of minutes."""
    if quick:
        raise InputError("--pages publishes runs of full size: it does not go with --quick")
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError("--pages draws figures: they need Matplotlib, pip install 'paceline[plot]'")


def _publish(done: Sequence[Done], directory: Path) -> None:
    try:
        publish(PAPERS, done, directory)
    except OSError as error:
        raise InputError(f"{error.filename or directory}: {error.strerror}") from None


def _print(done: Sequence[Done], out: Path | None) -> None:
    plain = console()
    said: set[str] = set()
    for each in done:
        plain.print(f"[bold]{each.entry.id}[/bold]: {each.entry.title}", markup=True, soft_wrap=True)
        plain.print(f"{each.entry.source}. Run at {each.scale}.", soft_wrap=True)
        # Entries of a paper share most of their readings.
        for reading in each.entry.readings:
            if reading not in said:
                plain.print(f"* {reading}", soft_wrap=True)
        said |= set(each.entry.readings)
        plain.print()
        lines = [cells(row) for row in each.rows]
        names = headings(each.rows)
        kept = [index for index in range(len(names)) if any(line[index] != ABSENT for line in lines)]
        print_table([names[index] for index in kept], [[line[index] for index in kept] for line in lines], left=2)
        if (held := count_held(each.rows)) is not None:
            plain.print(held)
        plain.print()
    if out is not None:
        plain.print(f"written  {out}: rows.json, rows.csv, a page of each", soft_wrap=True)
