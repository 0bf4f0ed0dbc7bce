"""The published pages: one per paper, made from rows that are kept beside it.

In: entries that were run. Out: per paper ``KEY.json`` with the rows, ``KEY.md`` made from them, and the figures. The pages of
this version are docs/reproduction; a test holds their text to what :func:`page` makes of the rows.
"""

import dataclasses
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline._native import InputError
from paceline.reproduce.entry import Band, BandRow, Entry, Goal, GoalRow, Paper, Row, Scale
from paceline.reproduce.output import Done, cells, count_held, headings, number, table
from paceline.summary import ABSENT

#: Tables longer than this are folded.
_LONG = 40
#: Significant digits that are kept of a number; pages show four.
_DIGITS = 6

#: Columns where two worlds stand side by side.
_WORLD_HEADINGS = ("quantity", "unit", "paper", "bound", "sim", "live", "sim/paper", "live/paper", "live/sim", "held")

_INDEX = """# Papers, run again

The tables and figures of the papers, ours beside theirs, at the size that each entry names. This folder is generated from runs:
`paceline reproduce --pages docs/reproduction` (an ID before `--pages` runs that entry and leaves the others as they are). The
rows behind a page are in the JSON file of its name.

"""

_INTRODUCTION = """`paper` is what the paper prints, `ours` the median over the seeds of our runs, with the least and the greatest
beside it where there are several, and `ratio` is ours over the paper's. A – is what is not printed, or did not happen.
"""

_INTRODUCTION_TO_BANDS = """`paper` is what the paper prints, `ours` the mean over our runs, with the least and the greatest
beside it where there are several, `ratio` ours over the paper's, and `held` says whether ours lies within `bound`. A – is what is
not printed, not bounded, or did not happen.
"""

_INTRODUCTION_TO_WORLDS = """Where an entry was also run over real sockets, `sim` is ours in the simulator and `live` ours
there, with the least and the greatest of the runs; `held` names the worlds in which the mean lies within the bound.
"""

_INTRODUCTION_TO_GOALS = """`goal` is what was set before, `ours` the median over the seeds of our runs, with the least and the
greatest beside it; a goal is `held` by the median. Rows without a goal are there to compare.
"""


@dataclass(frozen=True)
class Stored:
    """What is kept of an entry that was run."""

    scale: Scale
    rows: Sequence[Row]
    #: The same rows in world `live`.
    live: "Stored | None" = None

    @classmethod
    def of(cls, done: Done) -> "Stored":
        """The rows of ``done``, rounded."""
        rows = [dataclasses.replace(row, values=tuple(map(_rounded, row.values))) for row in done.rows]
        return cls(done.scale, rows)

    @classmethod
    def read(cls, found: Mapping[str, Any], on: str = "sim") -> "Stored":
        """The inverse of :meth:`text`."""
        rows = [_row(*values) for values in found["rows"]]
        live = cls.read(found["live"], "live") if "live" in found else None
        return cls(Scale(**{**found["scale"], "seeds": tuple(found["scale"]["seeds"]), "on": on}), rows, live)

    def text(self) -> str:
        """JSON, a line per row."""
        scale = {"rate": self.scale.rate, "duration_s": self.scale.duration_s, "seeds": self.scale.seeds}
        rows = ",\n".join(json.dumps(_stored(row), ensure_ascii=False) for row in self.rows)
        live = "" if self.live is None else f', "live": {self.live.text()}'
        return f'{{"scale": {json.dumps(scale)}, "rows": [\n{rows}\n]{live}}}'

    def digest(self) -> str:
        """Ties a figure to the rows that it was drawn with."""
        own = dataclasses.replace(self, live=None)
        return hashlib.sha256(own.text().encode()).hexdigest()[:12]

    def beside(self, new: "Stored") -> "Stored":
        """This with ``new`` in the place of what was measured in its world."""
        return dataclasses.replace(new, live=self.live) if new.scale.on == "sim" else dataclasses.replace(self, live=new)


def load(paper: Paper, directory: Path) -> dict[str, Stored]:
    """What is kept of the entries of ``paper``, by ID; nothing where nothing was published."""
    file = directory / f"{paper.key}.json"
    if not file.is_file():
        return {}
    found = json.loads(file.read_text(encoding="utf-8"))
    return {entry.id: Stored.read(found[entry.id]) for entry in paper.entries if entry.id in found}


def publish(papers: Iterable[Paper], done: Sequence[Done], directory: Path) -> list[Path]:
    """Writes the pages, the figures of ``done``, and the index; returns the paths written.

    Rows and figures of entries that are not among ``done`` stay as they were published, and so do those of other worlds. Texts
    are those of this version.

    Raises:
        ImportError: Matplotlib is not installed.
        InputError: an entry of world `live` of which nothing is published of `sim`.
        OSError: ``directory`` cannot be written.
    """
    files: dict[str, str] = {}
    papers = tuple(papers)
    for paper in papers:
        new = {each.entry.id: each for each in done if each.entry in paper.entries}
        kept = load(paper, directory)
        for name, each in new.items():
            kept[name] = _kept(kept.get(name), each)
        if not kept:
            continue
        stored = {entry.id: kept[entry.id] for entry in paper.entries if entry.id in kept}
        entries = ",\n".join(f'"{name}": {each.text()}' for name, each in stored.items())
        files[f"{paper.key}.json"] = f"{{\n{entries}\n}}\n"
        files[f"{paper.key}.md"] = page(paper, stored)
        files |= {figure_name(each.entry, each.scale.on): _figure(each) for each in new.values() if each.entry.draw}
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
    (directory / "README.md").write_text(index(papers, directory), encoding="utf-8")
    return [directory / name for name in (*files, "README.md")]


def figure_name(entry: Entry, on: str) -> str:
    """The file of an entry's figure in a world."""
    return f"{entry.id}.svg" if on == "sim" else f"{entry.id}-{on}.svg"


def index(papers: Iterable[Paper], directory: Path) -> str:
    """The page that lists those that are there."""
    published = [paper for paper in papers if (directory / f"{paper.key}.md").is_file()]
    return _INDEX + "".join(f"* [{paper.key}]({paper.key}.md): {_text(paper.citation)}\n" for paper in published)


def page(paper: Paper, stored: Mapping[str, Stored]) -> str:
    """The page of ``paper``: every entry that was run, with what came out."""
    entries = [entry for entry in paper.entries if entry.id in stored]
    times = Counter(reading for entry in entries for reading in entry.readings)
    shared = [reading for reading, count in times.items() if count > 1]
    parts = [
        f"# {_text(paper.citation)}\n",
        f"Generated: `paceline reproduce {paper.key} --pages docs/reproduction`.\n",
        _introduction([row for each in stored.values() for row in each.rows]),
        *([_INTRODUCTION_TO_WORLDS] if any(each.live for each in stored.values()) else []),
        _contents(entries),
    ]
    if shared:
        lines = [f"{number}. {_text(reading)}\n" for number, reading in enumerate(shared, start=1)]
        parts.append("## How the paper is read\n\nWhat several entries share.\n\n" + "".join(lines))
    return "\n".join([*parts, *(_section(entry, stored[entry.id], shared) for entry in entries)])


def _kept(before: Stored | None, done: Done) -> Stored:
    new = Stored.of(done)
    if before is not None:
        return before.beside(new)
    if new.scale.on != "sim":
        raise InputError(f"{done.entry.id}: nothing of world `sim` is published beside which `{new.scale.on}` could stand")
    return new


def _introduction(rows: Sequence[Row]) -> str:
    if any(isinstance(row, GoalRow) for row in rows):
        return _INTRODUCTION_TO_GOALS
    return _INTRODUCTION_TO_BANDS if any(isinstance(row, BandRow) for row in rows) else _INTRODUCTION


def _contents(entries: Sequence[Entry]) -> str:
    lines = ["| entry | shows | in the paper |", "| --- | --- | --- |"]
    lines += [f"| [{entry.id}](#{entry.id}) | {_text(entry.title)} | {_text(entry.source)} |" for entry in entries]
    return "".join(f"{line}\n" for line in lines)


def _section(entry: Entry, stored: Stored, shared: Sequence[str]) -> str:
    numbers = [str(shared.index(reading) + 1) for reading in entry.readings if reading in shared]
    own = [reading for reading in entry.readings if reading not in shared]
    live = "" if stored.live is None else f", and at {stored.live.scale}"
    parts = [
        f"## {entry.id}\n",
        f"{_text(entry.title)}. {_text(entry.source)}. Run at {stored.scale}{live}:\n",
        f"```sh\npaceline reproduce {entry.id}\n```\n",
    ]
    if entry.verdict:
        parts.append(f"**What came out.** {_text(entry.verdict)}\n")
    if entry.draw is not None:
        parts.append(f"![{entry.title}]({figure_name(entry, 'sim')})\n")
    if entry.draw is not None and stored.live is not None:
        parts.append(f"In world `live`:\n\n![{entry.title}, live]({figure_name(entry, 'live')})\n")
    if numbers:
        parts.append(f"Read as in {_list(numbers)} above.\n")
    if own:
        parts.append("".join(f"* {_text(reading)}\n" for reading in own))
    if (held := count_held(stored.rows)) is not None:
        worlds = {"sim": stored.rows} | ({} if stored.live is None else {"live": stored.live.rows})
        missed = [place for place in range(len(stored.rows)) if any(rows[place].held is False for rows in worlds.values())]
        counted = held if len(worlds) == 1 else "; ".join(f"{world}: {count_held(rows)}" for world, rows in worlds.items())
        parts.append(f"{counted}{'. Not held:' if missed else '.'}\n")
        parts += [_table(stored, missed), "All:\n"] if missed else []
    parts.append(_table(stored, range(len(stored.rows))))
    return "\n".join(parts)


def _table(stored: Stored, chosen: Sequence[int]) -> str:
    """The rows at the places ``chosen``."""
    rows = [stored.rows[place] for place in chosen]
    if stored.live is None:
        text = table(headings(rows), ([_text(cell) for cell in cells(row)] for row in rows))
    else:
        live = [stored.live.rows[place] for place in chosen]
        text = table(_WORLD_HEADINGS, ([_text(cell) for cell in _beside(*pair)] for pair in zip(rows, live, strict=True)))
    if len(rows) <= _LONG:
        return text
    return f"<details><summary>All {len(rows)} rows</summary>\n\n{text}\n</details>\n"


def _beside(sim: Row, live: Row) -> tuple[str, ...]:
    """The cells of a row that two worlds have."""
    band = sim.band if isinstance(sim, BandRow) else None
    spread = "" if live.low is None else f" ({number(live.low)} to {number(live.high)})"
    between = None if live.ours is None or not sim.ours else live.ours / sim.ours
    held = [world for world, row in (("sim", sim), ("live", live)) if row.held]
    return (
        sim.quantity,
        sim.unit,
        number(sim.paper),
        ABSENT if band is None else str(band),
        number(sim.ours),
        f"{number(live.ours)}{spread}",
        *(ABSENT if ratio is None else f"{ratio:.3g}" for ratio in (sim.ratio, live.ratio, between)),
        ABSENT if band is None else ", ".join(held) or "no",
    )


def _figure(each: Done) -> str:
    from paceline.pages.plot import small_svg

    draw = each.entry.draw
    assert draw is not None
    return small_svg(lambda: draw(each.scale, each.runs), f"{each.entry.title} (rows {Stored.of(each).digest()})")


def _stored(row: Row) -> list[Any]:
    """The row in JSON; :func:`_row` is the inverse. A goal is at the place of the paper's number, bounds are behind all."""
    if isinstance(row, BandRow):
        return [row.quantity, row.unit, row.paper, list(row.values), {"within": row.band and row.band.ranges}]
    if isinstance(row, GoalRow):
        bound = "none" if row.goal is None else "at least" if row.goal.at_least else "at most"
        return [row.quantity, row.unit, row.goal and row.goal.value, list(row.values), bound]
    return [row.quantity, row.unit, row.paper, list(row.values), *([] if row.comparable else [False])]


def _row(
    quantity: str,
    unit: str,
    beside: float | None,
    values: Sequence[float],
    last: str | bool | Mapping[str, Sequence[Sequence[float]] | None] = True,
) -> Row:
    if isinstance(last, Mapping):
        within = last["within"]
        band = None if within is None else Band(tuple((low, high) for low, high in within))
        return BandRow.inside(quantity, unit, beside, band, values)
    if isinstance(last, bool):
        return Row.of(quantity, unit, beside, values, comparable=last)
    goal = None if beside is None else Goal(beside, at_least=last == "at least")
    return GoalRow.against(quantity, unit, goal, values)


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _list(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _text(text: str) -> str:
    """``text`` in a paragraph or a cell, where some letters would be markup."""
    return re.sub(r"([*|<])", r"\\\1", text)
