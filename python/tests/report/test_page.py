"""The page as a document: complete, self-contained, deterministic, and inert whatever a record holds."""

import json
import re
from html.parser import HTMLParser

import pytest
from synthetic import HOSTILE, write_record

from paceline.report import RecordError, write_html


class Document(HTMLParser):
    """Elements, and the text of each kind of element, as a browser's parser sees them."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self._open = [], {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag):
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data):
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)

    def attributes(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


@pytest.fixture(scope="module")
def page(records, tmp_path_factory):
    return write_html(records, tmp_path_factory.mktemp("page") / "sub" / "report.html").read_text()


@pytest.fixture(scope="module")
def document(page):
    return Document(page)


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="paceline-data">(.*?)</script>', page, re.S)[1])


def test_a_second_write_gives_the_same_bytes(records, page, tmp_path):
    assert write_html(records, tmp_path / "again.html").read_text() == page
    assert [path.name for path in tmp_path.iterdir()] == ["again.html"]


def test_nothing_is_loaded_from_outside(document):
    assert not document.attributes("img")
    assert not document.attributes("iframe")
    assert all("src" not in script for script in document.attributes("script"))
    assert [link["href"] for link in document.attributes("link")] == ["data:,"]
    policy = next(meta["content"] for meta in document.attributes("meta") if meta.get("http-equiv"))
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy


def test_hostile_names_stay_text(page, document):
    assert HOSTILE not in page
    assert len(document.attributes("script")) == 3  # the data, uPlot, the report's own
    assert not any(name.startswith("on") for _, attrs in document.elements for name in attrs)
    assert HOSTILE in document.texts["td"]
    assert any(HOSTILE in text for text in document.texts["pre"])
    assert "b" not in {tag for tag, attrs in document.elements if tag == "b" and "role" not in attrs}
    assert any(line["name"] == HOSTILE for line in data_of(page)["lines"])


def test_the_record_is_all_there(document):
    shown = " ".join(text for texts in document.texts.values() for text in texts)
    for expected in (
        "0123456789abcdef",
        "scenarios/variable.toml",
        "packets conserved",
        "asked 40 ms",
        "✓",
        "✗",
        "example CPU",
        "gain = 0.5",
    ):
        assert expected in shown
    assert "--controller mpc" in shown


def test_the_table_shows_the_numbers_of_the_record(records, document):
    result = json.loads((records[0] / "manifest.json").read_text())["result"]
    sort_keys = {float(cell["data-sort"]) for cell in document.attributes("td") if "data-sort" in cell}
    for flow in result["flows"]:
        assert flow["throughput_bps"] in sort_keys
        assert flow["queueing_delay_ms"]["p95"] in sort_keys
        assert flow["power_score"] in sort_keys
    assert result["jain_index"] in sort_keys


def test_series_are_thinned_and_the_page_says_so(page, document):
    lines = data_of(page)["lines"]
    assert len(lines) == 2 + 1 + 2 + 1 + 1 + 1  # flows and the link of each run
    times = data_of(page)["times"]
    assert all(len(times[line["time"]]) <= 2000 for line in lines)
    assert all(len(column) == len(times[line["time"]]) for line in lines for column in line["columns"].values())
    assert any("at most 2,000 points" in text for text in document.texts["p"])


def test_observed_fields_are_offered_with_their_unit(page):
    observed = next(panel for panel in data_of(page)["panels"] if panel["id"] == "observed")
    assert [(choice["title"], choice["unit"]) for choice in observed["choices"]] == [
        ("Controller state: target_delay_ms", "ms"),
        ("Controller state: gain", ""),
    ]


@pytest.mark.parametrize(
    "drop",
    [
        ("series.parquet",),
        ("links.parquet",),
        ("series.parquet", "links.parquet"),
        ("throughput_bps", "cwnd_bytes", "rtt_ms", "lost_packets"),
    ],
)
def test_missing_parts_leave_panels_out(tmp_path, drop):
    record = write_record(tmp_path / "a", samples=50, drop=drop)
    panels = [panel["id"] for panel in data_of(write_html([record], tmp_path / "out.html").read_text())["panels"]]
    assert ("queue" in panels) == ("links.parquet" not in drop)
    assert ("rate" in panels) == ("series.parquet" not in drop)


def test_a_failed_write_leaves_the_old_page(tmp_path):
    out = tmp_path / "out.html"
    out.write_text("old")
    with pytest.raises(RecordError):
        write_html([tmp_path / "nowhere"], out)
    assert out.read_text() == "old"


def test_many_flows_are_listed_and_some_drawn(tmp_path):
    record = write_record(tmp_path / "a", flows=[(f"flow {i}", "reno") for i in range(40)], samples=20)
    page = write_html([record], tmp_path / "out.html").read_text()
    assert sum(line["kind"] == "flow" for line in data_of(page)["lines"]) == 24
    assert "The first 24 flows of each run are drawn." in page
    assert "flow 39" in Document(page).texts["td"]
