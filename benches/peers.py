"""Speed beside other simulators: the dumbbells of N = 2 and N = 100 flows in ns-3, in htsim and here, in one session.

    python benches/peers.py

* ns-3: Debian's and Ubuntu's package `libns3-dev`. It is large and only compared with here, so it is installed only when asked
  for: `NS3=install` (as root).
* htsim: `HTSIM=FOLDER` names a checkout of github.com/Broadcom/csg-htsim; its library is built there if need be.

All simulate the same 5 s of the same network and report the CPU time of their event loop. What they model differs: ns-3 has whole
packets and delayed ACKs, htsim no SACK and an ACK per packet. ns-3 runs once, the others three times, of which the best counts.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "benches" / "peers"
BUILD = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "peers"
#: Flows and host pairs.
DUMBBELLS = [(2, 2), (100, 10)]
DURATION_S = 5
REPEAT = 3
NS3_LIBRARIES = ["core", "network", "internet", "point-to-point", "applications"]


class PeerError(Exception):
    """A peer that cannot be built or run, and what to do about it."""


def call(*command: object, cwd: Path = ROOT) -> str:
    """What ``command`` prints; its own messages go to the terminal."""
    try:
        return subprocess.run(list(map(str, command)), cwd=cwd, stdout=subprocess.PIPE, text=True, check=True).stdout
    except FileNotFoundError as error:
        raise PeerError(f"{command[0]} is not installed") from error
    except subprocess.CalledProcessError as error:
        raise PeerError(f"{command[0]} ended with status {error.returncode}") from error


def paceline(flows: int) -> dict[str, float]:
    """This simulator."""
    output = call(
        *("cargo", "bench", "--quiet", "--locked", "-p", "paceline-lab", "--bench", "engine", "--"),
        *("--json", "--case", f"dumbbell-n{flows}", "--repeat", REPEAT, "--set", f"duration={DURATION_S} s"),
    )
    row: dict[str, float] = json.loads(output)["rows"][0]
    return row


def build_ns3() -> Path:
    """Builds the dumbbell for ns-3."""
    if os.environ.get("NS3") == "install":
        call("apt-get", "install", "-y", "-qq", "--no-install-recommends", "libns3-dev", "pkg-config")
    if not shutil.which("pkg-config") or subprocess.run(["pkg-config", "--exists", "ns3-core"], check=False).returncode:
        raise PeerError("not installed: sudo apt-get install libns3-dev pkg-config, or NS3=install make bench-peers as root")
    version = tuple(int(part) for part in call("pkg-config", "--modversion", "ns3-core").strip().split(".")[:2])
    flags = ["-DNS3_CALLBACKS_BY_VALUE"] if version < (3, 39) else []
    program = BUILD / "ns3-dumbbell"
    # Not the libraries that pkg-config lists: among them are some that only ns-3's own programs need.
    libraries = [f"-lns3-{name}" for name in NS3_LIBRARIES]
    call("g++", "-O3", "-std=c++17", *flags, SOURCES / "ns3-dumbbell.cc", "-o", program, *libraries)
    return program


def build_htsim() -> Path:
    """Builds the dumbbell for htsim."""
    named = os.environ.get("HTSIM")
    if not named:
        raise PeerError("not named: HTSIM=FOLDER make bench-peers, a checkout of github.com/Broadcom/csg-htsim")
    source = Path(named).resolve() / "sim"
    if not (source / "eventlist.h").is_file():
        raise PeerError(f"HTSIM={named}: there is no sim/eventlist.h in it")
    call("make", "--quiet", "libhtsim.a", cwd=source)
    program = BUILD / "htsim-dumbbell"
    # Its headers warn, and are not ours.
    call("g++", "-O3", "-std=c++17", "-isystem", source, SOURCES / "htsim-dumbbell.cpp", source / "libhtsim.a", "-o", program)
    return program


def run_ns3(program: Path, flows: int, pairs: int) -> dict[str, float]:
    """ns-3, once: it takes half a minute."""
    counts: dict[str, float] = json.loads(call(program, f"--flows={flows}", f"--pairs={pairs}", f"--duration={DURATION_S}"))
    return counts


def run_htsim(program: Path, flows: int, pairs: int) -> dict[str, float]:
    """The fastest of htsim's runs."""
    runs = [json.loads(call(program, flows, pairs, DURATION_S)) for _ in range(REPEAT)]
    return min(runs, key=lambda counts: float(counts["cpu_s"]))


def main() -> None:
    """Builds what there is, measures and prints."""
    BUILD.mkdir(parents=True, exist_ok=True)
    peers = []
    for name, build, run in [("ns-3", build_ns3, run_ns3), ("htsim", build_htsim, run_htsim)]:
        try:
            peers.append((name, build(), run))
        except PeerError as error:
            print(f"{name} left out: {error}")
    if not peers:
        sys.exit("error: no peer to compare with")
    print(f"{'dumbbell':<10}{'simulator':<11}{'packets':>10}{'CPU s':>9}{'packets/CPU s':>15}{'Paceline is':>14}")
    try:
        for flows, pairs in DUMBBELLS:
            ours = paceline(flows)
            speed = ours["packets"] / ours["cpu_s"]
            print(f"{f'N = {flows}':<10}{'Paceline':<11}{ours['packets']:>10}{ours['cpu_s']:>9.3f}{speed:>15,.0f}")
            for name, program, run in peers:
                peer = run(program, flows, pairs)
                theirs = peer["packets"] / peer["cpu_s"]
                times = f"{speed / theirs:.1f} x"
                print(f"{'':<10}{name:<11}{peer['packets']:>10}{peer['cpu_s']:>9.3f}{theirs:>15,.0f}{times:>14}", flush=True)
    except PeerError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
