"""Decimation, units, palette and the points of the scatter plot, on numbers worked out by hand."""

import numpy as np
import pytest
from synthetic import write_record

from paceline.report import palette, summary, units
from paceline.report.decimation import decimate
from paceline.report.loading import Column, Samples, load


def samples(values, step_s=1.0):
    return Samples(np.arange(len(values)) * step_s, {"x": Column("ms", np.array(values, dtype=float))})


def test_short_series_stay_as_they_are():
    times, columns = decimate(samples([3, 1, 2]), (0, 3), limit=3)
    assert times.tolist() == [0, 1, 2]
    assert columns["x"].tolist() == [3, 1, 2]


def test_each_bucket_keeps_its_extremes_in_their_order():
    # Two buckets of four samples: [5 9 1 5] falls from 9 to 1, [4 0 7 6] rises from 0 to 7.
    times, columns = decimate(samples([5, 9, 1, 5, 4, 0, 7, 6]), (0, 8), limit=4)
    assert times.tolist() == [0, 3, 4, 7]
    assert columns["x"].tolist() == [9, 1, 0, 7]


def test_buckets_without_values_stay_empty():
    nan = float("nan")
    _, columns = decimate(samples([1, 2, nan, nan, nan, nan, 3, nan]), (0, 8), limit=8 // 2)
    assert columns["x"][:2].tolist() == [1, 2]
    assert columns["x"][2:].tolist() == [3, 3]
    _, columns = decimate(samples([nan, nan, nan, nan, 1, 2, 3, 4]), (0, 8), limit=4)
    assert np.isnan(columns["x"][:2]).all()
    assert columns["x"][2:].tolist() == [1, 4]


def test_a_single_spike_in_a_million_survives():
    values = np.zeros(1_000_000)
    values[765_432] = 1.0
    times, columns = decimate(samples(values, 1e-3), (0, 1000), limit=2000)
    assert len(times) == 2000
    assert columns["x"].max() == 1.0
    assert (columns["x"] == 1.0).sum() == 1
    assert abs(times[columns["x"].argmax()] - 765.432) < 1.0  # within one of 1000 buckets of 1 s


def test_samples_at_one_time_do_not_fail():
    one = Samples(np.ones(10), {"x": Column("", np.arange(10.0))})
    times, columns = decimate(one, (1, 1), limit=4)
    assert times.tolist() == [1, 1]
    assert columns["x"].tolist() == [0, 9]


@pytest.mark.parametrize(
    ("unit", "largest", "expected"),
    [
        ("bit/s", 5.04e6, (1e-6, "Mbit/s")),
        ("bit/s", 40e9, (1e-9, "Gbit/s")),
        ("bit/s", 999, (1.0, "bit/s")),
        ("bytes", 64_000, (1e-3, "kB")),
        ("ms", 0.02, (1e3, "µs")),
        ("ms", 400, (1.0, "ms")),
        ("packets", 1e9, (1.0, "packets")),
        ("1", 5, (1.0, "")),
        ("bit/s", 0, (1e-6, "Mbit/s")),
    ],
)
def test_units_suit_the_size(unit, largest, expected):
    assert units.scale(unit, largest) == expected


def test_columns_align_and_show_what_is_absent():
    assert units.column([3.834, 940.12, None]) == ["3.83", "940.12", "–"]
    assert units.column([12345.6, 100.0]) == ["12\u2009346", "100"]
    assert units.column([0.0, 0.0]) == ["0", "0"]
    assert [units.number(x) for x in (0.0, 0.5, 30.0, 1234.6, None)] == ["0", "0.5", "30", "1235", "–"]


def test_every_known_controller_has_its_own_mark():
    _, table = palette._palette()
    marks = [(palette.mark(name).light, palette.mark(name).marker) for name in table]
    assert len(set(marks)) == len(marks)
    together = [palette.mark(name).light for name in ("cubic", "reno", "bbr1", "bbr3", "mpc", "latte", "copa", "vegas")]
    assert len(set(together)) == 8


def test_unknown_controllers_keep_their_mark():
    assert palette.mark("mine") == palette.mark("mine")
    assert len({palette.mark(f"controller {i}") for i in range(50)}) > 20
    assert palette.mark("\ud800 lone surrogate").marker in palette.MARKERS
    assert palette.mark("cubic").shade(0) == palette.mark("cubic")
    assert len({palette.mark("cubic").shade(step).light for step in range(5)}) == 5


def test_points_average_over_seeds_and_not_over_scenarios(tmp_path):
    def runs(*titles_and_seeds):
        directories = [
            write_record(tmp_path / f"{len(titles_and_seeds)}-{i}", seed=seed, title=title, samples=500)
            for i, (title, seed) in enumerate(titles_and_seeds)
        ]
        return load(directories)

    seeds = summary.points(runs(("one", 1), ("one", 2)))
    assert [point.mean for point in seeds] == [False, False, True]
    assert seeds[2].throughput_bps == (seeds[0].throughput_bps + seeds[1].throughput_bps) / 2
    assert seeds[2].delay_ms["rtt"] == pytest.approx((seeds[0].delay_ms["rtt"] + seeds[1].delay_ms["rtt"]) / 2)
    apart = summary.points(runs(("one", 1), ("two", 1), ("three", 1)))
    assert [point.mean for point in apart] == [True, True, True]
    assert len({point.name for point in apart}) == 3


def test_points_are_not_averaged_over_competitors(tmp_path):
    mixes = [write_record(tmp_path / other, flows=[("a", "cubic"), ("b", other)], samples=500) for other in ("mpc", "bbr3")]
    assert [(point.name, point.mean) for point in summary.points(load(mixes))] == [
        ("cubic (with mpc)", True),
        ("mpc", True),
        ("cubic (with bbr3)", True),
        ("bbr3", True),
    ]
