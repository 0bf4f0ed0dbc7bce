"""The page in a real browser: it draws, it says nothing on the console, it asks nothing of the network, and it zooms."""

import json

import pytest
from browser import Browser, find_chromium
from synthetic import write_record

from paceline.report import write_html

CHROMIUM = find_chromium()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH: the page was not opened in a browser")

# Per canvas: how many of its pixels are not transparent.
PAINTED = """[...document.querySelectorAll("#panels canvas")].map((canvas) => {
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let painted = 0;
  for (let i = 3; i < pixels.length; i += 4) painted += pixels[i] > 0;
  return painted;
})"""
# Per panel: width of its plotting area.
WIDTHS = "[...document.querySelectorAll('.panel .u-over')].map((area) => area.getBoundingClientRect().width)"
# Where the first panel's plotting area lies.
FIRST_AREA = """(() => {
  const { x, y, width, height } = document.querySelector(".panel .u-over").getBoundingClientRect();
  return [x, y, width, height];
})()"""
# Clicks every button of the legend that is on.
ALL_OFF = """for (const button of document.querySelectorAll("#legend button[data-lines]")) {
  if (button.getAttribute("aria-pressed") === "true") button.click();
}"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(CHROMIUM, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def page(records, tmp_path_factory):
    return write_html(records, tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture
def opened(browser, page):
    browser.messages.clear()
    browser.requests.clear()
    browser.open(page)
    return browser


def readout(browser, x_share):
    """Time under the mouse at this share of the first panel's width, s, as the page prints it."""
    x, y, width, height = browser.evaluate(FIRST_AREA)
    browser.mouse("mouseMoved", x + x_share * width, y + height / 2)
    browser.wait_for("document.querySelector('.readout').textContent.includes(' s')")
    return float(browser.evaluate("document.querySelector('.readout').textContent").split(" s")[0])


def test_every_chart_is_painted_and_nothing_complains(opened, page):
    charts = int(opened.evaluate("document.documentElement.dataset.charts"))
    painted = opened.evaluate(PAINTED)
    assert charts == 6 == len(painted)
    assert all(count > 1000 for count in painted), painted
    assert opened.evaluate("document.querySelectorAll('#scatter path').length") == 2 + 1 + 2 + 1 + 1
    assert opened.messages == []
    assert opened.requests == [page.resolve().as_uri()]


def test_hostile_names_run_nothing(opened):
    assert opened.evaluate("document.querySelectorAll('img').length") == 0
    assert opened.evaluate("document.querySelectorAll('script').length") == 3
    opened.evaluate("document.querySelectorAll('th button, #legend button').forEach((button) => button.click())")
    assert opened.messages == []


def test_dragging_zooms_every_panel_and_a_double_click_resets(opened):
    opened.evaluate("document.getElementById('series-section').scrollIntoView()")
    assert readout(opened, 0.9) > 25
    x, y, width, height = opened.evaluate(FIRST_AREA)
    middle = y + height / 2
    opened.mouse("mousePressed", x + 0.2 * width, middle)
    opened.mouse("mouseMoved", x + 0.3 * width, middle)
    opened.mouse("mouseMoved", x + 0.4 * width, middle)
    opened.mouse("mouseReleased", x + 0.4 * width, middle)
    opened.wait_for("!document.querySelector('#legend .reset').disabled")
    # 20 % to 40 % of 30 s is 6 s to 12 s: nine tenths along lies 11.4 s, in every panel.
    assert readout(opened, 0.9) == pytest.approx(11.4, abs=0.1)
    times = opened.evaluate("[...document.querySelectorAll('.readout')].map((one) => parseFloat(one.textContent))")
    assert times == pytest.approx([11.4] * 6, abs=0.1)
    opened.mouse("mousePressed", x + 0.5 * width, middle)
    opened.mouse("mouseReleased", x + 0.5 * width, middle)
    opened.mouse("mousePressed", x + 0.5 * width, middle, clicks=2)
    opened.mouse("mouseReleased", x + 0.5 * width, middle, clicks=2)
    opened.wait_for("document.querySelector('#legend .reset').disabled")
    assert readout(opened, 0.9) == pytest.approx(27, abs=0.2)


def test_the_legend_hides_lines_and_the_selector_isolates_a_run(opened):
    before = opened.evaluate(PAINTED)
    opened.evaluate(ALL_OFF)
    assert opened.evaluate("document.querySelectorAll('#legend button[aria-pressed=true]').length") == 0
    opened.wait_for(f"JSON.stringify({PAINTED}) !== '{json.dumps(before, separators=(',', ':'))}'")
    after = opened.evaluate(PAINTED)
    assert all(less < more for less, more in zip(after, before, strict=True))
    opened.evaluate(
        "(() => { const s = document.querySelector('#legend select'); s.value = '1'; s.dispatchEvent(new Event('change')); })()"
    )
    shown = opened.evaluate("[...document.querySelectorAll('#legend button[aria-pressed=true]')].map((b) => b.textContent)")
    assert shown == ["mpc", "flow 1", "flow 2"]


def test_tables_sort_both_ways_with_absent_values_last(opened):
    column = "[...document.querySelectorAll('#table-summary tbody tr')].map((row) => row.cells[3].dataset.sort)"
    opened.evaluate("document.querySelectorAll('#table-summary th button')[3].click()")
    down = [float(value) for value in opened.evaluate(column)]
    assert down == sorted(down, reverse=True)
    opened.evaluate("document.querySelectorAll('#table-summary th button')[3].click()")
    assert [float(value) for value in opened.evaluate(column)] == sorted(down)


def test_it_fits_narrow_and_dark(browser, page):
    browser.messages.clear()
    browser.open(page, width=600, dark=True)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 600
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
    assert all(width < 600 for width in browser.evaluate(WIDTHS))
    browser.resize(1000, 900)
    browser.wait_for(f"{WIDTHS}.every((width) => width > 700)")
    assert browser.messages == []


def test_a_quantity_can_be_chosen_and_series_of_other_times_are_joined(browser, tmp_path):
    records = [
        write_record(tmp_path / "a", flows=[("f", "cubic")], samples=300),
        write_record(tmp_path / "b", flows=[("f", "mpc")], samples=470, observed=True),
    ]
    browser.messages.clear()
    browser.open(write_html(records, tmp_path / "report.html"))
    browser.evaluate(
        "document.querySelectorAll('.panel select').forEach((select) => { select.selectedIndex = select.options.length - 1;"
        " select.dispatchEvent(new Event('change')); })"
    )
    assert all(count > 1000 for count in browser.evaluate(PAINTED))
    assert browser.messages == []


def test_a_record_without_series_is_still_a_page(browser, tmp_path):
    (tmp_path / "manifest.json").write_text('{"format": "paceline-record", "format_version": 1}')
    browser.messages.clear()
    browser.open(write_html([tmp_path], tmp_path / "report.html"))
    assert browser.evaluate("document.documentElement.dataset.charts") == "0"
    assert browser.messages == []
