"""Records are read as they are, and what is no record is refused with the file and the reason."""

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from synthetic import HOSTILE, write_record

from paceline.report.loading import RecordError, load

MINIMAL = '{"format": "paceline-record", "format_version": 1}'


def manifest_of(directory, **changes):
    path = directory / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_record_is_read_with_units_and_numbers(records):
    cubic, mpc, hostile = load(records)
    assert [flow.name for flow in cubic.flows] == ["flow 1", "flow 2"]
    assert len(cubic.flows[0].samples.time_s) == 3000
    assert cubic.flows[0].samples.columns["throughput_bps"].unit == "bit/s"
    assert mpc.flows[0].samples.columns["target_delay_ms"].unit == "ms"
    assert "target_delay_ms" not in cubic.flows[0].samples.columns
    result = json.loads((records[0] / "manifest.json").read_text())["result"]
    assert cubic.flows[0].summary.number("rtt_ms", "p95") == result["flows"][0]["rtt_ms"]["p95"]
    assert cubic.flows[0].summary.number("completion_s") is None
    assert cubic.bottleneck.name == "bottleneck"
    assert hostile.flows[0].name == HOSTILE
    assert [check.ok for check in hostile.checks] == [False]


def test_labels_name_what_differs(tmp_path):
    runs = [
        write_record(tmp_path / "a", seed=1, samples=10),
        write_record(tmp_path / "b", seed=2, samples=10),
        write_record(tmp_path / "c", [("f", "mpc")], samples=10),
    ]
    assert [run.label for run in load(runs)] == ["cubic, seed 1", "cubic, seed 2", "mpc"]
    twice = [run.label for run in load([runs[0], runs[0]])]
    assert twice == ["cubic", "cubic (2)"]


def test_nothing_but_a_manifest_is_enough(tmp_path):
    (tmp_path / "manifest.json").write_text(MINIMAL)
    (run,) = load([tmp_path])
    assert (run.flows, run.links, run.checks, run.duration_s) == ([], [], [], None)


@pytest.mark.parametrize("junk", [3, "text", [1, 2], None, {"flows": 7}, {"flows": [1, {"rtt_ms": 4}], "links": [None]}])
def test_a_strange_result_is_read_without_failing(tmp_path, junk):
    record = write_record(tmp_path / "a", samples=10)
    manifest_of(record, result=junk, checks=junk, scenario=junk, host=junk)
    (run,) = load([record])
    assert all(flow.summary.number("rtt_ms", "p95") is None for flow in run.flows)


def test_samples_are_sorted_and_nulls_are_nan(tmp_path):
    (tmp_path / "manifest.json").write_text(MINIMAL)
    table = {
        "time_s": [2.0, 1.0, None, 1.0],
        "flow": ["a", "a", "a", None],
        "rtt_ms": [None, 7.0, 8.0, 9.0],
        "note": list("wxyz"),
    }
    pq.write_table(pa.table(table), tmp_path / "series.parquet")
    (flow,) = load([tmp_path])[0].flows
    assert flow.name == "a"
    assert flow.samples.time_s.tolist() == [1.0, 2.0]
    first, second = flow.samples.columns["rtt_ms"].values
    assert first == 7.0
    assert math.isnan(second)
    assert list(flow.samples.columns) == ["rtt_ms"]  # text is not a quantity


def test_flows_named_by_number_are_read(tmp_path):
    (tmp_path / "manifest.json").write_text(MINIMAL)
    pq.write_table(pa.table({"time_s": [1.0], "flow": np.array([3]), "rtt_ms": [5.0]}), tmp_path / "series.parquet")
    assert [flow.name for flow in load([tmp_path])[0].flows] == ["3"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "no manifest.json"),
        ("{", "manifest.json: not JSON: "),
        ("\x00\xff", "manifest.json: not JSON: "),
        ("[" * 100_000, "manifest.json: not JSON: "),
        ("[]", "manifest.json: expected one JSON object, found list"),
        ("{}", 'key `format` is null; expected "paceline-record"'),
        ('{"format": 1}', "key `format` is 1"),
        ('{"format": "paceline-record"}', "record format null"),
        ('{"format": "paceline-record", "format_version": 2}', "record format 2; this version reads up to 1"),
        ('{"format": "paceline-record", "format_version": true}', "record format true"),
    ],
)
def test_what_is_no_record_is_refused(tmp_path, content, complaint):
    if content is not None:
        (tmp_path / "manifest.json").write_text(content, encoding="latin-1")
    with pytest.raises(RecordError) as error:
        load([tmp_path])
    assert str(tmp_path) in str(error.value)
    assert complaint in str(error.value)


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(RecordError, match="nowhere: no such directory"):
        load([tmp_path / "nowhere"])
    with pytest.raises(RecordError, match="no record given"):
        load([])


def test_a_broken_table_is_named(tmp_path):
    record = write_record(tmp_path / "a", samples=10)
    (record / "links.parquet").write_bytes(b"PAR1 but no more")
    with pytest.raises(RecordError, match=r"links\.parquet: not a readable Parquet file"):
        load([record])
    pq.write_table(pa.table({"time_s": [1.0]}), record / "links.parquet")
    with pytest.raises(RecordError, match=r"links\.parquet: no column `link` \(it has: time_s\)"):
        load([record])
