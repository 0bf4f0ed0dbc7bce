"""``paceline kernel record`` and ``paceline replay``: recordings on file, wrong ones, and real flows behind links."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from emulated import real
from handmade import Command
from kernelled import COMMAND, SEND, loaded, needs_kernel, receiving, recorded, replayed

ROOT = Path(__file__).resolve().parents[2]
RECORDING = ROOT / "crates/kernel/tests/recordings/mpc-link.events"

#: The file's head, and where the first record's kind is.
HEAD = 16
KIND = HEAD + 12

pytestmark = pytest.mark.skipif(sys.byteorder == "big", reason="the recordings on file are little-endian")


def test_a_recording_is_answered_natively(paceline: Command) -> None:
    done = paceline("replay", RECORDING, "--no-bpf", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert (answer["equal"], answer["bpf_skipped"], answer["lost_records"]) == (True, "not asked for", 0)
    flow = answer["flows"][0]
    assert (flow["algorithm"], flow["events"], flow["answers"]) == ("mpc", 276, 275)
    assert flow["heard"] == {"on_ack": 273, "on_resume": 1, "set_cap": 1}
    assert flow["difference"] is None
    text = paceline("replay", RECORDING, "--no-bpf").stdout
    assert "equal" in text
    assert "BPF skipped: not asked for" in text


def test_a_simulated_run_is_recorded_and_replayed(paceline: Command, tmp_path: Path) -> None:
    file = tmp_path / "run.events"
    loss = "link.loss=0.01"
    command = ["run", ROOT / "scenarios/two-flows.toml", "--controller", "mpc", "--set", "duration=5 s", "--set", "warmup=0 s"]
    command += ["--set", "flows.1.start=1 s", "--set", loss, "--out", tmp_path / "record", "--events", file, "--json"]
    done = paceline(*command)
    assert (done.returncode, done.stderr) == (0, "")
    lost = [flow["lost_packets"] for flow in json.loads(done.stdout)["flows"]]
    assert min(lost) > 0
    # With BPF where the machine can.
    done = paceline("replay", file, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    flows = json.loads(done.stdout)["flows"]
    assert [flow["algorithm"] for flow in flows] == ["mpc", "mpc"]
    assert all(flow["heard"]["on_ack"] > 1000 and flow["heard"]["on_loss"] > 0 for flow in flows)
    assert all(flow["difference"] is None for flow in flows)


def test_events_that_cannot_be_recorded_are_refused(paceline: Command, tmp_path: Path) -> None:
    scenario, file = ROOT / "scenarios/two-flows.toml", tmp_path / "run.events"
    done = paceline("run", scenario, "--controller", "cubic", "--out", tmp_path / "cubic", "--events", file)
    assert done.returncode == 2
    assert "no flow has a controller in integer C that runs here (reno, mpc, pid, latte)" in " ".join(done.stderr.split())
    done = paceline("run", scenario, "--controller", "mpc", "--seeds", "2", "--out", tmp_path / "two", "--events", file)
    assert (done.returncode, file.exists()) == (2, False)
    assert "takes one run, and this is 2" in " ".join(done.stderr.split())
    done = paceline("run", scenario, "--controller", "mpc", "--out", tmp_path / "none", "--events", tmp_path / "no/run.events")
    assert (done.returncode, (tmp_path / "none").exists()) == (2, False)
    assert "no/run.events: No such file or directory" in "".join(done.stderr.split("\n"))


def test_a_difference_is_told_with_its_event(paceline: Command, tmp_path: Path) -> None:
    other = bytearray(RECORDING.read_bytes())
    # The answer to the start: 16 + 88 + 18 parameters of 8 bytes, after the file's head.
    answer = HEAD + 16 + 88 + 18 * 8
    assert other[answer + 12] == 10
    other[answer + 16] ^= 1
    path = tmp_path / "other.events"
    path.write_bytes(other)
    done = paceline("replay", path, "--no-bpf", "--json")
    assert done.returncode == 1
    difference = json.loads(done.stdout)["flows"][0]["difference"]
    values = difference.pop("values")
    assert difference == {"event": "init", "index": 0, "time_s": 0.0, "byte": HEAD, "what": "cwnd_bytes"}
    assert values["recorded"] == values["native"] ^ 1
    done = paceline("replay", path, "--no-bpf")
    assert done.returncode == 1
    assert f"cwnd_bytes differs after event 0 (init, 0.000000 s, byte {HEAD}): recorded {values['recorded']}" in done.stdout


def test_a_gap_and_a_missing_end_are_told(paceline: Command, tmp_path: Path) -> None:
    whole = RECORDING.read_bytes()
    # Without the answer to the start, and without the record that ends the file.
    answer = HEAD + 16 + 88 + 18 * 8
    path = tmp_path / "gap.events"
    path.write_bytes(whole[:answer] + whole[answer + 56 : -24])
    answered = paceline("replay", path, "--no-bpf").stdout
    assert "equal until 1 records are missing" in answered
    assert "the recording was not ended" in answered


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda log: b"", "byte 0: is no recording"),
        (lambda log: log[:8] + log[8:12][::-1] + log[12:], "byte 8: was recorded on a machine of the other byte order"),
        (lambda log: log[:12] + bytes([9, 0, 0, 0]) + log[16:], "byte 12: is of version 9; this Paceline reads 1"),
        (lambda log: log[:300], "byte 264: the file ends within control: it was cut off"),
        (lambda log: log[:KIND] + bytes([99]) + log[KIND + 1 :], "byte 16: 99 is no kind of record; allowed: 1 to 12"),
        (lambda log: log.replace(b"mpc\0", b"abc\0", 1), 'byte 16: init: "abc" is no algorithm in C'),
    ],
    ids=["empty", "order", "version", "cut", "kind", "algorithm"],
)
def test_what_is_wrong_is_said_with_its_place(paceline: Command, tmp_path: Path, change: Any, error: str) -> None:
    path = tmp_path / "wrong.events"
    path.write_bytes(change(RECORDING.read_bytes()))
    done = paceline("replay", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {path}: {error}")


def test_no_such_recording(paceline: Command) -> None:
    done = paceline("replay", "nowhere.events")
    assert done.returncode == 2
    assert done.stderr.startswith("error: nowhere.events: No such file")


def behind(link: tuple[str, ...], program: str, *arguments: str) -> None:
    """Runs a Python program behind a link."""
    command = [*COMMAND[:-1], "link", "--realtime", *link, "--", sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def flow_behind(tmp_path: Path, algorithm: str, link: tuple[str, ...], *, seconds: float, before: str = "") -> dict[str, Any]:
    """A flow behind a link, recorded and replayed; ``before`` it this runs there."""
    log = tmp_path / "flow.events"
    with loaded(algorithm, "--record") as name, recorded(name, log), receiving("0.0.0.0") as (port, _):
        behind(link, before + SEND, name, "", port, str(seconds))
    return replayed(log)


@real
@needs_kernel
@pytest.mark.parametrize("algorithm", ["reno", "pid", "mpc"])
def test_losses_and_timeouts(tmp_path: Path, algorithm: str) -> None:
    link = ("--uplink", "4 Mbit/s", "--delay", "15ms", "--buffer", "50 packets", "--loss", "on-off,on=1 s,off=400 ms")
    heard = flow_behind(tmp_path, algorithm, link, seconds=3)["heard"]
    assert heard["on_ack"] > 20
    # The kernel waits for 200 ms at least, and less than twice that here.
    assert {"on_loss", "on_rto"} <= heard.keys(), heard


@real
@needs_kernel
@pytest.mark.parametrize("algorithm", ["reno", "pid", "mpc"])
def test_undos(tmp_path: Path, algorithm: str) -> None:
    # Nothing is lost, much is late.
    link = ("--uplink", "4 Mbit/s", "--delay", "15ms", "--buffer", "1000 packets", "--reorder", "probability=3%,extra=100 ms")
    heard = flow_behind(tmp_path, algorithm, link, seconds=3)["heard"]
    assert heard["on_ack"] > 20
    assert {"on_loss", "on_spurious_loss"} <= heard.keys(), heard


@real
@needs_kernel
@pytest.mark.parametrize("algorithm", ["reno", "pid", "mpc"])
def test_marks(tmp_path: Path, algorithm: str) -> None:
    # Of the link's namespace, which goes with it.
    ask = 'open("/proc/sys/net/ipv4/tcp_ecn", "w").write("1")\n'
    link = ("--uplink", "4 Mbit/s", "--delay", "15ms", "--buffer", "100 packets", "--queue", "codel,ecn=true,target=1 ms")
    flow = flow_behind(tmp_path, algorithm, link, seconds=2, before=ask)
    assert flow["ce_packets"] > 0, flow
