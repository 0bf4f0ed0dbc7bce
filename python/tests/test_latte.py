"""The report on Latte: rows with bounds, its senders, its figures, two worlds on one page, what is said without its traces."""

import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pytest

import paceline as pl
from emulated import real
from handmade import Command
from paceline.reproduce import entries, output, select
from paceline.reproduce.entry import Band, BandRow, Entry, Scale
from paceline.reproduce.latte import PAPER, THRESHOLDS, WINDOWS, aimd, contest, over_time
from paceline.reproduce.latte.senders import delay_threshold
from paceline.reproduce.pages import Stored, page, publish
from paceline.reproduce.planning import TRACES_VARIABLE, Request, plan
from paceline.reproduce.running import run_jobs

ENTRIES = {entry.id: entry for entry in PAPER.entries}
MS = 10**6


def done(entry: Entry, scale: Scale, records: Path) -> output.Done:
    runs = run_jobs(entry.jobs(scale), records, lambda _simulated_s, _done: None)
    return output.Done(entry, scale, runs, entry.rows(scale, runs))


@pytest.fixture(scope="module")
def small(recordings: Path) -> Scale:
    return Scale(rate=1, duration_s=10, seeds=(1,), few=True, traces=recordings)


def recording() -> Path:
    """The folder of the recording itself: the one that is named, or `shared/traces` in a folder above."""
    named = os.environ.get(TRACES_VARIABLE)
    folders = [Path(named)] if named else [above / "shared/traces" for above in Path(__file__).resolve().parents]
    for folder in folders:
        if all((folder / name).is_file() for name in contest.TRACES):
            return folder
    pytest.skip(f"no cellular traces ({TRACES_VARIABLE} names their folder)")


# -------------------------------------------------------------------------------------------------------------------- rows


def test_a_band_has_its_ends_and_may_have_gaps() -> None:
    band = Band.near(300, 415, part=0.05)
    assert [band.held_by(value) for value in (284.9, 285, 315, 315.1, 394.25, 435.75, 436)] == [
        False,
        True,
        True,
        False,
        True,
        True,
        False,
    ]
    assert str(band) == "285 to 315 or 394.2 to 435.8"
    assert str(Band.near(12)) == "12"
    assert Band.near(41.2, by=1.5).ranges == ((39.7, 42.7),)


def test_a_row_is_judged_by_the_mean_of_its_runs() -> None:
    row = BandRow.inside("power", "1", 40.0, Band.near(41.0, by=1.0), [39.0, 39.0, None, 42.0])
    assert (row.ours, row.low, row.high, row.ratio, row.held) == (40.0, 39.0, 42.0, 1.0, True)
    assert output.cells(row) == ("power", "1", "40", "40 to 42", "40", "39 to 42", "1", "yes")
    assert (row.to_dict()["bound"], row.to_dict()["held"]) == ([[40.0, 42.0]], True)
    assert BandRow.inside("power", "1", 40.0, None, [40.0]).held is None
    assert BandRow.inside("power", "1", 40.0, Band.near(40.0), []).held is None
    assert output.count_held([row, dataclasses.replace(row, values=(1.0,))]) == "1 of 2 bounds held"


# ----------------------------------------------------------------------------------------------------------------- senders


def test_the_threshold_of_the_report_goes_below_a_packet_and_stalls() -> None:
    late, early = {"acked_packets": 1, "rtt_ns": 75 * MS}, {"acked_packets": 1, "rtt_ns": 74 * MS}
    sender = delay_threshold(75)
    assert delay_threshold(75) is sender
    states = pl.drive(sender, [("ack", late)] * 1300, packet_bytes=1000)
    windows = [state["cwnd_bytes"] for state in states]
    # 1/w per ACK: some more than 50^2/2 of them take it from 50 to nothing.
    assert (windows[0], min(windows), windows[-1]) == (50_000, 500, 500)
    assert states[0]["timeout_ns"] == 10**9
    up = pl.drive(sender, [*[("ack", late)] * 1300, ("rto", {}), ("ack", early)], packet_bytes=1000)
    assert up[-2]["cwnd_bytes"] == 500, "a timeout halves windows above a packet alone"
    assert up[-1]["cwnd_bytes"] >= 1000, "an ACK in time opens it again"


def test_a_stalled_sender_is_probed(recordings: Path, tmp_path: Path) -> None:
    """Below the least RTT every window shrinks, and what is left are timeouts of a second."""
    trial = contest.Trial("stalls", "stalls", delay_threshold(10))
    scale = Scale(rate=1, duration_s=20, seeds=(1,), traces=recordings)
    (run,) = run_jobs(trial.jobs(scale), tmp_path, lambda _simulated_s, _done: None).values()
    (flow,) = run.result["flows"]
    assert 10 <= flow["timeouts"] <= 20
    assert flow["delivered_packets"] < 2000


def test_aimd_has_every_combination_that_the_report_names() -> None:
    labels = [str(each) for each in aimd.parameters(ENTRIES["latte-figure5"].full)]
    assert len(set(labels)) == len(labels) == 12
    drawn = [
        "(12, 1, 2, 100)",
        "(12, 1, 2, 1000)",
        "(12, 5, 2, 100)",
        "(12, 5, 2, 1000)",
        "(12, 10, 2, 100)",
        "(12, 10, 2, 1000)",
    ]
    assert {*drawn, "(50, 1, 2, 1000)"} < set(labels)


# ----------------------------------------------------------------------------------------------------------------- figures


def test_signal_delay_by_hand() -> None:
    # Sent at 0 ms with 5 ms of delay, at 3 ms with 2 and with 9 ms.
    arrived_s = np.array([25.0, 25.0, 32.0]) / 1e3
    time_s, signal_ms = over_time.signal_over_time(arrived_s, np.array([5.0, 2.0, 9.0]))
    assert time_s == pytest.approx([0.0, 0.001, 0.002, 0.003])
    assert signal_ms.tolist() == [4.0 + 1, 4.0, 3.0, 2.0]


def test_the_curve_of_figure_13_has_the_percentile_that_is_measured(small: Scale, tmp_path: Path) -> None:
    runs = run_jobs(over_time.jobs(small), tmp_path, lambda _simulated_s, _done: None)
    (run,) = runs.values()
    known = run.series.drop_nulls("queueing_delay_ms")
    _, curve_ms = over_time.signal_over_time(known["time_s"].to_numpy(), known["queueing_delay_ms"].to_numpy())
    # Means of 5 ms instead of the least delays of packets.
    assert np.quantile(curve_ms, 0.95) == pytest.approx(run.result["flows"][0]["signal_delay_ms"]["p95"], rel=0.2)


def test_the_best_of_a_sweep_is_that_of_its_scores(recordings: Path, tmp_path: Path) -> None:
    scale = Scale(rate=1, duration_s=10, seeds=(1,), traces=recordings)
    rows = {row.quantity: row for row in done(ENTRIES["latte-figure3"], scale, tmp_path).rows}
    scores = {window: rows[f"score, window {window:g}"].ours or 0.0 for window in WINDOWS.trials}
    best = rows["window with the best score"]
    assert best.ours == max(scores, key=scores.__getitem__)
    assert best.held is (best.ours == 12)


def test_the_contest_is_that_of_its_scenario() -> None:
    file = Path(__file__).resolve().parents[2] / "scenarios/contest.toml"
    theirs = pl.check(file.read_text(), overrides=["links.0.trace=synth:lte", "links.0.reverse.trace=synth:lte"])
    scale = Scale(rate=1, duration_s=contest.DURATION_S, seeds=(1,))
    ours = pl.check(
        contest.scenario("x", "latte:released", scale), overrides=["links.0.trace=synth:lte", "links.0.reverse.trace=synth:lte"]
    )
    for resolved in (theirs, ours):
        for key in ("title", "sample_s"):
            resolved.pop(key, None)
    assert ours == theirs


# ------------------------------------------------------------------------------------------------------------- two worlds


def test_worlds_stand_side_by_side(small: Scale, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
    entry = ENTRIES["latte-figure10"]
    sim = done(entry, small, tmp_path / "records")
    scale = dataclasses.replace(small, on="live")
    rows = [dataclasses.replace(row, values=(*row.values, *(2 * value for value in row.values))) for row in sim.rows]
    runs = dict(zip(entry.jobs(scale), sim.runs.values(), strict=True))
    live = output.Done(entry, scale, runs, rows)
    folder = tmp_path / "pages"
    with pytest.raises(pl.InputError, match="nothing of world `sim` is published"):
        publish([PAPER], [live], folder)
    publish([PAPER], [sim], folder)
    publish([PAPER], [live], folder)
    found = json.loads((folder / "latte.json").read_text())
    stored = Stored.read(found[entry.id])
    assert stored.live is not None
    assert (stored.scale.on, stored.live.scale.on) == ("sim", "live")
    assert json.loads(f"{{{stored.text()[1:-1]}}}") == found[entry.id]
    text = page(PAPER, {entry.id: stored})
    assert "| quantity | unit | paper | bound | sim | live | sim/paper | live/paper | live/sim | held |" in text
    assert "1.5 |" in text
    assert (folder / "latte-figure10-live.svg").is_file()
    # What is new in one world leaves the other.
    publish([PAPER], [sim], folder)
    assert json.loads((folder / "latte.json").read_text()) == found


@real
def test_an_entry_runs_over_real_sockets(recordings: Path, tmp_path: Path) -> None:
    entry = ENTRIES["latte-bounds"]
    scale = Scale(rate=1, duration_s=2, seeds=(1,), traces=recordings, on="live")
    runs = run_jobs(entry.jobs(scale), tmp_path, lambda _reached_s, _done: None, at_once=3)
    assert {run.result["world"] for run in runs.values()} == {"live"}
    assert all((row.ours or 0) > 0 for row in entry.rows(scale, runs))


# -------------------------------------------------------------------------------------------------------- what can be run


def test_without_the_recordings_the_entry_says_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recordings: Path
) -> None:
    monkeypatch.delenv(TRACES_VARIABLE, raising=False)
    with pytest.raises(
        pl.InputError, match=r"come with the mahimahi emulator .* name their folder with --traces DIR or PACELINE_TRACES"
    ):
        plan(PAPER.entries, Request())
    with pytest.raises(pl.InputError, match=r"has no Verizon-LTE-short.down and no Verizon-LTE-short.up; "):
        plan(PAPER.entries, Request(traces=tmp_path))
    planned = plan(select([]), Request())
    assert not any(entry.traces for entry, _ in planned.entries)
    assert list(planned.left_out.values()) == [tuple(ENTRIES)]
    monkeypatch.setenv(TRACES_VARIABLE, str(recordings))
    planned = plan(select([]), Request())
    assert not planned.left_out
    # Entries that have another trace without a recording keep it.
    assert {scale.traces for entry, scale in planned.entries if not entry.traces} == {None}
    assert {scale.traces for entry, scale in planned.entries if entry.traces} == {recordings}


def test_what_takes_long_in_real_time_has_to_be_asked_for(recordings: Path) -> None:
    request = Request(on="live", traces=recordings)
    planned = plan(select([]), request)
    assert {entry.id for entry, _ in planned.entries} == {
        f"latte-{name}" for name in ("bounds", "repeat", "results", "figure12", "figure13")
    }
    assert all(scale.on == "live" and len(scale.seeds) >= 3 for _, scale in planned.entries)
    reasons = "; ".join(planned.left_out)
    assert "not run in world `live`" in reasons
    # 25 windows, three at a time.
    assert "in world `live` 25 runs, 3 at a time, take 21 minutes: ask for them with --sweeps" in reasons
    assert len(plan(PAPER.entries, dataclasses.replace(request, sweeps=True)).entries) == len(ENTRIES)
    with pytest.raises(pl.InputError, match="mpc2020-table1: not run in world `live`"):
        plan(select(["mpc2020-table1"]), request)


def test_a_run_has_one_record_per_world(recordings: Path) -> None:
    entry = ENTRIES["latte-repeat"]
    sim, live = (entry.jobs(dataclasses.replace(entry.full, on=world)) for world in ("sim", "live"))
    assert [job.label for job in live] == [job.label.replace("-seed", "-live-seed") for job in sim]
    assert {job.on for job in live} == {"live"}


def test_an_entry_from_end_to_end(paceline: Command, recordings: Path) -> None:
    result = paceline("reproduce", "latte-figure8", "--quick", "--json", "--traces", recordings)
    assert result.returncode == 0, result.stderr
    (entry,) = json.loads(result.stdout)["entries"]
    assert entry["scale"]["on"] == "sim"
    assert [row["quantity"] for row in entry["rows"]] == ["score, threshold 75", "threshold with the best score"]
    assert entry["rows"][0]["bound"] == [[pytest.approx(0.95 * 15.418, rel=1e-3), pytest.approx(1.05 * 15.418, rel=1e-3)]]


# ----------------------------------------------------------------------------------------------------------- the recording


def test_what_must_hold_holds_in_the_simulator(tmp_path: Path) -> None:
    """On the recording itself, which is not part of the repository."""
    entry = entries()["latte-bounds"]
    rows = done(entry, dataclasses.replace(entry.full, traces=recording()), tmp_path).rows
    assert [row.quantity for row in rows if row.held is False] == []
    assert sum(row.held is True for row in rows) == 10


def test_stalls_make_the_thresholds_of_the_report(tmp_path: Path) -> None:
    """Figure 8: the score falls off towards low thresholds, where the sender stalls; the built-in one does not."""
    scale = dataclasses.replace(ENTRIES["latte-figure8"].full, traces=recording())
    runs = run_jobs(THRESHOLDS.jobs(scale), tmp_path, lambda _simulated_s, _done: None)
    scores = {threshold: trial.mean(contest.power, scale, runs) or 0.0 for threshold, trial in THRESHOLDS.trials.items()}
    assert scores[50] < 5 < scores[60] < 11 < scores[75]
