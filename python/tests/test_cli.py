"""The command in a process of its own: exit status, what goes to which stream, the exact words of errors."""

import errno
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import paceline as pl
from handmade import Command, flow, result
from paceline.cli.records import report

Write = Callable[..., Path]
#: The command as a shell would have it.
COMMAND = f"{shlex.quote(sys.executable)} -c 'from paceline.cli import main; main()'"
COMMANDS = (
    "run",
    "compare",
    "report",
    "controllers",
    "arena",
    "reproduce",
    "link",
    "kernel",
    "trace",
    "contest",
    "export",
    "schema",
    "doctor",
)


def in_a_shell(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """For what the shell does with streams, and for arguments that are no text."""
    return subprocess.run(["bash", "-c", line], cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def test_version_names_the_build(paceline: Command) -> None:
    done = paceline("--version")
    assert done.returncode == 0
    assert done.stdout.startswith(f"paceline {pl.__version__} (")


def test_help_lists_every_command_and_the_exit_status(paceline: Command) -> None:
    done = paceline("--help")
    assert done.returncode == 0
    for command in COMMANDS:
        assert f"  {command} " in done.stdout
    assert "Exit status: 0 done, 1 the run failed, 2 bad usage or input" in done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(paceline: Command, command: str) -> None:
    done = paceline(command, "--help")
    assert done.returncode == 0
    assert f"paceline {command} " in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("runn",), "No such command 'runn'. Did you mean 'run'?"),
        (("run",), "Missing argument 'SCENARIO'."),
        (("run", "nowhere.toml"), "error: nowhere.toml: No such file or directory"),
        (("run", "a.toml", "--on", "vm", "--realtime"), "error: --realtime: is for runs in real time; allowed with --on live"),
        (("run", "a.toml", "--realtime"), "error: --realtime: is for runs in real time; allowed with --on live"),
        (("run", "a.toml", "--on", "moon"), "'moon' is not one of 'sim', 'live', 'vm'"),
        (("run", "a.toml", "--seed", "-1"), "Invalid value for '--seed': "),
        (("run", "a.toml", "--seeds", "100001"), "Invalid value for '--seeds': "),
        (("link", "--seed", str(2**64), "true"), "Invalid value for '--seed': "),
        (("trace", "synth", "lte", "--out", "x", "--seed", str(2**64)), "Invalid value for '--seed': "),
        (("run", "a.toml", "--set", "rate"), "error: --set rate: expected KEY=VALUE, with a dotted key: link.rate=10 Mbit/s"),
        (("run", "a.toml", "-c", "x.py:Mine"), "error: --controller x.py:Mine: x.py: no such file"),
        (
            ("run", "a.toml", "-c", "window", "-c", "window"),
            "error: --controller window: a second record would go to runs/a/window; run it with another --out",
        ),
        (("controllers", "windw"), "error: no controller is called `windw`; did you mean `window`? (there are: "),
        (("compare",), "Missing argument 'RUN'."),
        (("compare", "nowhere"), "error: nowhere: no such directory"),
        (
            ("trace", "synth", "lte", "--out", "x", "--duration", "60"),
            "error: --duration 60: expected a number with a unit: ns, us, µs, ms, s, min, h",
        ),
        (("trace", "synth", "lte", "--out", "x", "--mean", "0 Mbit/s"), "error: --mean 0 Mbit/s: allowed: above 0"),
        (("trace", "convert", "x", "./x"), "error: x: is the file to read as well; name another to write"),
        (("export", "qlog", "x", "--flow", "a", "--draft", "9"), "error: --draft 9: allowed: current, 02"),
        (("export", "qlog", "nowhere", "--flow", "a"), "error: nowhere: no such directory"),
        (("arena", "--traces", "nowhere"), "error: nowhere: No such file or directory"),
        (("arena", "-c", "lattee"), 'error: --controller lattee: unknown controller "lattee"; did you mean `latte`?'),
        (("arena", "-c", "latte:x"), 'error: --controller latte:x: latte has no profile "x"; allowed: report'),
        (("arena", "-c", "window", "-c", "window"), "error: --controller window: another window takes part already"),
        (("arena", "--reference", "nobody"), "error: --controller nobody: unknown controller"),
        (("arena", "--on", "vm"), "error: world `vm` is not available for the arena; available: sim, live"),
        (("arena", "--realtime"), "error: --realtime: is for runs in real time; allowed with --on live"),
        (("arena", "--duration", "0 s"), "error: --duration 0 s: allowed: above 0"),
        (("arena", "--scenario", "nowhere.toml"), "error: nowhere.toml: No such file or directory"),
    ],
)
def test_bad_usage_and_input_exit_with_2_and_say_what(paceline: Command, arguments: tuple[str, ...], error: str) -> None:
    done = paceline(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert error in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["run", "compare", "arena --traces", "trace info", "report"])
def test_a_name_that_is_not_utf_8_is_bad_input(tmp_path: Path, command: str) -> None:
    done = in_a_shell(f"{COMMAND} {command} $'x\\xff'", tmp_path)
    assert done.returncode == 2
    assert done.stderr == "error: argument 'x\\udcff': not UTF-8 text; rename the file, or set a UTF-8 locale\n"


@pytest.mark.parametrize("command", ["controllers", "controllers --json", "doctor", "--help"])
def test_a_full_disk_behind_stdout_is_a_failure_in_one_line(tmp_path: Path, command: str) -> None:
    done = in_a_shell(f"{COMMAND} {command} > /dev/full", tmp_path)
    assert (done.returncode, done.stderr) == (1, "error: output: No space left on device\n")


def test_a_closed_stdout_is_no_failure(tmp_path: Path) -> None:
    done = in_a_shell(f"{COMMAND} controllers >&-", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["controllers", "controllers --json", "--help"])
def test_a_reader_that_has_seen_enough_is_no_failure(tmp_path: Path, command: str) -> None:
    done = in_a_shell(f"set -o pipefail; {COMMAND} {command} | true", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_while_the_commands_load_is_an_interrupt(tmp_path: Path) -> None:
    # What the commands import first interrupts the process, as a key would.
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = in_a_shell(f"PYTHONPATH=$PWD:$PYTHONPATH {COMMAND} doctor", tmp_path)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_json_of_a_failed_command_leaves_stdout_empty(paceline: Command) -> None:
    done = paceline("compare", "nowhere", "--json")
    assert (done.returncode, done.stdout) == (2, "")


def test_controllers_as_a_table_and_as_json(paceline: Command) -> None:
    table = paceline("controllers")
    assert table.returncode == 0
    for name in pl.controllers():
        assert any(line.startswith(f"{name} ") for line in table.stdout.splitlines()), name
    assert "loss-based: losses say when the window falls" in table.stdout.splitlines()
    assert max(map(len, table.stdout.splitlines())) <= 100
    listed = json.loads(paceline("controllers", "--json").stdout)
    assert [entry["name"] for entry in listed["controllers"]] == list(pl.controllers())
    one = json.loads(paceline("controllers", "window", "--json").stdout)
    assert one["params"][0]["default"] == 12
    shown = paceline("controllers", "window").stdout
    assert "whole numbers 1 to 10000000 (packets)" in shown
    assert "source: CS 244" in shown


def test_doctor_always_has_the_simulator(paceline: Command) -> None:
    done = paceline("doctor", "--json")
    assert done.returncode == 0
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["simulator"]["ok"] is True
    for check in checks.values():
        assert check["ok"] or check["fix"] or check["detail"] == "Linux only", check
    assert "runs in world `sim`" in paceline("doctor").stdout


def test_compare_prints_one_line_per_record(paceline: Command, write_record: Write) -> None:
    write_record("a", result(flow("f", "cubic", 9e6)))
    write_record("b", result(flow("f", "window", 3e6, p95=41.0)))
    done = paceline("compare", "a", "b")
    assert done.returncode == 0
    header, first, second = done.stdout.splitlines()
    assert header.split() == "run throughput Mbit/s utilisation % RTT p50 ms RTT p95 ms queueing p95 ms loss %".split()
    assert first.split() == ["cubic", "9.000", "90.0", "40.00", "50.00", "30.00", "0.000"]
    assert second.split() == ["window", "3.000", "90.0", "40.00", "41.00", "21.00", "0.000"]
    both = json.loads(paceline("compare", "a", "b", "--json").stdout)
    assert [(run["record"], run["flows"][0]["throughput_bps"]) for run in both["runs"]] == [("a", 9e6), ("b", 3e6)]


def test_compare_names_the_record_where_controllers_are_the_same(paceline: Command, write_record: Write) -> None:
    write_record("a", result(flow("f", "cubic", 9e6)))
    write_record("b", result(flow("f", "cubic", 8e6), flow("g", "cubic", 1e6)))
    done = paceline("compare", "a", "b")
    assert "a (cubic)" in done.stdout
    assert "b (cubic)" in done.stdout
    assert "Throughput and loss: all flows of a run. Delays and power: its worst flow." in done.stdout
    assert "b: g (cubic)" in paceline("compare", "a", "b", "--per-flow").stdout


def test_compare_takes_only_runs_that_differ_in_their_seed_for_repetitions(
    paceline: Command, write_record: Write, tmp_path: Path
) -> None:
    def write(name: str, seed: int, scenario: str, world: str = "sim") -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        outcome = result(flow("f", "cubic", 9e6)) | {"seed": seed, "world": world}
        write_record(name, outcome, scenario={"sha256": scenario})

    def labels(*arguments: str) -> list[str]:
        lines = paceline("compare", *arguments).stdout.splitlines()
        return [line.split("  ")[0] for line in lines[1:] if not line.startswith(("Throughput", "±"))]

    for name, scenario in (("slow", "1"), ("fast", "2")):
        for seed in (1, 2):
            write(f"{name}/cubic/seed-{seed}", seed, scenario)
    assert labels("slow") == ["cubic, 2 seeds"]
    assert labels("slow", "fast") == ["slow/cubic (cubic), 2 seeds", "fast/cubic (cubic), 2 seeds"]
    assert labels("slow", "slow/cubic/seed-1") == ["cubic, 2 seeds"], "a record that is named twice counts once"
    write("again/as-written", 1, "1")
    write("more/as-written", 1, "1")
    assert labels("again", "more") == ["again/as-written (cubic)", "more/as-written (cubic)"]
    assert "more/as-written: f (cubic)" in paceline("compare", "again", "more", "--per-flow").stdout
    write("mixed/a", 1, "1")
    write("mixed/b", 2, "1", world="live")
    assert labels("mixed") == ["a (cubic)", "b (cubic)"]


def test_a_report_that_cannot_be_written_is_named_as_it_was_asked_for(
    paceline: Command, write_record: Write, tmp_path: Path
) -> None:
    write_record("a", result(flow("f", "cubic", 9e6)))
    (tmp_path / "taken").mkdir()
    assert paceline("report", "a", "--out", "taken").stderr == "error: taken: Is a directory\n"


def test_a_full_disk_below_the_figures_is_not_called_the_reports(
    write_record: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("paceline.report.write_figures", full)
    record = write_record("a", result(flow("f", "cubic", 9e6)))
    with pytest.raises(pl.InputError, match="figures: No space left on device"):
        report([record], tmp_path / "report.html", tmp_path / "figures")
    assert (tmp_path / "report.html").is_file()


def test_export_names_the_flows_there_are(paceline: Command, write_record: Write) -> None:
    write_record("a", result(flow("f", "cubic", 9e6)))
    done = paceline("export", "qlog", "a", "--flow", "z")
    assert done.returncode == 2
    assert "error: --flow z: a has no such flow (it has: f)" in done.stderr


def test_a_controller_file_that_does_not_load_is_bad_input(paceline: Command, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("")
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    done = paceline("run", "a.toml", "-c", "broken.py:Mine")
    assert done.returncode == 2
    assert "broken.py raised ModuleNotFoundError: No module named 'nothing_of_this_name'" in done.stderr
    (tmp_path / "other.py").write_text("class Mine: pass\n")
    done = paceline("run", "a.toml", "-c", "other.py:Mine")
    assert done.returncode == 2
    assert "error: --controller other.py:Mine: other.py has no subclass of paceline.Controller called Mine" in done.stderr


#: 10 ms: five opportunities of 1504 bytes; three packets delivered, 3088 bytes. Signal delays 1 1 2 2 3 3 4 5 6 7.
LOG = """\
# mahimahi mm-link (Uplink) [x.trace] > x.log
# base timestamp: 1000
1002 + 1504
1003 # 1504
1003 - 1504 1
1004 + 80
1004 + 1504
1004 d 1 1504
1006 # 1504
1006 - 80 2
1008 # 1504
1010 # 1504
1011 + 1504
1012 # 1504
1012 - 1504 1
"""


def test_the_log_of_a_link_gives_the_measures_of_a_record(paceline: Command, tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text(LOG)
    done = paceline("trace", "info", "x.log", "--json")
    assert json.loads(done.stdout) == {
        "duration_s": 0.01,
        "arrived_packets": 4,
        "delivered_packets": 3,
        "dropped_packets": 1,
        "capacity_bps": pytest.approx(6_016_000),
        "throughput_bps": pytest.approx(2_470_400),
        "utilization": pytest.approx(3088 / 7520),
        "queue_p95_ms": 2,
        "signal_delay_p95_ms": 7,
        "power_score": pytest.approx(2.4704 / 0.007),
    }
    assert "signal_delay_p95_ms" in paceline("trace", "info", "x.log").stdout
    (tmp_path / "x.log").write_text(LOG + "1013 x 5\n")
    done = paceline("trace", "info", "x.log")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: x.log:16: `+ bytes`, `# bytes`, `- bytes delay` or `d packets bytes` is needed")
