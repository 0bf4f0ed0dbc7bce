"""``paceline kernel`` on the running kernel: a flow over a veth pair between two namespaces, MTU 1500."""

import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice

import pytest

import kernelled
from kernelled import SEND, inside, loaded, needs_kernel, paceline, receiving
from paceline import _native

#: Not among Python's names of Linux's options.
SO_MAX_PACING_RATE = 47
UNPACED = 2**64 - 1


def pacing_rates_bytes_per_s(connection: socket.socket) -> Iterator[int]:
    """What the kernel paces at, as ``struct tcp_info`` has it, every 10 ms."""
    while True:
        yield struct.unpack_from("=Q", connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 112), 104)[0]
        time.sleep(0.01)


@pytest.fixture
def namespaces() -> Iterator[tuple[str, str]]:
    """Two namespaces, 10.77.0.1 and 10.77.0.2, with a veth pair between them."""
    with kernelled.namespaces() as names:
        yield names


@pytest.fixture(params=["reno", "pid", "mpc"])
def controller(request: pytest.FixtureRequest) -> Iterator[str]:
    """A loaded controller's name."""
    with loaded(request.param) as name:
        yield name


@needs_kernel
@pytest.mark.parametrize(("source", "destination"), [("10.77.0.1", "10.77.0.2"), ("[fd77::1]", "fd77::2")], ids=["ipv4", "ipv6"])
def test_a_flow_between_namespaces(namespaces: tuple[str, str], controller: str, source: str, destination: str) -> None:
    pipe = subprocess.PIPE
    with receiving(destination, within=inside(namespaces[1])) as (port, receiver):
        paceline("cap", "20 Mbit/s", "--dst", destination, "--port", port, "--of", controller)
        command = [*inside(namespaces[0]), SEND, controller, destination, port, "0"]
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as send:
            time.sleep(0.5)
            # A flow that has begun between the two looks has no rate yet.
            looks = (json.loads(paceline("top", "--json", "--interval", "1 s"))["flows"] for _ in range(3))
            seen = (flow for flows in looks for flow in flows if flow["controller"] == controller)
            flow = next(flow for flow in seen if flow["rate_bps"] is not None)
            listed = json.loads(paceline("list", "--json"))["loaded"]
            sent, _ = send.communicate(timeout=30)
        received, _ = receiver.communicate(timeout=30)
    assert int(received) == int(sent) > 1_000_000
    assert flow["remote"] == f"[{destination}]:{port}" if ":" in destination else f"{destination}:{port}"
    assert flow["local"].rpartition(":")[0] == source
    assert flow["packet_bytes"] == 1500
    # TCP's header with its timestamps, and IP's.
    assert flow["payload_bytes"] == 1500 - 32 - (40 if ":" in destination else 20)
    assert flow["cap_bps"] == 20e6
    # Whole packets, of which the cap counts the payload. Laws of the RTT stay below it where other work delays packets.
    payload_bps = flow["rate_bps"] * flow["payload_bytes"] / flow["packet_bytes"]
    assert payload_bps < 22e6
    assert payload_bps > 18e6 or "reno" not in controller
    assert 0 < flow["min_rtt_ms"] <= flow["srtt_ms"]
    entry = next(entry for entry in listed if entry["name"] == controller)
    assert (entry["flows"], entry["registered"], entry["records"]) == (1, True, False)
    assert entry["caps"] == [{"destination": destination, "port": int(port), "bps": 20_000_000}]


@needs_kernel
def test_unloading_and_wrong_names() -> None:
    name = f"plu{os.getpid() % 10_000_000}"
    paceline("load", "mpc", "--as", name, "--param", "cap=300 Mbit/s")
    with pytest.raises(_native.InputError, match="already"):
        _native.kernel_load("mpc", name)
    with pytest.raises(_native.InputError, match=f'"{name}" is not loaded to record'):
        _native.kernel_record(name, "no.events", 1.0)
    assert paceline("unload", name) == f"unloaded  {name}\n"
    with pytest.raises(_native.InputError, match="is loaded"):
        _native.kernel_unload(name)
    with socket.socket() as lonely, pytest.raises(FileNotFoundError):
        lonely.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())


@needs_kernel
def test_loopback_is_paced_by_caps_alone() -> None:
    with (
        loaded("mpc") as name,
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as sender,
    ):
        receiver, _ = listener.accept()
        with receiver:
            sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
            # Unpaced, as uncapped, is all bits set. A cap counts from the next ACK on, in whole packets rounded down.
            for cap_bytes_per_s in (UNPACED, 10**8, UNPACED):
                sender.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, cap_bytes_per_s.to_bytes(8, sys.byteorder))
                sender.sendall(bytes(1000))
                assert len(receiver.recv(1000, socket.MSG_WAITALL)) == 1000
                rates = islice(pacing_rates_bytes_per_s(sender), 500)
                assert any(cap_bytes_per_s - 2 <= rate <= cap_bytes_per_s for rate in rates)


def test_what_is_not_written_for_the_kernel() -> None:
    with pytest.raises(_native.InputError, match="not written for the kernel"):
        _native.kernel_load("cubic", None)
    with pytest.raises(_native.InputError, match="parameter"):
        _native.kernel_load("mpc,nonsense=1", None)
