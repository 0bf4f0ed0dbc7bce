"""Lynn, Ghosal, Hanford, *Model Predictive Congestion Control for TCP Endpoints* (2020): the simulations.

One bottleneck of 40 Gbit/s and 25 ms, one to eight flows of the controller as printed, every packet acknowledged and none sent
again, ACKs delayed by bounded exponential noise. The paper's experiments on a real network (tables III and IV, figure 4) are not
here.
"""

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from paceline.record import Run
from paceline.reproduce.entry import Entry, Job, Paper, Row, Runs, Scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The bottleneck, bit/s.
CAPACITY_BPS = 40e9
#: Propagation there and back, ms.
RTT_MS = 25
#: What is set beside r_min and r_max, which follow the capacity: everything else is as printed.
CONTROLLER: dict[str, Any] = {"name": "mpc-2020"}
#: What is different in a capped flow, r_max apart.
CAPPED: dict[str, Any] = {"probe": "none"}
#: How a flow is carried.
FLOW: dict[str, Any] = {"stack": "datagram"}
#: 1 % of the RTT in the mean, 10 % at most; ACKs may overtake each other.
NOISE = {"kind": "exponential", "mean": "0.25 ms", "max": "2.5 ms", "reorder": True}
#: Samples this far apart give the medians of combined rates.
SAMPLE = "5 ms"

_NOISE_READING = (
    "The noise of the ACKs is drawn for every packet anew and ACKs overtake each other: the median of an exponential delay of "
    "0.25 ms is 0.17 ms, which is the 25.2 ms that the paper has for an empty queue."
)
_START_READING = (
    "Flows start together at r_max = 2 C with a target fill of 0.1, as in the code released with the paper; its text says "
    "half-way. r_min is C/(4 N), the 5 Gbit/s that the text to figure 5 gives two flows. How long probes are is not printed: "
    "every 10 s 8 mean RTTs at r_max, then 8 at r_min; a loss begins one at r_min."
)
_LOSS_READING = (
    "A loss is told by the ACK that shows it, an RTT after the drop. The paper's simulator seems to tell it at the drop: it "
    "loses orders of magnitude less."
)
_RATE_READING = (
    "Rates are pacing rates, as in the paper: some are above the link's. What was delivered is beside them, without a "
    "counterpart."
)
_PACKETS_READING = (
    "The paper's 40 packets/s would be one packet per RTT: they are taken for 40 Gbit/s. The buffer is not given: 1 BDP. Mean "
    "and standard deviation are over the whole run, its start and the probes included."
)
_CAPPED_READING = (
    "A cap is the controller's r_max. Capped flows have no noise: with it no RTT could have the standard deviation of 0.0 ms "
    "that is printed, for the noise alone has 0.25 ms. And they do not probe: the climb from r_min after every probe would "
    "show in means and deviations."
)

# ---------------------------------------------------------------------------------------------------------- what is run


def _job(label: str, flows: Iterable[dict[str, Any]], scale: Scale, seed: int, *, buffer: float = 1.0, noise: bool = True) -> Job:
    link: dict[str, Any] = {
        "rate": f"{CAPACITY_BPS * scale.rate / 1e9:g} Gbit/s",
        "rtt": f"{RTT_MS} ms",
        "buffer": f"{buffer:g} BDP",
    }
    if noise:
        link["noise"] = NOISE
    scenario = {
        "title": f"MPC 2020: {label}",
        "duration": f"{scale.duration_s:g} s",
        "sample": SAMPLE,
        "link": link,
        "flows": [{**FLOW, **flow} for flow in flows],
    }
    return Job.of(f"mpc2020-{label}", scenario, seed)


def _controller(count: int, scale: Scale, *, cap_bps: float | None = None) -> dict[str, Any]:
    """The controller of one of ``count`` flows."""
    capacity_bps = CAPACITY_BPS * scale.rate
    r_max_bps = 2 * capacity_bps if cap_bps is None else cap_bps * scale.rate
    return {
        **CONTROLLER,
        **({} if cap_bps is None else CAPPED),
        "r_min": f"{capacity_bps / (4 * count) / 1e9:.12g} Gbit/s",
        "r_max": f"{r_max_bps / 1e9:.12g} Gbit/s",
    }


def _equal_flows(count: int, buffer: float, scale: Scale, seed: int) -> Job:
    """``count`` uncapped flows of one RTT, which tables and figures of section IV share."""
    flow = {"controller": _controller(count, scale), "count": count}
    return _job(f"{count}-flows-{buffer:g}-bdp", [flow], scale, seed, buffer=buffer)


# ------------------------------------------------------------------------------------------------------- what is measured


def _combined_gbps(run: Run, scale: Scale) -> np.ndarray:
    """The pacing rates of all flows together, sample by sample, at the paper's scale."""
    import polars as pl

    combined = run.series.group_by("time_s", maintain_order=True).agg(pl.col("pacing_bps").sum())
    return np.asarray(combined["pacing_bps"].to_numpy()) / (1e9 * scale.rate)


def _mean_rtt_ms(run: Run, quantile: str) -> float:
    """A quantile of the RTT, as a mean among the flows."""
    return statistics.fmean(flow["rtt_ms"][quantile] for flow in run.result["flows"])


def _loss_fraction(run: Run) -> float:
    flows = run.result["flows"]
    lost: int = sum(flow["lost_packets"] for flow in flows)
    sent: int = sum(flow["sent_packets"] for flow in flows)
    return lost / sent


def _utilization(run: Run) -> float:
    value: float = run.result["links"][0]["utilization"]
    return value


# --------------------------------------------------------------------------------------------------------- tables I and II

_FLOWS = 4
_MEASURES: tuple[tuple[str, str, Callable[[dict[str, Any], Scale], float]], ...] = (
    ("mean rate", "packets/s", lambda flow, scale: flow["pacing_bps"]["mean"] / (1e9 * scale.rate)),
    ("rate std", "packets/s", lambda flow, scale: flow["pacing_bps"]["std"] / (1e9 * scale.rate)),
    ("mean RTT", "ms", lambda flow, _: flow["rtt_ms"]["mean"]),
    ("RTT std", "ms", lambda flow, _: flow["rtt_ms"]["std"]),
)

#: Per case a row of the paper's for each of the measures, a number per flow.
Printed = dict[str, tuple[tuple[float, ...], ...]]

_TABLE_1: Printed = {
    "uncapped": ((9.6, 9.5, 9.6, 10.1), (0.1, 0.1, 0.1, 0.3), (25.2, 25.2, 25.2, 25.2), (0.2, 0.2, 0.2, 0.2)),
    "capped": ((3.0, 7.0, 10.0, 18.8), (0.0, 0.1, 0.1, 0.2), (25.0, 25.0, 25.1, 25.0), (0.0, 0.0, 0.0, 0.0)),
}
_TABLE_2: Printed = {
    "uncapped": ((5.8, 8.0, 10.5, 15.3), (1.1, 1.0, 0.6, 0.9), (25.2, 35.2, 45.2, 55.2), (0.2, 0.2, 0.2, 0.2)),
    "capped": ((9.0, 10.0, 10.0, 10.0), (0.1, 0.1, 0.0, 0.0), (25.0, 35.0, 45.0, 55.0), (0.0, 0.0, 0.0, 0.0)),
}
_CAPS_1_BPS = (3e9, 7e9, 10e9, 20e9)
_CAPS_2_BPS = (10e9,) * _FLOWS
_RTTS_1_MS = (RTT_MS,) * _FLOWS
_RTTS_2_MS = (25, 35, 45, 55)


def _four_flows(
    table: str, rtts_ms: Sequence[int], caps_bps: Sequence[float], printed: Printed
) -> tuple[Callable[[Scale], Sequence[Job]], Callable[[Scale, Runs], Sequence[Row]]]:
    """Jobs and rows of a table of four flows, uncapped and capped."""

    def job(case: str, scale: Scale, seed: int) -> Job:
        caps = caps_bps if case == "capped" else [None] * _FLOWS
        flows = [
            {"controller": _controller(_FLOWS, scale, cap_bps=cap), "name": f"flow-{number}", "rtt": f"{rtt_ms} ms"}
            for number, (cap, rtt_ms) in enumerate(zip(caps, rtts_ms, strict=True), start=1)
        ]
        return _job(f"{table}-{case}", flows, scale, seed, noise=case == "uncapped")

    def jobs(scale: Scale) -> list[Job]:
        return [job(case, scale, seed) for case in printed for seed in scale.seeds]

    def rows(scale: Scale, runs: Runs) -> list[Row]:
        found = []
        for case, numbers in printed.items():
            of_seeds = [runs[job(case, scale, seed)] for seed in scale.seeds]
            for (name, unit, measure), paper in zip(_MEASURES, numbers, strict=True):
                for index in range(_FLOWS):
                    ours = [measure(run.result["flows"][index], scale) for run in of_seeds]
                    found.append(Row.of(f"{case}: {name} of flow {index + 1}", unit, paper[index], ours))
            found.append(Row.of(f"{case}: part of the link delivered", "1", None, [_utilization(run) for run in of_seeds]))
        return found

    return jobs, rows


_TABLE_1_JOBS, _TABLE_1_ROWS = _four_flows("table1", _RTTS_1_MS, _CAPS_1_BPS, _TABLE_1)
_TABLE_2_JOBS, _TABLE_2_ROWS = _four_flows("table2", _RTTS_2_MS, _CAPS_2_BPS, _TABLE_2)

# ------------------------------------------------------------------------------------------------- table V, figures 5 and 6

BUFFERS_BDP = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0, 16.0)
COUNTS = (1, 2, 4, 8)
#: Median combined rate, Gbit/s; median RTT, ms; losses over packets sent. By number of flows, a number per buffer.
TABLE_5: dict[str, dict[int, tuple[float, ...]]] = {
    "rate": {
        1: (10.0, 10.0, 33.7, 39.9, 39.8, 39.7, 39.6, 39.4, 39.4),
        2: (10.0, 10.0, 23.7, 39.9, 39.8, 39.7, 39.6, 39.5, 39.7),
        4: (10.0, 10.0, 23.5, 40.0, 40.0, 39.8, 39.8, 39.7, 40.3),
        8: (10.0, 10.0, 24.0, 39.2, 40.0, 40.0, 40.0, 40.0, 39.9),
    },
    "rtt": {
        1: (25.2, 25.2, 25.3, 25.8, 26.6, 26.9, 27.4, 28.6, 37.9),
        2: (25.2, 25.2, 25.3, 25.7, 26.7, 28.0, 28.4, 29.7, 39.2),
        4: (25.3, 25.3, 25.3, 25.7, 26.7, 28.7, 29.4, 30.6, 42.6),
        8: (25.3, 25.3, 25.4, 25.8, 26.9, 29.2, 30.4, 32.0, 53.5),
    },
    "loss": {
        1: (3.2e-5, 3.1e-6, 9.9e-7, 6.4e-7, 2.8e-7, 2.0e-8, 1.0e-8, 2.0e-8, 2.0e-8),
        2: (3.3e-5, 1.1e-5, 4.1e-6, 2.5e-6, 2.1e-6, 6.3e-7, 7.0e-8, 1.0e-7, 8.0e-8),
        4: (4.2e-5, 2.7e-5, 1.1e-5, 7.0e-6, 5.9e-6, 3.9e-6, 2.0e-6, 2.5e-7, 2.1e-7),
        8: (1.0e-5, 7.7e-5, 2.7e-5, 1.7e-5, 1.6e-5, 1.2e-5, 7.4e-6, 5.0e-6, 7.7e-7),
    },
}

#: Name and unit of what the table and the figures have, and how it is read off a run.
_OF_BUFFER: dict[str, tuple[str, str, Callable[[Run, Scale], float]]] = {
    "rate": ("median combined rate", "Gbit/s", lambda run, scale: float(np.median(_combined_gbps(run, scale)))),
    "rtt": ("median RTT", "ms", lambda run, _: _mean_rtt_ms(run, "p50")),
    "loss": ("losses over packets sent", "1", lambda run, _: _loss_fraction(run)),
    "delivered": ("part of the link delivered", "1", lambda run, _: _utilization(run)),
}


def _cells(scale: Scale) -> list[tuple[int, float]]:
    """Flows and buffer of every cell that is run."""
    if scale.few:
        return [(2, buffer) for buffer in (1 / 8, 1 / 4, 1 / 2, 1.0, 4.0)]
    return [(count, buffer) for count in COUNTS for buffer in BUFFERS_BDP]


def _buffer_jobs(scale: Scale) -> list[Job]:
    return [_equal_flows(count, buffer, scale, seed) for count, buffer in _cells(scale) for seed in scale.seeds]


def _of_seeds(count: int, buffer: float, scale: Scale, runs: Runs) -> list[Run]:
    return [runs[_equal_flows(count, buffer, scale, seed)] for seed in scale.seeds]


def _buffer_rows(scale: Scale, runs: Runs) -> list[Row]:
    found = []
    for quantity, (name, unit, measure) in _OF_BUFFER.items():
        for count, buffer in _cells(scale):
            paper = TABLE_5[quantity][count][BUFFERS_BDP.index(buffer)] if quantity in TABLE_5 else None
            ours = [measure(run, scale) for run in _of_seeds(count, buffer, scale, runs)]
            found.append(Row.of(f"{name}, {_flows(count)}, {Fraction(buffer)} BDP", unit, paper, ours))
    return found


def _draw_buffers(scale: Scale, runs: Runs) -> "Figure":
    """Rate, RTT and losses over the buffer: lines are ours, crosses the paper's."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 2.6))
    axes = figure.subplots(1, len(TABLE_5))
    for axis, (quantity, printed) in zip(axes, TABLE_5.items(), strict=True):
        name, unit, measure = _OF_BUFFER[quantity]
        for index, count in enumerate(dict.fromkeys(count for count, _ in _cells(scale))):
            buffers = [buffer for other, buffer in _cells(scale) if other == count]
            ours = [statistics.median(measure(run, scale) for run in _of_seeds(count, buffer, scale, runs)) for buffer in buffers]
            places = [BUFFERS_BDP.index(buffer) for buffer in buffers]
            axis.plot(places, ours, color=f"C{index}", label=_flows(count))
            axis.plot(printed[count], color=f"C{index}", linestyle="none", marker="x", markersize=4)
        axis.set_xticks(range(len(BUFFERS_BDP)), [str(Fraction(buffer)) for buffer in BUFFERS_BDP], fontsize=6)
        axis.set_xlabel("Buffer (BDP)")
        label = name[0].upper() + name[1:]
        axis.set_ylabel(label if unit == "1" else f"{label} ({unit})")
    axes[0].set_ylim(bottom=0)
    axes[2].set_yscale("log", nonpositive="mask")
    axes[2].yaxis.set_major_formatter("{x:.0e}")
    axes[0].legend(title="lines: ours, ×: the paper", title_fontsize=7)
    return figure


def _two_flows(scale: Scale) -> list[tuple[float, list[Job]]]:
    """Every buffer of the figures, with the runs of two flows over it."""
    return [
        (buffer, [_equal_flows(2, buffer, scale, seed) for seed in scale.seeds]) for count, buffer in _cells(scale) if count == 2
    ]


def _two_flow_jobs(scale: Scale) -> list[Job]:
    return [job for _, jobs in _two_flows(scale) for job in jobs]


#: What a box shows, by its name in a result: from whisker to whisker.
_QUANTILES = {"min": 0.0, "p5": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}


@dataclass(frozen=True)
class _Boxes:
    """Figure 5 or 6: what two flows see, as a box per buffer."""

    #: Of :data:`TABLE_5`, which has the medians.
    quantity: str
    name: str
    unit: str
    #: The quantile of that name of a run.
    quantile: Callable[[Run, Scale, str], float]
    #: Where all boxes end, by the figure's text.
    least: float

    def rows(self, scale: Scale, runs: Runs) -> list[Row]:
        found = []
        for buffer, jobs in _two_flows(scale):
            printed = (("least", "min", self.least), ("first quartile", "p25", None), ("median", "p50", self._median(buffer)))
            for name, quantile, paper in (*printed, ("third quartile", "p75", None)):
                ours = [self.quantile(runs[job], scale, quantile) for job in jobs]
                found.append(Row.of(f"{self.name}: {name}, {Fraction(buffer)} BDP", self.unit, paper, ours))
        return found

    def draw(self, scale: Scale, runs: Runs) -> "Figure":
        """Boxes are ours, whiskers the 5th and 95th percentile; crosses are the paper's medians."""
        from matplotlib.figure import Figure

        figure = Figure()
        axis = figure.subplots()
        buffers = [buffer for buffer, _ in _two_flows(scale)]
        places = range(len(buffers))
        axis.bxp(
            [self._box(scale, [runs[job] for job in jobs]) for _, jobs in _two_flows(scale)],
            positions=places,
            showfliers=False,
            medianprops={"color": "C0"},
        )
        axis.plot(places, [self._median(buffer) for buffer in buffers], "x", color="C1", label="the paper's median")
        axis.set_xticks(places, [str(Fraction(buffer)) for buffer in buffers])
        axis.set_xlabel("Buffer (BDP)")
        axis.set_ylabel(f"{self.name[0].upper()}{self.name[1:]} ({self.unit})")
        axis.legend()
        return figure

    def _median(self, buffer: float) -> float:
        return TABLE_5[self.quantity][2][BUFFERS_BDP.index(buffer)]

    def _box(self, scale: Scale, of_seeds: Sequence[Run]) -> dict[str, float]:
        """A box as Matplotlib takes it, of medians over the seeds."""
        at = {name: statistics.median(self.quantile(run, scale, name) for run in of_seeds) for name in _QUANTILES}
        return {"whislo": at["p5"], "q1": at["p25"], "med": at["p50"], "q3": at["p75"], "whishi": at["p95"]}


def _rate_quantile(run: Run, scale: Scale, name: str) -> float:
    return float(np.quantile(_combined_gbps(run, scale), _QUANTILES[name]))


_FIGURE_5 = _Boxes("rate", "combined rate", "Gbit/s", _rate_quantile, 10.0)
_FIGURE_6 = _Boxes("rtt", "RTT", "ms", lambda run, _, name: _mean_rtt_ms(run, name), float(RTT_MS))


def _flows(count: int) -> str:
    return "1 flow" if count == 1 else f"{count} flows"


# ---------------------------------------------------------------------------------------------------------------- figure 3


def _figure_3_jobs(scale: Scale) -> list[Job]:
    return [_equal_flows(1, 1.0, scale, seed) for seed in scale.seeds]


def _figure_3_rows(scale: Scale, runs: Runs) -> list[Row]:
    of_seeds = [runs[job] for job in _figure_3_jobs(scale)]
    rates = [_combined_gbps(run, scale) for run in of_seeds]
    return [
        Row.of("mean rate", "Gbit/s", None, [float(rate.mean()) for rate in rates]),
        Row.of("rate std", "Gbit/s", None, [float(rate.std()) for rate in rates]),
        Row.of("mean RTT", "ms", None, [_mean_rtt_ms(run, "mean") for run in of_seeds]),
        Row.of("RTT std", "ms", None, [_mean_rtt_ms(run, "std") for run in of_seeds]),
        Row.of("part of the link delivered", "1", None, [_utilization(run) for run in of_seeds]),
    ]


def _draw_figure_3(scale: Scale, runs: Runs) -> "Figure":
    """Pacing rate and RTT of the first seed over time."""
    from matplotlib.figure import Figure

    series = runs[_figure_3_jobs(scale)[0]].series
    figure = Figure(figsize=(3.5, 3))
    upper, lower = figure.subplots(2, 1, sharex=True)
    upper.plot(series["time_s"], series["pacing_bps"] / (1e9 * scale.rate))
    upper.set_ylabel("Pacing rate (Gbit/s)")
    upper.set_ylim(bottom=0)
    lower.plot(series["time_s"], series["rtt_ms"])
    lower.set_ylabel("RTT (ms)")
    lower.set_xlabel("Time (s)")
    return figure


# ------------------------------------------------------------------------------------------------------------ what there is

#: 100 million packets at the link's rate, and what a glance needs.
_FULL = Scale(rate=1, duration_s=30, seeds=(1,))
_FULL_SEEDS = Scale(rate=1, duration_s=30, seeds=(1, 2, 3))
_QUICK = Scale(rate=0.1, duration_s=12, seeds=(1,), few=True)
_QUICK_SEEDS = Scale(rate=0.1, duration_s=12, seeds=(1, 2, 3), few=True)

PAPER = Paper(
    key="mpc2020",
    citation="Lynn, Ghosal, Hanford, Model Predictive Congestion Control for TCP Endpoints (arXiv 2002.09825, 2020)",
    entries=(
        Entry(
            id="mpc2020-table1",
            title="Four flows with the same RTT, uncapped and capped to 3, 7, 10 and 20 packets/s",
            source="Table I, section III-A",
            readings=(_NOISE_READING, _START_READING, _LOSS_READING, _RATE_READING, _PACKETS_READING, _CAPPED_READING),
            full=_FULL_SEEDS,
            quick=_QUICK_SEEDS,
            jobs=_TABLE_1_JOBS,
            rows=_TABLE_1_ROWS,
        ),
        Entry(
            id="mpc2020-table2",
            title="Four flows with RTTs of 25 to 55 ms, uncapped and capped to 10 packets/s",
            source="Table II, section III-A",
            readings=(
                _NOISE_READING,
                _START_READING,
                _LOSS_READING,
                _RATE_READING,
                _PACKETS_READING,
                _CAPPED_READING,
                "Which uncapped flow wins is open: the paper calls its own result unpredictable.",
            ),
            full=_FULL_SEEDS,
            quick=_QUICK_SEEDS,
            jobs=_TABLE_2_JOBS,
            rows=_TABLE_2_ROWS,
        ),
        Entry(
            id="mpc2020-table5",
            title="Rate, RTT and losses of one to eight flows over buffers of 1/16 to 16 BDP",
            source="Table V and figures 5 to 7, section IV",
            readings=(
                _NOISE_READING,
                _START_READING,
                _LOSS_READING,
                _RATE_READING,
                "A full run lasts as long as 100 million packets take at 40 Gbit/s. An RTT is the mean among the flows of their "
                "medians.",
            ),
            full=_FULL,
            quick=_QUICK,
            jobs=_buffer_jobs,
            rows=_buffer_rows,
            draw=_draw_buffers,
        ),
        Entry(
            id="mpc2020-figure3",
            title="Pacing rate and RTT of a single flow over time",
            source="Figure 3, section III-A",
            readings=(
                _NOISE_READING,
                _START_READING,
                "The paper prints no numbers for this figure and no buffer: 1 BDP.",
            ),
            full=_FULL,
            quick=_QUICK,
            jobs=_figure_3_jobs,
            rows=_figure_3_rows,
            draw=_draw_figure_3,
        ),
        Entry(
            id="mpc2020-figure5",
            title="Combined rate of two flows over buffers of 1/16 to 16 BDP",
            source="Figure 5, section IV",
            readings=(
                _NOISE_READING,
                _START_READING,
                _LOSS_READING,
                "The least rate of 10 Gbit/s is in the figure's text, the medians are those of table V. Samples are 5 ms apart, "
                "whiskers are 5th and 95th percentile.",
            ),
            full=_FULL,
            quick=_QUICK,
            jobs=_two_flow_jobs,
            rows=_FIGURE_5.rows,
            draw=_FIGURE_5.draw,
        ),
        Entry(
            id="mpc2020-figure6",
            title="RTT of two flows over buffers of 1/16 to 16 BDP",
            source="Figure 6, section IV",
            readings=(
                _NOISE_READING,
                _START_READING,
                _LOSS_READING,
                "The least RTT of 25 ms is in the figure's text, the medians are those of table V. A number is the mean "
                "among the flows of theirs; whiskers are 5th and 95th percentile.",
            ),
            full=_FULL,
            quick=_QUICK,
            jobs=_two_flow_jobs,
            rows=_FIGURE_6.rows,
            draw=_FIGURE_6.draw,
        ),
    ),
)
