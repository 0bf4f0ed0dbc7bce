"""``paceline link``: options, exit status, signals, and a real link where this machine allows one."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from emulated import real
from handmade import Command

ECHO = """
import os, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
s.connect((os.environ["PACELINE_BASE"], int(sys.argv[1])))
times = []
for _ in range(10):
    begin = time.monotonic()
    s.send(b"x" * 1000)
    s.recv(2000)
    times.append(time.monotonic() - begin)
print(min(times))
s.send(b"end")
"""
ECHO_SERVER = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 0))
print(s.getsockname()[1], flush=True)
while (got := s.recvfrom(2000))[0] != b"end":
    s.sendto(*got)
"""


#: The command itself, to be run inside.
LINK = (sys.executable, "-c", "from paceline.cli import main; main()", "link")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--uplink", "12"), "error: --uplink 12: a rate needs a unit; allowed: 1 bit/s to 100 Tbit/s"),
        (("--uplink", "no.trace"), "error: --uplink no.trace: no.trace: no such file"),
        (("--delay", "20"), "error: --delay 20: a time needs a unit; allowed: 0 s to 1000 s"),
        (("--uplink", "12 Mbit/s"), "error: --uplink-buffer: 1 BDP is 0 bytes at a base RTT of 0 s"),
        (("--loss", "200%"), "error: --loss 200%: out of range; allowed: 0% to 99%"),
        (("--queue", "codl"), "error: --queue codl: unknown queue; did you mean `codel`?"),
        (("--downlink-queue", "codel,target=5"), "error: --downlink-queue codel,target=5: "),
        (("--uplink-log", "no/such/up.log"), "error: --uplink-log no/such/up.log: No such file or directory"),
        (("--downlink-log", "."), "error: --downlink-log .: Is a directory"),
        (("--uplink-log", "x", "--downlink-log", "x"), "error: --downlink-log x: is the log of the uplink as well"),
        (("--hosts", "65"), "Invalid value for '--hosts'"),
        (("--host-delay", "5"), "error: --host-delay"),
        (("--host-delay", "0 s", "--host-delay", "5 ms"), "error: --host-delay 5 ms: there is no host 2; add --hosts 2"),
        (("--seed", "-1"), "Invalid value for '--seed'"),
    ],
)
def test_bad_options_name_themselves(paceline: Command, arguments: tuple[str, ...], error: str) -> None:
    done = paceline("link", *arguments, "--", "true")
    assert done.returncode == 2
    assert error in done.stderr
    assert done.stdout == ""


@real
def test_the_command_gives_output_and_exit_status(paceline: Command) -> None:
    done = paceline("link", "--summary", "--", "sh", "-c", "echo $PACELINE_BASE; exit 7")
    assert done.returncode == 7
    assert done.stdout.startswith("198.1")
    assert done.stderr.startswith("uplink: ")
    assert paceline("link", "sh", "-c", "kill -9 $$").returncode == 137
    done = paceline("link", "no-such-program", "--delay")
    assert (done.returncode, done.stderr) == (2, "error: cannot run no-such-program: No such file or directory (os error 2)\n")


@real
def test_the_summary_is_one_json_object_on_stderr(paceline: Command) -> None:
    done = paceline("link", "--json", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.returncode, done.stdout) == (3, "out\n")
    first, last = done.stderr.splitlines()
    assert first == "err"
    answer = json.loads(last)
    assert (answer["status"], answer["statuses"], answer["log_failure"]) == (3, [3], None)
    # The kernel inside may have said which multicast groups it is in.
    assert answer["uplink"]["entered_packets"] <= 4
    assert answer["downlink"]["entered_packets"] == 0


@real
def test_hosts_share_the_link(paceline: Command) -> None:
    script = "ip -4 -o address show dev paceline; exit $((PACELINE_HOST - 1))"
    delays = ("--host-delay", "0 s", "--host-delay", "20 ms")
    done = paceline("link", "--hosts", "3", *delays, "--json", "--", "sh", "-c", script)
    assert done.returncode == 1
    assert json.loads(done.stderr.splitlines()[-1])["statuses"] == [0, 1, 2]
    nested = paceline("link", "--hosts", "2", "--", *LINK, "--", "true")
    assert (nested.returncode, nested.stderr.splitlines()[0]) == (1, "error: links do not nest in one of several hosts")


@real
def test_a_live_link_becomes_a_trace(paceline: Command, tmp_path: Path) -> None:
    serve = [sys.executable, "-c", "from paceline.cli import main; main()", "trace", "serve", "--port", "0"]
    record = ("record", "--uplink", "up.trace", "--downlink", "down.trace", "--duration", "1 s", "--warm-up", "1 s")
    waits = ("--least-wait", "100 ms", "--most-wait", "300 ms", "--json")
    script = "from paceline.cli import main; main()"
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = server.stdout.readline().rsplit(":", 1)[1].split(",")[0]
        shell = f'exec "$0" -c "$1" trace {" ".join(map(repr, (*record, *waits)))} $PACELINE_BASE:{port}'
        link = ("--uplink", "3 Mbit/s", "--downlink", "6 Mbit/s", "--delay", "5ms", "--buffer", "unlimited", "--overhead", "4B")
        done = paceline("link", *link, "--", "sh", "-c", shell, sys.executable, script)
        server.send_signal(signal.SIGINT)
        told, _ = server.communicate(timeout=60)
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    # A host that is busy may stop either end for a while; more than the link has there is not.
    for direction, rate in (("uplink", 3), ("downlink", 6)):
        assert rate * 0.5 < measured[direction]["mean_mbps"] < rate * 1.1
        assert (tmp_path / f"{direction.removesuffix('link')}.trace").exists()
    assert [line.split(": ")[1] for line in told.splitlines()] == ["uplink measured for 1 s", "downlink measured for 1 s"]
    assert server.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("127.0.0.1:1",), "error: nothing to measure: name a file with --uplink, --downlink or both"),
        (("127.0.0.1:0", "--uplink", "x"), "error: 127.0.0.1:0: '0' is no port; allowed: 1 to 65535"),
        (("127.0.0.1:1", "--uplink", "x", "--downlink", "x"), "error: --downlink x: is the trace of the uplink as well"),
        (("127.0.0.1:1", "--uplink", "x", "--duration", "2 h"), "error: a duration out of range; allowed: 1 ms to 3600 s"),
        (("127.0.0.1:1", "--uplink", "x"), "error: cannot reach 127.0.0.1:1: Connection refused"),
    ],
)
def test_what_cannot_be_measured_says_why(paceline: Command, arguments: tuple[str, ...], error: str) -> None:
    done = paceline("trace", "record", *arguments)
    assert done.returncode in (1, 2)
    assert error in done.stderr


@real
def test_logs_agree_with_the_summary(paceline: Command, tmp_path: Path) -> None:
    (tmp_path / "up.trace").write_text("1\n3\n")
    logs = ("--uplink-log", "up.log", "--downlink-log", "down.log")
    link = ("--uplink", "up.trace", "--downlink", "12 Mbit/s", "--delay", "5ms", "--overhead", "4B")
    with subprocess.Popen([sys.executable, "-c", ECHO_SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        done = paceline("link", *link, *logs, "--json", "--", sys.executable, "-c", ECHO, port)
        server.kill()
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stderr)
    header = (tmp_path / "up.log").read_text().splitlines()[:5]
    assert header[0] == "# mahimahi mm-link (Uplink) [up.trace] > up.log"
    assert header[1].startswith('# command line: paceline link --uplink up.trace --downlink "12 Mbit/s" --delay 5ms')
    assert header[2] == "# queue: droptail [bytes=10027]"
    assert header[4] == "# base timestamp: 0"
    for direction in ("up", "down"):
        told = paceline("trace", "info", f"{direction}.log", "--json")
        stats = json.loads(told.stdout)
        counts = answer[f"{direction}link"]
        assert stats["arrived_packets"] == counts["entered_packets"]
        assert stats["delivered_packets"] == counts["left_packets"]
        assert stats["dropped_packets"] == 0
    # 1000 bytes, 28 of headers, 4 more: a packet at a time, so each waits for the next opportunity alone.
    departures = [line for line in (tmp_path / "up.log").read_text().splitlines() if " - 1032 " in line]
    assert len(departures) == 10
    assert all(int(line.split()[3]) <= 2 for line in departures)


@real
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_an_error_at_the_end(paceline: Command) -> None:
    done = paceline("link", "--uplink-log", "/dev/full", "--", "sh", "-c", "echo done")
    assert (done.returncode, done.stdout) == (1, "done\n")
    assert done.stderr == "error: the log is not complete: /dev/full: No space left on device (os error 28)\n"
    assert paceline("link", "--uplink-log", "/dev/full", "--", "sh", "-c", "exit 7").returncode == 7


@real
@pytest.mark.parametrize("queue", ["droptail", "codel", "fq_codel,ecn=true", "pie"])
def test_a_round_trip_through_a_trace_and_a_rate(paceline: Command, tmp_path: Path, queue: str) -> None:
    (tmp_path / "down.trace").write_text("1\n")
    with subprocess.Popen([sys.executable, "-c", ECHO_SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        link = ("--delay", "20ms", "--uplink", "12 Mbit/s", "--downlink", "down.trace", "--queue", queue)
        done = paceline("link", *link, "--", sys.executable, "-c", ECHO, port)
        server.kill()
    assert done.returncode == 0, done.stderr
    # 40 ms of propagation, 0.7 ms at 12 Mbit/s, up to 1 ms until the next opportunity. Never less; how much more depends on the
    # machine.
    assert 0.0406 < float(done.stdout) < 0.080


@real
def test_signals_go_to_the_command(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    script = f"trap 'echo caught; exit 9' TERM; echo > {ready}; while :; do sleep 0.05; done"
    arguments = [sys.executable, "-c", "from paceline.cli import main; main()", "link", "--", "sh", "-c", script]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as emulator:
        deadline = time.monotonic() + 60
        while not ready.exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        emulator.send_signal(signal.SIGTERM)
        out, _ = emulator.communicate(timeout=60)
    assert (emulator.returncode, out) == (9, "caught\n")
