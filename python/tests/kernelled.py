"""What tests with controllers in this machine's TCP share: whether there can be any, namespaces, flows, recordings."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from emulated import on_the_network
from paceline import _native

MISSING = _native.kernel_missing() or (None if shutil.which("ip") else "no ip (iproute2)")
needs_kernel = on_the_network(MISSING and f"controllers in the kernel: {MISSING}")

#: `paceline kernel`; the command itself is without the last.
COMMAND = [sys.executable, "-c", "from paceline.cli import main; main()", "kernel"]

#: Receives one connection at the address and port of its arguments, and says how much came.
RECEIVE = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
listener = socket.create_server((sys.argv[1], int(sys.argv[2])), family=family)
print(listener.getsockname()[1], flush=True)
connection, _ = listener.accept()
received = 0
while data := connection.recv(1 << 16):
    received += len(data)
print(received, flush=True)
"""

#: Sends with the controller that it is told, for so many seconds, or with 0 until its standard input is closed.
SEND = """
import os, select, socket, sys, time
name, address, port, seconds = sys.argv[1:]
address = address or os.environ["PACELINE_BASE"]
connection = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
# What is still to be sent at the end takes the link no more than seconds, whatever this machine allows.
connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
connection.connect((address, int(port)))
data, sent, end = bytes(1 << 14), 0, time.monotonic() + float(seconds)
while time.monotonic() < end if float(seconds) else not select.select([sys.stdin], [], [], 0)[0]:
    sent += connection.send(data)
connection.shutdown(socket.SHUT_WR)
print(sent, flush=True)
# Until the other end has read all.
connection.recv(1)
"""


def paceline(*arguments: str) -> str:
    """What `paceline kernel ARGUMENTS` prints."""
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextlib.contextmanager
def loaded(algorithm: str, *options: str) -> Iterator[str]:
    """The name of a loaded controller."""
    name = f"plt{algorithm}{os.getpid() % 10_000_000}"
    paceline("load", algorithm, "--as", name, *options)
    try:
        yield name
    finally:
        subprocess.run([*COMMAND, "unload", name], capture_output=True, check=False)


@contextlib.contextmanager
def recorded(name: str, out: Path) -> Iterator[None]:
    """Records the controller of this name, as until Ctrl-C."""
    command = [*COMMAND, "record", name, "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
        assert recorder.stderr is not None
        assert recorder.stderr.readline() == "recording, until Ctrl-C\n"
        try:
            yield
        finally:
            recorder.send_signal(signal.SIGINT)
            printed, errors = recorder.communicate(timeout=30)
    assert recorder.returncode == 0, errors
    assert printed.startswith("recording  ")


def replayed(log: Path) -> dict[str, Any]:
    """The largest flow of a recording, replayed natively and as BPF without a difference."""
    done = subprocess.run([*COMMAND[:-1], "replay", str(log), "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["equal"]
    assert answer["bpf_skipped"] is None
    assert answer["lost_records"] == 0
    return max(answer["flows"], key=lambda flow: int(flow["events"]))


@contextlib.contextmanager
def namespaces() -> Iterator[tuple[str, str]]:
    """Two namespaces, 10.77.0.1 and fd77::1, 10.77.0.2 and fd77::2, with a veth pair between them."""
    names = (f"pl-a{os.getpid()}", f"pl-b{os.getpid()}")

    def ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True, capture_output=True)

    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", "v0", "netns", names[0], "type", "veth", "peer", "name", "v1", "netns", names[1])
        for number, (name, device) in enumerate(zip(names, ("v0", "v1"), strict=True), start=1):
            ip("-n", name, "address", "add", f"10.77.0.{number}/24", "dev", device)
            ip("-n", name, "address", "add", f"fd77::{number}/64", "dev", device, "nodad")
            ip("-n", name, "link", "set", device, "up")
        yield names
    finally:
        for name in names:
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "delete", name)


def inside(namespace: str) -> list[str]:
    """What runs a Python program in a namespace."""
    return ["ip", "netns", "exec", namespace, sys.executable, "-c"]


@contextlib.contextmanager
def receiving(address: str, *, within: list[str] | None = None) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The port of a receiver, and the receiver."""
    program = within or [sys.executable, "-c"]
    with subprocess.Popen([*program, RECEIVE, address, "0"], stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        try:
            yield receiver.stdout.readline().strip(), receiver
        finally:
            deadline = time.monotonic() + 10
            while receiver.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            receiver.kill()
