"""What a reproduction leaves behind: one JSON object, a CSV table, a Markdown page per entry with its figure.

In: entries with their rows. Out: text and files that depend on the rows alone, byte for byte.
"""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline import __version__
from paceline.reproduce.entry import BandRow, Entry, GoalRow, Row, Runs, Scale
from paceline.summary import ABSENT

#: Columns of a table for people, beside a paper, beside a paper within bounds, and beside goals.
_PAPER_HEADINGS = ("quantity", "unit", "paper", "ours", "least to most", "ratio")
_BAND_HEADINGS = ("quantity", "unit", "paper", "bound", "ours", "least to most", "ratio", "held")
_GOAL_HEADINGS = ("quantity", "unit", "goal", "ours", "least to most", "held")


@dataclass(frozen=True)
class Done:
    """An entry that was run."""

    entry: Entry
    scale: Scale
    runs: Runs
    rows: Sequence[Row]

    def to_dict(self) -> dict[str, Any]:
        """The entry as ``paceline reproduce --json`` prints it."""
        return {
            "id": self.entry.id,
            "title": self.entry.title,
            "source": self.entry.source,
            "readings": list(self.entry.readings),
            "scale": {
                "on": self.scale.on,
                "rate": self.scale.rate,
                "duration_s": self.scale.duration_s,
                "seeds": list(self.scale.seeds),
            },
            "rows": [row.to_dict() for row in self.rows],
        }


def document(done: Sequence[Done]) -> dict[str, Any]:
    """The one object of ``--json`` and of ``rows.json``."""
    return {"paceline_version": __version__, "entries": [each.to_dict() for each in done]}


def headings(rows: Sequence[Row]) -> tuple[str, ...]:
    """Columns of a table of ``rows`` for people."""
    if any(isinstance(row, GoalRow) for row in rows):
        return _GOAL_HEADINGS
    return _BAND_HEADINGS if any(isinstance(row, BandRow) for row in rows) else _PAPER_HEADINGS


def table(names: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table; all but the first two columns are numbers."""
    ruler = ["---", "---", *["---:"] * (len(names) - 2)]
    return "".join(f"| {' | '.join(line)} |\n" for line in (names, ruler, *lines))


def cells(row: Row) -> tuple[str, ...]:
    """The row as text, in the order of :func:`headings`."""
    spread = ABSENT if row.low is None or row.high is None else f"{number(row.low)} to {number(row.high)}"
    held = ABSENT if row.held is None else "yes" if row.held else "no"
    if isinstance(row, GoalRow):
        goal = ABSENT if row.goal is None else str(row.goal)
        return row.quantity, row.unit, goal, number(row.ours), spread, held
    ratio = ABSENT if row.ratio is None else f"{row.ratio:.3g}"
    if isinstance(row, BandRow):
        bound = ABSENT if row.band is None else str(row.band)
        return row.quantity, row.unit, number(row.paper), bound, number(row.ours), spread, ratio, held
    return row.quantity, row.unit, number(row.paper), number(row.ours), spread, ratio


def count_held(rows: Sequence[Row]) -> str | None:
    """How many goals or bounds are held, in words; ``None`` where none is judged."""
    judged = [row.held for row in rows if row.held is not None]
    what = "goals" if any(isinstance(row, GoalRow) for row in rows) else "bounds"
    return f"{sum(judged)} of {len(judged)} {what} held" if judged else None


def write(done: Sequence[Done], directory: Path, *, figures: bool, command: str) -> list[Path]:
    """Writes ``rows.json``, ``rows.csv`` and per entry a page and, with ``figures``, the figure that it has.

    ``command`` is what a page says gives it again, up to the ID.

    Raises:
        OSError: ``directory`` cannot be written.
    """
    files = {"rows.json": json.dumps(document(done), indent=2, ensure_ascii=False) + "\n", "rows.csv": _csv(done)}
    for each in done:
        name = each.entry.id
        drawn = figures and each.entry.draw is not None
        if drawn:
            files[f"{name}.svg"] = _svg(each)
        files[f"{name}.md"] = _page(each, f"{name}.svg" if drawn else None, command)
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
    return [directory / name for name in files]


def number(value: float | None) -> str:
    """A number in a table."""
    return ABSENT if value is None else f"{value:.4g}"


def _csv(done: Sequence[Done]) -> str:
    lines = [{"entry": each.entry.id, **row.to_dict()} for each in done for row in each.rows]
    # Rows beside a paper and rows beside a goal may share the table.
    columns = dict.fromkeys(name for line in lines for name in line)
    file = io.StringIO()
    writer = csv.DictWriter(file, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return file.getvalue()


def _page(each: Done, figure: str | None, command: str) -> str:
    entry = each.entry
    lines = [f"# {entry.title}", "", f"{entry.source}.", "", f"Run at {each.scale}:", ""]
    lines += ["```sh", f"{command} {entry.id}", "```", ""]
    lines += [*(f"* {reading}" for reading in entry.readings), ""]
    if figure is not None:
        lines += [f"![{entry.title}]({figure})", ""]
    if (held := count_held(each.rows)) is not None:
        lines += [f"{held}.", ""]
    return "\n".join([*lines, table(headings(each.rows), map(cells, each.rows))])


def _svg(each: Done) -> str:
    from paceline.report import figures

    assert each.entry.draw is not None
    file = io.StringIO()
    with figures.style():
        each.entry.draw(each.scale, each.runs).savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return file.getvalue()
