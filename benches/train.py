"""What the profile-guided build of the release learns from: short runs of each kind of work.

`make wheel` runs it with an instrumented build (`pgo-command` in pyproject.toml).
"""

from pathlib import Path

import paceline as pl

ROOT = Path(__file__).resolve().parent.parent
RUNS = {
    "scenarios/dumbbell-n100.toml": "1 s",
    "scenarios/random-loss.toml": "5 s",
    "benches/scenarios/fat-loss.toml": "0.5 s",
    "benches/scenarios/mpc.toml": "0.5 s",
    "benches/scenarios/chain.toml": "1 s",
}


def main() -> None:
    """Runs them."""
    for scenario, duration in RUNS.items():
        pl.run(ROOT / scenario, overrides={"duration": duration, "warmup": "0 s"})


if __name__ == "__main__":
    main()
