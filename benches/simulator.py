"""Speed of the simulator: delivered data packets and events per CPU second, bytes of state per flow.

    python benches/simulator.py [--repeat N] [--json] [SCENARIO…]

CPU time is that of the event loop, as the engine reports it. The best of the repeats counts: noise on a shared machine only ever
adds time. Compare numbers of one machine and one session; never with a threshold.
"""

import argparse
import json
import sys
from pathlib import Path

import paceline as pl

SCENARIOS = Path(__file__).resolve().parent.parent / "scenarios"
DEFAULT = [SCENARIOS / "dumbbell-n2.toml", SCENARIOS / "dumbbell-n100.toml"]


def measure(scenario: Path, repeat: int) -> dict[str, object]:
    """The fastest of ``repeat`` runs. Two runs that differ in events or packets are an error: a run is deterministic."""
    best: dict[str, object] | None = None
    for _ in range(repeat):
        run = pl.run(scenario)
        engine = run.result["engine"]
        events, packets, cpu_s = engine["events"], engine["packets"], engine["cpu_s"]
        if best is not None and (events, packets) != (best["events"], best["packets"]):
            raise pl.RunError(f"{scenario}: two equal runs differ: {best['events']} and {events} events")
        if best is None or cpu_s < best["cpu_s"]:
            best = {
                "scenario": scenario.stem,
                "flows": len(run.result["flows"]),
                "events": events,
                "packets": packets,
                "cpu_s": cpu_s,
                "packets_per_cpu_s": packets / cpu_s if cpu_s else None,
                "events_per_cpu_s": events / cpu_s if cpu_s else None,
                "bytes_per_flow": engine.get("bytes_per_flow"),
            }
    assert best is not None
    return best


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="Speed of the simulator.")
    parser.add_argument("scenarios", nargs="*", type=Path, default=DEFAULT, metavar="SCENARIO")
    parser.add_argument("--repeat", type=int, default=3, help="runs per scenario; the fastest counts (default: 3)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    try:
        rows = [measure(scenario, max(1, arguments.repeat)) for scenario in arguments.scenarios]
    except pl.PacelineError as error:
        sys.exit(f"error: {error}")
    if arguments.json:
        print(json.dumps({"version": pl.__version__, "rows": rows}, indent=2))
        return
    print(
        f"{'scenario':<16}{'flows':>7}{'packets':>13}{'CPU s':>9}{'M packets/CPU s':>17}{'M events/CPU s':>16}{'bytes/flow':>12}"
    )
    for row in rows:
        packets, events = row["packets_per_cpu_s"], row["events_per_cpu_s"]
        print(
            f"{row['scenario']:<16}{row['flows']:>7}{row['packets']:>13}{row['cpu_s']:>9.3f}"
            f"{packets / 1e6 if packets else 0:>17.2f}{events / 1e6 if events else 0:>16.2f}{row['bytes_per_flow'] or 0:>12.0f}"
        )


if __name__ == "__main__":
    main()
