"""Two flows of which the second starts later: how long their shares take to become fair.

In: a paper's controller and the times that it prints. Out: jobs, and the rows of every buffer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.quantity import duration_s
from paceline.record import Run
from paceline.reproduce.entry import Job, Row, Runs, Scale
from paceline.reproduce.mpc import BUFFERS_BDP, SAMPLE, Setting, buffer_text

#: Jain's index at which shares are fair, and the time over which they are means.
FAIR = 0.9
WINDOW_S = 1.0
#: Time between two samples.
SAMPLE_S = duration_s("sample", SAMPLE)


@dataclass(frozen=True)
class LateFlow:
    """A flow, and a second one that starts later, over buffers."""

    setting: Setting
    #: What the paper has of the time to fair shares, s, by buffer: where nothing is, flows never came there.
    printed_s: Mapping[float, float]
    late_s: float
    #: The rate with which the second one starts.
    start: str = "r_max"
    over: Sequence[float] = BUFFERS_BDP
    #: Begins the rows.
    prefix: str = ""

    def buffers(self, scale: Scale) -> list[float]:
        """The buffers over which they are run."""
        return [1 / 4, 1.0] if scale.few else list(self.over)

    def started_s(self, scale: Scale) -> float:
        """When the second flow starts: sooner in a run too short for it."""
        return min(self.late_s, scale.common_s / 4)

    def window_s(self, scale: Scale) -> float:
        """Over what shares are means: less in a run too short for it."""
        return min(WINDOW_S, scale.common_s / 20)

    def jobs_of(self, buffer: float, scale: Scale) -> list[Job]:
        """The runs over a buffer, one per seed."""
        controller = self.setting.controller_of(2, scale)
        first = {"name": "flow-1", "controller": controller}
        second = {"name": "flow-2", "controller": {**controller, "start": self.start}, "start": f"{self.started_s(scale):g} s"}
        label = f"{self.late_s:g}-s-late-at-{self.start}-{buffer:g}-bdp"
        return [self.setting.job(label, [first, second], scale, seed, buffer=buffer) for seed in scale.seeds]

    def jobs(self, scale: Scale) -> list[Job]:
        """The runs over every buffer."""
        return [job for buffer in self.buffers(scale) for job in self.jobs_of(buffer, scale)]

    def shares(self, run: Run, scale: Scale, window_s: float) -> np.ndarray:
        """The mean rates of the flows, window by window from the start of the second on."""
        return means(*rates_of_flows(run), self.started_s(scale), window_s)

    def fairness(self, buffer: float, scale: Scale, runs: Runs, window_s: float) -> list[np.ndarray]:
        """Jain's index window by window, of every seed."""
        return [jain(self.shares(runs[job], scale, window_s)) for job in self.jobs_of(buffer, scale)]

    def times_s(self, buffer: float, scale: Scale, runs: Runs) -> list[float | None]:
        """The time to fair shares, of every seed."""
        window_s = self.window_s(scale)
        return [converged_s(fairness, window_s) for fairness in self.fairness(buffer, scale, runs, window_s)]

    def rows(self, scale: Scale, runs: Runs) -> list[Row]:
        """What there is of every buffer."""
        found = []
        for buffer in self.buffers(scale):
            printed_s = self.printed_s.get(buffer)
            times_s = self.times_s(buffer, scale, runs)
            by_sample_s = [converged_s(fairness, SAMPLE_S) for fairness in self.fairness(buffer, scale, runs, SAMPLE_S)]
            fair = [float((index >= FAIR).mean()) for index in self.fairness(buffer, scale, runs, self.window_s(scale))]
            share = sum(time_s is not None for time_s in times_s) / len(times_s)
            of = f"{self.prefix}{buffer_text(buffer)} BDP"
            found += [
                Row.of(f"{of}: time to converge, of the seeds that do", "s", printed_s, times_s, comparable=False),
                Row.of(f"{of}: the same by single samples", "s", printed_s, by_sample_s, comparable=False),
                Row.of(f"{of}: part of the seeds that converge", "1", float(buffer in self.printed_s), [share]),
                Row.of(f"{of}: part of the time that is fair", "1", None, fair),
            ]
        return found


def rates_of_flows(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Times of the samples, and a column of pacing rates per flow; 0 before a flow starts."""
    table = run.series.select("time_s", "flow", "pacing_bps").pivot("flow", index="time_s", values="pacing_bps")
    table = table.sort("time_s").fill_null(0.0)
    flows = sorted(name for name in table.columns if name != "time_s")
    return table["time_s"].to_numpy(), table.select(flows).to_numpy()


def means(time_s: np.ndarray, rates: np.ndarray, since_s: float, window_s: float) -> np.ndarray:
    """The mean rates of the flows in windows from ``since_s`` on, of which the last is a whole one."""
    # A sample that ends a window is of it; the grain keeps rounding out of this.
    grain_s = 1e-6
    whole = int((time_s[-1] - since_s + grain_s) // window_s)
    window = ((time_s - since_s - grain_s) // window_s).astype(int)
    within = (window >= 0) & (window < whole)
    sums = np.zeros((whole, rates.shape[1]))
    np.add.at(sums, window[within], rates[within])
    return sums / np.bincount(window[within], minlength=whole)[:, np.newaxis]


def jain(rates: np.ndarray) -> np.ndarray:
    """Jain's index of every row."""
    index: np.ndarray = rates.sum(axis=1) ** 2 / (rates.shape[1] * (rates**2).sum(axis=1))
    return index


def converged_s(fairness: np.ndarray, window_s: float) -> float | None:
    """The time from which Jain's index is at :data:`FAIR` or above to the end; ``None`` if it ends below."""
    unfair = np.flatnonzero(fairness < FAIR)
    if not unfair.size:
        return 0.0
    return float((unfair[-1] + 1) * window_s) if unfair[-1] + 1 < fairness.size else None
