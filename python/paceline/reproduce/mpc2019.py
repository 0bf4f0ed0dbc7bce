"""Lynn, Hanford, Ghosal, *Impact of Buffer Size on a Congestion Control Algorithm Based on Model Predictive Control* (2019).

One bottleneck of 40 Gbit/s and 25 ms, one to eight flows of the controller as printed, buffers of 1/16 to 16 BDP: rate, RTT and
losses, how long flows take to the bottleneck's rate, and how long a late one takes to its share.
"""

import dataclasses
import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paceline.reproduce.entry import Entry, Job, Paper, Row, Runs, Scale
from paceline.reproduce.late import LateFlow, jain, rates_of_flows
from paceline.reproduce.mpc import (
    AT_THE_DROP,
    BUFFERS_BDP,
    BY_A_LATER_ACK,
    LOSS_READING,
    MEASURES,
    NOISE_READING,
    RATE_READING,
    REACHED,
    Approach,
    Boxes,
    BufferStudy,
    Setting,
    buffer_text,
    combined_gbps,
    logarithmic,
    mean_rtt_ms,
    over_buffers,
    rate_quantile_gbps,
    tenth,
    thinned,
    utilization,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIMULATOR = Setting(label="mpc2019", title="MPC 2019", controller={"name": "mpc-2019"}, stack=AT_THE_DROP)

_START_READING = (
    "Flows start together at r_max = 2 C with a target fill of 0.1, as in the code released a year later; the paper says "
    "half-way, but half-way up a buffer of 1 BDP is 37.5 ms, where it prints a median of 26.0. r_min is C/(4 N), the 5 Gbit/s "
    "that the text to figure 1 gives two flows. Not in the paper: probes are pulses of the target every 10 s, a lost packet cuts "
    "the rate to 0.7. In it: probing stops as soon as a loss is detected. A loss so ends a flow's pulse up, which is taken to "
    "last for the quarter of the cycle around its centre."
)
_TENTH_READING = (
    "Two flows run at 40 Gbit/s for the 30 s that 100 million packets take, everything else at a tenth of all rates, where the "
    "law, which works in relative rates and in time, does nearly the same: two flows are shown at both. A probe loses as many "
    "packets there, of a tenth as many: fractions are divided by ten where losses are told at the drop."
)
_PROFILE_READING = (
    "Beside the controller as printed are two of its profiles: `integral` estimates r_B as the 2020 paper does, `gentle` also "
    "probes by two RTTs at 1.25 and 0.5 r_B in place of the pulses."
)
_REACHED_READING = (
    "The bottleneck's rate counts as reached when the combined pacing rate is first at 95 % of it after it has been below: flows "
    "that start at 2 C are above at once, and what takes time is the way back from their first losses. The paper gives no rule."
)
_HALVING_READING = (
    "Beside the controller as printed, at a tenth of the rate: its profile `simulator`, which halves the rate at each lost "
    "packet, as the released code does."
)
_LATE_READING = (
    "The second flow starts 10 s after the first, and the time counts from there to the end 62 s later; all rates are a "
    "twentieth of the paper's. Jain's index is that of mean pacing rates over 1 s. That of single samples, 5 ms apart, falls "
    "below 0.9 in probes, which come every 10 s: their last one decides."
)
_NEWCOMER_READING = (
    "The second flow starts at r_max like the first. Beside it, `from r_min`, one that starts at 5 Gbit/s. Probes come every 10 "
    "s from a flow's start on, which puts those of a flow that starts 10 s later in step. Beside it, over two buffers, one that "
    "starts 15 s later and is watched for 57 s: its probes up are those down of the first."
)

# ---------------------------------------------------------------------------------------------------- table 1, figures 1 to 3

#: Median combined rate, Gbit/s; median RTT, ms; losses over packets sent. By number of flows, a number per buffer.
TABLE_1: dict[str, dict[int, tuple[float, ...]]] = {
    "rate": {
        1: (24.5, 34.4, 39.8, 39.8, 39.6, 39.4, 39.2, 39.2, 38.4),
        2: (33.8, 39.8, 39.8, 39.6, 39.4, 39.2, 38.7, 38.2, 10.1),
        4: (35.8, 39.7, 39.9, 39.7, 39.6, 39.0, 38.0, 36.5, 10.0),
        8: (39.1, 39.7, 39.8, 39.9, 39.8, 39.7, 38.2, 26.7, 10.2),
    },
    "rtt": {
        1: (25.2, 25.2, 25.3, 25.5, 25.9, 26.8, 27.5, 27.9, 28.9),
        2: (25.2, 25.3, 25.4, 25.5, 26.0, 27.1, 29.6, 33.4, 109.1),
        4: (25.2, 25.3, 25.4, 25.5, 25.7, 27.1, 32.2, 41.5, 165.8),
        8: (25.3, 25.3, 25.4, 25.4, 25.4, 25.5, 33.5, 59.5, 175.4),
    },
    "loss": {
        1: (4.42e-8, 3.42e-8, 3.72e-8, 3.51e-8, 3.50e-8, 2.77e-8, 7.04e-9, 2.84e-8, 1.95e-7),
        2: (9.54e-8, 8.38e-8, 9.13e-8, 8.36e-8, 9.11e-8, 9.80e-8, 5.01e-8, 1.85e-7, 1.23e-6),
        4: (1.83e-7, 1.55e-7, 1.65e-7, 1.30e-7, 9.58e-8, 1.48e-7, 3.59e-7, 5.05e-7, 2.23e-6),
        8: (4.09e-7, 3.42e-7, 2.40e-7, 2.44e-7, 2.31e-7, 2.32e-7, 4.88e-7, 2.13e-6, 3.47e-6),
    },
}


@dataclass(frozen=True)
class Cells(BufferStudy):
    """A study some of whose cells run at a tenth of the rate, with losses told at the drop taken times the rate.

    The law works in relative rates and in time: at a tenth of the rate a probe loses as many packets of a tenth as many.
    """

    #: The numbers of flows that run at a tenth.
    slow: tuple[int, ...] = ()

    def scaled(self, count: int, scale: Scale) -> Scale:
        """The scale of the cells of ``count`` flows."""
        return tenth(scale) if count in self.slow else scale

    def of_cell(self, count: int, buffer: float, scale: Scale) -> list[Job]:
        """The runs of a cell, one per seed."""
        return super().of_cell(count, buffer, self.scaled(count, scale))

    def values(self, count: int, buffer: float, quantity: str, scale: Scale, runs: Runs) -> list[float]:
        """What was measured in a cell, one value per seed."""
        scaled = self.scaled(count, scale)
        found = [MEASURES[quantity].of(runs[job], scaled) for job in self.of_cell(count, buffer, scale)]
        at_the_drop = self.setting.stack == AT_THE_DROP
        return [value * scaled.rate for value in found] if quantity == "loss" and at_the_drop else found

    def of_two_flows(self) -> "Cells":
        """Of the study what the paper's table has of two flows."""
        return dataclasses.replace(self, counts=(2,), quantities=tuple(self.printed))

    def nearness(self, scale: Scale, runs: Runs) -> list[Row]:
        """In how many cells ours comes near the paper's."""
        cells = self.cells(scale)
        found = []
        for quantity, (name, factor) in _NEAR.items():
            near = 0
            for count, buffer in cells:
                ours = statistics.median(self.values(count, buffer, quantity, scale, runs))
                paper = self.paper(count, buffer, quantity)
                near += paper is not None and ours > 0 and abs(math.log(ours / paper)) <= math.log(factor)
            found.append(Row.of(f"{self.prefix}cells with the {name} of the paper's", f"of {len(cells)}", None, [near]))
        return found


#: What counts as near: how rows say it, and the factor.
_NEAR = {"rate": ("rate within 5 %", 1.05), "rtt": ("RTT within 5 %", 1.05), "loss": ("losses within a factor of 2", 2.0)}

#: Full rate where the figures look, a tenth where the table has more.
STUDY = Cells(SIMULATOR, TABLE_1, slow=(1, 4, 8))


def _beside(name: str, **different: Any) -> Cells:
    """The study with another setting: run at a tenth of the rate."""
    setting = dataclasses.replace(SIMULATOR, label=f"mpc2019-{name.replace(' ', '-')}", **different)
    return Cells(setting, TABLE_1, prefix=f"{name}: ")


#: Profiles of the controller: what they change is said where they are registered.
INTEGRAL = _beside("integral", controller={"name": "mpc-2019:integral"})
GENTLE = _beside("gentle", controller={"name": "mpc-2019:gentle"})
#: Of two flows alone: told otherwise, cut otherwise, and as in the table but for rate and seeds.
LATER_ACK = dataclasses.replace(_beside("told by a later ACK", stack=BY_A_LATER_ACK), counts=(2,))
HALVING = dataclasses.replace(_beside("simulator", controller={"name": "mpc-2019:simulator"}), counts=(2,))
TENTH = dataclasses.replace(_beside("a tenth of the rate"), counts=(2,))


def _three_seeds(scale: Scale) -> Scale:
    return scale if scale.few else dataclasses.replace(tenth(scale), seeds=(1, 2, 3))


def _table_1_jobs(scale: Scale) -> list[Job]:
    profiles = [job for study in (INTEGRAL, GENTLE) for job in study.jobs(tenth(scale))]
    return [*STUDY.jobs(scale), *profiles, *TENTH.jobs(_three_seeds(scale))]


def _table_1_rows(scale: Scale, runs: Runs) -> list[Row]:
    slow = tenth(scale)
    beside = ((INTEGRAL, slow), (GENTLE, slow), (TENTH, _three_seeds(scale)))
    return [
        *STUDY.rows(scale, runs),
        *STUDY.nearness(scale, runs),
        *(row for study in (INTEGRAL, GENTLE) for row in study.nearness(slow, runs)),
        *(row for study, at in beside for row in study.of_two_flows().rows(at, runs)),
    ]


_WHOLE = ("min", "max")
_FIGURE_1 = Boxes(STUDY, "rate", "combined rate", "Gbit/s", rate_quantile_gbps, 10.0, whiskers=_WHOLE)
_FIGURE_2 = Boxes(STUDY, "rtt", "RTT", "ms", lambda run, _, name: mean_rtt_ms(run, name), SIMULATOR.rtt_ms, whiskers=_WHOLE)
#: How far the whiskers of figure 1 extend where the paper cuts them off, Gbit/s.
_CUT_OFF = {4.0: 120.0, 8.0: 120.0, 16.0: 120.0}


def _figure_1_rows(scale: Scale, runs: Runs) -> list[Row]:
    rows = _FIGURE_1.rows(scale, runs)
    for buffer in STUDY.buffers(2, scale):
        most = [rate_quantile_gbps(runs[job], scale, "max") for job in STUDY.of_cell(2, buffer, scale)]
        rows.append(Row.of(f"combined rate: most, {buffer_text(buffer)} BDP", "Gbit/s", _CUT_OFF.get(buffer), most))
        delivered = STUDY.values(2, buffer, "delivered", scale, runs)
        rows.append(Row.of(f"part of the link delivered, {buffer_text(buffer)} BDP", "1", None, delivered))
    return rows


def _draw_figure_1(scale: Scale, runs: Runs) -> "Figure":
    """As in the paper, with the whiskers of large buffers cut off."""
    figure = _FIGURE_1.draw(scale, runs)
    figure.axes[0].set_ylim(0, 90)
    return figure


def _draw_figure_2(scale: Scale, runs: Runs) -> "Figure":
    """As in the paper, over a logarithmic axis."""
    figure = _FIGURE_2.draw(scale, runs)
    axis = figure.axes[0]
    axis.set_yscale("log")
    axis.set_yticks(ticks := (25, 50, 100, 200, 400), [str(tick) for tick in ticks], minor=False)
    axis.minorticks_off()
    return figure


#: What figure 3 shows is a count: of this many packets.
_PACKETS = 1e8


def _figure_3_jobs(scale: Scale) -> list[Job]:
    return [*_FIGURE_1.jobs(scale), *LATER_ACK.jobs(tenth(scale))]


def _figure_3_rows(scale: Scale, runs: Runs) -> list[Row]:
    found = []
    for study, at in ((STUDY, scale), (LATER_ACK, tenth(scale))):
        for buffer in study.buffers(2, at):
            paper = study.paper(2, buffer, "loss")
            assert paper is not None
            ours = [value * _PACKETS for value in study.values(2, buffer, "loss", at, runs)]
            name = f"{study.prefix}losses of 2 flows, {buffer_text(buffer)} BDP"
            found.append(Row.of(name, "per 100 million", paper * _PACKETS, ours))
    return found


def _draw_figure_3(scale: Scale, runs: Runs) -> "Figure":
    """Losses over the buffer, told at the drop and by a later ACK."""
    from matplotlib.figure import Figure

    figure = Figure()
    axis = figure.subplots()
    cases = ((STUDY, scale, "told at the drop", "C0"), (LATER_ACK, tenth(scale), "told by a later ACK", "C2"))
    for study, at, label, colour in cases:
        buffers = study.buffers(2, at)
        ours = [statistics.median(study.values(2, buffer, "loss", at, runs)) for buffer in buffers]
        axis.plot([BUFFERS_BDP.index(buffer) for buffer in buffers], ours, color=colour, label=label)
    axis.plot(TABLE_1["loss"][2], "x", color="C1", label="the paper")
    over_buffers(axis)
    logarithmic(axis)
    axis.set_ylabel(MEASURES["loss"].axis)
    axis.legend()
    return figure


# ----------------------------------------------------------------------------------------------------------- figures 4 and 5

_REACHED_S = {1 / 4: 5.5, 4.0: 1.0}
_APPROACH = Approach(STUDY, _REACHED_S, drawn=tuple(_REACHED_S), until_s=10)
_HALVING_APPROACH = dataclasses.replace(_APPROACH, study=HALVING)


def _figure_4_jobs(scale: Scale) -> list[Job]:
    return [*_APPROACH.jobs(scale), *_HALVING_APPROACH.jobs(tenth(scale))]


def _figure_4_rows(scale: Scale, runs: Runs) -> list[Row]:
    halving = _HALVING_APPROACH.rows(tenth(scale), runs)
    return [
        *_APPROACH.rows(scale, runs),
        *(dataclasses.replace(row, quantity=f"{HALVING.prefix}{row.quantity}") for row in halving),
    ]


def _draw_figure_4(scale: Scale, runs: Runs) -> "Figure":
    """The time over the buffer, of both cuts."""
    figure = _APPROACH.draw(scale, runs)
    axis = figure.axes[0]
    slow = tenth(scale)
    found = {buffer: _HALVING_APPROACH.times_s(buffer, slow, runs) for buffer in HALVING.buffers(2, slow)}
    reached = [(BUFFERS_BDP.index(buffer), statistics.median(times_s)) for buffer, times_s in found.items() if times_s]
    axis.plot(*zip(*reached, strict=True), color="C2", marker="o", markersize=3, label="ours, halving on loss")
    axis.legend()
    return figure


def _figure_5_rows(scale: Scale, runs: Runs) -> list[Row]:
    found = []
    for buffer, printed_s in _REACHED_S.items():
        combined = [combined_gbps(runs[job], scale) for job in STUDY.of_cell(2, buffer, scale)]
        of = f"{buffer_text(buffer)} BDP"
        times_s = _APPROACH.times_s(buffer, scale, runs)
        found += [
            Row.of(f"{of}: time to {100 * REACHED:g} % of the bottleneck's rate", "s", printed_s, times_s),
            Row.of(f"{of}: combined rate over the whole run, mean", "Gbit/s", None, [float(rate.mean()) for rate in combined]),
            Row.of(f"{of}: its standard deviation", "Gbit/s", None, [float(rate.std()) for rate in combined]),
            Row.of(f"{of}: part of the link delivered", "1", None, STUDY.values(2, buffer, "delivered", scale, runs)),
        ]
    return found


# ------------------------------------------------------------------------------------------------------ table 2, figure 6

#: When the second flow starts, in the paper and out of step with the first one's probes, which come every 10 s.
LATE_S = 10.0
OUT_OF_STEP_S = 15.0
#: Time to converge, s; the table omits buffers over which flows never did.
TABLE_2 = {1 / 16: 1.0, 1 / 8: 1.0, 1 / 4: 19.0, 1 / 2: 26.0, 1.0: 26.0, 2.0: 42.0}


_LATE = LateFlow(SIMULATOR, TABLE_2, LATE_S)
_LATE_AND_LOW = dataclasses.replace(_LATE, start="r_min", prefix="from r_min: ")
_OUT_OF_STEP = dataclasses.replace(_LATE, late_s=OUT_OF_STEP_S, over=(1 / 4, 1.0), prefix=f"{OUT_OF_STEP_S:g} s later: ")
_LATE_STUDIES = (_LATE, _LATE_AND_LOW, _OUT_OF_STEP)


def _table_2_jobs(scale: Scale) -> list[Job]:
    return [job for late in _LATE_STUDIES for job in late.jobs(scale)]


def _table_2_rows(scale: Scale, runs: Runs) -> list[Row]:
    return [row for late in _LATE_STUDIES for row in late.rows(scale, runs)]


def _draw_table_2(scale: Scale, runs: Runs) -> "Figure":
    """A point per seed, those that never converge above the line; crosses are the paper's."""
    from matplotlib.figure import Figure

    figure = Figure()
    axis = figure.subplots()
    end_s = scale.common_s - LATE_S
    for late, label, colour, shift in ((_LATE, "ours", "C0", -0.15), (_LATE_AND_LOW, "ours, flow 2 from r_min", "C2", 0.15)):
        points = [
            (BUFFERS_BDP.index(buffer) + shift, 1.1 * end_s if time_s is None else time_s)
            for buffer in late.buffers(scale)
            for time_s in late.times_s(buffer, scale, runs)
        ]
        axis.plot(*zip(*points, strict=True), "o", color=colour, markersize=3, alpha=0.6, label=label)
    axis.plot([BUFFERS_BDP.index(buffer) for buffer in TABLE_2], list(TABLE_2.values()), "x", color="C1", label="the paper")
    axis.axhline(end_s, color="0.6", linewidth=0.6)
    axis.set_ylim(top=1.6 * end_s)
    axis.set_ylabel("Time to converge (s)\nabove the line: never")
    over_buffers(axis)
    axis.legend(loc="upper right")
    return figure


#: The buffer of figure 6.
_FIGURE_6_BDP = 1.0


def _figure_6_jobs(scale: Scale) -> list[Job]:
    return _LATE.jobs_of(_FIGURE_6_BDP, scale)


def _figure_6_rows(scale: Scale, runs: Runs) -> list[Row]:
    of_seeds = [runs[job] for job in _figure_6_jobs(scale)]
    shares = [_LATE.shares(run, scale, _LATE.window_s(scale)) / (1e9 * scale.rate) for run in of_seeds]
    times_s = _LATE.times_s(_FIGURE_6_BDP, scale, runs)
    last = [share[-10:] for share in shares]
    return [
        Row.of("time to converge, of the seeds that do", "s", TABLE_2[_FIGURE_6_BDP], times_s, comparable=False),
        Row.of("first second of flow 2: rate of flow 1", "Gbit/s", None, [float(share[0, 0]) for share in shares]),
        Row.of("first second of flow 2: rate of flow 2", "Gbit/s", None, [float(share[0, 1]) for share in shares]),
        Row.of("last 10 s: rate of flow 1", "Gbit/s", None, [float(share[:, 0].mean()) for share in last]),
        Row.of("last 10 s: rate of flow 2", "Gbit/s", None, [float(share[:, 1].mean()) for share in last]),
        Row.of("last 10 s: least of Jain's index", "1", None, [float(jain(share).min()) for share in last]),
        Row.of("part of the link delivered", "1", None, [utilization(run) for run in of_seeds]),
    ]


def _draw_figure_6(scale: Scale, runs: Runs) -> "Figure":
    """Pacing rates of the first seed, as the paper draws them, and the means that Jain's index is taken of."""
    from matplotlib.figure import Figure

    figure = Figure()
    axis = figure.subplots()
    time_s, rates = rates_of_flows(runs[_figure_6_jobs(scale)[0]])
    for index in range(rates.shape[1]):
        started = rates[:, index] > 0
        line = thinned(time_s[started], rates[started, index] / (1e9 * scale.rate))
        axis.plot(*line, color=f"C{index}", linewidth=0.6, label=f"flow {index + 1}")
    axis.axvline(
        _LATE.started_s(scale) + TABLE_2[_FIGURE_6_BDP],
        color="0.5",
        linestyle="--",
        linewidth=0.8,
        label="the paper's convergence",
    )
    axis.set_ylim(0, 2 * SIMULATOR.capacity_bps / 1e9)
    axis.set_xlabel("Time (s)")
    axis.set_ylabel("Pacing rate (Gbit/s)")
    axis.legend()
    return figure


# ------------------------------------------------------------------------------------------------------------ what there is

#: 100 million packets at the link's rate, and what a glance needs.
_FULL = Scale(rate=1, duration_s=30, seeds=(1,))
_QUICK = Scale(rate=0.1, duration_s=12, seeds=(1,), few=True)
#: More than a minute after the late flow, in which the paper's slowest pair needs 42 s.
_FULL_LATE = Scale(rate=0.05, duration_s=72, seeds=(1, 2, 3, 4, 5))
_QUICK_LATE = Scale(rate=0.01, duration_s=40, seeds=(1, 2, 3), few=True)

PAPER = Paper(
    key="mpc2019",
    citation=(
        "Lynn, Hanford, Ghosal, Impact of Buffer Size on a Congestion Control Algorithm Based on Model Predictive Control "
        "(Buffer Sizing Workshop 2019)"
    ),
    entries=(
        Entry(
            id="mpc2019-table1",
            title="Rate, RTT and losses of one to eight flows over buffers of 1/16 to 16 BDP",
            source="Table 1, section 4.2",
            readings=(
                NOISE_READING,
                _START_READING,
                LOSS_READING,
                RATE_READING,
                _TENTH_READING,
                _PROFILE_READING,
                "An RTT is the mean among the flows of their medians.",
            ),
            full=_FULL,
            quick=_QUICK,
            jobs=_table_1_jobs,
            rows=_table_1_rows,
            draw=STUDY.draw,
            verdict=(
                "Medians come out up to 1 BDP: rates within 4 % of the paper's and RTTs within 2 %, but for 1/16 BDP, and 1/8 "
                "with one flow, where ours use more of the link. From 2 BDP on ours swing wider: with two or four flows the "
                "median falls to r_min at 8 BDP, not at 16 (under `integral` at 16, as in the paper), and RTTs are up to 3.1 "
                "times theirs; it is a median of the time, for 94 to 98 % of the link is delivered where it is 10 Gbit/s. Up to "
                "1 BDP one flow loses 1.4 to 2.1 times as much as the paper's, two 1.6 to 2.7 times, eight 2.3 to 5 times. With "
                "two flows eight packets of it are the start, with eight some 70, for all begin at 2 C and come down by cuts of "
                "0.7; the rest is a few packets per pulse. That a loss ends its pulse, which the paper says of its probes, was "
                "left out here first: losses were 3 to 7 times the paper's, and at 16 BDP 7 times with two flows, where they are "
                "now a fifth. `gentle`, whose probes are not pulses, loses at most 1.6 times what two flows lose up to 2 BDP and "
                "has 29 of 36 rates within 5 %, but knows no fall at 16 BDP."
            ),
        ),
        Entry(
            id="mpc2019-table2",
            title="How long two flows take to fair shares when the second starts 10 s later",
            source="Table 2, section 4.2",
            readings=(NOISE_READING, _START_READING, LOSS_READING, _LATE_READING, _NEWCOMER_READING),
            full=_FULL_LATE,
            quick=_QUICK_LATE,
            jobs=_table_2_jobs,
            rows=_table_2_rows,
            draw=_draw_table_2,
            verdict=(
                "No one number comes out. Up to 2 BDP one to four of five seeds get to fair shares, after 0 to 61 s, and the "
                "others never; by single samples the last probe is what counts. From r_max the medians are 38, 52, 0 and 26 s at "
                "1/4 to 2 BDP, where the paper has 19 to 42: the newcomer's first losses are the other's too, which may make "
                "shares like at once. From r_min they are 32, 55, 22 and 22 s, there with every seed from 1 BDP on; with probes "
                "out of step (15 s later) 51 s. The paper's trend does not come out either way: ours need as long at 1/16 and "
                "1/8 BDP, where it has 1 s, and converge with every seed from 4 BDP on, where it has never."
            ),
        ),
        Entry(
            id="mpc2019-figure1",
            title="Combined rate of two flows over buffers of 1/16 to 16 BDP",
            source="Figure 1, section 4.2",
            readings=(
                NOISE_READING,
                _START_READING,
                LOSS_READING,
                RATE_READING,
                "Whiskers are the whole range, as in the paper, of samples 5 ms apart. The least rate of 10 Gbit/s and the most "
                "of 120 are in the figure's text, the medians are those of table 1.",
            ),
            full=_FULL,
            quick=_QUICK,
            jobs=_FIGURE_1.jobs,
            rows=_figure_1_rows,
            draw=_draw_figure_1,
            verdict=(
                "Boxes are narrow up to 1/2 BDP and widen with the buffer as in the paper, narrowest at 1/8 BDP where its "
                "caption has 1/4. The rate falls to r_min only from 1 BDP on, for up to 1/4 BDP the pulse down needs no more "
                "than about a quarter off. The most is 160 Gbit/s, the start at 2 C of both flows: with 120 the paper's cannot "
                "both have started so."
            ),
        ),
        Entry(
            id="mpc2019-figure2",
            title="RTT of two flows over buffers of 1/16 to 16 BDP",
            source="Figure 2, section 4.2",
            readings=(
                NOISE_READING,
                _START_READING,
                LOSS_READING,
                "A number is the mean among the flows of theirs; whiskers are the whole range. The least RTT of 25 ms is in the "
                "figure's text, the medians are those of table 1.",
            ),
            full=_FULL,
            quick=_QUICK,
            jobs=_FIGURE_2.jobs,
            rows=_FIGURE_2.rows,
            draw=_draw_figure_2,
            verdict=(
                "The range grows with the buffer and ends at 25 ms as in the paper. Medians are within 5 % of the paper's up to "
                "2 BDP and 1.5 to 3.1 times above from 4 BDP on, where the target is passed by as much as the feedback is late."
            ),
        ),
        Entry(
            id="mpc2019-figure3",
            title="Losses of two flows over buffers of 1/16 to 16 BDP",
            source="Figure 3, section 4.2",
            readings=(
                NOISE_READING,
                _START_READING,
                LOSS_READING,
                "The paper's numbers are the fractions of table 1. Its text has 176 packets of 100 million at 16 BDP, where the "
                "table has 123.",
                "Losses told by a later ACK are beside, at a tenth of the rate: as a fraction of what is sent, for there they "
                "come as long as the notice takes.",
            ),
            full=_FULL,
            quick=_QUICK,
            jobs=_figure_3_jobs,
            rows=_figure_3_rows,
            draw=_draw_figure_3,
            verdict=(
                "Flat up to 2 BDP, as in the paper, at 14 to 24 of 100 million where it has 8 to 10; eight of them are the start "
                "(table 1). Then they rise, but to 182 at 8 BDP and 26 at 16 where it has 19 and 123; with pulses that a loss "
                "did not end it was 30 to 50, then 360 to 890. Told by a later ACK, flows lose 0.4 to 10 % of what they "
                "send, five orders of magnitude more: the paper's losses are those of a simulator that tells them at the drop."
            ),
        ),
        Entry(
            id="mpc2019-figure4",
            title="Time that two flows take to the bottleneck's rate, over the buffer",
            source="Figure 4, section 4.2",
            readings=(
                NOISE_READING,
                _START_READING,
                LOSS_READING,
                _REACHED_READING,
                "The points of the figure are not legible in the copy at hand: the two numbers are those in the text to figure "
                "5.",
                _HALVING_READING,
            ),
            full=_FULL,
            quick=_QUICK,
            jobs=_figure_4_jobs,
            rows=_figure_4_rows,
            draw=_draw_figure_4,
            verdict=(
                "The paper's trend, the larger the buffer the sooner, comes with the halving of `simulator`, at a fifth of the "
                "paper's times: 1.13 s of 5.5, 0.23 of 1. With cuts to 0.7 the way back is short everywhere, for the first loss "
                "in a small buffer costs little. Tried besides, at a fiftieth of the rate: 8 RTTs at r_min after a loss give 2.5 "
                "and 0.3 s; a start at r_min takes as long at every buffer, 12.4 s with the target fill of 0.1 and 2.5 s with "
                "0.5, so that what depends on the buffer are the first losses."
            ),
        ),
        Entry(
            id="mpc2019-figure5",
            title="Combined rate of two flows over time, with buffers of 1/4 and 4 BDP",
            source="Figure 5, section 4.2",
            readings=(NOISE_READING, _START_READING, LOSS_READING, _REACHED_READING),
            full=_FULL,
            quick=_QUICK,
            jobs=_APPROACH.over_time_jobs,
            rows=_figure_5_rows,
            draw=_APPROACH.draw_over_time,
            verdict=(
                "With 1/4 BDP the rate is back after half a second and within a few per cent of the link's from there on, with "
                "spikes where the pulses are, as in the paper. With 4 BDP it is there sooner, as in the paper, but never "
                "settles: it swings between r_min and twice the link's rate, about every 0.3 s."
            ),
        ),
        Entry(
            id="mpc2019-figure6",
            title="Rates of two flows over time when the second starts 10 s later, with a buffer of 1 BDP",
            source="Figure 6, section 4.2",
            readings=(NOISE_READING, _START_READING, LOSS_READING, _LATE_READING),
            full=_FULL_LATE,
            quick=_QUICK_LATE,
            jobs=_figure_6_jobs,
            rows=_figure_6_rows,
            draw=_draw_figure_6,
            verdict=(
                "With three of five seeds the newcomer is near its share in its first second, where the paper's takes 26 s: it "
                "starts at 2 C, and its first losses are the other's too. With one it takes 32 s, with one it never gets there. "
                "From r_min all five take 22 to 52 s (table 2)."
            ),
        ),
    ),
)
