"""``paceline arena``: controllers against each other over all traces of a folder."""

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from paceline._native import InputError
from paceline.arena.result import Arena, headings, links_text, notes, row
from paceline.arena.running import Contestant, Job, Outcome, check_contestants, run_cells
from paceline.arena.setting import CONTEST, Setting
from paceline.arena.traces import Direction, find, generate
from paceline.cli.output import console, print_json, print_table
from paceline.cli.run import MOST_SEEDS, PATIENCE_S, World, controller_class
from paceline.controller import controllers
from paceline.quantity import duration_s
from paceline.running import check

#: Whom the others are compared with where nobody is named.
_REFERENCE = "latte"


def arena(
    traces: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of traces: NAME.down and NAME.up, a pair where both are there, or NAME.trace [default: generated ones].",
            show_default=False,
        ),
    ] = None,
    controller: Annotated[
        list[str] | None,
        typer.Option(
            "--controller",
            "-c",
            metavar="NAME",
            help="Who takes part; repeat. NAME, NAME:PROFILE, NAME,KEY=VALUE or FILE.py:CLASS [default: all built in].",
            show_default=False,
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"Whom the others are compared with; takes part [default: {_REFERENCE} if it takes part, else the first].",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, max=MOST_SEEDS, help="Seed 0 is the trace as recorded, others begin at another moment of it."
        ),
    ] = 1,
    direction: Annotated[
        Direction, typer.Option(metavar="both|down|up", help="Which traces carry data; the other one of a pair carries ACKs.")
    ] = Direction.BOTH,
    duration: Annotated[
        str | None,
        typer.Option(help="Of every run [default: as long as the trace, at most 140 s].", show_default=False),
    ] = None,
    scenario: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Scenario whose link takes the traces [default: the CS 244 contest's: 20 ms each way, no limit to the queue].",
            show_default=False,
        ),
    ] = None,
    on: Annotated[World, typer.Option("--on", help="The world that carries the packets.")] = World.SIM,
    realtime: Annotated[
        bool,
        typer.Option("--realtime", help="On live: real-time priority for emulator and endpoints, exact on a busy machine."),
    ] = False,
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Directory of report.html, arena.json and the cells; cells that are there are kept."),
    ] = Path("runs/arena"),
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Runs at a time [default: one per core; on live one].", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")] = False,
) -> None:
    """Hold controllers against each other over all traces of a folder: a ranking, and a page for a course or a paper."""
    from paceline.arena.page import page
    from paceline.report import markup

    if on is World.VM:
        raise InputError(f"world `{on}` is not available for the arena; available: sim, live")
    if realtime and on is not World.LIVE:
        raise InputError("--realtime: is for runs in real time; allowed with --on live")
    length_ms = None if duration is None else max(1, round(duration_s("--duration", duration) * 1e3))
    setting = Setting.read(scenario or CONTEST, length_ms)
    contestants, reference = _contestants(controller, reference)
    try:
        out.mkdir(parents=True, exist_ok=True)
        if traces is None:
            traces = out / "traces" / "generated"
            generate(traces)
        links = find(traces, direction)
        # What is wrong with the scenario is said once, not in every cell.
        check(setting.write(links[0], 0, out))
        began = time.monotonic()
        numbers = range(seeds)
        planned = [Job(each, link, seed) for link in links for seed in numbers for each in contestants]
        # Runs in real time that share the cores would disturb each other, unless asked for.
        at_a_time = jobs or (1 if on is World.LIVE else os.cpu_count() or 1)
        outcome = _run(planned, setting, out, world=on, realtime=realtime, at_a_time=at_a_time)
        took_s = time.monotonic() - began
        held = Arena(links, contestants, numbers, reference, on.value, setting, outcome.cells, shlex.join(_command()))
        document = held.to_dict()
        markup.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n", out / "arena.json")
        markup.write(page(held, out), out / "report.html")
    except OSError as error:
        raise InputError(f"{error.filename or out}: {error.strerror}") from None
    if as_json:
        print_json(document)
    else:
        _print(held, outcome, took_s, out)
    if all(standing.rank is None for standing in held.standings):
        raise typer.Exit(1)


def _contestants(names: Sequence[str] | None, reference: str | None) -> tuple[list[Contestant], str]:
    """Who takes part, all names known, and the name of the reference among them."""
    texts = list(names or controllers())
    if reference is not None and reference not in texts:
        texts.append(reference)
    found: list[Contestant] = []
    by_text: dict[str, str] = {}
    for text in texts:
        chosen = controller_class(text)
        file = None if isinstance(chosen, str) else Path(text.rpartition(":")[0])
        contestant = Contestant.of(chosen, file)
        if any(other.name == contestant.name for other in found):
            raise InputError(f"--controller {text}: another {contestant.name} takes part already")
        found.append(contestant)
        by_text[text] = contestant.name
    check_contestants(found)
    return found, by_text[reference or (_REFERENCE if _REFERENCE in texts else texts[0])]


def _run(planned: Sequence[Job], setting: Setting, out: Path, *, world: World, realtime: bool, at_a_time: int) -> Outcome:
    """Runs them, with a bar on a terminal's stderr once it takes longer than :data:`PATIENCE_S`."""
    terminal = console(stderr=True)
    began = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=terminal, transient=True)
    task = bar.add_task("", total=1.0)

    def show(part: float, done: int, reused: int) -> None:
        before = f", {reused} from before" if reused else ""
        bar.update(task, completed=part, description=f"{done} of {len(planned)} cells done{before}")
        if terminal.is_terminal and not bar.live.is_started and time.monotonic() - began > PATIENCE_S:
            bar.start()

    try:
        return run_cells(planned, setting, out, world=world.value, realtime=realtime, at_a_time=at_a_time, progress=show)
    finally:
        bar.stop()


def _command() -> list[str]:
    """The command line, as a shell is given it: the program by its name."""
    return ["paceline", *(re.sub(r"[\r\n]+", " ", word) for word in sys.argv[1:])]


def _print(held: Arena, outcome: Outcome, took_s: float, out: Path) -> None:
    plain = console()
    plain.print(held.size, soft_wrap=True)
    for line in links_text(held):
        plain.print(f"  {line}", soft_wrap=True)
    plain.print()
    print_table(headings(held), [row(standing, held) for standing in held.standings], left=2)
    plain.print()
    for note in notes(held):
        plain.print(note, soft_wrap=True)
    plain.print(f"\nreport  {out / 'report.html'}", soft_wrap=True)
    plain.print(f"details {out / 'arena.json'}", soft_wrap=True)
    ran = len(outcome.cells) - outcome.reused
    before = f"; {outcome.reused} were there from before" if outcome.reused else ""
    each = f": {took_s / ran:.3f} s each" if ran else ""
    plain.print(f"{ran} cells run in {took_s:.1f} s{each}{before}", soft_wrap=True)
