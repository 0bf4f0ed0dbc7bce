"""Instructions per delivered data packet in four short runs, held against a baseline: speed that a busy machine cannot blur.

    python benches/instructions.py check     fails when a case rose by more than 3 %
    python benches/instructions.py bless     writes the counts to benches/instructions.toml

The runs are those of crates/sim/benches/instructions.rs, built with the release profile. Valgrind's callgrind counts between the
entry and the return of its function `counted_run`: the event loop with the engine's set-up and statistics, no program start-up.
The counts repeat, but depend on compiler and processor architecture; a baseline of another one is not compared with.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASELINE = ROOT / "benches" / "instructions.toml"
TOLERANCE = 0.03
BLESS = "python benches/instructions.py bless"


class NoCountError(Exception):
    """Why nothing can be counted or compared here."""


@dataclass(frozen=True)
class Counts:
    """What was counted, and where."""

    #: Release of the compiler.
    rustc: str
    #: What it compiles for.
    target: str
    #: Instructions per delivered data packet, by case.
    instructions_per_packet: dict[str, float]

    def to_toml(self) -> str:
        """The baseline file."""
        cases = "".join(f"{name} = {count:.1f}\n" for name, count in self.instructions_per_packet.items())
        return (
            f"# Instructions per delivered data packet. Written by `{BLESS}`; `make test` compares.\n"
            f'rustc = "{self.rustc}"\ntarget = "{self.target}"\n\n[instructions_per_packet]\n{cases}'
        )


def read(text: str) -> Counts:
    """The baseline file's counts."""
    return Counts(**tomllib.loads(text))


def compiler() -> tuple[str, str]:
    """Release and target of the compiler."""
    facts = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    found = dict(line.split(": ", 1) for line in facts.splitlines() if ": " in line)
    return found["release"], found["host"]


def build() -> Path:
    """Builds the runs; returns the program."""
    command = ["cargo", "bench", "--locked", "-p", "paceline-sim", "--bench", "instructions", "--no-run"]
    done = subprocess.run([*command, "--message-format=json"], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    programs = [m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == "instructions"]
    return Path(programs[-1])


def count(program: Path, case: str) -> float:
    """Instructions per packet of a case."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", "--toggle-collect=*counted_run*"]
        done = subprocess.run([*command, str(program), case], capture_output=True, text=True, check=False)
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not collected or not int(collected[1]):
        sys.exit(f"error: valgrind counted nothing in {case}:\n{done.stderr}")
    return int(collected[1]) / int(done.stdout)


def count_all() -> Counts:
    """Every case."""
    if shutil.which("valgrind") is None:
        raise NoCountError("valgrind is not installed")
    program = build()
    cases = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    return Counts(*compiler(), {case: round(count(program, case), 1) for case in cases})


def comparable(baseline: Counts, rustc: str, target: str) -> None:
    """Raises :class:`NoCountError` where the baseline was counted with another compiler."""
    if (baseline.rustc, baseline.target) != (rustc, target):
        here, there = f"Rust {rustc} for {target}", f"Rust {baseline.rustc} for {baseline.target}"
        raise NoCountError(f"this is {here}, the baseline was counted with {there}")


def compare(baseline: Counts, now: Counts) -> tuple[list[str], bool]:
    """A line for each case, and whether none rose."""
    lines, good = [], True
    for case in sorted(baseline.instructions_per_packet | now.instructions_per_packet):
        before, after = baseline.instructions_per_packet.get(case), now.instructions_per_packet.get(case)
        if before is None or after is None:
            where = "in the baseline" if before is None else "among the runs"
            lines.append(f"{case}: not {where}; renew it: {BLESS}")
            good = False
            continue
        change = after / before - 1
        line = f"{case}: {after:.1f} instructions per packet, baseline {before:.1f} ({change:+.1%})"
        if change > TOLERANCE:
            line += f": more than {TOLERANCE:.0%} too many. If what it buys is worth it, renew the baseline: {BLESS}"
            good = False
        elif change < -TOLERANCE:
            line += f": better than the baseline, renew it: {BLESS}"
        lines.append(line)
    return lines, good


def main() -> None:
    """Counts, and compares or writes."""
    if sys.argv[1:] not in (["check"], ["bless"]):
        sys.exit("usage: python benches/instructions.py check|bless")
    try:
        if sys.argv[1] == "bless":
            counts = count_all()
            BASELINE.write_text(counts.to_toml())
            print(counts.to_toml(), end="")
            return
        baseline = read(BASELINE.read_text())
        comparable(baseline, *compiler())
        lines, good = compare(baseline, count_all())
    except NoCountError as skip:
        if sys.argv[1] == "bless":
            sys.exit(f"error: {skip}")
        print(f"SKIPPED instructions per packet: {skip}")
        return
    print("\n".join(lines))
    sys.exit(not good)


if __name__ == "__main__":
    main()
