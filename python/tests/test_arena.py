"""The arena: links of a folder, moments of a trace, ranks by hand, the command on small traces."""

import html.parser
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

import paceline as pl
from emulated import real
from handmade import Command
from paceline.arena.result import number
from paceline.arena.running import Cell
from paceline.arena.setting import CONTEST, Setting
from paceline.arena.standing import alike, deserted, front, geometric_mean, rank
from paceline.arena.traces import Direction, find, from_moment

ROOT = Path(__file__).resolve().parents[2]
#: Opportunities in ms: 10 ms long, with two at 4.
SHORT = (0, 1, 4, 4, 9, 10)

FAILING = """
import paceline as pl

class Failing(pl.Controller):
    def on_ack(self, ack):
        if ack.now_ns > 1_000_000_000:
            raise ValueError("had enough")
"""


def write_trace(path: Path, times_ms: tuple[int, ...] = SHORT) -> Path:
    path.write_text("".join(f"{time}\n" for time in times_ms))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A pair, and a trace without the other direction; 4 s each."""
    made = tmp_path / "traces"
    made.mkdir()
    for seed, name in enumerate(("a.down", "a.up", "b.down"), start=1):
        pl._native.trace_synth("lte", seed, 4.0, None, str(made / name))
    (made / "README.md").write_text("Not a trace.")
    return made


# ------------------------------------------------------------------------------------------------------------------- links


def test_pairs_carry_each_others_acks(tmp_path: Path) -> None:
    for name in ("a.down", "a.up", "b.down", "c.up", "d.trace"):
        write_trace(tmp_path / name)
    (tmp_path / "README.md").write_text("x")
    found = {link.name: link.acks and link.acks.name for link in find(tmp_path)}
    assert found == {"a.down": "a.up", "a.up": "a.down", "b.down": None, "c.up": None, "d.trace": None}
    assert [link.name for link in find(tmp_path, Direction.DOWN)] == ["a.down", "b.down", "d.trace"]
    assert [link.name for link in find(tmp_path, Direction.UP)] == ["a.up", "c.up", "d.trace"]
    link = find(tmp_path)[0]
    assert link.period_ms == 10
    assert link.mean_bps == pytest.approx(6 * 1504 * 8 / 0.010)


def test_the_moment_depends_on_what_is_in_the_file_and_on_the_seed(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    times = tuple(range(1000))
    one, other = (
        find(write_trace(tmp_path / "x/a.down", times).parent)[0],
        find(write_trace(tmp_path / "y/b.down", times).parent)[0],
    )
    starts = [one.start_ms(seed) for seed in range(6)]
    assert starts[0] == 0
    assert starts == [other.start_ms(seed) for seed in range(6)]
    assert len(set(starts)) == 6
    assert all(0 < start < one.period_ms for start in starts[1:])


def test_a_trace_from_another_moment_goes_round(tmp_path: Path) -> None:
    file = write_trace(tmp_path / "a.down")
    # From 2 ms on: 4, 4, 9, 10 of this round; of the next one (10 ms later) 0, 1. Both ends of a round are one moment.
    assert from_moment(file, 2, 9).split() == ["2", "2", "7", "8", "8", "9"]
    # No more than a run of 5 ms sees, and one behind it.
    assert from_moment(file, 2, 5).split() == ["2", "2", "7"]
    # At 4 ms itself something happens: again a period later.
    assert from_moment(file, 4, 10).split() == ["5", "6", "6", "7", "10", "10"]
    twice = [int(word) for word in from_moment(file, 2, 15).split()]
    assert twice == [2, 2, 7, 8, 8, 9, 12, 12, 17]


# ------------------------------------------------------------------------------------------------------------------- setting


def test_the_link_is_that_of_the_contest() -> None:
    ours = tomllib.loads(CONTEST.read_text())
    contest = tomllib.loads((ROOT / "scenarios/contest.toml").read_text())
    for key in ("title", "duration"):
        del ours[key], contest[key]
    for key in ("trace", "once", "reverse"):
        ours["links"][0].pop(key, None)
        del contest["links"][0][key]
    assert ours == contest


def test_any_scenario_with_a_link_will_do(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(
        'duration = "9 s"\n[link]\nrate = "5 Mbit/s"\nrtt = "30 ms"\nbuffer = "20 packets"\n[[flows]]\ncontroller = "cubic"\n'
    )
    pair, lone = find(folder, Direction.DOWN)
    setting = Setting.read(file, None)
    with_acks = tomllib.loads(setting.write(pair, 0, tmp_path / "out").read_text())
    assert with_acks["duration"] == f"{pair.period_ms} ms"
    assert with_acks["link"] == {
        "rtt": "30 ms",
        "buffer": "20 packets",
        "trace": "../../traces/a.down",
        "reverse": {"trace": "../../traces/a.up", "buffer": "20 packets"},
    }
    without = tomllib.loads(setting.write(lone, 0, tmp_path / "out").read_text())
    assert without["link"]["reverse"] == {"rate": "unlimited", "buffer": "unlimited"}
    longer = Setting.read(file, 10_000).write(pair, 3, tmp_path / "out")
    resolved = pl.check(longer)
    assert (resolved["duration_s"], resolved["seed"]) == (10.0, 3)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("x = [", "own.toml: "),
        ('[topology]\nkind = "parking-lot"', 'own.toml: topology.kind = "parking-lot": an arena has one link with a trace'),
        ('title = "x"', "own.toml: neither [link] nor [[links]] is there"),
        ('[[links]]\nrate = "1 Mbit/s"', "own.toml: 0 of [[links]] have a `trace`; allowed: one"),
    ],
)
def test_a_scenario_without_a_link_for_the_trace_is_refused(tmp_path: Path, text: str, error: str) -> None:
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(pl.InputError, match=re.escape(error)):
        Setting.read(tmp_path / "own.toml", None)


# ------------------------------------------------------------------------------------------------------------------- ranks


def cell(controller: str, link: str, seed: int, mbps: float, delay_ms: float | None, **more: Any) -> Cell:
    """On a link of 10 Mbit/s."""
    return Cell(controller, link, seed, mbps * 1e6, 10e6, delay_ms, **more)


#: Power of `a`: 10, 40 with seed 0, 10, 90 with seed 1. Of `b`: 40, 20, then 80, 5. Of `c` 5 throughout.
CELLS = [
    cell("a", "x", 0, 1, 100),
    cell("a", "y", 0, 4, 100),
    cell("a", "x", 1, 2, 200),
    cell("a", "y", 1, 9, 100),
    cell("b", "x", 0, 4, 100),
    cell("b", "y", 0, 2, 100),
    cell("b", "x", 1, 8, 100),
    cell("b", "y", 1, 1, 200),
    *(cell("c", link, seed, 1, 200) for link in "xy" for seed in (0, 1)),
]


def test_ranks_by_hand() -> None:
    first, second, third = rank(CELLS, "b")
    assert (first.controller, second.controller, third.controller) == ("a", "b", "c")
    assert first.power == pytest.approx((10 * 40 * 10 * 90) ** 0.25)
    assert second.power == pytest.approx((40 * 20 * 80 * 5) ** 0.25)
    assert first.relative == pytest.approx((10 * 40 * 10 * 90) ** 0.25 / (40 * 20 * 80 * 5) ** 0.25)
    # Ratios over the seeds, x and y: of two values the 95 % interval has half the width 12.706 |x - y| / 2 (Student's t).
    x, y = math.log(20 / math.sqrt(800)), math.log(30 / 20)
    mean, half = (x + y) / 2, 12.706 * (y - x) / 2
    assert first.relative_low == pytest.approx(math.exp(mean - half))
    assert first.relative_high == pytest.approx(math.exp(mean + half))
    assert second.relative == 1
    assert second.relative_low is None
    assert first.share == pytest.approx((0.1 * 0.4 * 0.2 * 0.9) ** 0.25)
    assert first.delay_ms == pytest.approx((100 * 100 * 200 * 100) ** 0.25)
    assert [(s.rank, s.rank_best, s.rank_worst) for s in (first, second, third)] == [(1, 1, 2), (2, 1, 2), (3, 3, 3)]
    on_x = first.links[0]
    assert (on_x.link, on_x.power, on_x.power_least, on_x.power_most) == (
        "x",
        pytest.approx(10),
        pytest.approx(10),
        pytest.approx(10),
    )
    assert on_x.relative == pytest.approx(10 / math.sqrt(40 * 80))


def test_a_ratio_is_that_of_shares_over_that_of_delays() -> None:
    a, b, _ = rank(CELLS, "b")
    assert None not in (a.share, b.share, a.delay_ms, b.delay_ms)
    assert a.relative == pytest.approx((a.share / b.share) / (a.delay_ms / b.delay_ms))  # type: ignore[operator]


def test_a_failure_costs_the_rank_and_no_other_its_own() -> None:
    failed = [Cell("b", "x", 0, error="broken"), *(c for c in CELLS if c != cell("b", "x", 0, 4, 100))]
    ranked = rank(failed, "b")
    assert [(s.controller, s.rank, s.failed, s.error) for s in ranked] == [
        ("a", 1, 0, None),
        ("c", 2, 0, None),
        ("b", None, 1, "broken"),
    ]
    # The reference is gone: order and power are there, ratios are not.
    assert ranked[0].relative is None
    assert ranked[0].power == pytest.approx((10 * 40 * 10 * 90) ** 0.25)


def test_who_delivers_nothing_is_last() -> None:
    nothing = [cell("dead", link, seed, 0, None) for link in "xy" for seed in (0, 1)]
    last = rank([*CELLS, *nothing], "b")[-1]
    assert (last.controller, last.rank, last.power, last.relative, last.share, last.delay_ms) == ("dead", 4, 0, 0, 0, None)
    assert (last.on_front, last.relative_low) == (False, None)


def test_a_run_in_a_gap_of_the_trace_counts_for_nobody() -> None:
    gap = [cell(name, "gap", 0, 0, None) for name in "abc"]
    alive = [cell(name, "gap", 1, 2, 100) for name in "abc"]
    with_gap, without = rank([*CELLS, *gap, *alive], "b"), rank([*CELLS, *alive], "b")
    assert [(s.controller, s.power, s.relative, s.share) for s in with_gap] == [
        (s.controller, s.power, s.relative, s.share) for s in without
    ]
    assert deserted([*CELLS, *gap, *alive]) == [("gap", 0)]


def test_the_front_by_hand() -> None:
    points = {"fast": (0.9, 500.0), "short": (0.5, 50.0), "between": (0.6, 100.0), "behind": (0.55, 100.0), "none": (0.9, None)}
    assert front(points) == {"fast", "short", "between"}
    # Two at one place beat each other in nothing.
    assert front({"a": (0.5, 50.0), "b": (0.5, 50.0), "c": (0.5, 51.0)}) == {"a", "b"}


def test_who_does_the_same_is_named() -> None:
    twins = [cell(name, link, 0, 3, 90) for name in ("one", "two") for link in "xy"]
    assert alike([*twins, cell("three", "x", 0, 3, 90), cell("three", "y", 0, 3, 91)]) == [["one", "two"]]
    places = [(s.controller, s.rank) for s in rank([*twins, cell("three", "x", 0, 3, 90), cell("three", "y", 0, 3, 91)], "one")]
    assert places == [("one", 1), ("two", 1), ("three", 3)]


def test_geometric_means() -> None:
    assert geometric_mean([2, 8]) == pytest.approx(4)
    assert geometric_mean([2, 0, 8]) == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234.5, "1234"),
        (99.95, "100.0"),
        (12.34, "12.3"),
        (1.0, "1.00"),
        (0.123, "0.12"),
        (0.0123, "0.012"),
        (0.00999, "0.0100"),
        (0.0009, "<0.001"),
        (0, "0"),
    ],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text


# ------------------------------------------------------------------------------------------------------------------- the command


def details(tmp_path: Path, out: str = "runs/arena") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / out / "arena.json").read_text())
    return found


def test_the_command_ranks_and_goes_on_where_it_was(paceline: Command, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(FAILING.replace("1_000_000_000", "10**18"))
    line = ("arena", "--traces", folder, "-c", "window", "-c", "latte", "-c", "own.py:Failing", "--seeds", "2")
    done = paceline(*line)
    assert done.returncode == 0, done.stderr
    assert "a.down: " in done.stdout
    assert "ACKs over a.up" in done.stdout
    assert re.search(r"b\.down: .* ACKs over a link without limit", done.stdout)
    assert "18 cells run in " in done.stdout
    heading = next(line for line in done.stdout.splitlines() if line.startswith("rank"))
    assert "power over latte" in heading
    first = details(tmp_path)
    assert [s["rank"] for s in first["ranking"]] == [1, 2, 3]
    assert first["traces"][0]["acks"] == "a.up"
    assert first["seeds"] == [0, 1]
    assert len(first["cells"]) == 18

    # All are there; one that is damaged and one that is gone are run again.
    kept = sorted((tmp_path / "runs/arena/cells").iterdir())
    assert len(kept) == 18
    kept[0].unlink()
    kept[1].write_text('{"key": ')
    again = paceline(*line)
    assert "2 cells run in " in again.stdout
    assert "16 were there from before" in again.stdout
    second = details(tmp_path)
    assert second["cells"] == first["cells"]

    # The file of a class is part of what a cell depends on.
    (tmp_path / "own.py").write_text(FAILING.replace("1_000_000_000", "10**17"))
    assert "6 cells run in " in paceline(*line).stdout


def test_a_cell_is_the_run_of_its_scenario(paceline: Command, folder: Path, tmp_path: Path) -> None:
    line = ("arena", "--traces", folder, "-c", "latte:released", "-c", "bbr1", "--seeds", "2", "--direction", "down", "--json")
    document = json.loads(paceline(*line, "--jobs", "1").stdout)
    assert document["cells"] == json.loads(paceline(*line, "--jobs", "3", "--out", "other").stdout)["cells"]
    for found in document["cells"]:
        scenario = tmp_path / f"runs/arena/scenarios/{found['link']}.seed-{found['seed']}.toml"
        (flow,) = pl.run(scenario, found["controller"]).result["flows"]
        assert found["throughput_bps"] == flow["throughput_bps"]
        assert found["signal_p95_ms"] == flow["signal_delay_ms"]["p95"]
        assert found["power"] == pytest.approx(flow["power_score"])
    # As recorded, and on the pair of traces, it is the contest's own scenario.
    contest = pl.run(
        ROOT / "scenarios/contest.toml",
        "latte:released",
        seed=0,
        overrides={
            "duration": f"{document['traces'][0]['duration_ms']} ms",
            "links.0.trace": str(folder / "a.down"),
            "links.0.reverse.trace": str(folder / "a.up"),
        },
    )
    own = next(c for c in document["cells"] if (c["controller"], c["link"], c["seed"]) == ("latte:released", "a.down", 0))
    assert contest.result["flows"][0]["throughput_bps"] == pytest.approx(own["throughput_bps"], rel=1e-3)
    assert contest.result["flows"][0]["signal_delay_ms"]["p95"] == own["signal_p95_ms"]


class _Page(html.parser.HTMLParser):
    """Collects what a page would load or run, and whether its elements are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [f"{tag} {key}={value}" for key, value in attrs if key in ("src", "href", "style") or key.startswith("on")]
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_needs_nothing_else(paceline: Command, folder: Path, tmp_path: Path) -> None:
    (folder / "b.down").rename(folder / "<b>&.down")
    done = paceline("arena", "--traces", folder, "-c", "cubic", "-c", "window,packets=30", "-c", "reno", "--seeds", "2")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "runs/arena/report.html").read_text()
    page = _Page()
    page.feed(text)
    assert page.open == []
    assert page.loads == ["link href=data:,"]
    assert "<script" not in text
    assert "<b>" not in text
    assert "&lt;b&gt;&amp;.down" in text
    for heading in (
        "Ranking",
        "Throughput against delay",
        "Power on every trace",
        "What the measures mean",
        "How to hold it again",
    ):
        assert f"<h2>{heading}</h2>" in text
    assert "paceline arena --traces" in text
    assert text.count('class="front"') == 1 + 3, "one overall, one per trace"


def test_a_controller_that_fails_is_reported_in_its_row(paceline: Command, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(FAILING)
    done = paceline("arena", "--traces", folder, "-c", "window", "-c", "own.py:Failing", "--direction", "down")
    assert done.returncode == 0, done.stderr
    row = next(line for line in done.stdout.splitlines() if "Failing  " in line)
    assert row.split()[0] == "–"
    assert "Not ranked, with 2 of 2 cells failed: Failing. ValueError: had enough" in done.stdout
    assert [s["rank"] for s in details(tmp_path)["ranking"]] == [1, None]
    alone = paceline("arena", "--traces", folder, "-c", "own.py:Failing", "--direction", "down")
    assert alone.returncode == 1
    assert "Failing is the reference: no ratio can be given." in alone.stdout


@real
def test_cells_are_carried_out_live(paceline: Command, folder: Path, tmp_path: Path) -> None:
    line = ("arena", "--traces", folder, "--direction", "down", "-c", "window", "-c", "hpcc", "--duration", "2 s")
    done = paceline(*line, "--on", "live", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    found = details(tmp_path)
    assert found["world"] == "live"
    assert [(s["controller"], s["rank"]) for s in found["ranking"]] == [("window", 1), ("hpcc", None)]
    assert all(0.05 < s["share"] <= 1 for s in found["cells"] if s["controller"] == "window")
    # A cell of one world is none of the other.
    assert "4 cells run in " in paceline(*line).stdout


def test_without_a_folder_there_are_generated_traces(paceline: Command, tmp_path: Path) -> None:
    done = paceline("arena", "-c", "window", "--duration", "2 s", "--direction", "down")
    assert done.returncode == 0, done.stderr
    assert [trace["name"] for trace in details(tmp_path)["traces"]] == [f"synth-{kind}.down" for kind in ("evdo", "lte", "umts")]
    assert all(trace["duration_ms"] == 2000 for trace in details(tmp_path)["traces"])


def test_an_empty_folder_and_a_broken_trace_are_bad_input(paceline: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = paceline("arena", "--traces", "empty")
    assert (done.returncode, done.stdout) == (2, "")
    assert "error: empty: no trace is there; wanted: NAME.down, NAME.up, NAME.trace" in done.stderr
    (tmp_path / "empty/x.down").write_text("1\n2\nthree\n")
    done = paceline("arena", "--traces", "empty", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "error: empty/x.down:3: `three` is not a whole number of ms" in done.stderr


def test_ctrl_c_stops_at_once_and_what_was_done_is_kept(folder: Path, tmp_path: Path) -> None:
    line = [
        "arena",
        "--traces",
        str(folder),
        "-c",
        "window",
        "--seeds",
        "3",
        "--direction",
        "down",
        "-c",
        "own.py:Slow",
        "--jobs",
        "2",
    ]
    (tmp_path / "own.py").write_text(
        "import time\nimport paceline as pl\n\nclass Slow(pl.Controller):\n    def on_ack(self, ack):\n        time.sleep(0.02)\n"
    )
    program = [sys.executable, "-c", "from paceline.cli import main; main()"]
    process = subprocess.Popen([*program, *line], cwd=tmp_path, stderr=subprocess.PIPE, env={**os.environ, "NO_COLOR": "1"})
    cells = tmp_path / "runs/arena/cells"
    until = time.monotonic() + 60
    while not (cells.is_dir() and any(cells.iterdir())) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert said.decode().endswith("interrupted\n")
    left = list(cells.iterdir())
    assert left
    assert all(json.loads(file.read_text())["cell"]["error"] is None for file in left)
    assert not (tmp_path / "runs/arena/report.html").exists()
