"""The queueing discipline ``mpc`` (``qdisc/``), built against the headers of a kernel and tried in a guest that boots it.

The guest's time is virtual: what is asserted of rates is not a matter of this machine's speed.
"""

import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from paceline._native import vm_missing

QDISC = Path(__file__).resolve().parents[2] / "qdisc"
PROGRAMS = ("make", "cc", "qemu-system-x86_64", "busybox", "cpio", "tc", "ip", "ss", "iperf3")


def kernel() -> Path:
    """The folder of the kernel that world ``vm`` boots."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paceline"
    cache = Path(os.environ.get("PACELINE_CACHE") or user)
    return Path(os.environ.get("PACELINE_VM_KERNEL") or cache / "vm/kernel")


def release() -> str:
    """The release of the guest's kernel; empty where there is none."""
    images = sorted((kernel() / "boot").glob("vmlinu[xz]-*"))
    return images[0].name.partition("-")[2] if images else ""


def missing() -> str | None:
    """Why the guest cannot be tried here."""
    if platform.machine() != "x86_64":
        return "the guest is an x86 machine"
    if absent := [program for program in PROGRAMS if not shutil.which(program)]:
        return f"no {', '.join(absent)}"
    if why := vm_missing():
        return why
    if not Path(f"/lib/modules/{release()}/build").exists():
        return f"no kernel headers (apt-get install linux-headers-{release()})"
    return None


MISSING = missing()
needs_guest = pytest.mark.skipif(MISSING is not None, reason=f"queueing discipline in a guest: {MISSING}")


def make(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = ["make", "-C", str(QDISC), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


class Section:
    """What the guest said under a heading: texts by name, each name as often as it was said."""

    def __init__(self, text: str) -> None:
        _, *pairs = re.split(r"^--- (.+)\n", text, flags=re.MULTILINE)
        self.text = text
        self.parts = list(zip(pairs[::2], pairs[1::2], strict=True))

    def part(self, name: str) -> str:
        return next(text for found, text in self.parts if found == name)

    def statistics(self) -> dict[str, int]:
        return json.loads(self.part("qdisc"))[0]  # type: ignore[no-any-return]

    def transfers(self) -> list[dict[str, float]]:
        """What iperf3 says of each, none of which failed."""
        ends = []
        for name, text in self.parts:
            if name.startswith("flow"):
                answer = json.loads(text)
                assert "error" not in answer, answer["error"]
                ends.append({**answer["end"].get("sum", {}), **answer["end"].get("sum_received", {}),
                             "sent": answer["end"].get("sum_sent", {}).get("bytes", 0)})  # fmt: skip
        return ends

    def flows(self) -> list[str]:
        """What ``tc -s class`` shows of every flow that sent more than a greeting."""
        shown = re.split(r"^class mpc .*\n", self.part("class"), flags=re.MULTILINE)[1:]
        return [flow for flow in shown if int(re.findall(r"sent (\d+) bytes", flow)[0]) > 10_000]


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Section]:
    """Builds the module, runs the job once, and gives its sections by name."""
    folder = tmp_path_factory.mktemp("qdisc")
    built = make(f"OUT={folder}", f"KDIR=/lib/modules/{release()}/build")
    assert built.returncode == 0, built.stderr
    assert "warning" not in built.stderr
    said = folder / "said"
    # The kernel's own checks of memory that is freed or overrun: of flows, for those of all memory make the guest too slow.
    environment = {**os.environ, "KERNEL": str(kernel()), "BUILD": str(folder), "APPEND": "slub_debug=FZPU,mpc_flow"}
    command = [str(QDISC / "test/guest"), str(QDISC / "test/functions.job"), str(said)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    console = Path(f"{said}.log").read_text(errors="replace") if Path(f"{said}.log").exists() else ""
    assert done.returncode == 0, done.stderr + console
    text = said.read_text(errors="replace").replace("\r", "")
    assert text.endswith("\nend\n"), console
    _, *pairs = re.split(r"^=== (.+)\n", text, flags=re.MULTILINE)
    sections = dict(zip(pairs[::2], map(Section, pairs[1::2]), strict=True))
    return sections.__getitem__


def test_build_without_headers_names_the_package(tmp_path: Path) -> None:
    if not shutil.which("make"):
        pytest.skip("no make")
    done = make("module", f"OUT={tmp_path}", "KDIR=")
    assert done.returncode != 0
    assert "install linux-headers-" in done.stderr


@needs_guest
def test_options_are_checked_and_shown(guest: Callable[[str], Section]) -> None:
    options = guest("options")
    refusals = {name.removeprefix("refused "): text for name, text in options.parts if name.startswith("refused")}
    assert "limit must be 1 to 10000000 packets" in refusals["limit 0"]
    assert "flow_limit must be 1 to 10000000 packets" in refusals["flow_limit 10000001"]
    assert "flows must be 1 to 65536" in refusals["flows 65537"]
    assert "cap must be 0 (none) or 1000 to 1099511627776 bytes/s" in refusals["cap 1kbit"]
    assert "the cap of a mark must be 0 (none) or 1000 to" in refusals["mark 1 1kbit"]
    assert "a mark must be given once" in refusals["mark 1 1mbit mark 1 2mbit"]
    assert "cap x: must be 0 (none) or a rate" in refusals["cap x"]
    assert 'unknown option "wrong"' in refusals["wrong"]
    before, after = options.part("shown").strip().splitlines()
    assert "limit 500p flow_limit 50p flows 64 cap 10Mbit mark 7 3Mbit mark 8 0bit" in before
    assert "limit 1000p flow_limit 50p flows 64" in after
    assert "cap" not in after
    assert "mark" not in after


@needs_guest
@pytest.mark.parametrize("congestion_control", ["cubic", "reno", "bbr"])
def test_two_flows_are_paced_and_measured(guest: Callable[[str], Section], congestion_control: str) -> None:
    section = guest(f"two {congestion_control}")
    # 20 Mbit/s of frames; start-up included.
    assert sum(transfer["bits_per_second"] for transfer in section.transfers()) > 0.85 * 20e6
    statistics = section.statistics()
    # BBR paces by itself as well.
    assert statistics["throttled"] > 0.7 * statistics["packets"]
    assert statistics["flow_limit_drops"] == 0, "TCP's own limit keeps the sender's queue short"
    # The path is 20 ms long, 40 when its buffer is full.
    assert 20e6 < statistics["rtt_min_ns"] < 20.3e6
    assert statistics["rtt_mean_ns"] < 30e6
    flows = section.flows()
    assert len(flows) == 2
    for flow in flows:
        assert re.search(r"base 20\.[0-2]\d\dms", flow), flow
        assert int(re.findall(r"samples (\d+)", flow)[0]) > 200, flow


@needs_guest
def test_ipv6_without_timestamps(guest: Callable[[str], Section]) -> None:
    section = guest("ipv6 without timestamps")
    assert section.transfers()[0]["bits_per_second"] > 0.85 * 20e6
    (flow,) = section.flows()
    assert "fd00::1:" in flow
    assert re.search(r"base 20\.[0-2]\d\dms", flow), flow


@needs_guest
def test_long_segments_are_cut(guest: Callable[[str], Section]) -> None:
    section = guest("segments")
    assert section.transfers()[0]["bits_per_second"] > 0.85 * 20e6
    # How many there are to cut is up to TCP: 50 to 146 were seen.
    assert section.statistics()["split"] > 10


@needs_guest
def test_caps_by_default_by_mark_and_by_socket(guest: Callable[[str], Section]) -> None:
    section = guest("caps")
    default, mark, socket = (transfer["bits_per_second"] / 1e6 for transfer in section.transfers())
    # Of frames; iperf3 counts data.
    for goodput, cap in ((default, 2), (mark, 3), (socket, 4)):
        assert 0.88 * cap < goodput < cap, (goodput, cap)
    assert sorted(re.findall(r" cap (\w+)", "".join(section.flows()[-3:]))) == ["2Mbit", "3Mbit", "4Mbit"]


@needs_guest
def test_datagrams_pass_unpaced(guest: Callable[[str], Section]) -> None:
    section = guest("datagrams")
    assert section.transfers()[0]["lost_packets"] == 0
    assert section.statistics()["direct"] > 400
    assert section.flows() == []


@needs_guest
def test_beyond_the_bounds_nothing_breaks(guest: Callable[[str], Section]) -> None:
    section = guest("few flows and little room")
    assert len(section.transfers()) == 3
    statistics = section.statistics()
    assert statistics["flows"] <= 2
    assert statistics["refused"] > 0


@needs_guest
def test_router_measures_and_drops_what_waits_too_long(guest: Callable[[str], Section]) -> None:
    section = guest("router")
    assert 0.8 * 10e6 < section.transfers()[0]["bits_per_second"] < 10e6
    assert section.statistics()["flow_limit_drops"] > 0
    (flow,) = section.flows()
    assert re.search(r"base 20\.[0-2]\d\dms", flow), flow


@needs_guest
def test_removal_under_load_loses_no_connection(guest: Callable[[str], Section]) -> None:
    section = guest("removal")
    # Eight times it came and went, once with the module.
    assert [transfer["sent"] for transfer in section.transfers()] == [12 << 20, 12 << 20]
    assert "--- unloaded" in section.text
    assert section.statistics()["flows"] == 2, "it was at work until the end"
    end = guest("end")
    assert "--- unloaded" in end.text
    assert end.part("kernel").removesuffix("end\n") == ""
