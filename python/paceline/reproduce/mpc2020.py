"""Lynn, Ghosal, Hanford, *Model Predictive Congestion Control for TCP Endpoints* (2020): the simulations.

One bottleneck of 40 Gbit/s and 25 ms, one to eight flows of the controller as printed. The paper's experiments on a real network
(tables III and IV, figure 4) are in ``mpc2020_sites``.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from paceline.record import Run
from paceline.reproduce import mpc2020_sites
from paceline.reproduce.entry import Entry, Job, Paper, Row, Runs, Scale
from paceline.reproduce.mpc import (
    AT_THE_DROP,
    BY_A_LATER_ACK,
    LOSS_READING,
    NOISE_READING,
    RATE_READING,
    Approach,
    Boxes,
    BufferStudy,
    Setting,
    combined_gbps,
    draw_rate_and_rtt,
    mean_rtt_ms,
    rate_quantile_gbps,
    tenth,
    utilization,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIMULATOR = Setting(label="mpc2020", title="MPC 2020", controller={"name": "mpc-2020"}, stack=AT_THE_DROP)
#: What is different in a capped flow, r_max apart.
CAPPED: dict[str, Any] = {"probe": "none"}

_START_READING = (
    "Flows start together at r_max = 2 C with a target fill of 0.1, as in the code released with the paper; its text says "
    "half-way. r_min is C/(4 N), the 5 Gbit/s that the text to figure 5 gives two flows. How long probes are is not printed: "
    "every 10 s 8 mean RTTs at r_max, then 8 at r_min; a loss begins one at r_min."
)
_PACKETS_READING = (
    "The paper's 40 packets/s would be one packet per RTT: they are taken for 40 Gbit/s. The buffer is not given: 1 BDP. Over "
    "which time it takes means and deviations is not said: the first rows are over the whole run, its start and the probes "
    "included, those called settled over the last 5 s before a probe."
)
_CAPPED_READING = (
    "A cap is the controller's r_max. Capped flows have no noise: with it no RTT could have the standard deviation of 0.0 ms "
    "that is printed, for the noise alone has 0.25 ms. And they do not probe: the climb from r_min after every probe would "
    "show in means and deviations."
)
_REACHED_READING = (
    "The way to the bottleneck's rate is from the start to the first sample of the combined rate at 95 % of it or more, once it "
    "has been below: flows start above it, and their first loss sends them to r_min. The text has about 5 s for 1/2 BDP and a "
    "fraction of a second for 1 BDP; the figure is not legible."
)

# --------------------------------------------------------------------------------------------------------- tables I and II

_FLOWS = 4
#: What the tables have of every flow: name, unit, and which statistic of which quantity it is.
_MEASURES: tuple[tuple[str, str, str, str], ...] = (
    ("mean rate", "packets/s", "pacing_bps", "mean"),
    ("rate std", "packets/s", "pacing_bps", "std"),
    ("mean RTT", "ms", "rtt_ms", "mean"),
    ("RTT std", "ms", "rtt_ms", "std"),
)
#: Probes begin this far apart; before each, flows have had the longest time to settle.
_PROBES_S = 10
_SETTLED_S = 5

#: Per case a row of the paper's for each of the measures, a number per flow.
Printed = dict[str, tuple[tuple[float, ...], ...]]

_PRINTED_1: Printed = {
    "uncapped": ((9.6, 9.5, 9.6, 10.1), (0.1, 0.1, 0.1, 0.3), (25.2, 25.2, 25.2, 25.2), (0.2, 0.2, 0.2, 0.2)),
    "capped": ((3.0, 7.0, 10.0, 18.8), (0.0, 0.1, 0.1, 0.2), (25.0, 25.0, 25.1, 25.0), (0.0, 0.0, 0.0, 0.0)),
}
_PRINTED_2: Printed = {
    "uncapped": ((5.8, 8.0, 10.5, 15.3), (1.1, 1.0, 0.6, 0.9), (25.2, 35.2, 45.2, 55.2), (0.2, 0.2, 0.2, 0.2)),
    "capped": ((9.0, 10.0, 10.0, 10.0), (0.1, 0.1, 0.0, 0.0), (25.0, 35.0, 45.0, 55.0), (0.0, 0.0, 0.0, 0.0)),
}
_CAPS_1_BPS = (3e9, 7e9, 10e9, 20e9)
_CAPS_2_BPS = (10e9,) * _FLOWS
_RTTS_2_MS = (25, 35, 45, 55)


@dataclasses.dataclass(frozen=True)
class _FourFlows:
    """A table of four flows, uncapped and capped."""

    table: str
    caps_bps: Sequence[float]
    printed: Printed
    rtts_ms: Sequence[float] = ()

    def jobs(self, scale: Scale) -> list[Job]:
        return [job for case in self.printed for job in self._of_case(case, scale)]

    def rows(self, scale: Scale, runs: Runs) -> list[Row]:
        found = []
        for case in self.printed:
            of_seeds = [runs[job] for job in self._of_case(case, scale)]
            found += self._rows(case, case, of_seeds, _over_the_run, scale)
            if case == "uncapped":
                found += self._rows(case, f"{case}, settled", of_seeds, _settled, scale)
            found.append(Row.of(f"{case}: part of the link delivered", "1", None, [utilization(run) for run in of_seeds]))
        return found

    def _rows(
        self, case: str, title: str, of_seeds: Sequence[Run], read: Callable[[Run, int, str, str], float], scale: Scale
    ) -> list[Row]:
        found = []
        for (name, unit, quantity, statistic), paper in zip(_MEASURES, self.printed[case], strict=True):
            part = 1e9 * scale.rate if quantity == "pacing_bps" else 1
            for index in range(_FLOWS):
                ours = [read(run, index, quantity, statistic) / part for run in of_seeds]
                found.append(Row.of(f"{title}: {name} of flow {index + 1}", unit, paper[index], ours))
        return found

    def _of_case(self, case: str, scale: Scale) -> list[Job]:
        """Without noise nothing is drawn: one seed says it all."""
        seeds = scale.seeds if case == "uncapped" else scale.seeds[:1]
        return [self._job(case, scale, seed) for seed in seeds]

    def _job(self, case: str, scale: Scale, seed: int) -> Job:
        capped = case == "capped"
        flows = []
        for number, cap_bps in enumerate(self.caps_bps, start=1):
            controller = SIMULATOR.controller_of(_FLOWS, scale, cap_bps=cap_bps if capped else None)
            flows.append({"name": f"flow-{number}", "controller": {**controller, **CAPPED} if capped else controller})
        return SIMULATOR.job(f"{self.table}-{case}", flows, scale, seed, noise=not capped, rtts_ms=self.rtts_ms)


def _over_the_run(run: Run, index: int, quantity: str, statistic: str) -> float:
    return float(run.result["flows"][index][quantity][statistic])


def _settled(run: Run, index: int, quantity: str, statistic: str) -> float:
    """Over the samples of the last seconds before the last probe, or of a shorter run over all."""
    import polars as pl

    end_s = _PROBES_S * (run.result["duration_s"] // _PROBES_S) or float("inf")
    name = run.result["flows"][index]["name"]
    start_s = end_s - _SETTLED_S if end_s < float("inf") else 0.0
    chosen = run.series.filter((pl.col("flow") == name) & (pl.col("time_s") > start_s) & (pl.col("time_s") < end_s))
    values = chosen[quantity].drop_nulls().to_numpy()
    return float(values.mean() if statistic == "mean" else values.std())


_TABLE_1 = _FourFlows("table1", _CAPS_1_BPS, _PRINTED_1)
_TABLE_2 = _FourFlows("table2", _CAPS_2_BPS, _PRINTED_2, _RTTS_2_MS)

# ------------------------------------------------------------------------------------------------ table V, figures 5 to 9

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

_STUDY = BufferStudy(SIMULATOR, TABLE_5)
#: Other settings, run at a tenth of the rate; some cells at full rate beside them say what that changes.
_TOLD_LATE = BufferStudy(dataclasses.replace(SIMULATOR, label="mpc2020-told-late", stack=BY_A_LATER_ACK), TABLE_5)
_TOLD_LATE_FULL = dataclasses.replace(_TOLD_LATE, counts=(2,), over=(1.0,), prefix="at full rate: ")
#: Nearer at large buffers and in what is lost, further off at small ones.
_GENTLE = BufferStudy(
    dataclasses.replace(
        SIMULATOR,
        label="mpc2020-gentle",
        controller={"name": "mpc-2020", "profile": "gentle", "after_probe": "restore", "loss": "cut", "loss_cut": 0.5},
    ),
    TABLE_5,
    counts=(2,),
)
_GENTLE_FULL = dataclasses.replace(_GENTLE, over=(1 / 4, 1.0, 4.0), prefix="at full rate: ")
_FIGURE_5 = Boxes(_STUDY, "rate", "combined rate", "Gbit/s", rate_quantile_gbps, 10.0)
_FIGURE_6 = Boxes(_STUDY, "rtt", "RTT", "ms", lambda run, _, name: mean_rtt_ms(run, name), SIMULATOR.rtt_ms)
_FIGURE_7 = dataclasses.replace(_STUDY, counts=(2,), quantities=("loss",))
_FIGURES_8_9 = Approach(_STUDY, printed_s={1 / 2: 5.0}, drawn=(1 / 4, 1 / 2, 1.0, 4.0), until_s=12)


@dataclasses.dataclass(frozen=True)
class _Variant:
    """Table V with another setting: at a tenth of the rate, and some cells at full rate."""

    at_a_tenth: BufferStudy
    at_full_rate: BufferStudy

    def jobs(self, scale: Scale) -> list[Job]:
        return [*self.at_a_tenth.jobs(tenth(scale)), *self.at_full_rate.jobs(scale)]

    def rows(self, scale: Scale, runs: Runs) -> list[Row]:
        return [*self.at_a_tenth.rows(tenth(scale), runs), *self.at_full_rate.rows(scale, runs)]

    def draw(self, scale: Scale, runs: Runs) -> "Figure":
        """The cells at a tenth."""
        return self.at_a_tenth.draw(tenth(scale), runs)


_TABLE_5_TOLD_LATE = _Variant(_TOLD_LATE, _TOLD_LATE_FULL)
_TABLE_5_GENTLE = _Variant(_GENTLE, _GENTLE_FULL)

# ---------------------------------------------------------------------------------------------------------------- figure 3


def _figure_3_jobs(scale: Scale) -> list[Job]:
    return [SIMULATOR.equal_flows(1, 1.0, scale, seed) for seed in scale.seeds]


def _figure_3_rows(scale: Scale, runs: Runs) -> list[Row]:
    of_seeds = [runs[job] for job in _figure_3_jobs(scale)]
    rates = [combined_gbps(run, scale) for run in of_seeds]
    return [
        Row.of("mean rate", "Gbit/s", None, [float(rate.mean()) for rate in rates]),
        Row.of("rate std", "Gbit/s", None, [float(rate.std()) for rate in rates]),
        Row.of("mean RTT", "ms", None, [mean_rtt_ms(run, "mean") for run in of_seeds]),
        Row.of("RTT std", "ms", None, [mean_rtt_ms(run, "std") for run in of_seeds]),
        Row.of("part of the link delivered", "1", None, [utilization(run) for run in of_seeds]),
    ]


def _draw_figure_3(scale: Scale, runs: Runs) -> "Figure":
    """Pacing rate and RTT of the first seed over time."""
    return draw_rate_and_rtt(runs[_figure_3_jobs(scale)[0]], scale, "pacing_bps", "Pacing rate")


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
            readings=(
                NOISE_READING,
                _START_READING,
                LOSS_READING,
                RATE_READING,
                _PACKETS_READING,
                _CAPPED_READING,
            ),
            verdict=(
                "Mean rates come out: within 6 % over the whole run, within 5 % once settled. The deviations of uncapped flows "
                "do not: the law as printed circles around its target, which leaves 0.4 packets/s and 1.4 ms of RTT even just "
                "before a probe, where the paper has 0.1 to 0.3 and 0.2. Capped flows keep their caps within 0.3 %, the fourth, "
                "too, which has 18.8 of 20 in the paper, with a tenth of the paper's deviations. At a tenth of the rate uncapped "
                "flows were much the same (settled RTTs had 1.35 ms), and capped ones had the deviations of the paper, which "
                "does not say how large its packets are."
            ),
            full=_FULL_SEEDS,
            quick=_QUICK_SEEDS,
            jobs=_TABLE_1.jobs,
            rows=_TABLE_1.rows,
        ),
        Entry(
            id="mpc2020-table2",
            title="Four flows with RTTs of 25 to 55 ms, uncapped and capped to 10 packets/s",
            source="Table II, section III-A",
            readings=(
                NOISE_READING,
                _START_READING,
                LOSS_READING,
                RATE_READING,
                _PACKETS_READING,
                _CAPPED_READING,
                "Which uncapped flow wins is open: the paper calls its own result unpredictable.",
            ),
            verdict=(
                "Capped flows come out, uncapped ones do not: the flow of the shortest RTT has more than half of the link, where "
                "in the paper that of the longest has 15.3 of 40. No other reading gave the paper's order: targets of 0.02, 0.5 "
                "and 0.9, gentle, pulsed and no probes, a start at r_min, r_B by the gradient, at send times and over a window, "
                "a cut in place of the probe at a loss, the constants of the released simulator and module (22 variants, at 2 % "
                "of the rates). The paper's mechanism, a low target that favours long RTTs, did not show either."
            ),
            full=_FULL_SEEDS,
            quick=_QUICK_SEEDS,
            jobs=_TABLE_2.jobs,
            rows=_TABLE_2.rows,
        ),
        mpc2020_sites.TABLE_3,
        mpc2020_sites.TABLE_4,
        Entry(
            id="mpc2020-table5",
            title="Rate, RTT and losses of one to eight flows over buffers of 1/16 to 16 BDP",
            source="Table V and figures 5 to 7, section IV",
            readings=(
                NOISE_READING,
                _START_READING,
                LOSS_READING,
                RATE_READING,
                "A run lasts as long as 100 million packets take at 40 Gbit/s. An RTT is the mean among the flows of their "
                "medians.",
            ),
            verdict=(
                "Up to 1 BDP rates and RTTs come out, but for 1/8 and 1/4 BDP, where flows are up to half as fast again, and 1/2 "
                "BDP is the least buffer that fills the link, as in the paper. At larger buffers flows swing between r_min and "
                "more than the link's rate, and their medians leave the paper's, most at 16 BDP. A flow loses one or two packets "
                "per probe whatever the buffer and the rate. At 8 and 16 BDP that is about what the paper loses; up to 1 BDP it "
                "loses 6 to 300 times as many. Gentle probes (mpc2020-table5-gentle) bring large buffers nearer and small ones "
                "further off."
            ),
            full=_FULL,
            quick=_QUICK,
            jobs=_STUDY.jobs,
            rows=_STUDY.rows,
            draw=_STUDY.draw,
        ),
        Entry(
            id="mpc2020-table5-told-late",
            title="Table V with losses told an RTT later, by the ACK of a later packet",
            source="Table V, section IV",
            readings=(
                NOISE_READING,
                _START_READING,
                RATE_READING,
                "The same runs as for table V but for one option: `tell_losses` of the endpoint is `detected`, as on a real "
                "network.",
                "They are run at a tenth of the rate: what is lost is what flows send too fast for an RTT, a part of all packets "
                "that does not depend on the rate. Two flows over 1 BDP are at full rate beside them.",
            ),
            verdict=(
                "Half a percent of all packets is lost with one flow, 10 to 40 % with eight, two to six orders of magnitude more "
                "than in the paper, while rates and RTTs stay close to those of table V; only up to 1/4 BDP are flows faster, "
                "and eight at 16 BDP slower. The published losses so need an endpoint that knows of a drop at once, which no "
                "network has."
            ),
            full=_FULL,
            quick=_QUICK,
            jobs=_TABLE_5_TOLD_LATE.jobs,
            rows=_TABLE_5_TOLD_LATE.rows,
            draw=_TABLE_5_TOLD_LATE.draw,
        ),
        Entry(
            id="mpc2020-table5-gentle",
            title="Table V with gentle probes, and the rate halved by a loss",
            source="Table V, section IV",
            readings=(
                NOISE_READING,
                LOSS_READING,
                RATE_READING,
                "Another reading of what is not printed: probes of 1.25 and 0.5 r_B for two RTTs, after which the rate goes on "
                "from where it was, and a loss halves it, as in the simulator that was released with the paper. Two flows.",
                "It is run at a tenth of the rate; 1/4, 1 and 4 BDP are at full rate beside it, for losses are not in proportion "
                "here.",
            ),
            verdict=(
                "Rates come within 8 % of the paper's from 1/2 to 16 BDP and RTTs within 9 % up to 8 BDP, where the probes of "
                "table V do not come near from 4 BDP on. At 1/16 to 1/4 BDP nothing holds the flows at r_min, and they are two "
                "to four times as fast as the paper's. Losses fall steeply between 2 and 4 BDP, as in the paper, but up to 8 BDP "
                "they are 3 to 60 times as many: of what was tried nothing lies between these and the few of table V."
            ),
            full=_FULL,
            quick=_QUICK,
            jobs=_TABLE_5_GENTLE.jobs,
            rows=_TABLE_5_GENTLE.rows,
            draw=_TABLE_5_GENTLE.draw,
        ),
        Entry(
            id="mpc2020-figure3",
            title="Pacing rate and RTT of a single flow over time",
            source="Figure 3, section III-A",
            readings=(
                NOISE_READING,
                _START_READING,
                LOSS_READING,
                "The paper prints no numbers for this figure and no buffer: 1 BDP.",
            ),
            verdict=(
                "After every probe the rate takes two seconds from r_min to the link's, and then circles around it, less and "
                "less until the next. There are no cuts, as the paper says, but the climb is one tooth per probe; over the whole "
                "run, probes included, the rate is 37.1 ± 6.8 Gbit/s and the RTT 26.7 ± 2.2 ms."
            ),
            full=_FULL,
            quick=_QUICK,
            jobs=_figure_3_jobs,
            rows=_figure_3_rows,
            draw=_draw_figure_3,
        ),
        mpc2020_sites.FIGURE_4,
        Entry(
            id="mpc2020-figure5",
            title="Combined rate of two flows over buffers of 1/16 to 16 BDP",
            source="Figure 5, section IV",
            readings=(
                NOISE_READING,
                _START_READING,
                LOSS_READING,
                "The least rate of 10 Gbit/s is in the figure's text, the medians are those of table V. Samples are 5 ms apart, "
                "whiskers are 5th and 95th percentile.",
            ),
            verdict=(
                "Medians are within 7 % of the paper's from 1/2 to 2 BDP, and all boxes end at 10 Gbit/s as in the text. At 1/8 "
                "and 1/4 BDP flows climb faster than in the paper; from 4 BDP on they swing more, which lowers their medians to "
                "0.67 of the paper's at 16 BDP. That boxes are narrowest from 1/2 to 1 BDP is what text and caption have."
            ),
            full=_FULL,
            quick=_QUICK,
            jobs=_FIGURE_5.jobs,
            rows=_FIGURE_5.rows,
            draw=_FIGURE_5.draw,
        ),
        Entry(
            id="mpc2020-figure6",
            title="RTT of two flows over buffers of 1/16 to 16 BDP",
            source="Figure 6, section IV",
            readings=(
                NOISE_READING,
                _START_READING,
                LOSS_READING,
                "The least RTT of 25 ms is in the figure's text, the medians are those of table V. A number is the mean "
                "among the flows of theirs; whiskers are 5th and 95th percentile.",
            ),
            verdict=(
                "Medians are within 8 % of the paper's up to 4 BDP, and the least RTT is that of an empty buffer everywhere. At "
                "8 and 16 BDP ours are 1.5 and 2 times as large: the swings of figure 5 fill the buffer for part of every turn."
            ),
            full=_FULL,
            quick=_QUICK,
            jobs=_FIGURE_6.jobs,
            rows=_FIGURE_6.rows,
            draw=_FIGURE_6.draw,
        ),
        Entry(
            id="mpc2020-figure7",
            title="Losses of two flows over buffers of 1/16 to 16 BDP",
            source="Figure 7, section IV",
            readings=(NOISE_READING, _START_READING, LOSS_READING, "The numbers are those of table V."),
            verdict=(
                "From 4 BDP on losses are the paper's, about ten in 100 million packets. They are nine or ten packets per run at "
                "every buffer, where the paper's rise to 3.3e-5 of all packets at 1/16 BDP (ours 3.5e-7): a probe ends with the "
                "packet that is lost, as the text says it does, and so costs the same everywhere. With gentle probes and a rate "
                "that a loss halves (mpc2020-table5-gentle) they fall steeply at 4 BDP, as in the paper, but from far too high."
            ),
            full=_FULL,
            quick=_QUICK,
            jobs=_FIGURE_7.jobs,
            rows=_FIGURE_7.rows,
            draw=_FIGURE_7.draw,
        ),
        Entry(
            id="mpc2020-figure8",
            title="Time that two flows take to the bottleneck's rate over buffers of 1/16 to 16 BDP",
            source="Figure 8, section IV",
            readings=(NOISE_READING, _START_READING, LOSS_READING, _REACHED_READING),
            verdict=(
                "The time falls with the buffer and levels out at 0.6 s from 4 BDP on, in the paper from 8 BDP on. At 1/2 BDP it "
                "is 3.6 s for about 5, at 1 BDP 1.6 s for a fraction of one. With 1/16 and 1/8 BDP flows never get there, which "
                "is the paper's table V, too."
            ),
            full=_FULL,
            quick=_QUICK,
            jobs=_FIGURES_8_9.jobs,
            rows=_FIGURES_8_9.rows,
            draw=_FIGURES_8_9.draw,
        ),
        Entry(
            id="mpc2020-figure9",
            title="Combined rate of two flows over time with buffers of 1/4 to 4 BDP",
            source="Figure 9, section IV",
            readings=(
                NOISE_READING,
                _START_READING,
                LOSS_READING,
                _REACHED_READING,
                "Which buffers the figure has beside 1/2 and 1 BDP cannot be read: 1/4 and 4 BDP.",
            ),
            verdict=(
                "As in the paper a buffer of 1/2 BDP takes seconds and larger ones less, and the spikes are probes: two flows at "
                "r_max are four times the link's rate. The low variance that the paper describes is there from 1/2 to 1 BDP; at "
                "4 BDP the rate swings for as long as the run lasts."
            ),
            full=_FULL,
            quick=_QUICK,
            jobs=_FIGURES_8_9.over_time_jobs,
            rows=_FIGURES_8_9.over_time_rows,
            draw=_FIGURES_8_9.draw_over_time,
        ),
    ),
)
