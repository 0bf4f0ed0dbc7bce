"""Everything that runs a scenario: the command, the library, Python controllers in the simulator, traces, qlog."""

import hashlib
import json
import math
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

import paceline as pl
from handmade import Command
from paceline import _native

#: 12 Mbit/s, 40 ms, one BDP of buffer (40 packets), 10 s.
SCENARIO = """
title = "one flow"
duration = "10 s"
warmup = "2 s"
seed = 1
[link]
rate = "12 Mbit/s"
rtt = "40 ms"
buffer = "1 BDP"
[[flows]]
controller = { name = "window", packets = 20 }
"""

RESULT_KEYS = {"scenario", "world", "seed", "duration_s", "paceline_version", "links", "flows", "jain_index", "engine", "record"}


class Fixed(pl.Controller):
    """The built-in `window` at 20 packets, in Python."""

    FIELDS: ClassVar[Mapping[str, str]] = {"acks": "1"}

    def __init__(self, path: pl.PathInfo) -> None:
        self.cwnd_packets = 20
        self.acks = 0

    def on_ack(self, ack: pl.Ack) -> None:
        self.acks += 1

    def observe(self) -> Mapping[str, float | None]:
        return {"acks": self.acks}


class Late(Fixed):
    def on_ack(self, ack: pl.Ack) -> None:
        if ack.now_s > 1:
            raise ValueError("enough")


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "one.toml"
    path.write_text(SCENARIO)
    return path


def test_half_a_window_gives_half_the_rate() -> None:
    run = pl.run(SCENARIO)
    (flow,) = run.result["flows"]
    # 20 packets of 12000 bits per round trip; the RTT is 40 ms and one transmission of 1 ms.
    assert flow["throughput_bps"] == pytest.approx(20 * 12_000 / 0.041, rel=0.02)
    assert flow["lost_packets"] == 0
    assert run.flows.height == 1
    assert {"time_s", "flow"} <= set(run.series.columns)
    assert {"time_s", "link"} <= set(run.links.columns)


def test_equal_runs_write_equal_tables(tmp_path: Path) -> None:
    for name in ("a", "b"):
        pl.run(SCENARIO, out=tmp_path / name)
    for table in ("flows", "series", "links"):
        assert (tmp_path / "a" / f"{table}.parquet").read_bytes() == (tmp_path / "b" / f"{table}.parquet").read_bytes()


def test_a_python_controller_runs_like_the_built_in_it_copies() -> None:
    native, python = pl.run(SCENARIO), pl.run(SCENARIO, controller=Fixed)
    (theirs,), (ours,) = native.result["flows"], python.result["flows"]
    assert ours["controller"] == "Fixed"
    for key in ("throughput_bps", "sent_packets", "delivered_packets", "rtt_ms"):
        assert ours[key] == theirs[key], key
    assert python.series["acks"].max() > 0


def test_a_scenario_built_in_code_mixes_python_and_built_in_controllers() -> None:
    scenario = pl.Scenario(
        duration="5 s",
        link=pl.Link(rate="12 Mbit/s", rtt="40 ms"),
        flows=[pl.Flow(controller=Fixed), pl.Flow(controller="window")],
    )
    assert [flow["controller"] for flow in pl.run(scenario).result["flows"]] == ["Fixed", "window"]


def test_an_exception_in_a_controller_fails_the_run_and_leaves_no_record(tmp_path: Path) -> None:
    with pytest.raises(pl.RunError, match=r"^controller `Late`: on_ack at 1\.\d+ s raised ValueError: enough$"):
        pl.run(SCENARIO, controller=Late, out=tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_a_seed_and_overrides_reach_the_run() -> None:
    run = pl.run(SCENARIO, seed=9, overrides={"link.rate": "6 Mbit/s", "duration": "4 s"})
    assert (run.result["seed"], run.result["duration_s"]) == (9, 4.0)
    assert run.result["links"][0]["capacity_bps"] == pytest.approx(6e6)


def test_json_is_one_object_with_the_documented_keys(paceline: Command, scenario: Path) -> None:
    done = paceline("run", scenario, "--json")
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert set(outcome) == RESULT_KEYS
    for key in (
        "throughput_bps",
        "goodput_bps",
        "rtt_ms",
        "queueing_delay_ms",
        "signal_delay_ms",
        "power_score",
        "loss_fraction",
    ):
        assert key in outcome["flows"][0], key
    stats = outcome["flows"][0]["rtt_ms"]
    assert list(stats) == ["mean", "std", "min", "p5", "p25", "p50", "p75", "p95", "p99", "max"]
    assert all(math.isfinite(value) for value in stats.values())


def test_several_controllers_give_one_table_in_the_order_asked_for(paceline: Command, scenario: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import paceline as pl\nclass Mine(pl.Controller):\n    def on_ack(self, ack):\n        self.cwnd_packets = 10\n"
    )
    arguments = ("run", scenario, "-c", "mine.py:Mine", "-c", "window,packets=30", "-c", "window", "--out", "r", "--jobs", "2")
    done = paceline(*arguments)
    assert done.returncode == 0, done.stderr
    first_words = [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
    assert first_words[:4] == ["run", "Mine", "window,packets=30", "window"]
    for record in ("Mine", "window-packets-30", "window"):
        assert (tmp_path / "r" / record / "manifest.json").is_file(), record
    assert json.loads(paceline(*arguments, "--json").stdout)["runs"][0]["flows"][0]["controller"] == "Mine"


def test_seeds_are_repetitions_shown_with_their_interval(paceline: Command, scenario: Path, tmp_path: Path) -> None:
    lossy = ("--set", "link.loss=1%", "--seed", 5)
    done = paceline("run", scenario, "-c", "reno", "-c", "cubic", "--seeds", 3, *lossy, "--out", "r")
    assert done.returncode == 0, done.stderr
    records = [tmp_path / "r" / name / f"seed-{seed}" for name in ("reno", "cubic") for seed in (5, 6, 7)]
    results = [pl.load(record).result for record in records]
    assert [result["seed"] for result in results] == [5, 6, 7, 5, 6, 7]
    throughputs = [result["flows"][0]["throughput_bps"] / 1e6 for result in results[:3]]
    assert len(set(throughputs)) == 3
    mean = sum(throughputs) / 3
    reno = next(line for line in done.stdout.splitlines() if line.startswith("reno, 3 seeds"))
    assert f" {mean:.3f} ± " in reno
    again = paceline("compare", "r")  # a folder stands for the records in it
    assert reno.split() == next(line for line in again.stdout.splitlines() if line.startswith("reno, 3 seeds")).split()


def test_seeds_and_single_runs_stand_beside_each_other(paceline: Command, scenario: Path, tmp_path: Path) -> None:
    for arguments in ((), ("--seeds", 2), ("-c", "reno"), ("-c", "reno", "--seeds", 2), (), ("-c", "reno")):
        done = paceline("run", scenario, *arguments)
        assert done.returncode == 0, done.stderr
    base = tmp_path / "runs" / scenario.stem
    found = {str(manifest.parent.relative_to(base)) for manifest in base.rglob("manifest.json")}
    seeds = {f"seeds/{name}/seed-{seed}" for name in ("as-written", "reno") for seed in (1, 2)}
    assert found == {"as-written", "reno", *seeds}


def test_no_record_is_written_into_another(paceline: Command, scenario: Path) -> None:
    assert paceline("run", scenario, "--out", "r").returncode == 0
    for arguments, record in (
        (("--seeds", 2), "r/seed-1"),
        (("-c", "reno"), "r/reno"),
        (("-c", "reno", "--seeds", 2), "r/reno/seed-1"),
    ):
        done = paceline("run", scenario, *arguments, "--out", "r")
        assert done.returncode == 2
        assert done.stderr == f"error: --out r: is a record, and {record} would lie in it; choose another directory\n"
    assert paceline("run", scenario, "--out", "r").returncode == 0


def test_an_unknown_controller_or_key_is_bad_input(paceline: Command, scenario: Path) -> None:
    done = paceline("run", scenario, "-c", "windw")
    assert (done.returncode, done.stdout) == (2, "")
    assert "windw" in done.stderr
    done = paceline("run", scenario, "--set", "link.ratte=1 Mbit/s")
    assert (done.returncode, done.stdout) == (2, "")
    assert "ratte" in done.stderr


def test_check_resolves_without_running(paceline: Command, scenario: Path, tmp_path: Path) -> None:
    done = paceline("run", scenario, "--check")
    assert done.returncode == 0, done.stderr
    assert isinstance(json.loads(done.stdout), dict)
    assert not (tmp_path / "runs").exists()


def test_the_schema_is_one(paceline: Command) -> None:
    schema = json.loads(paceline("schema").stdout)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert "flows" in schema["properties"]


def test_ctrl_c_stops_a_long_run_and_leaves_no_record(scenario: Path, tmp_path: Path) -> None:
    # An hour at 10 Gbit/s is minutes of work; the interrupt must end it within seconds.
    process = subprocess.Popen(
        [sys.executable, "-c", "from paceline.cli import main; main()", "run", str(scenario), "--out", "r"]
        + ["--set", "duration=3600 s", "--set", "link.rate=10 Gbit/s", "--set", "flows.0.controller=window,packets=40000"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        time.sleep(3)
        assert process.poll() is None, f"the run ended before it could be interrupted: {process.communicate()}"
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert stderr.strip().endswith("interrupted")
    assert not (tmp_path / "r").exists()


def test_a_run_tells_how_far_it_has_come() -> None:
    # 2.5 million packets: far longer than the tenth of a second between two calls.
    text = SCENARIO.replace("12 Mbit/s", "1 Gbit/s").replace('duration = "10 s"', 'duration = "30 s"')
    reached: list[float] = []
    _native.run(text, None, [], "cubic", None, None, [], None, progress=reached.append)
    assert reached
    assert reached == sorted(reached)
    assert reached[-1] <= 30


def test_a_synthetic_trace_is_reproducible_and_has_the_mean_asked_for(paceline: Command, tmp_path: Path) -> None:
    for name in ("a.down", "b.down"):
        done = paceline("trace", "synth", "lte", "--seed", "7", "--duration", "60 s", "--mean", "10 Mbit/s", "--out", name)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.down").read_bytes() == (tmp_path / "b.down").read_bytes()
    assert isinstance(json.loads(paceline("trace", "info", "a.down", "--json").stdout), dict)


def test_tables_do_not_depend_on_the_process_or_on_how_many_run_at_once(
    paceline: Command, scenario: Path, tmp_path: Path
) -> None:
    controllers = [f"--controller={name}" for name in ("reno", "cubic", "latte", "mpc-2020")]
    hashes = []
    for jobs in (1, 4):
        assert paceline("run", scenario, *controllers, "--jobs", jobs, "--out", f"jobs-{jobs}").returncode == 0
        tables = sorted((tmp_path / f"jobs-{jobs}").glob("*/*.parquet"))
        hashes.append([(table.parent.name, table.name, hashlib.sha256(table.read_bytes()).hexdigest()) for table in tables])
    assert len(hashes[0]) == 4 * 3
    assert hashes[0] == hashes[1]


def test_a_flow_exports_as_qlog(paceline: Command, scenario: Path, tmp_path: Path) -> None:
    assert paceline("run", scenario, "--out", "r").returncode == 0
    name = pl.load(tmp_path / "r").result["flows"][0]["name"]
    done = paceline("export", "qlog", "r", "--flow", name, "--out", "f.sqlog")
    assert done.returncode == 0, done.stderr
    assert "qlog" in (tmp_path / "f.sqlog").read_text()[:400]


def test_the_report_is_one_file_without_outside_references(paceline: Command, scenario: Path, tmp_path: Path) -> None:
    assert paceline("run", scenario, "--out", "r").returncode == 0
    done = paceline("report", "r", "--out", "report.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report.html").read_text()
    assert 'src="http' not in page
    assert 'href="http' not in page.replace('href="https://www.w3.org', "")
