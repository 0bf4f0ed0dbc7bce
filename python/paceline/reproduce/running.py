"""Runs the jobs of entries, some at a time, each job once.

In: jobs. Out: their runs. The order of the answers, and what is in them, do not depend on which run ends first.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path

from paceline.record import Run
from paceline.reproduce.entry import Job
from paceline.running import Source, execute

#: Time between two reports of progress, s.
_REPORT_S = 0.2


class _StoppedError(Exception):
    """Ends a run from within, once another has failed or the command is interrupted."""


def run_jobs(
    jobs: Iterable[Job],
    records: Path,
    progress: Callable[[float, int], object],
    *,
    at_once: int | None = None,
    realtime: bool = False,
) -> dict[Job, Run]:
    """Runs every job, ``at_once`` at a time or one per core; its record goes to ``records`` under its label.

    With ``realtime`` those in real time come before all programs without real-time priority.
    ``progress`` is called a few times a second with the simulated time of all runs together, s, and how many are done.

    Raises:
        InputError: a scenario is refused.
        RunError: a run failed; the others are given up.
    """
    planned = list(dict.fromkeys(jobs))
    reached = [0.0] * len(planned)
    stop = threading.Event()

    def one(index: int, job: Job) -> Run:
        def tell(simulated_s: float) -> None:
            if stop.is_set():
                raise _StoppedError
            reached[index] = simulated_s

        out = records / job.label
        source = Source(job.scenario, None, {each.__name__: each for each in job.classes})
        execute(
            source,
            None,
            seed=job.seed,
            out=out,
            overrides=(),
            command=sys.argv,
            progress=tell,
            on=job.on,
            realtime=realtime and job.on == "live",
        )
        return Run(out)

    pool = ThreadPoolExecutor(max_workers=at_once or os.cpu_count(), thread_name_prefix="paceline")
    try:
        futures = [pool.submit(one, index, job) for index, job in enumerate(planned)]
        pending = set(futures)
        while pending:
            done, pending = wait(pending, timeout=_REPORT_S, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
            progress(sum(reached), len(futures) - len(pending))
        return {job: future.result() for job, future in zip(planned, futures, strict=True)}
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
