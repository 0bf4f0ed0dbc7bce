"""``paceline kernel`` on the running kernel: a flow over a veth pair between two namespaces, MTU 1500."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from paceline import _native

MISSING = _native.kernel_missing() or (None if shutil.which("ip") else "no ip (iproute2)")
needs_kernel = pytest.mark.skipif(MISSING is not None, reason=f"controllers in the kernel: {MISSING}")

RECEIVE = """
import socket, sys
listener = socket.create_server(("10.77.0.2", 5201))
print("ready", flush=True)
connection, _ = listener.accept()
received = 0
while data := connection.recv(1 << 16):
    received += len(data)
print(received, flush=True)
"""

# Sends until its standard input is closed.
SEND = """
import select, socket, sys
connection = socket.socket()
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
connection.connect(("10.77.0.2", 5201))
data, sent = bytes(1 << 16), 0
while not select.select([sys.stdin], [], [], 0)[0]:
    sent += connection.send(data)
connection.shutdown(socket.SHUT_WR)
print(sent, flush=True)
# Until the other end has read all.
connection.recv(1)
"""


COMMAND = [sys.executable, "-c", "from paceline.cli import main; main()", "kernel"]


def paceline(*arguments: str) -> str:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def namespaces() -> Iterator[tuple[str, str]]:
    """Two namespaces, 10.77.0.1 and 10.77.0.2, with a veth pair between them."""
    names = (f"pl-a{os.getpid()}", f"pl-b{os.getpid()}")

    def ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True, capture_output=True)

    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", "v0", "netns", names[0], "type", "veth", "peer", "name", "v1", "netns", names[1])
        for name, device, address in ((names[0], "v0", "10.77.0.1/24"), (names[1], "v1", "10.77.0.2/24")):
            ip("-n", name, "address", "add", address, "dev", device)
            ip("-n", name, "link", "set", device, "up")
        yield names
    finally:
        for name in names:
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "delete", name)


@pytest.fixture(params=["reno", "pid", "mpc"])
def controller(request: pytest.FixtureRequest) -> Iterator[str]:
    """A loaded controller's name."""
    name = f"plt{request.param}{os.getpid() % 10_000_000}"
    paceline("load", request.param, "--as", name)
    try:
        yield name
    finally:
        subprocess.run([*COMMAND, "unload", name], capture_output=True, check=False)


@needs_kernel
def test_a_flow_between_namespaces(namespaces: tuple[str, str], controller: str) -> None:
    sender, receiver = namespaces
    inside = [["ip", "netns", "exec", name, sys.executable, "-c"] for name in (receiver, sender)]
    paceline("cap", "20 Mbit/s", "--dst", "10.77.0.2", "--port", "5201", "--of", controller)
    with subprocess.Popen([*inside[0], RECEIVE], stdout=subprocess.PIPE, text=True) as receive:
        assert receive.stdout is not None
        assert receive.stdout.readline() == "ready\n"
        pipe = subprocess.PIPE
        with subprocess.Popen([*inside[1], SEND, controller], stdin=pipe, stdout=pipe, text=True) as send:
            time.sleep(0.5)
            flows = json.loads(paceline("top", "--json", "--interval", "1 s"))["flows"]
            flow = next(flow for flow in flows if flow["controller"] == controller)
            listed = json.loads(paceline("list", "--json"))["loaded"]
            sent, _ = send.communicate(timeout=30)
        received, _ = receive.communicate(timeout=30)
    assert int(received) == int(sent) > 1_000_000
    assert flow["remote"] == "10.77.0.2:5201"
    assert flow["packet_bytes"] == 1500
    assert flow["cap_bps"] == 20e6
    # Whole packets, of which the cap counts the payload.
    assert flow["rate_bps"] * flow["payload_bytes"] / flow["packet_bytes"] == pytest.approx(20e6, rel=0.1)
    assert 0 < flow["min_rtt_ms"] <= flow["srtt_ms"]
    entry = next(entry for entry in listed if entry["name"] == controller)
    assert (entry["flows"], entry["registered"]) == (1, True)
    assert entry["caps"] == [{"destination": "10.77.0.2", "port": 5201, "bps": 20_000_000}]


@needs_kernel
def test_unloading_and_wrong_names() -> None:
    name = f"plu{os.getpid() % 10_000_000}"
    paceline("load", "mpc", "--as", name, "--param", "cap=300 Mbit/s")
    with pytest.raises(_native.InputError, match="already"):
        _native.kernel_load("mpc", name)
    assert paceline("unload", name) == f"unloaded  {name}\n"
    with pytest.raises(_native.InputError, match="is loaded"):
        _native.kernel_unload(name)
    with socket.socket() as lonely, pytest.raises(FileNotFoundError):
        lonely.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())


def test_what_is_not_written_for_the_kernel() -> None:
    with pytest.raises(_native.InputError, match="not written for the kernel"):
        _native.kernel_load("cubic", None)
    with pytest.raises(_native.InputError, match="parameter"):
        _native.kernel_load("mpc,nonsense=1", None)
