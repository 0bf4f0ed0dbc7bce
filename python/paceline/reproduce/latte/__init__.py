"""Kumar, *CS 244 – PA2 – Congestion-Control Contest* (2017), the report on Latte: parts A to D.

``contest`` is the link with its hosts and one sender on it, ``sweeps`` and ``aimd`` are parts A to C, ``designs`` is part D,
``over_time`` its figures over time.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from paceline.reproduce.entry import Entry, Job, Paper, Row, Runs, Scale
from paceline.reproduce.latte import aimd, designs, drawing, over_time, repeat
from paceline.reproduce.latte.contest import DURATION_S, TRACES, Trial
from paceline.reproduce.latte.senders import delay_threshold
from paceline.reproduce.latte.sweeps import Sweep
from paceline.reproduce.latte.texts import READINGS, VERDICTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Jobs = Callable[[Scale], Sequence[Job]]
Rows = Callable[[Scale, Runs], Sequence[Row]]
Draw = Callable[[Scale, Runs], "Figure"]

_ONCE = Scale(rate=1, duration_s=DURATION_S, seeds=(1,))
_QUICK = Scale(rate=1, duration_s=20, seeds=(1,), few=True)
_THREE_TIMES = Scale(rate=1, duration_s=DURATION_S, seeds=(1, 2, 3))
_FIVE_TIMES = Scale(rate=1, duration_s=DURATION_S, seeds=(1, 2, 3, 4, 5))

# What the figures were drawn from is in the author's public repository (prvnkumar/latte-cc, commit 57f1336, results/): Mbit/s and
# ms of signal delay, one run a value. Of window 12 and the best thresholds the text prints the numbers itself.
_WINDOWS = (1, 2, 5, 7, 10, 11, 12, 13, 14, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100, 200, 300, 400, 500, 1000)
WINDOWS = Sweep(
    name="window",
    unit="packets",
    trials={w: Trial(f"window {w}", f"window-{w}", {"name": "window", "packets": w}) for w in _WINDOWS},
    printed={
        1: (0.23, 109),
        2: (0.45, 103),
        5: (1.07, 109),
        7: (1.45, 126),
        10: (1.97, 155),
        11: (2.13, 166),
        12: (2.282, 177.2),
        13: (2.43, 189),
        14: (2.57, 200),
        15: (2.71, 214),
        20: (3.30, 278),
        25: (3.74, 344),
        30: (4.09, 402),
        40: (4.52, 505),
        50: (4.78, 609),
        60: (4.89, 713),
        70: (4.94, 810),
        80: (4.97, 895),
        90: (4.98, 973),
        100: (5.00, 1055),
        200: (5.01, 1733),
        300: (5.01, 2439),
        400: (5.01, 3182),
        500: (5.01, 3850),
        1000: (5.01, 6666),
    },
    best=12,
    # Not from 1 to 2: who sends more has fewer silences.
    delay_grows=False,
)
_THRESHOLDS_MS = (50, 60, 70, 75, 85, 100, 150, 200, 250, 300)
THRESHOLDS = Sweep(
    name="threshold",
    unit="ms",
    trials={t: Trial(f"threshold {t} ms", f"threshold-{t}", delay_threshold(t)) for t in _THRESHOLDS_MS},
    printed={
        50: (1.62, 971),
        60: (3.94, 547),
        70: (4.31, 277),
        75: (4.61, 299),
        85: (4.64, 400),
        100: (4.80, 543),
        150: (4.90, 824),
        200: (4.96, 1051),
        250: (4.97, 1194),
        300: (4.96, 1298),
    },
    best=75,
    # Where the sender stalls the delay is longer than at the thresholds above.
    delay_grows=False,
)
_RTT_AIMD_MS = (50, 70, 100, 120, 150, 200)
RTT_AIMD = Sweep(
    name="threshold",
    unit="ms",
    trials={t: Trial(f"RTT + AIMD {t} ms", f"rtt-aimd-{t}", {"name": "rtt-aimd", "threshold": f"{t} ms"}) for t in _RTT_AIMD_MS},
    printed={50: (0.44, 108), 70: (1.66, 117), 100: (2.72, 131), 120: (3.10, 142), 150: (3.71, 174), 200: (4.09, 216)},
    best=120,
    best_score=22,
)


def _entry(name: str, title: str, source: str, jobs: Jobs, rows: Rows, draw: Draw | None = None, **keys: Any) -> Entry:
    """An entry of which ``texts`` has the rest."""
    return Entry(
        id=f"latte-{name}",
        title=title,
        source=source,
        readings=READINGS[name],
        verdict=VERDICTS[name],
        jobs=jobs,
        rows=rows,
        draw=draw,
        traces=TRACES,
        **{"full": _ONCE, "quick": _QUICK, "live": _THREE_TIMES, **keys},
    )


#: What entries with a run per value of a parameter have in common.
_LONG: dict[str, Any] = {"live": _ONCE, "live_is_long": True}

PAPER = Paper(
    key="latte",
    citation="Kumar, CS 244 PA2: Congestion-Control Contest, the report on Latte (2017)",
    entries=(
        _entry(
            "bounds",
            "The six senders with printed results, and what must hold of them",
            "Sections 1.3, 2.3, 3.1, 3.2 and 4.2.1, figures 5 to 10",
            designs.bound_jobs,
            designs.bound_rows,
        ),
        _entry(
            "figure2",
            "A: throughput against signal delay of fixed windows",
            "Figure 2 (and 1, which is the same), section 1.1",
            WINDOWS.jobs,
            WINDOWS.points,
            partial(drawing.points, WINDOWS),
            **_LONG,
        ),
        _entry(
            "figure3",
            "A: score over the window",
            "Figure 3, section 1.2",
            WINDOWS.jobs,
            WINDOWS.scores,
            partial(drawing.scores, WINDOWS),
            **_LONG,
        ),
        _entry(
            "figure4",
            "A: logarithm of the score over the window",
            "Figure 4, section 1.2",
            WINDOWS.jobs,
            WINDOWS.log_scores,
            partial(drawing.log_scores, WINDOWS),
            **_LONG,
        ),
        _entry(
            "repeat",
            "A: window 12, five times",
            "Section 1.3",
            repeat.jobs,
            repeat.rows,
            full=_FIVE_TIMES,
            live=_FIVE_TIMES,
        ),
        _entry(
            "figure5",
            "B: throughput against signal delay of AIMD",
            "Figure 5, section 2.3",
            aimd.jobs,
            aimd.points,
            drawing.aimd_points,
            **_LONG,
        ),
        _entry(
            "figure6",
            "B: score of AIMD",
            "Figure 6, section 2.3",
            aimd.jobs,
            aimd.scores,
            drawing.aimd_scores,
            **_LONG,
        ),
        _entry(
            "figure7",
            "C: throughput against signal delay of delay thresholds",
            "Figure 7, section 3.1",
            THRESHOLDS.jobs,
            THRESHOLDS.points,
            partial(drawing.points, THRESHOLDS),
            **_LONG,
        ),
        _entry(
            "figure8",
            "C: score over the delay threshold",
            "Figure 8, section 3.1",
            THRESHOLDS.jobs,
            THRESHOLDS.scores,
            partial(drawing.scores, THRESHOLDS),
            **_LONG,
        ),
        _entry(
            "figure9",
            "C: throughput against signal delay of thresholds of RTT + AIMD",
            "Figure 9, section 3.2",
            RTT_AIMD.jobs,
            RTT_AIMD.points,
            partial(drawing.points, RTT_AIMD),
            **_LONG,
        ),
        _entry(
            "figure10",
            "C: score over the threshold of RTT + AIMD",
            "Figure 10, section 3.2",
            RTT_AIMD.jobs,
            RTT_AIMD.scores,
            partial(drawing.scores, RTT_AIMD),
            **_LONG,
        ),
        _entry(
            "designs",
            "D: the designs considered, each by itself",
            "Section 4.1",
            designs.design_jobs,
            designs.design_rows,
            drawing.design_points,
            **_LONG,
        ),
        _entry(
            "constants",
            "D: score over lambda, gamma and timeout",
            "Sections 4.1.4 and 4.2.1",
            designs.constant_jobs,
            designs.constant_rows,
            partial(drawing.best_constants, designs.CONSTANTS),
            **_LONG,
        ),
        _entry(
            "results",
            "D: Latte with lambda 1.7 and final Latte",
            "Summary and section 4.2.1",
            designs.result_jobs,
            designs.result_rows,
        ),
        _entry(
            "figure12",
            "D: capacity and throughput of final Latte over time",
            "Figure 12, section 4.2.1",
            over_time.jobs,
            over_time.rate_rows,
            over_time.draw_rates,
        ),
        _entry(
            "figure13",
            "D: signal delay and per-packet delay of final Latte over time",
            "Figure 13, section 4.2.1",
            over_time.jobs,
            over_time.delay_rows,
            over_time.draw_delays,
        ),
    ),
)
