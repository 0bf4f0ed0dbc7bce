"""The goals of the own MPC: measures on series written by hand, what a goal's row says, entries with another controller."""

import csv
import dataclasses
import json
import math
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

import paceline
from paceline.controller import ParamSpec
from paceline.record import Run
from paceline.reproduce import mpc2020, output
from paceline.reproduce.entry import Entry, Goal, GoalRow, Row, Scale
from paceline.reproduce.mpc_goals import measures, own, paper
from paceline.reproduce.mpc_goals.beside import traces
from paceline.reproduce.mpc_goals.senders import RIVALS, Sender
from paceline.reproduce.running import run_jobs

#: Any rate-paced controller will do.
STAND_IN = Sender("bbr3", "datagram")
ENTRIES = paper(STAND_IN).entries
TINY = Scale(rate=0.01, duration_s=None, seeds=(1,), few=True)


def made(series: dict[str, list[float]] | None = None, flows: list[dict[str, Any]] | None = None, **result: Any) -> Run:
    """A run of two flows, a sample a second, as far as measures look: per flow and column a list."""
    columns: dict[str, list[float]] = {}
    if series is not None:
        samples = len(next(iter(series.values()))) // 2
        columns = {"time_s": [float(t) for t in range(1, samples + 1)] * 2, **series}
    table = pl.DataFrame({**columns, "flow": ["a"] * samples + ["b"] * samples}) if columns else pl.DataFrame()
    return cast(Run, SimpleNamespace(series=table, result={"flows": flows or [], **result}))


# ---------------------------------------------------------------------------------------------------------------- measures


def test_jain_of_every_window() -> None:
    rates = np.array([[1.0, 1.0], [3.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    assert measures.jain(rates) == pytest.approx([1.0, 16 / 20, 0.5, 0.0])


@pytest.mark.parametrize(
    ("good", "expected"),
    [
        ([0, 0, 1, 1, 1, 1], 0.0),
        ([1, 1, 1, 0, 1, 1], 2.0),
        # A relapse counts, and what never stays took at least the rest of the run.
        ([1, 1, 0, 1, 0, 1], 3.0),
        ([1, 1, 1, 1, 1, 0], 4.0),
    ],
)
def test_the_time_to_stay_ends_with_the_last_bad_window(good: list[int], expected: float) -> None:
    ends_s = np.arange(1.0, 7.0)
    assert measures.time_to_stay(ends_s, np.array(good, bool), since_s=2.0) == expected


def test_what_is_counted_since_a_time() -> None:
    times_s, totals = np.array([1.0, 2.0, 3.0]), np.array([5.0, 7.0, 11.0])
    assert measures.counted_since(times_s, totals, 2.0) == 4.0
    assert measures.counted_since(times_s, totals, 0.5) == 11.0


def test_a_late_comer_is_fair_when_jain_stays_above_nine_tenths() -> None:
    # Jain by second: 0.5, 0.5, then (3, 1) 0.8, (2, 1) 0.9, (5, 4) 0.99.
    run = made({"throughput_bps": [4.0, 4.0, 3.0, 2.0, 5.0, 0.0, 0.0, 1.0, 1.0, 4.0]})
    assert measures.fair_after_s(2.0)(run) == 1.0
    assert measures.times(1e3 / 25, measures.fair_after_s(2.0))(run) == 40.0


def test_a_flow_that_is_not_there_yet_has_no_rate() -> None:
    table = pl.DataFrame({"time_s": [1.0, 2.0, 3.0, 3.0], "flow": ["a", "a", "a", "b"], "throughput_bps": [4.0, 4.0, 2.0, 2.0]})
    assert measures.fair_after_s(1.0)(cast(Run, SimpleNamespace(series=table))) == 1.0


def test_a_rate_is_settled_when_all_flows_together_stay_within_5_percent() -> None:
    # Together: 10, 10, 7, 4.7, 4.9, 5.2.
    run = made({"send_bps": [6.0, 6.0, 4.0, 2.7, 2.4, 2.6, 4.0, 4.0, 3.0, 2.0, 2.5, 2.6]})
    assert measures.settled_after_s(2.0, 5.0)(run) == 2.0
    assert measures.settled_after_s(2.0, 10.0)(run) == 4.0


def test_losses_by_phase() -> None:
    run = made({"lost_packets": [3.0, 3.0, 5.0, 1.0, 1.0, 1.0], "sent_packets": [50.0, 100.0, 200.0, 50.0, 100.0, 200.0]})
    assert measures.lost_since(2.0)(run) == 2
    # 4 once in 1000 packets, then 2 of 200.
    assert measures.loss_projected(2.0, 1000.0)(run) == pytest.approx(0.004 + 0.01)


def test_a_median_rtt_is_over_the_base_of_its_flow() -> None:
    run = made(flows=[{"rtt_ms": {"p50": 30.0}}, {"rtt_ms": {"p50": 50.0}}])
    assert measures.median_rtt_ratio(25.0)(run) == pytest.approx(1.6)
    assert measures.median_rtt_ratio((25.0, 50.0))(run) == pytest.approx(1.1)


def test_caps_and_shares() -> None:
    flows = [{"throughput_bps": 2.97, "rate_bps": {"mean": 3.0, "std": 0.03}}, {"throughput_bps": 0.99}]
    run = made(flows=flows)
    assert measures.cap_error(0, 3.0)(run) == pytest.approx(0.01)
    assert measures.rate_std_part(0)(run) == pytest.approx(0.01)
    assert measures.share(0)(run) == pytest.approx(0.75)


def test_a_flow_that_is_not_paced_has_no_pacing_rate() -> None:
    assert measures.pacing_std_part(10.0)(made(flows=[{"pacing_bps": None}])) is None
    assert measures.pacing_std_part(10.0)(made(flows=[{"pacing_bps": {"std": 1.0}}, {"pacing_bps": {"std": 2.0}}])) == 0.15


# ------------------------------------------------------------------------------------------------------------------- goals


def test_a_goal_is_held_by_the_median_and_at_its_value() -> None:
    row = GoalRow.against("utilisation", "1", Goal(0.99, at_least=True), [0.5, 0.99, 1.0])
    assert (row.ours, row.low, row.high, row.held) == (0.99, 0.5, 1.0, True)
    assert GoalRow.against("loss", "1", Goal(0.0, at_least=False), [1e-9]).held is False
    assert output.cells(row) == ("utilisation", "1", "≥ 0.99", "0.99", "0.5 to 1", "yes")
    assert row.to_dict() == {
        "quantity": "utilisation",
        "unit": "1",
        "goal": 0.99,
        "bound": "at least",
        "ours": 0.99,
        "low": 0.5,
        "high": 1.0,
        "held": True,
        "seeds": 3,
    }


def test_without_a_goal_or_a_measurement_nothing_is_judged() -> None:
    assert GoalRow.against("share", "1", None, [0.5]).held is None
    assert GoalRow.against("pacing", "1", Goal(1.0, at_least=False), [None]).held is None
    assert output.count_held([GoalRow.against("share", "1", None, [0.5])]) is None
    assert output.cells(GoalRow.against("share", "1", None, [0.5]))[2:] == ("–", "0.5", "–", "–")


def test_a_page_and_a_table_hold_goals_beside_papers(tmp_path: Path) -> None:
    goals = [GoalRow.against("utilisation", "1", Goal(0.99, at_least=True), [0.9]), GoalRow.against("share", "1", None, [0.5])]
    done = [
        output.Done(mpc2020.PAPER.entries[0], TINY, {}, [Row.of("rate", "Gbit/s", 8.0, [4.0])]),
        output.Done(ENTRIES[0], TINY, {}, goals),
    ]
    output.write(done, tmp_path, figures=False, command="paceline reproduce")
    page = (tmp_path / "mpc-goals-buffers.md").read_text()
    assert "0 of 1 goals held." in page
    assert "| quantity | unit | goal | ours | least to most | held |" in page
    assert "| utilisation | 1 | ≥ 0.99 | 0.9 | – | no |" in page
    with (tmp_path / "rows.csv").open(newline="") as file:
        rate, utilisation, _ = csv.DictReader(file)
    assert (rate["paper"], rate["goal"], rate["held"]) == ("8.0", "", "")
    assert (utilisation["paper"], utilisation["goal"], utilisation["held"]) == ("", "0.99", "False")
    json.loads((tmp_path / "rows.json").read_text())


# ----------------------------------------------------------------------------------------------------------------- entries


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.id for entry in ENTRIES])
def test_every_run_is_accepted_and_has_a_record_of_its_own(entry: Entry) -> None:
    for scale in (entry.full, entry.quick, TINY):
        jobs = entry.jobs(dataclasses.replace(scale, seeds=(1,)))
        assert len({job.label for job in jobs}) == len(jobs)
        for job in jobs:
            paceline.check(job.scenario)


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.id for entry in ENTRIES])
def test_an_entry_has_a_row_per_quantity_with_a_value(entry: Entry, tmp_path: Path) -> None:
    rows = entry.rows(TINY, run_jobs(entry.jobs(TINY), tmp_path, lambda _simulated_s, _done: None))
    assert len({row.quantity for row in rows}) == len(rows) > 0
    assert all(isinstance(row, GoalRow) and row.ours is not None and math.isfinite(row.ours) for row in rows)


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry.draw is not None], ids=lambda entry: entry.id)
def test_a_figure_is_drawn(entry: Entry, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
    runs = run_jobs(entry.jobs(TINY), tmp_path / "records", lambda _simulated_s, _done: None)
    done = [output.Done(entry, TINY, runs, [])]
    output.write(done, tmp_path, figures=True, command="paceline reproduce")
    assert "<svg" in (tmp_path / f"{entry.id}.svg").read_text()


def test_a_full_run_has_five_seeds_and_all_cells() -> None:
    counts = {entry.id: len({job.label.rpartition("-seed-")[0] for job in entry.jobs(entry.full)}) for entry in ENTRIES}
    assert all(len(entry.full.seeds) >= 5 for entry in ENTRIES)
    assert counts["mpc-goals-buffers"] == 4 * 9 + 6
    assert counts["mpc-goals-late"] == 3 + 1 + 5
    assert counts["mpc-goals-steps"] == 2 * 2 * 5
    # Two links as they are, then every constant up and down.
    assert counts["mpc-goals-rtts"] == 2 + len(list(own.changes_of(STAND_IN.name)))


def test_the_controller_competes_with_all_but_itself() -> None:
    cubic = RIVALS[0]
    pairs = [tomllib.loads(job.scenario)["flows"] for job in paper(cubic).entries[-1].jobs(TINY)]
    assert [mine["controller"]["name"] for mine, _ in pairs] == ["cubic"] * len(pairs)
    assert [other["controller"]["name"] for _, other in pairs] == ["bbr1", "bbr3", "pid", "mpc-2020"]


def test_traces_come_from_the_folder(tmp_path: Path) -> None:
    assert list(traces(TINY)) == ["synth:lte"]
    scale = dataclasses.replace(TINY, traces=tmp_path)
    with pytest.raises(paceline.InputError, match=r"no trace in it is called \*\.down"):
        traces(scale)
    # An opportunity of 1504 bytes each millisecond.
    (tmp_path / "steady.down").write_text("1\n")
    assert traces(scale) == {"steady": (str(tmp_path / "steady.down"), pytest.approx(12.032e6))}


# --------------------------------------------------------------------------------------------------------------- constants


def test_every_number_of_the_controller_goes_up_and_down() -> None:
    changes = dict(own.changes_of("pid"))
    assert changes["alpha +20 %"] == {"alpha": "0.012 s"}
    assert changes["alpha -20 %"] == {"alpha": "0.008 s"}
    assert changes["unreachable -20 %"] == {"unreachable": 8}
    assert changes["kp +20 %"] == {"kp": pytest.approx(2.4)}
    # 0 stays 0.
    assert not any(name.startswith("kd ") for name in changes)


@pytest.mark.parametrize(
    ("kind", "default", "most", "expected"),
    [("number", 2.0, None, 2.4), ("number", 2.0, 2.1, 2.1), ("number", 2.0, 2.0, None), ("integer", 2, None, None)]
    + [("integer", 4, None, 5), ("duration", 0.5, None, "0.6 s"), ("bool", True, None, None), ("rate", 1e6, None, None)],
)
def test_a_constant_changes_as_far_as_its_range_allows(
    kind: str, default: float, most: float | None, expected: float | str | None
) -> None:
    param = ParamSpec("gain", kind, "1", default, 0.0, most, None, "", "")
    assert own._changed(param, 1.2) == expected
