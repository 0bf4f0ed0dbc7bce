"""Part A's repeatability: window 12, five times."""

import statistics

from paceline.reproduce.entry import Band, BandRow, Job, Row, Runs, Scale
from paceline.reproduce.latte.contest import signal_ms, throughput_mbps
from paceline.reproduce.latte.designs import WINDOW_12

#: Quantity, unit, reading, mean and standard deviation as printed.
_PRINTED = (("throughput", "Mbit/s", throughput_mbps, 2.282, 0.004), ("signal delay p95", "ms", signal_ms, 177.2, 0.748))
_NEAR = 0.03
#: Deviations of less than this part of the mean are repeatable.
_REPEATABLE = 0.02


def jobs(scale: Scale) -> list[Job]:
    """The runs."""
    return WINDOW_12.jobs(scale)


def rows(scale: Scale, runs: Runs) -> list[Row]:
    """Means and standard deviations."""
    found: list[Row] = []
    for name, unit, reading, mean, deviation in _PRINTED:
        values = WINDOW_12.values(reading, scale, runs)
        found.append(BandRow.inside(f"mean {name}", unit, mean, Band.near(mean, part=_NEAR), values))
        # Divided by n, as the report's are.
        ours = [statistics.pstdev(values)] if values else []
        band = Band(((0.0, _REPEATABLE * mean),))
        found.append(BandRow.inside(f"standard deviation of the {name}", unit, deviation, band, ours))
    return found
