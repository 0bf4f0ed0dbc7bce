"""The pages in docs/controllers are those of this version: text is made anew and compared, plots by what they say they show."""

import difflib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import paceline as pl
from handmade import Command
from paceline import pages
from paceline.pages import Measured
from paceline.quantity import DURATIONS_S, RATES_BPS, quantity_text

FOLDER = Path(__file__).resolve().parents[2] / "docs/controllers"
RENEW = "write them anew: paceline controllers --pages docs/controllers"
#: A plot is an ornament of a page, not a download.
MOST_BYTES = 25_000


@pytest.fixture(scope="module")
def measured() -> list[Measured]:
    return pages.measure()


def test_the_pages_are_what_the_controllers_are(measured: list[Measured]) -> None:
    for name, text in pages.texts(measured).items():
        file = FOLDER / name
        shown = file.read_text(encoding="utf-8") if file.is_file() else ""
        if shown != text:
            lines = difflib.unified_diff(shown.splitlines(), text.splitlines(), "committed", "generated", lineterm="", n=0)
            pytest.fail("\n".join([f"docs/controllers/{name}: {RENEW}", *list(lines)[:20]]))


def test_there_are_no_other_files(measured: list[Measured]) -> None:
    wanted = {*pages.texts(measured), *(f"{each.spec.name}.svg" for each in measured)}
    assert {file.name for file in FOLDER.iterdir()} == wanted, f"delete what is too much, and {RENEW}"


def test_the_plots_show_these_runs(measured: list[Measured]) -> None:
    for each in measured:
        file = FOLDER / f"{each.spec.name}.svg"
        title = ET.parse(file).getroot().find("{http://www.w3.org/2000/svg}title")
        assert title is not None, f"{file.name}: {RENEW}"
        assert title.text == each.summary(), f"{file.name}: {RENEW}"
        assert file.stat().st_size <= MOST_BYTES, file.name


def test_a_plot_is_the_same_every_time(measured: list[Measured]) -> None:
    pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
    from paceline.pages import plot

    assert plot.svg(measured[0].run, "title") == plot.svg(measured[0].run, "title")


def test_the_pages_are_whole(measured: list[Measured]) -> None:
    """As a reader of Markdown sees them: every table a table with cells in every column, every title one."""
    markdown = MarkdownIt("commonmark").enable("table")
    for name, text in pages.texts(measured).items():
        if not name.endswith(".md"):
            continue
        html = markdown.render(text)
        assert html.count("<h1>") == 1, name
        assert html.count("<table>") == sum(line.startswith("| ---") for line in text.splitlines()), name
        assert "<p>|" not in html, name
        assert "<em>" not in html, f"{name}: a letter of the text is taken for markup"


def test_every_controller_has_a_family(measured: list[Measured]) -> None:
    assert {each.spec.name for each in measured} == set(pl.controllers())
    index = pages.texts(measured)["README.md"]
    for each in measured:
        assert f"[{each.spec.name}]({each.spec.name}.md)" in index


@pytest.mark.parametrize(
    ("value", "units", "text"),
    [
        (0.0, DURATIONS_S, "0 s"),
        (2e-05, DURATIONS_S, "20 us"),
        (0.0001, DURATIONS_S, "100 us"),
        (0.0625, DURATIONS_S, "62.5 ms"),
        (3600, DURATIONS_S, "3600 s"),
        (0, RATES_BPS, "0 bit/s"),
        (1.6e7, RATES_BPS, "16 Mbit/s"),
        (1e15, RATES_BPS, "1000 Tbit/s"),
    ],
)
def test_quantities_are_written_as_in_a_scenario(value: float, units: dict[str, float], text: str) -> None:
    assert quantity_text(value, units) == text


def test_pages_go_with_nothing_else(paceline: Command) -> None:
    done = paceline("controllers", "cubic", "--pages", "there")
    assert (done.returncode, done.stdout) == (2, "")
    assert "error: --pages writes the pages of all controllers: it goes with neither NAME nor --json" in done.stderr
