"""Horizon beside Latte on cellular traces: power in the contest's set-up, trace by trace, and the geometric means of its ratios.

The traces are not part of the project: python benches/contest_controllers.py FOLDER [--half choice|judged] [--seconds 140]
[--controller NAME]... Which traces were used to choose Horizon's constants, and which to judge it: docs/better-than-latte.md.
"""

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import paceline as pl

CONTEST = Path(__file__).parents[1] / "scenarios/contest.toml"
PEER = "latte:released"


@dataclass(frozen=True)
class Case:
    """One trace with data over it, and which way its ACKs go."""

    trace: str
    #: The trace of the other direction, if it was recorded.
    back: str | None
    half: str
    outage_bound: bool


def both_ways(name: str, half: str, *, outage_bound: tuple[bool, bool]) -> list[Case]:
    """Data over each direction in turn; whether each is outage-bound, down and up."""
    down, up = f"{name}.down", f"{name}.up"
    return [Case(down, up, half, outage_bound[0]), Case(up, down, half, outage_bound[1])]


CASES = [
    *both_ways("ATT-LTE-driving", "choice", outage_bound=(False, True)),
    Case("TMobile-LTE-driving.down", None, "choice", outage_bound=False),
    *both_ways("TMobile-LTE-short", "choice", outage_bound=(False, False)),
    *both_ways("Verizon-EVDO-driving", "choice", outage_bound=(True, True)),
    *both_ways("ATT-LTE-driving-2016", "judged", outage_bound=(False, True)),
    *both_ways("TMobile-UMTS-driving", "judged", outage_bound=(True, True)),
    *both_ways("Verizon-LTE-short", "judged", outage_bound=(False, False)),
]


def duration_s(trace: Path) -> float:
    """Length of a trace: its last line, ms."""
    return int(trace.read_text().rstrip().rsplit("\n", 1)[-1]) / 1000


def figures(folder: Path, case: Case, controller: str, seconds: float | None) -> tuple[float, float, float]:
    """Throughput in Mbit/s, 95th percentile of signal delay in ms, power."""
    trace = folder / case.trace
    changes: dict[str, object] = {
        "links.0.trace": str(trace),
        "links.0.once": False,
        "duration": f"{seconds or duration_s(trace):g} s",
    }
    if case.back:
        changes |= {"links.0.reverse.trace": str(folder / case.back), "links.0.reverse.once": False}
    else:
        changes["links.0.reverse"] = {"rate": "unlimited", "buffer": "unlimited"}
    flow = pl.run(CONTEST, controller=controller, overrides=changes).flows.row(0, named=True)
    return flow["throughput_bps"] / 1e6, flow["signal_delay_ms_p95"], flow["power_score"]


def mean_ratio(ratios: list[float]) -> str:
    """The geometric mean."""
    return f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}" if ratios else "-"


def table(folder: Path, cases: list[Case], controllers: list[str], seconds: float | None) -> Iterator[str]:
    """A Markdown table, and the means below it."""
    yield "| data over | controller | Mbit/s | signal delay p95, ms | power | ratio to Latte |"
    yield "|---|---|---|---|---|---|"
    ratios: dict[str, list[tuple[float, bool]]] = {name: [] for name in controllers}
    for case in cases:
        peer = figures(folder, case, PEER, seconds)
        rows = {PEER: peer} | {name: figures(folder, case, name, seconds) for name in controllers}
        for name, (mbps, signal_ms, power) in rows.items():
            ratio = power / peer[2]
            if name != PEER:
                ratios[name].append((ratio, case.outage_bound))
            yield f"| {case.trace} | {name} | {mbps:.3f} | {signal_ms:.0f} | {power:.4g} | {ratio:.3f} |"
    yield ""
    for name, seen in ratios.items():
        lte = mean_ratio([ratio for ratio, outage_bound in seen if not outage_bound])
        outage = mean_ratio([ratio for ratio, outage_bound in seen if outage_bound])
        everything = mean_ratio([ratio for ratio, _ in seen])
        yield f"{name}: geometric mean ratio {everything}; LTE {lte}, outage-bound {outage}"


def main() -> None:
    """Prints the table of one half."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder of mahimahi's cellular traces")
    parser.add_argument("--half", choices=("choice", "judged"), default="judged")
    parser.add_argument("--seconds", type=float, help="length of every run; default: each trace once through")
    parser.add_argument("--controller", action="append", help="beside Latte; default: horizon")
    chosen = parser.parse_args()
    cases = [case for case in CASES if case.half == chosen.half]
    for line in table(chosen.folder, cases, chosen.controller or ["horizon"], chosen.seconds):
        print(line)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
