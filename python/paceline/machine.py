"""Examines the machine: which worlds and tools it has. Reads only; changes nothing."""

import importlib.util
import os
import platform
import shutil
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from paceline._native import RunError, build_info, kernel_missing, vm_kernel

#: What needs devices and namespaces.
LINKS = "emulated links (paceline link, world `live`)"
#: What needs QEMU.
GUESTS = "runs in world `vm`"


@dataclass(frozen=True)
class Finding:
    """One thing looked for: whether it is there, what it is for, what was seen, the command that adds it."""

    name: str
    ok: bool
    used_for: str
    detail: str
    fix: str | None


def examine() -> list[Finding]:
    """Everything Paceline can make use of, in the order of `paceline doctor`."""
    return [
        _simulator(),
        _module("matplotlib", "figures in PDF, PNG and SVG", "pip install 'paceline[plot]'"),
        _program("chromium", ("chromium", "chromium-browser", "google-chrome"), "the tests of the HTML report", "chromium"),
        _tun(),
        _namespaces(),
        _raw_sockets(),
        _kernel_tcp(),
        _btf(),
        _kernel_headers(),
        _program("clang", ("clang",), "building controllers for the kernel", "clang"),
        _program("qemu", ("qemu-system-x86_64",), GUESTS, "qemu-system-x86"),
        _guest_kernel(),
    ]


def _simulator() -> Finding:
    info = build_info()
    detail = f"version {info['version']}, {info['profile']} build, {info['controllers']} controllers"
    slow = info["profile"] != "release"
    return Finding("simulator", True, "runs in world `sim`", detail + (" (unoptimised: make build)" if slow else ""), None)


def _module(name: str, used_for: str, fix: str) -> Finding:
    spec = importlib.util.find_spec(name)
    return Finding(name, spec is not None, used_for, "installed" if spec else "not installed", fix)


def _program(name: str, candidates: tuple[str, ...], used_for: str, package: str) -> Finding:
    path = next((found for candidate in candidates if (found := shutil.which(candidate))), None)
    return Finding(name, path is not None, used_for, path or "not on the PATH", _install(package))


def _install(package: str) -> str:
    """The command of the package manager at hand."""
    commands: tuple[tuple[str, Callable[[str], str]], ...] = (
        ("apt-get", lambda name: f"apt-get install {name}"),
        ("dnf", lambda name: f"dnf install {name}"),
        ("pacman", lambda name: f"pacman -S {name}"),
        ("brew", lambda name: f"brew install {name}"),
    )
    for manager, command in commands:
        if shutil.which(manager):
            root = "" if manager == "brew" or os.geteuid() == 0 else "sudo "
            return root + command(package)
    return f"install the package {package}"


def _tun() -> Finding:
    path = Path("/dev/net/tun")
    used_for = LINKS
    try:
        present = stat.S_ISCHR(path.stat().st_mode)
    except OSError:
        present = False
    if not present:
        fix = "modprobe tun" if sys.platform == "linux" else None
        return Finding("tun", False, used_for, f"{path} is missing", fix)
    return Finding("tun", True, used_for, str(path), None)


#: Capabilities by their numbers (linux/capability.h).
CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN = 12, 13, 21


def _namespaces() -> Finding:
    used_for = LINKS
    return _capable("network namespaces", used_for, {"CAP_NET_ADMIN": CAP_NET_ADMIN, "CAP_SYS_ADMIN": CAP_SYS_ADMIN})


def _raw_sockets() -> Finding:
    used_for = "emulated links to the outside (paceline link --outside)"
    return _capable("raw sockets", used_for, {"CAP_NET_RAW": CAP_NET_RAW})


def _capable(name: str, used_for: str, needed: dict[str, int]) -> Finding:
    if sys.platform != "linux":
        return Finding(name, False, used_for, "Linux only", None)
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        effective = next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), 0)
    except OSError as error:
        return Finding(name, False, used_for, f"/proc/self/status: {error.strerror}", None)
    missing = [capability for capability, number in needed.items() if not effective >> number & 1]
    if not missing:
        return Finding(name, True, used_for, f"allowed ({', '.join(needed)})", None)
    if os.geteuid() == 0:
        fix = f"give the container {' and '.join(missing)} (docker: --cap-add)"
        return Finding(name, False, used_for, f"root without {', '.join(missing)}", fix)
    return Finding(name, False, used_for, "not running as root", "sudo paceline link …")


def _kernel_tcp() -> Finding:
    used_for = "flows of stack `tcp` in world `live`"
    path = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    try:
        names = path.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return Finding("kernel TCP", False, used_for, "Linux only", None)
    missing = [name for name in ("reno", "cubic", "bbr") if name not in names]
    fix = f"modprobe {' '.join(f'tcp_{name}' for name in missing)}" if missing else None
    return Finding("kernel TCP", not missing, used_for, f"has {', '.join(names)}", fix)


def _kernel_headers() -> Finding:
    used_for = "the queueing discipline (make qdisc)"
    found = sorted(path.parent.name for path in Path("/lib/modules").glob("*/build"))
    fix = _install(f"linux-headers-{platform.release()}") if sys.platform == "linux" else None
    return Finding("kernel headers", bool(found), used_for, ", ".join(found) or "no /lib/modules/*/build", None if found else fix)


def _btf() -> Finding:
    used_for = "controllers in this machine's TCP (paceline kernel)"
    path = Path("/sys/kernel/btf/vmlinux")
    if not path.is_file():
        return Finding("kernel BTF", False, used_for, "the kernel has no BTF", "boot a kernel with CONFIG_DEBUG_INFO_BTF=y")
    if os.geteuid() != 0:
        return Finding("kernel BTF", False, used_for, f"{path}, but loading needs root", "sudo paceline kernel …")
    missing = kernel_missing()
    return Finding("kernel BTF", missing is None, used_for, missing or str(path), None)


def _guest_kernel() -> Finding:
    try:
        release = vm_kernel()
    except RunError as error:
        fix = "unset PACELINE_VM_KERNEL" if os.environ.get("PACELINE_VM_KERNEL") else "export PACELINE_CACHE=FOLDER"
        return Finding("guest kernel", False, GUESTS, str(error), fix)
    if release is not None:
        return Finding("guest kernel", True, GUESTS, release, None)
    if all(map(shutil.which, ("apt-get", "dpkg", "xz"))):
        return Finding("guest kernel", True, GUESTS, "Debian's, fetched by the first run", None)
    fix = "unpack Debian's linux-image package into a folder and set PACELINE_VM_KERNEL=FOLDER"
    return Finding("guest kernel", False, GUESTS, "no apt-get, dpkg and xz to fetch one", fix)
