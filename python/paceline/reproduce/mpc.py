"""What the papers on model predictive congestion control share: their simulator, and their study of buffers.

In: a paper's controller and the numbers of its table. Out: jobs, measures, and the rows and drawings of equal flows over buffers
of 1/16 to 16 BDP. Every packet is acknowledged and none sent again; ACKs are delayed by bounded exponential noise.
"""

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from paceline.record import Run
from paceline.report.decimation import decimate
from paceline.report.loading import Column, Samples
from paceline.reproduce.entry import Job, Row, Runs, Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Samples this far apart give the medians of combined rates.
SAMPLE = "5 ms"
#: The buffers of the study, and the numbers of flows.
BUFFERS_BDP = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0, 16.0)
COUNTS = (1, 2, 4, 8)
#: Part of the bottleneck's rate at which flows have reached it.
REACHED = 0.95

#: How an endpoint learns of a loss: at the instant of the drop, or by the ACK of a later packet.
AT_THE_DROP: dict[str, Any] = {"kind": "datagram", "tell_losses": "drop"}
BY_A_LATER_ACK: dict[str, Any] = {"kind": "datagram", "tell_losses": "detected"}

NOISE_READING = (
    "The noise of the ACKs is drawn for every packet anew and ACKs overtake each other: the median of an exponential delay of "
    "0.25 ms is 0.17 ms, which is the 25.2 ms that the paper has for an empty queue."
)
RATE_READING = (
    "Rates are pacing rates, as in the paper: some are above the link's. What was delivered is beside them, without a "
    "counterpart."
)
LOSS_READING = (
    "An endpoint is told of a loss at the instant of the drop, packet by packet, as the paper's simulator records it: with the "
    "notice an RTT later flows go on at full speed meanwhile and lose about five orders of magnitude more."
)


@dataclass(frozen=True)
class Setting:
    """One bottleneck and the flows over it, as the simulations of a paper share them."""

    #: Begins the labels of its runs.
    label: str
    #: Begins the titles of its runs.
    title: str
    #: The controller and what is set of it beside r_min and r_max, which follow the capacity.
    controller: Mapping[str, Any]
    stack: Mapping[str, Any]
    capacity_bps: float = 40e9
    #: Propagation there and back.
    rtt_ms: float = 25
    #: 1 % of the RTT in the mean, 10 % at most; ACKs may overtake each other.
    noise_ms: tuple[float, float] = (0.25, 2.5)
    #: Distance of the samples.
    sample: str = SAMPLE

    def job(
        self,
        label: str,
        flows: Sequence[Mapping[str, Any]],
        scale: Scale,
        seed: int,
        *,
        buffer: float = 1.0,
        noise: bool = True,
        rtts_ms: Sequence[float] = (),
        rates_bps: Sequence[float | None] = (),
    ) -> Job:
        """A run of ``flows`` (tables of a scenario) over the bottleneck with a buffer in BDP.

        With ``rtts_ms``, one per table of flows, each table has an RTT of its own, the least that of the setting. What it has
        more lies behind the bottleneck: only a flow's first link can tell it of a loss at the drop. With ``rates_bps`` that
        part has a rate as well, where one is given.
        """
        bottleneck: dict[str, Any] = {
            "rate": _gbps(self.capacity_bps * scale.rate),
            "rtt": f"{self.rtt_ms:g} ms",
            "buffer": f"{buffer:g} BDP",
        }
        if noise:
            mean_ms, max_ms = self.noise_ms
            bottleneck["noise"] = {"kind": "exponential", "mean": f"{mean_ms:g} ms", "max": f"{max_ms:g} ms", "reorder": True}
        scenario: dict[str, Any] = {
            "title": f"{self.title}: {label}",
            "duration": f"{scale.duration_s:g} s",
            "sample": self.sample,
        }
        tables = [{"stack": dict(self.stack), **flow} for flow in flows]
        if rtts_ms:
            ends = [f"receiver-{number}" for number in range(1, len(rtts_ms) + 1)]
            rates = ["unlimited" if bps is None else _gbps(bps * scale.rate) for bps in rates_bps or [None] * len(rtts_ms)]
            scenario["links"] = [
                {"name": "bottleneck", "from": "senders", "to": "far-side", **bottleneck},
                *(
                    {"name": end, "from": "far-side", "to": end, "rate": rate, "rtt": f"{rtt_ms - self.rtt_ms:g} ms"}
                    for end, rtt_ms, rate in zip(ends, rtts_ms, rates, strict=True)
                ),
            ]
            tables = [{**table, "from": "senders", "to": end} for table, end in zip(tables, ends, strict=True)]
        else:
            scenario["link"] = bottleneck
        # Entries of different scale have records of different names.
        at = "" if scale.rate == 1 else f"-at-{scale.rate:g}"
        return Job.of(f"{self.label}-{label}{at}", {**scenario, "flows": tables}, seed)

    def controller_of(self, count: int, scale: Scale, *, cap_bps: float | None = None) -> dict[str, Any]:
        """The controller of one of ``count`` flows: r_min is C/(4N), r_max the cap or 2C."""
        capacity_bps = self.capacity_bps * scale.rate
        r_max_bps = 2 * capacity_bps if cap_bps is None else cap_bps * scale.rate
        return {**self.controller, "r_min": _gbps(capacity_bps / (4 * count)), "r_max": _gbps(r_max_bps)}

    def equal_flows(self, count: int, buffer: float, scale: Scale, seed: int) -> Job:
        """``count`` flows of one RTT that start together."""
        flow = {"controller": self.controller_of(count, scale), "count": count}
        return self.job(f"{count}-flows-{buffer:g}-bdp", [flow], scale, seed, buffer=buffer)


def _gbps(bps: float) -> str:
    return f"{bps / 1e9:.12g} Gbit/s"


def tenth(scale: Scale) -> Scale:
    """The scale at a tenth of its rates; that of a glance is small enough."""
    return scale if scale.few else dataclasses.replace(scale, rate=scale.rate / 10)


# ------------------------------------------------------------------------------------------------------- what is measured


def combined_gbps(run: Run, scale: Scale) -> np.ndarray:
    """The pacing rates of all flows together, sample by sample, at the paper's scale."""
    import polars as pl

    combined = run.series.group_by("time_s", maintain_order=True).agg(pl.col("pacing_bps").sum())
    return np.asarray(combined["pacing_bps"].to_numpy()) / (1e9 * scale.rate)


def sample_times_s(run: Run) -> np.ndarray:
    """The times of the samples of :func:`combined_gbps`."""
    return np.asarray(run.series["time_s"].unique(maintain_order=True).to_numpy())


def mean_rtt_ms(run: Run, quantile: str) -> float:
    """A quantile of the RTT, as a mean among the flows."""
    return statistics.fmean(flow["rtt_ms"][quantile] for flow in run.result["flows"])


def loss_fraction(run: Run) -> float:
    """Packets lost over packets sent, of all flows."""
    flows = run.result["flows"]
    lost: int = sum(flow["lost_packets"] for flow in flows)
    sent: int = sum(flow["sent_packets"] for flow in flows)
    return lost / sent


def utilization(run: Run) -> float:
    """The part of the bottleneck that was delivered."""
    value: float = run.result["links"][0]["utilization"]
    return value


def time_to_rate_s(run: Run, scale: Scale, capacity_bps: float) -> float | None:
    """When the combined pacing rate is first at :data:`REACHED` of the capacity, once it has been below; ``None`` if never.

    Flows that start at r_max are above at once: what counts is the way back from their first loss.
    """
    reached = combined_gbps(run, scale) >= REACHED * capacity_bps / 1e9
    after = np.flatnonzero(np.cumsum(~reached).astype(bool) & reached)
    return float(sample_times_s(run)[after[0]]) if after.size else None


@dataclass(frozen=True)
class Measure:
    """A column of the study: what it is called, and how it is read off a run."""

    name: str
    unit: str
    of: Callable[[Run, Scale], float]

    @property
    def axis(self) -> str:
        """Label of an axis."""
        name = self.name[0].upper() + self.name[1:]
        return name if self.unit == "1" else f"{name} ({self.unit})"


#: What the table and the figures of the study have, and what was delivered.
MEASURES: dict[str, Measure] = {
    "rate": Measure("median combined rate", "Gbit/s", lambda run, scale: float(np.median(combined_gbps(run, scale)))),
    "rtt": Measure("median RTT", "ms", lambda run, _: mean_rtt_ms(run, "p50")),
    "loss": Measure("losses over packets sent", "1", lambda run, _: loss_fraction(run)),
    "delivered": Measure("part of the link delivered", "1", lambda run, _: utilization(run)),
}

#: By measure and number of flows a number per buffer of :data:`BUFFERS_BDP`.
Printed = Mapping[str, Mapping[int, Sequence[float]]]


#: Points of a line over time.
_POINTS = 600


def thinned(time_s: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A long line with no more points than a figure can show, and every peak and dip of it."""
    samples = Samples(time_s, {"values": Column("", values)})
    time_s, columns = decimate(samples, (float(time_s[0]), float(time_s[-1])), _POINTS)
    return time_s, columns["values"]


def draw_rate_and_rtt(run: Run, scale: Scale, rate: str, label: str) -> "Figure":
    """The rate in the column ``rate`` and the RTT of a single flow over time."""
    from matplotlib.figure import Figure

    time_s = sample_times_s(run)
    figure = Figure(figsize=(3.5, 3))
    upper, lower = figure.subplots(2, 1, sharex=True)
    upper.plot(*thinned(time_s, run.series[rate].to_numpy() / (1e9 * scale.rate)))
    upper.set_ylabel(f"{label} (Gbit/s)")
    upper.set_ylim(bottom=0)
    lower.plot(*thinned(time_s, run.series["rtt_ms"].to_numpy()))
    lower.set_ylabel("RTT (ms)")
    lower.set_xlabel("Time (s)")
    return figure


def flows_text(count: int) -> str:
    """How many flows, as rows and legends say it."""
    return "1 flow" if count == 1 else f"{count} flows"


def buffer_text(buffer: float) -> str:
    """The buffer, as rows and axes say it."""
    return str(Fraction(buffer))


# ------------------------------------------------------------------------------------------------------ equal flows, buffers


@dataclass(frozen=True)
class BufferStudy:
    """Equal flows over buffers: the table that sums it up, and what it has of every cell."""

    setting: Setting
    printed: Printed
    counts: Sequence[int] = COUNTS
    over: Sequence[float] = BUFFERS_BDP
    #: Of :data:`MEASURES`.
    quantities: Sequence[str] = tuple(MEASURES)
    #: Begins the rows, where a table has several studies.
    prefix: str = ""

    def cells(self, scale: Scale) -> list[tuple[int, float]]:
        """Flows and buffer of every cell that is run."""
        if scale.few:
            return [(2, buffer) for buffer in (1 / 8, 1 / 4, 1 / 2, 1.0, 4.0)]
        return [(count, buffer) for count in self.counts for buffer in self.over]

    def buffers(self, count: int, scale: Scale) -> list[float]:
        """The buffers over which ``count`` flows are run."""
        return [buffer for other, buffer in self.cells(scale) if other == count]

    def jobs(self, scale: Scale) -> list[Job]:
        """The runs of every cell."""
        return [job for count, buffer in self.cells(scale) for job in self.of_cell(count, buffer, scale)]

    def of_cell(self, count: int, buffer: float, scale: Scale) -> list[Job]:
        """The runs of a cell, one per seed."""
        return [self.setting.equal_flows(count, buffer, scale, seed) for seed in scale.seeds]

    def values(self, count: int, buffer: float, quantity: str, scale: Scale, runs: Runs) -> list[float]:
        """What was measured in a cell, one value per seed."""
        return [MEASURES[quantity].of(runs[job], scale) for job in self.of_cell(count, buffer, scale)]

    def paper(self, count: int, buffer: float, quantity: str) -> float | None:
        """What the paper has for a cell."""
        return self.printed[quantity][count][BUFFERS_BDP.index(buffer)] if quantity in self.printed else None

    def rows(self, scale: Scale, runs: Runs) -> list[Row]:
        """Every measure of every cell."""
        return [
            Row.of(
                f"{self.prefix}{MEASURES[quantity].name}, {flows_text(count)}, {buffer_text(buffer)} BDP",
                MEASURES[quantity].unit,
                self.paper(count, buffer, quantity),
                self.values(count, buffer, quantity, scale, runs),
            )
            for quantity in self.quantities
            for count, buffer in self.cells(scale)
        ]

    def draw(self, scale: Scale, runs: Runs) -> "Figure":
        """What the paper has over the buffer: lines are ours, crosses the paper's."""
        from matplotlib.figure import Figure

        quantities = [quantity for quantity in self.quantities if quantity in self.printed]
        figure = Figure(figsize=(7, 2.6) if len(quantities) > 1 else None)
        axes = figure.subplots(1, len(quantities), squeeze=False)[0]
        for axis, quantity in zip(axes, quantities, strict=True):
            for index, count in enumerate(dict.fromkeys(count for count, _ in self.cells(scale))):
                self.plot(axis, quantity, count, scale, runs, colour=f"C{index}")
            axis.set_ylabel(MEASURES[quantity].axis)
            over_buffers(axis)
            if quantity == "loss":
                logarithmic(axis)
            else:
                axis.set_ylim(bottom=0)
        axes[0].legend(title="lines: ours, ×: the paper", title_fontsize=7)
        return figure

    def plot(self, axis: "Axes", quantity: str, count: int, scale: Scale, runs: Runs, *, colour: str) -> None:
        """A measure of ``count`` flows over the buffers: a line, and crosses for the paper's."""
        buffers = self.buffers(count, scale)
        ours = [statistics.median(self.values(count, buffer, quantity, scale, runs)) for buffer in buffers]
        axis.plot([BUFFERS_BDP.index(buffer) for buffer in buffers], ours, color=colour, label=flows_text(count))
        axis.plot(self.printed[quantity][count], color=colour, linestyle="none", marker="x", markersize=4)


def over_buffers(axis: "Axes") -> None:
    """Buffers on the x axis: place i is that of the i-th of :data:`BUFFERS_BDP`."""
    axis.set_xticks(range(len(BUFFERS_BDP)), [buffer_text(buffer) for buffer in BUFFERS_BDP], fontsize=6)
    axis.set_xlabel("Buffer (BDP)")


def logarithmic(axis: "Axes") -> None:
    """Fractions of many orders on the y axis; zero is left out."""
    axis.set_yscale("log", nonpositive="mask")
    axis.yaxis.set_major_formatter("{x:.0e}")
    axis.yaxis.set_minor_formatter("")


#: What a box shows, by its name in a result: from whisker to whisker.
_QUANTILES = {"min": 0.0, "p5": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95, "max": 1.0}


def rate_quantile_gbps(run: Run, scale: Scale, name: str) -> float:
    """A quantile of the combined rate, by its name in a result."""
    return float(np.quantile(combined_gbps(run, scale), _QUANTILES[name]))


@dataclass(frozen=True)
class Boxes:
    """A figure of the study with what two flows see, as a box per buffer."""

    study: BufferStudy
    #: Of :data:`MEASURES`, which has the medians.
    quantity: str
    name: str
    unit: str
    #: The quantile of that name of a run.
    quantile: Callable[[Run, Scale, str], float]
    #: Where all boxes end, by the figure's text.
    least: float
    #: The quantiles where the whiskers end.
    whiskers: tuple[str, str] = ("p5", "p95")

    def jobs(self, scale: Scale) -> list[Job]:
        """The runs of two flows."""
        return [job for buffer in self._buffers(scale) for job in self.study.of_cell(2, buffer, scale)]

    def rows(self, scale: Scale, runs: Runs) -> list[Row]:
        """Least, quartiles and median of every box."""
        found = []
        for buffer in self._buffers(scale):
            median = self._median(buffer)
            printed = (("least", "min", self.least), ("first quartile", "p25", None), ("median", "p50", median))
            for name, quantile, paper in (*printed, ("third quartile", "p75", None)):
                ours = [self.quantile(runs[job], scale, quantile) for job in self.study.of_cell(2, buffer, scale)]
                found.append(Row.of(f"{self.name}: {name}, {buffer_text(buffer)} BDP", self.unit, paper, ours))
        return found

    def draw(self, scale: Scale, runs: Runs) -> "Figure":
        """Boxes and whiskers are ours; crosses are the paper's medians."""
        from matplotlib.figure import Figure

        figure = Figure()
        axis = figure.subplots()
        buffers = self._buffers(scale)
        places = [BUFFERS_BDP.index(buffer) for buffer in buffers]
        axis.bxp(
            [self._box(scale, [runs[job] for job in self.study.of_cell(2, buffer, scale)]) for buffer in buffers],
            positions=places,
            showfliers=False,
            medianprops={"color": "C0"},
        )
        axis.plot(places, [self._median(buffer) for buffer in buffers], "x", color="C1", label="the paper's median")
        over_buffers(axis)
        axis.set_ylabel(f"{self.name[0].upper()}{self.name[1:]} ({self.unit})")
        axis.legend()
        return figure

    def _buffers(self, scale: Scale) -> list[float]:
        return self.study.buffers(2, scale)

    def _median(self, buffer: float) -> float:
        return self.study.printed[self.quantity][2][BUFFERS_BDP.index(buffer)]

    def _box(self, scale: Scale, of_seeds: Sequence[Run]) -> dict[str, float]:
        """A box as Matplotlib takes it, of medians over the seeds."""
        at = {name: statistics.median(self.quantile(run, scale, name) for run in of_seeds) for name in _QUANTILES}
        low, high = (at[name] for name in self.whiskers)
        return {"whislo": low, "q1": at["p25"], "med": at["p50"], "q3": at["p75"], "whishi": high}


# -------------------------------------------------------------------------------------- the way to the bottleneck's rate


@dataclass(frozen=True)
class Approach:
    """The figures of how long two flows take to the bottleneck's rate, and of the rate over time."""

    study: BufferStudy
    #: What the text says of some buffers, s.
    printed_s: Mapping[float, float]
    #: The buffers that are drawn over time, and up to when.
    drawn: Sequence[float]
    until_s: float

    def jobs(self, scale: Scale) -> list[Job]:
        """The runs of two flows."""
        return [job for buffer in self.study.buffers(2, scale) for job in self.study.of_cell(2, buffer, scale)]

    def rows(self, scale: Scale, runs: Runs) -> list[Row]:
        """The time of every buffer; nothing of ours where it never comes."""
        return [self._row(buffer, scale, runs) for buffer in self.study.buffers(2, scale)]

    def draw(self, scale: Scale, runs: Runs) -> "Figure":
        """The time over the buffer."""
        from matplotlib.figure import Figure

        figure = Figure()
        axis = figure.subplots()
        times_s = {buffer: self.times_s(buffer, scale, runs) for buffer in self.study.buffers(2, scale)}
        reached = {buffer: statistics.median(found) for buffer, found in times_s.items() if found}
        axis.plot(
            [BUFFERS_BDP.index(buffer) for buffer in reached], list(reached.values()), marker="o", markersize=3, label="ours"
        )
        places = [BUFFERS_BDP.index(buffer) for buffer in self.printed_s]
        axis.plot(places, list(self.printed_s.values()), "x", color="C1", label="the paper's text")
        axis.set_yscale("log")
        axis.set_yticks((0.2, 0.5, 1, 2, 5, 10, 20))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("")
        axis.set_ylabel("Time to the bottleneck's rate (s)")
        over_buffers(axis)
        axis.legend()
        return figure

    def over_time_jobs(self, scale: Scale) -> list[Job]:
        """The runs of the buffers that are drawn over time."""
        return [job for buffer in self.drawn for job in self.study.of_cell(2, buffer, scale)]

    def over_time_rows(self, scale: Scale, runs: Runs) -> list[Row]:
        """The time of every buffer that is drawn, and the greatest rate."""
        found = []
        for buffer in self.drawn:
            greatest = [float(combined_gbps(runs[job], scale).max()) for job in self.study.of_cell(2, buffer, scale)]
            found.append(self._row(buffer, scale, runs))
            found.append(Row.of(f"greatest combined rate, {buffer_text(buffer)} BDP", "Gbit/s", None, greatest))
        return found

    def draw_over_time(self, scale: Scale, runs: Runs) -> "Figure":
        """Combined rates of the first seed from the start on."""
        from matplotlib.figure import Figure

        figure = Figure()
        axis = figure.subplots()
        for buffer in self.drawn:
            run = runs[self.study.of_cell(2, buffer, scale)[0]]
            time_s = sample_times_s(run)
            shown = time_s <= self.until_s
            axis.plot(*thinned(time_s[shown], combined_gbps(run, scale)[shown]), label=f"{buffer_text(buffer)} BDP")
        axis.set_xlabel("Time (s)")
        axis.set_ylabel("Combined rate (Gbit/s)")
        axis.set_ylim(0, 3 * self.study.setting.capacity_bps / 1e9)
        axis.legend(title="Buffer", title_fontsize=7)
        return figure

    def _row(self, buffer: float, scale: Scale, runs: Runs) -> Row:
        name = f"time to {100 * REACHED:g} % of the bottleneck's rate, {buffer_text(buffer)} BDP"
        return Row.of(name, "s", self.printed_s.get(buffer), self.times_s(buffer, scale, runs))

    def times_s(self, buffer: float, scale: Scale, runs: Runs) -> list[float]:
        """When two flows over a buffer are there, of the seeds that come there."""
        jobs = self.study.of_cell(2, buffer, scale)
        found = [time_to_rate_s(runs[job], scale, self.study.setting.capacity_bps) for job in jobs]
        return [time_s for time_s in found if time_s is not None]
