"""Figures: written with their data, the same bytes every time, and safe with any name."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from paceline.report import write_figures

pytest.importorskip("matplotlib", reason="Matplotlib is not installed")

STEMS = {"throughput-delay", "timeseries-1-cubic", "timeseries-2-mpc", "cdf-rtt", "cdf-queueing-delay"}


def test_every_figure_comes_in_every_format_with_its_data(records, tmp_path):
    written = write_figures(records, tmp_path)
    assert all(path.stat().st_size > 0 for path in written)
    stems = {path.stem for path in written}
    assert stems >= STEMS
    assert len(stems) == len(STEMS) + 1
    assert {(path.stem, path.suffix) for path in written} == {(s, x) for s in stems for x in (".svg", ".pdf", ".png", ".csv")}
    assert (tmp_path / "cdf-rtt.pdf").read_bytes().startswith(b"%PDF")


def test_two_writes_give_the_same_bytes(records, tmp_path):
    formats = ("svg", "pdf", "png")
    first = write_figures(records[:2], tmp_path / "1", formats)
    second = write_figures(records[:2], tmp_path / "2", formats)
    assert [path.name for path in first] == [path.name for path in second]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


def test_the_csv_holds_every_sample(records, tmp_path):
    write_figures(records[:1], tmp_path, ["svg"])
    with (tmp_path / "timeseries-1-cubic.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["quantity"] for row in rows} == {"capacity_bps", "throughput_bps", "cwnd_bytes", "rtt_ms", "queue_ms"}
    assert sum(row["quantity"] == "rtt_ms" and row["name"] == "flow 1" for row in rows) == 3000
    assert {row["unit"] for row in rows if row["quantity"] == "rtt_ms"} == {"ms"}


def test_names_with_dollars_and_underscores_are_drawn(tmp_path):
    from synthetic import write_record

    record = write_record(tmp_path / "a", flows=[("_$x_{", "_$\\frac{1"), ("", "%s {}")], samples=50)
    assert len(write_figures([record], tmp_path / "out", ["svg"])) == 8


def test_an_unknown_format_is_refused(records, tmp_path):
    with pytest.raises(ValueError, match="unknown figure format 'gif'; known: svg, pdf, png"):
        write_figures(records, tmp_path, ["gif"])


def test_without_matplotlib_the_error_says_what_to_install(records, tmp_path):
    program = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from paceline.report import write_figures\n"
        "try: write_figures([sys.argv[1]], sys.argv[2])\n"
        "except ImportError as error: print(error)\n"
    )
    import paceline.report

    root = Path(paceline.report.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program, str(records[0]), str(tmp_path)], capture_output=True, text=True, cwd=root, timeout=60
    )
    assert "figures need Matplotlib, which is not installed: pip install 'paceline[plot]'" in done.stdout, done.stderr
