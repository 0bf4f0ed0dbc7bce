"""The pages in docs/reproduction are those of this version: text is made anew from the rows that are kept, and compared."""

import dataclasses
import difflib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from handmade import Command
from paceline.reproduce import PAPERS
from paceline.reproduce.entry import Entry, Paper, Scale
from paceline.reproduce.output import Done
from paceline.reproduce.pages import Stored, figure_name, index, load, page, publish
from paceline.reproduce.running import run_jobs

FOLDER = Path(__file__).resolve().parents[2] / "docs/reproduction"
RENEW = "write them anew: paceline reproduce ID --pages docs/reproduction (texts of all pages follow; rows are those of the ID)"
#: A figure is looked at on its page.
MOST_BYTES = 80_000
SVG = "{http://www.w3.org/2000/svg}"

PAGES = [(paper, load(paper, FOLDER)) for paper in PAPERS]
ENTRIES = [(paper, entry) for paper in PAPERS for entry in paper.entries]
by_paper = pytest.mark.parametrize(("paper", "stored"), PAGES, ids=[paper.key for paper in PAPERS])
by_entry = pytest.mark.parametrize(("paper", "entry"), ENTRIES, ids=[entry.id for _, entry in ENTRIES])


def done(entry: Entry, records: Path, scale: Scale) -> Done:
    jobs = entry.jobs(scale)
    # What is looked at here does not depend on the world, and a guest takes seconds to start.
    simulated = {job: dataclasses.replace(job, on="sim") for job in jobs}
    runs = run_jobs(simulated.values(), records, lambda _simulated_s, _done: None)
    runs = {job: runs[simulated[job]] for job in jobs}
    return Done(entry, scale, runs, entry.rows(scale, runs))


# ------------------------------------------------------------------------------------------------------------ what is there


@by_paper
def test_the_page_is_what_its_rows_give(paper: Paper, stored: dict[str, Stored]) -> None:
    shown = (FOLDER / f"{paper.key}.md").read_text(encoding="utf-8")
    text = page(paper, stored)
    if shown != text:
        lines = difflib.unified_diff(shown.splitlines(), text.splitlines(), "committed", "generated", lineterm="", n=0)
        pytest.fail("\n".join([f"docs/reproduction/{paper.key}.md: {RENEW}", *list(lines)[:20]]))


@by_paper
def test_every_entry_has_its_section(paper: Paper, stored: dict[str, Stored]) -> None:
    assert list(stored) == [entry.id for entry in paper.entries], RENEW
    for entry in paper.entries:
        scale = dataclasses.replace(stored[entry.id].scale, few=entry.full.few)
        assert scale == entry.full, f"{entry.id} was not run at full size: {RENEW}"


@by_entry
def test_the_rows_are_those_of_the_entry(paper: Paper, entry: Entry, recordings: Path, tmp_path: Path) -> None:
    """Quantities, units and the paper's numbers, of runs that are tiny but in everything else those of the page."""
    # Goals about cellular links have another trace where there is no recording.
    traces = recordings if entry.traces else None
    tiny = dataclasses.replace(entry.full, rate=0.02, duration_s=0.5, traces=traces)
    rows = [(row.quantity, row.unit, row.paper) for row in done(entry, tmp_path, tiny).rows]
    kept = load(paper, FOLDER)[entry.id]
    for each in (kept, kept.live):
        assert each is None or [(row.quantity, row.unit, row.paper) for row in each.rows] == rows, RENEW


@by_entry
def test_the_figures_show_these_rows(paper: Paper, entry: Entry) -> None:
    stored = load(paper, FOLDER)[entry.id]
    assert (FOLDER / figure_name(entry, "sim")).is_file() == (entry.draw is not None), RENEW
    for each in (stored, stored.live):
        if each is None or entry.draw is None:
            continue
        file = FOLDER / figure_name(entry, each.scale.on)
        title = ET.parse(file).getroot().find(f"{SVG}title")
        digest = each.digest()
        assert title is not None
        assert title.text is not None
        assert digest in title.text, f"{file.name} is of other rows: {RENEW}"
        assert file.stat().st_size <= MOST_BYTES, file.name


def test_there_is_nothing_else() -> None:
    assert (FOLDER / "README.md").read_text(encoding="utf-8") == index(PAPERS, FOLDER), RENEW
    wanted = {"README.md", *(f"{paper.key}.{suffix}" for paper in PAPERS for suffix in ("md", "json"))}
    wanted |= {f"{entry.id}.svg" for _, entry in ENTRIES if entry.draw is not None}
    live = {entry.id for _, kept in PAGES for _, entry in ENTRIES if entry.id in kept and kept[entry.id].live is not None}
    wanted |= {figure_name(entry, "live") for _, entry in ENTRIES if entry.draw is not None and entry.id in live}
    assert {file.name for file in FOLDER.iterdir()} == wanted


@by_paper
def test_the_page_is_whole(paper: Paper, stored: dict[str, Stored]) -> None:
    """As a reader of Markdown sees it: every table a table, no letter of the text taken for markup."""
    text = page(paper, stored)
    html = MarkdownIt("commonmark").enable("table").render(text)
    assert html.count("<h1>") == 1
    assert html.count("<table>") == sum(line.startswith("| ---") for line in text.splitlines())
    assert "<p>|" not in html
    assert "<em>" not in html


# ------------------------------------------------------------------------------------------------------------ how it is made


def test_publishing_one_entry_leaves_the_others(recordings: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
    scale = Scale(rate=0.001, duration_s=0.5, seeds=(1, 2), few=True, traces=recordings)
    (paper, *_) = PAPERS
    first, second = paper.entries[:2]
    folder = tmp_path / "pages"
    publish([paper], [done(first, tmp_path / "first", scale)], folder)
    before = load(paper, folder)
    assert list(before) == [first.id]
    publish([paper], [done(second, tmp_path / "second", scale)], folder)
    after = load(paper, folder)
    assert list(after) == [first.id, second.id]
    assert after[first.id] == before[first.id]
    assert (folder / f"{paper.key}.md").read_text(encoding="utf-8") == page(paper, after)
    assert (folder / "README.md").read_text(encoding="utf-8") == index([paper], folder)


def test_pages_are_of_full_size(paceline: Command) -> None:
    result = paceline("reproduce", "mpc2020-figure3", "--quick", "--pages", "there")
    assert (result.returncode, result.stdout) == (2, "")
    assert "error: --pages publishes runs of full size: it does not go with --quick" in result.stderr
