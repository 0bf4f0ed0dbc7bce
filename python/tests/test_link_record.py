"""``paceline link --out``: a record of a program's traffic, and that it says what the logs of the same run say."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from emulated import real
from handmade import Command

#: Sends for a second, faster than the link is, and waits until the server has heard of it.
FLOOD = """
import os, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((os.environ["PACELINE_BASE"], int(sys.argv[1])))
s.settimeout(20)
end = time.monotonic() + 1
while time.monotonic() < end:
    for _ in range(4):
        s.send(b"x" * 1000)
    time.sleep(0.001)
while True:
    s.send(b"end")
    s.settimeout(0.5)
    try:
        s.recv(10)
        break
    except TimeoutError:
        pass
"""
SERVER = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 0))
print(s.getsockname()[1], flush=True)
while True:
    got, sender = s.recvfrom(2000)
    s.sendto(b"end" if got == b"end" else b"x" * 500, sender)
"""


def run(paceline: Command, *options: str) -> "subprocess.CompletedProcess[str]":
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        done = paceline("link", *options, "--", sys.executable, "-c", FLOOD, port)
        server.kill()
    return done


@real
@pytest.mark.parametrize(
    ("uplink", "more"),
    [
        ("12 Mbit/s", ()),
        ("up.trace", ("--overhead", "4B")),
        ("12 Mbit/s", ("--delay", "up.delay")),
        ("12 Mbit/s", ("--queue", "pie")),
    ],
)
def test_a_record_says_what_the_logs_say(paceline: Command, tmp_path: Path, uplink: str, more: tuple[str, ...]) -> None:
    (tmp_path / "up.trace").write_text("1\n3\n4\n")
    (tmp_path / "up.delay").write_text("0 5\n300 25\n700 2.5\n")
    link = ("--uplink", uplink, "--downlink", "6 Mbit/s", "--buffer", "30 packets", "--delay", "5ms", *more)
    logs = ("--uplink-log", "uplink.log", "--downlink-log", "downlink.log")
    done = run(paceline, *link, *logs, "--out", "record", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stderr.splitlines()[-1])
    assert answer["record"] == "record"
    manifest = json.loads((tmp_path / "record" / "manifest.json").read_text())
    result = manifest["result"]
    assert (manifest["world"], result["flows"][0]["goodput_bps"]) == ("link", None)
    assert [link["name"] for link in result["links"]] == ["uplink", "downlink"]
    for link in result["links"]:
        told = paceline("trace", "info", f"{link['name']}.log", "--json")
        log = json.loads(told.stdout)
        flows = [flow for flow in result["flows"] if flow["name"].startswith(link["name"])]
        _agree(link, flows, log, result["duration_s"], "up.delay" not in more)
    assert result["links"][0]["drops"] > 100
    busiest = max(result["flows"], key=lambda flow: flow["sent_packets"])
    assert busiest["name"].startswith("uplink udp 198.1")
    assert busiest["stack"] == "udp"
    for command in (("compare", "record"), ("report", "record")):
        assert paceline(*command).returncode == 0


def _agree(link: dict[str, Any], flows: list[dict[str, Any]], log: dict[str, Any], duration_s: float, is_constant: bool) -> None:
    """Counts and bytes are equal; what the log has in whole ms is equal to the ms.

    Flows are measured over the whole way, logs at the link: what a delay is above its least is in the flows' delays alone.
    """

    def total(key: str) -> int:
        return sum(flow[key] for flow in flows)

    assert total("sent_packets") == log["arrived_packets"]
    assert total("delivered_packets") == log["delivered_packets"]
    assert total("lost_packets") == log["dropped_packets"] == link["drops"]
    in_log = log["throughput_bps"] * log["duration_s"] / 8
    assert link["throughput_bps"] * duration_s / 8 == pytest.approx(in_log, abs=0.5)
    # From the first event to the last, against from the start to the end: they are within the run, and near its ends.
    assert log["duration_s"] <= duration_s + 0.001
    assert link["capacity_bps"] == pytest.approx(log["capacity_bps"], rel=0.01)
    assert link["queue_ms"]["p95"] == pytest.approx(log["queue_p95_ms"], rel=0.002, abs=1)
    busiest = max(flows, key=lambda flow: flow["sent_packets"])
    if busiest["sent_packets"] == log["arrived_packets"] and is_constant:
        assert busiest["signal_delay_ms"]["p95"] == pytest.approx(log["signal_delay_p95_ms"], abs=1)


@real
def test_hosts_have_flows_of_their_own(paceline: Command, tmp_path: Path) -> None:
    delays = ("--host-delay", "0 s", "--host-delay", "30 ms")
    done = run(paceline, "--hosts", "2", *delays, "--uplink", "50 Mbit/s", "--delay", "5 ms", "--out", "record")
    assert done.returncode == 0, done.stderr
    flows = json.loads((tmp_path / "record" / "manifest.json").read_text())["result"]["flows"]
    sources = {flow["name"].split()[2].split(":")[0] for flow in flows if flow["name"].startswith("uplink udp")}
    assert len(sources) == 2
    # The link is what is measured: the delay between it and a host is no queueing, in neither direction.
    downlink = [flow["queueing_delay_ms"]["max"] for flow in flows if flow["name"].startswith("downlink udp")]
    assert len(downlink) == 2
    assert max(downlink) < 30


def test_a_record_is_refused_before_anything_begins(paceline: Command, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "letter.txt").write_text("mine")
    done = paceline("link", "--out", "taken", "--", "touch", "ran")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: taken exists and is not a record; choose another directory or move it away\n"
    assert not (tmp_path / "ran").exists()
