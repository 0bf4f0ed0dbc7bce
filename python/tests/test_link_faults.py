"""``paceline link`` where something is missing, in the way, or in a hurry: what it says, how it ends, and that nothing stays."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from emulated import real
from handmade import Command

#: The command itself.
LINK = (sys.executable, "-c", "from paceline.cli import main; main()", "link")
MORE = "besides those of any emulated link"
ANY_LINK = "an emulated link needs root, or the capabilities CAP_NET_ADMIN and CAP_SYS_ADMIN (try: sudo paceline link …)"
REFUSED = "Operation not permitted (os error 1)"


def works(*command: str) -> bool:
    """Whether a command that a test leans on does what it shall on this machine."""
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


needs_tun = pytest.mark.skipif(
    not works("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/dev/net"),
    reason="no mount namespaces, or no /dev/net to hide",
)
needs_setpriv = pytest.mark.skipif(
    not works("setpriv", "--bounding-set=-net_admin", "true"), reason="setpriv cannot drop capabilities"
)
needs_ip = pytest.mark.skipif(shutil.which("ip") is None, reason="no ip (iproute2)")


@needs_tun
def test_without_tun_devices_it_says_how_to_get_them() -> None:
    done = run("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/net && exec "$@"', "sh", *LINK, "--", "true")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: there is no /dev/net/tun: the kernel has no TUN devices (try: sudo modprobe tun), or the container does not pass "
        "it on (docker: --device /dev/net/tun)\n"
    )


@real
@needs_setpriv
@pytest.mark.parametrize(
    ("dropped", "options", "error"),
    [
        ("net_admin", (), f"cannot make a TUN device: {REFUSED}; {ANY_LINK}"),
        ("sys_admin", (), f"cannot make a network namespace: {REFUSED}; {ANY_LINK}"),
        (
            "net_raw",
            ("--outside",),
            f"cannot open a raw socket: {REFUSED}; --outside needs root, or the capability CAP_NET_RAW {MORE}",
        ),
        (
            "sys_nice",
            ("--realtime",),
            f"cannot set a real-time priority: {REFUSED}; --realtime needs root, or the capability CAP_SYS_NICE {MORE}",
        ),
    ],
)
def test_a_capability_that_is_missing_is_named(tmp_path: Path, dropped: str, options: Sequence[str], error: str) -> None:
    ran = tmp_path / "ran"
    done = run("setpriv", f"--bounding-set=-{dropped}", *LINK, *options, "--", "touch", str(ran))
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"error: {error}\n")
    assert not ran.exists()


@real
@needs_ip
def test_names_and_addresses_that_are_taken_are_left_alone(paceline: Command) -> None:
    def ip(*arguments: str) -> str:
        return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True).stdout

    # Somebody else's device has the first name, and the first address that a link would take.
    free = paceline("link", "--", "sh", "-c", "echo $PACELINE_BASE").stdout.strip()
    name = next(name for name in (f"paceline{number}" for number in range(100)) if not Path("/sys/class/net", name).exists())
    ip("tuntap", "add", "dev", name, "mode", "tun")
    try:
        ip("address", "add", f"{free}/30", "dev", name)
        ip("link", "set", name, "up")
        before = ip("address", "show", "dev", name)
        done = paceline("link", "--", "sh", "-c", "echo $PACELINE_BASE")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("198.1")
        assert done.stdout.strip() != free
        assert ip("address", "show", "dev", name) == before
    finally:
        ip("tuntap", "del", "dev", name, "mode", "tun")


@real
def test_ctrl_c_at_any_moment_ends_it_and_leaves_nothing(tmp_path: Path) -> None:
    chosen = random.Random(7)
    before = _devices()
    ended: list[int] = []
    for number in range(12):
        began = tmp_path / f"began-{number}"
        # What only this run has among its arguments.
        seconds = f"{os.getpid()}.{number}"
        shell = ["sh", "-c", f"touch {began}; exec sleep {seconds}"]
        with subprocess.Popen([*LINK, "--", *shell], stderr=subprocess.PIPE, text=True, start_new_session=True) as link:
            # Half of the moments lie around the making of the link, the others after it.
            _wait_for(began.exists if number % 2 else lambda pid=link.pid: _has_loaded(pid))
            time.sleep(chosen.random() * 0.1)
            os.killpg(link.pid, signal.SIGINT)
            told = link.communicate(timeout=60)[1]
        ended.append(link.returncode)
        assert link.returncode in (128 + signal.SIGINT, -signal.SIGINT), told
        _wait_for(lambda seconds=seconds: not _is_argument(seconds))
    # The command was there in half of the runs at least, and was told.
    assert ended[1::2] == [128 + signal.SIGINT] * 6
    _wait_for(lambda: _devices() <= before)


def _wait_for(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def _has_loaded(pid: int) -> bool:
    """Whether a process has loaded the extension: what follows is the link."""
    try:
        return "_native" in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return True


def _is_argument(text: str) -> bool:
    """Whether a process has this argument."""
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if text.encode() in line.read_bytes().split(b"\0"):
                return True
    return False


def _devices() -> set[str]:
    """The devices of links on this machine."""
    return {path.name for path in Path("/sys/class/net").glob("paceline*")}
