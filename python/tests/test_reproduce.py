"""``paceline reproduce``: what is listed, how a row is computed, an entry from end to end, the same twice."""

import csv
import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import paceline as pl
from handmade import Command
from paceline.reproduce import PAPERS, entries, late, mpc, mpc2019, mpc2020, output, select
from paceline.reproduce.entry import Entry, Row, Runs, Scale
from paceline.reproduce.running import run_jobs

TINY = Scale(rate=0.001, duration_s=0.5, seeds=(1, 2), few=True)
ROW_KEYS = ["quantity", "unit", "paper", "ours", "ratio", "low", "high", "seeds"]
#: Tables and figures of papers; the goals have runs of their own lengths, and tests of their own.
PRINTED = {name: entry for name, entry in entries().items() if entry.full.duration_s is not None}
SCALES = [(entry, scale) for entry in PRINTED.values() for scale in (entry.full, entry.quick, TINY)]


@pytest.fixture(scope="module")
def tiny(recordings: Path) -> Scale:
    return dataclasses.replace(TINY, traces=recordings)


def run(entry: Entry, scale: Scale, records: Path) -> Runs:
    return run_jobs(entry.jobs(scale), records, lambda _simulated_s, _done: None)


# ------------------------------------------------------------------------------------------------------------------- rows


def test_a_row_is_the_median_over_seeds_with_least_and_most() -> None:
    row = Row.of("rate", "Gbit/s", 8.0, [10.0, 12.0, 20.0])
    assert (row.ours, row.low, row.high, row.ratio) == (12.0, 10.0, 20.0, 1.5)
    assert list(row.to_dict()) == ROW_KEYS


def test_one_seed_has_no_spread() -> None:
    row = Row.of("rate", "Gbit/s", 8.0, [4.0])
    assert (row.ours, row.low, row.high, row.ratio) == (4.0, None, None, 0.5)


@pytest.mark.parametrize(("paper", "ours"), [(None, [4.0]), (8.0, []), (8.0, [None]), (0.0, [4.0]), (None, [])])
def test_there_is_no_ratio_without_both(paper: float | None, ours: list[float | None]) -> None:
    assert Row.of("rate", "Gbit/s", paper, ours).ratio is None


def test_a_value_that_was_not_measured_is_left_out() -> None:
    row = Row.of("rate", "Gbit/s", 8.0, [None, 4.0, 12.0])
    assert (row.ours, row.to_dict()["seeds"]) == (8.0, 2)


def test_ours_at_zero_is_a_measurement() -> None:
    assert Row.of("losses", "1", 1e-6, [0.0]).ratio == 0.0


# ---------------------------------------------------------------------------------------------------------------- entries


def test_ids_start_with_the_key_of_their_paper_and_differ() -> None:
    assert len(entries()) == sum(len(paper.entries) for paper in PAPERS)
    for paper in PAPERS:
        for entry in paper.entries:
            assert entry.id.startswith(f"{paper.key}-"), entry.id


def test_an_id_or_the_beginning_of_several_selects() -> None:
    assert [entry.id for entry in select(["mpc2020-table1"])] == ["mpc2020-table1"]
    assert [entry.id for entry in select(["mpc2020-table5"])] == ["mpc2020-table5"]
    assert [entry.id for entry in select(["mpc2020-table5-told"])] == ["mpc2020-table5-told-late"]
    tables = [name for name in entries() if name.startswith("mpc2020-table")]
    assert len(tables) > 1
    assert [entry.id for entry in select(["mpc2020-table"])] == tables
    assert select([]) == list(entries().values())
    assert len(select(["mpc2020-table1", "mpc"])) == len(select(["mpc"]))
    with pytest.raises(pl.InputError, match="no table or figure is called ``"):
        select([""])


@pytest.mark.parametrize(("entry", "scale"), SCALES)
def test_every_run_is_accepted(entry: Entry, scale: Scale, recordings: Path) -> None:
    for job in entry.jobs(dataclasses.replace(scale, traces=recordings)):
        if not job.classes:
            pl.check(job.scenario)
        assert job.duration_s == scale.duration_s


@pytest.mark.parametrize("quick", [False, True])
def test_runs_that_differ_have_records_that_differ(quick: bool) -> None:
    jobs = {job for entry in entries().values() for job in entry.jobs(entry.quick if quick else entry.full)}
    assert len({job.label for job in jobs}) == len(jobs)


@pytest.mark.parametrize("table", [mpc2019.TABLE_1, mpc2020.TABLE_5])
def test_the_numbers_of_a_study_are_complete(table: mpc.Printed) -> None:
    for printed in table.values():
        assert tuple(printed) == mpc.COUNTS
        assert all(len(row) == len(mpc.BUFFERS_BDP) for row in printed.values())


def test_flows_of_table_2_have_their_rtts(tmp_path: Path) -> None:
    """The RTT of a capped flow, which meets no queue to speak of and no noise, is the base RTT of the table."""
    entry = entries()["mpc2020-table2"]
    rows = {row.quantity: row for row in entry.rows(TINY, run(entry, TINY, tmp_path))}
    for index, rtt_ms in enumerate((25, 35, 45, 55), start=1):
        row = rows[f"capped: mean RTT of flow {index}"]
        assert row.paper == rtt_ms
        assert row.ours == pytest.approx(rtt_ms, rel=0.2)
        assert row.ours >= rtt_ms


@pytest.mark.parametrize("entry", PRINTED.values(), ids=list(PRINTED))
def test_an_entry_has_a_row_per_quantity_and_the_same_twice(entry: Entry, tiny: Scale, tmp_path: Path) -> None:
    first, second = (entry.rows(tiny, run(entry, tiny, tmp_path / name)) for name in ("first", "second"))
    assert first == second
    assert len({row.quantity for row in first}) == len(first)
    # Fewer where something did not happen with a seed, or where cells or seeds are counted.
    assert all(len(row.values) <= len(TINY.seeds) for row in first)


def test_shares_are_fair_from_the_last_unfair_window_on() -> None:
    """Two flows of which the second starts after 1 s: 3 to 1 (an index of 0.8), then 2 to 1 (exactly 0.9), then equal."""
    time_s = np.arange(1, 81) * 0.05
    first = np.where(time_s <= 2.01, 3.0, np.where(time_s <= 3.01, 2.0, 1.0))
    second = np.where(time_s <= 1.01, 0.0, 1.0)
    shares = late.means(time_s, np.stack([first, second], axis=1), 1.0, 0.5)
    assert shares == pytest.approx(np.array([[3, 1], [3, 1], [2, 1], [2, 1], [1, 1], [1, 1]]))
    fairness = late.jain(shares)
    assert fairness == pytest.approx([0.8, 0.8, 0.9, 0.9, 1.0, 1.0])
    assert late.converged_s(fairness, 0.5) == 1.0
    assert late.converged_s(np.array([0.95, 0.91]), 0.5) == 0.0
    assert late.converged_s(np.array([0.95, 0.89]), 0.5) is None


def test_losses_at_a_tenth_of_the_rate_are_taken_times_the_rate_when_told_at_the_drop(tmp_path: Path) -> None:
    scale = dataclasses.replace(TINY, rate=0.02, duration_s=3, seeds=(1,))
    for study, part in ((mpc2019.INTEGRAL, scale.rate), (mpc2019.LATER_ACK, 1.0)):
        runs = run_jobs(study.of_cell(2, 0.25, scale), tmp_path, lambda _simulated_s, _done: None)
        (of_run,) = (mpc.loss_fraction(run) for run in runs.values())
        assert study.values(2, 0.25, "loss", scale, runs) == [of_run * part]
        assert of_run > 0


def test_where_a_ratio_says_nothing_there_is_none() -> None:
    assert Row.of("time to converge", "s", 26.0, [0.0, 13.0, 52.0], comparable=False).ratio is None


def test_what_is_written_depends_on_the_rows_alone(tiny: Scale, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
    chosen = [entry for entry in entries().values() if entry.draw is not None and entry.full.duration_s is not None]
    for name in ("first", "second"):
        done = []
        for number, entry in enumerate(chosen):
            runs = run(entry, tiny, tmp_path / f"{name}-records-{number}")
            done.append(output.Done(entry, tiny, runs, entry.rows(tiny, runs)))
        output.write(done, tmp_path / name, figures=True, command="paceline reproduce")
    names = sorted(file.name for file in (tmp_path / "first").iterdir())
    assert names == sorted(
        ["rows.csv", "rows.json", *(f"{entry.id}.{suffix}" for entry, suffix in itertools.product(chosen, ("md", "svg")))]
    )
    for name in names:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes(), name
        assert b"mathdefault" not in (tmp_path / "first" / name).read_bytes(), name


def test_equal_runs_of_two_entries_are_one(tmp_path: Path) -> None:
    table, figure = entries()["mpc2020-table5"], entries()["mpc2020-figure5"]
    runs = run_jobs([*table.jobs(TINY), *figure.jobs(TINY)], tmp_path, lambda _simulated_s, _done: None)
    assert len(runs) == len(table.jobs(TINY))
    assert {file.name for file in tmp_path.iterdir()} == {job.label for job in runs}


def test_a_run_that_is_refused_ends_the_others(tmp_path: Path) -> None:
    good, *_ = entries()["mpc2020-figure3"].jobs(dataclasses.replace(TINY, duration_s=10_000))
    bad = dataclasses.replace(good, label="bad", scenario=good.scenario.replace("Gbit/s", "parsec"))
    with pytest.raises(pl.InputError, match="parsec"):
        run_jobs([good, bad], tmp_path, lambda _simulated_s, _done: None)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------------------------- command


def test_the_list_names_every_entry_by_paper(paceline: Command) -> None:
    done = paceline("reproduce", "--list")
    assert done.returncode == 0
    for paper in PAPERS:
        assert f"{paper.key}: {paper.citation}" in done.stdout
    for name in entries():
        assert name in done.stdout
    listed = json.loads(paceline("reproduce", "--list", "--json").stdout)
    assert [entry["id"] for entry in listed["entries"]] == list(entries())


def test_an_entry_from_end_to_end(paceline: Command, tmp_path: Path) -> None:
    done = paceline("reproduce", "mpc2020-figure3", "--quick", "--json", "--out", "out", "--records", "records")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    (entry,) = printed["entries"]
    assert list(printed) == ["paceline_version", "entries"]
    assert list(entry) == ["id", "title", "source", "readings", "scale", "rows"]
    assert all(list(row) == ROW_KEYS for row in entry["rows"])
    by_name = {row["quantity"]: row for row in entry["rows"]}
    assert 25.0 < by_name["mean RTT"]["ours"] < 50.0
    assert 0.5 < by_name["part of the link delivered"]["ours"] <= 1.0

    assert json.loads((tmp_path / "out/rows.json").read_text()) == printed
    with (tmp_path / "out/rows.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["quantity"] for row in table] == list(by_name)
    page = (tmp_path / "out/mpc2020-figure3.md").read_text()
    assert "paceline reproduce --quick mpc2020-figure3" in page
    assert all(name in page for name in by_name)
    (record,) = (tmp_path / "records").iterdir()
    assert pl.load(record).result["seed"] == 1


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("mpc2020-tabel1",), "error: no table or figure is called `mpc2020-tabel1`; near: mpc2020-table1, "),
        (("xyz", "--list"), "error: no table or figure is called `xyz` (paceline reproduce --list shows all)"),
        (("mpc", "--out", "file"), "error: file: File exists"),
    ],
)
def test_what_cannot_be_done_exits_with_2_and_says_why(
    paceline: Command, tmp_path: Path, arguments: tuple[str, ...], error: str
) -> None:
    (tmp_path / "file").touch()
    done = paceline("reproduce", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert error in done.stderr
