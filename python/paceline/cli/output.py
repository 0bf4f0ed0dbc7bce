"""What the commands print: tables for people on stdout, one JSON object for programs, progress on stderr."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from paceline.summary import HEADINGS, Repeated, Row

#: Largest seed: 64 bits.
MOST_SEED = 2**64 - 1

#: Rows of a comparison that a person will read; laying out thousands would take longer than the run.
MOST_ROWS = 100

#: Columns assumed when the output is no terminal: wide enough that no table is folded.
FILE_WIDTH = 200


def console(*, stderr: bool = False) -> Console:
    """A console for stdout or stderr; colour only on a terminal and without NO_COLOR."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, width=None if stream.isatty() else FILE_WIDTH, highlight=False, markup=False, emoji=False)


def print_json(value: dict[str, Any]) -> None:
    """The one JSON object of a ``--json`` command."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1, caption: str | None = None) -> None:
    """A table; the first ``left`` columns are text, the others numbers."""
    table = Table(box=None, header_style="bold", pad_edge=False, caption=caption, caption_justify="left")
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="left" if index < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console().print(table)


def print_rows(rows: Sequence[Row | Repeated], *, caption: str | None = None) -> None:
    """The comparison table, without the columns that no row has a value for and the rows that nobody would read."""
    lines = [row.cells() for row in rows[:MOST_ROWS]]
    if len(rows) > MOST_ROWS:
        left_out = f"… and {len(rows) - MOST_ROWS} more: the record and --json have them all."
        caption = f"{left_out}\n{caption}" if caption else left_out
    empty = Row("", *[None] * (len(HEADINGS) - 1)).cells()
    kept = [i for i in range(len(HEADINGS)) if i == 0 or any(line[i] != empty[i] for line in lines)]
    print_table([HEADINGS[i] for i in kept], [[line[i] for i in kept] for line in lines], caption=caption)


def print_runs(labels: Sequence[str], results: Sequence[Mapping[str, Any]]) -> None:
    """One line per label: a run, or the mean of the runs that share it (they differ in their seed)."""
    groups: dict[str, list[Row]] = {}
    for label, result in zip(labels, results, strict=True):
        groups.setdefault(label, []).append(Row.of_run(label, result))
    rows = [
        members[0] if len(members) == 1 else Repeated(f"{label}, {len(members)} seeds", members)
        for label, members in groups.items()
    ]
    notes = []
    if any(len(result.get("flows") or []) > 1 for result in results):
        notes.append("Throughput and loss: all flows of a run. Delays and power: its worst flow.")
    if len(rows) < len(results):
        notes.append("±: 95 % confidence interval of the mean over seeds.")
    print_rows(rows, caption=" ".join(notes) or None)
