"""What the commands print: tables for people on stdout, one JSON object for programs, progress on stderr."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from paceline.summary import HEADINGS, Row

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


def print_rows(rows: Sequence[Row], *, caption: str | None = None) -> None:
    """The comparison table, without the columns that no row has a value for."""
    lines = [row.cells() for row in rows]
    empty = Row("", *[None] * (len(HEADINGS) - 1)).cells()
    kept = [i for i in range(len(HEADINGS)) if i == 0 or any(line[i] != empty[i] for line in lines)]
    print_table([HEADINGS[i] for i in kept], [[line[i] for i in kept] for line in lines], caption=caption)
