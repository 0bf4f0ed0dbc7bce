"""Records read from disk, and the table made of them. The record is written by hand, so every number is known."""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import paceline as pl
from handmade import flow, result
from paceline.summary import ABSENT, HEADINGS, Row, interval

Write = Callable[..., Path]


def made(**manifest: object) -> str:
    """A manifest with these keys."""
    return json.dumps({"format": "paceline-record", "format_version": 1, **manifest})


def test_a_record_gives_its_tables_and_its_result(write_record: Write) -> None:
    run = pl.load(write_record("one", result(flow("cubic", "cubic", 9e6))))
    assert run.result["engine"]["events"] == 1000
    assert run.flows["name"].to_list() == ["cubic"]
    assert run.series.columns == ["time_s", "flow", "throughput_bps", "rtt_ms", "cwnd_bytes"]
    assert run.links["queue_ms"].to_list() == [1.0, 2.0, 3.0]
    assert "<td>9.000</td>" in run._repr_html_()
    assert repr(run).startswith("<Run of 'by hand': cubic; ")


def test_names_are_escaped_in_notebooks(write_record: Write) -> None:
    run = pl.load(write_record("one", result(flow("<script>", "x", 9e6))))
    assert "<script>" not in run._repr_html_()


def test_the_plot_has_one_line_per_flow(write_record: Write) -> None:
    pytest.importorskip("matplotlib", reason="Matplotlib is not installed (the extra `plot`)")
    figure = pl.load(write_record("two", result(flow("a", "x", 1e6), flow("b", "y", 2e6)))).plot()
    assert [len(axis.lines) for axis in figure.axes] == [2, 2, 2]
    assert figure.axes[0].get_ylabel() == "throughput, Mbit/s"


def test_a_flow_row_is_the_flows_own_numbers() -> None:
    outcome = result(flow("a", "cubic", 5e6, sent=1000, lost=20, p95=75.0), jain=0.5)
    row = Row.of_flow(outcome["flows"][0], outcome)  # type: ignore[index]
    # 5 of 10 Mbit/s; RTT 40 and 75; queueing 55; 20 of 1000 lost.
    assert row.cells() == ("a (cubic)", "5.000", "50.0", "40.00", "75.00", "55.00", ABSENT, ABSENT, "2.000", "0.500")
    assert len(row.cells()) == len(HEADINGS)


def test_a_run_row_adds_throughput_and_takes_the_worst_delay() -> None:
    outcome = result(flow("a", "x", 5e6, sent=100, lost=1, p95=60.0), flow("b", "x", 4e6, sent=300, lost=7, p95=80.0), jain=0.99)
    row = Row.of_run("x", outcome)
    # 9 Mbit/s, the link's own 90 %, 8 of 400 lost.
    assert row.cells() == ("x", "9.000", "90.0", "40.00", "80.00", "60.00", ABSENT, ABSENT, "2.000", "0.990")


def test_an_empty_result_is_all_dashes() -> None:
    assert set(Row.of_run("x", {}).cells()[1:]) == {ABSENT}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no manifest.json in it, so it is not a record of a run"),
        ("{", "manifest.json: not JSON: "),
        ("[]", "manifest.json: expected one JSON object, found list"),
        ('{"format": 1}', 'manifest.json: key `format` is 1; expected "paceline-record"'),
        ('{"format": "paceline-record", "format_version": 2}', "manifest.json: record format 2; this version reads up to 1"),
        ('{"format": "paceline-record", "format_version": 1}', "manifest.json: no object under the key `result`"),
        ("[" * 100_000, "manifest.json: not JSON: "),
        (made(result={"flows": None}), "manifest.json: no list of objects under the key `result.flows`"),
        (made(result={"flows": [3]}), "manifest.json: no list of objects under the key `result.flows`"),
        (made(result={"links": {}}), "manifest.json: no list of objects under the key `result.links`"),
        (made(result={}, scenario=3), "manifest.json: no object under the key `scenario`"),
    ],
)
def test_what_is_no_record_is_refused(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(pl.InputError) as raised:
        pl.load(tmp_path)
    assert message in str(raised.value)
    assert str(tmp_path) in str(raised.value)


def test_a_missing_table_is_named(write_record: Write) -> None:
    directory = write_record("one", result(flow("a", "x", 1e6)))
    (directory / "series.parquet").unlink()
    with pytest.raises(pl.InputError, match=r"series\.parquet: no such file; the record is incomplete$"):
        _ = pl.load(directory).series


def test_a_record_that_is_gone_is_not_called_incomplete(write_record: Write) -> None:
    directory = write_record("one", result(flow("a", "x", 1e6)))
    run = pl.load(directory)
    shutil.rmtree(directory)
    with pytest.raises(pl.InputError, match="one: the record is gone; a temporary one goes with the Run that made it"):
        _ = run.series


def test_a_file_is_no_missing_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(pl.InputError, match="file: not a directory$"):
        pl.load(tmp_path / "file")


def test_the_manifest_is_kept_whole(write_record: Write) -> None:
    run = pl.load(write_record("one", result(), seed=7))
    assert run.manifest["seed"] == 7
    assert json.loads((run.directory / "manifest.json").read_text()) == run.manifest


def test_the_interval_is_students_by_hand() -> None:
    # Mean 2, deviation 1, t with two degrees of freedom 4.303.
    mean, half = interval([1.0, 2.0, 3.0])
    assert mean == 2.0
    assert half == pytest.approx(4.303 / math.sqrt(3))
    # Twelve values of +1 and twelve of -1: deviation sqrt(24/23), t with 23 degrees of freedom 2.069.
    _, half = interval([1.0, -1.0] * 12)
    assert half == pytest.approx(2.069 * math.sqrt(24 / 23) / math.sqrt(24), rel=1e-3)
