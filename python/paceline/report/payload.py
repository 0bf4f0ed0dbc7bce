"""What the page's script draws: lines, panels and the points of the scatter plot, as plain JSON values.

In: loaded runs. Out: a dictionary. Lines with the same sample times share them; values are in the record's units with five
significant digits, and each panel carries the factor to the unit it prints. The script only draws: all choices are made here.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from paceline.report import palette, summary, units
from paceline.report.decimation import decimate
from paceline.report.loading import FLOW_COLUMNS, Flow, Link, Run

#: Flows of a run that are drawn. The table lists more; nobody reads more lines.
FLOWS_DRAWN = 24

#: Panels in the order of the page: key, what may be shown in it. Each choice: title, kind of source, columns, starts at zero.
#: A second column is drawn thin and dashed.
_PANELS: tuple[tuple[str, tuple[tuple[str, str, tuple[str, ...], bool], ...]], ...] = (
    (
        "rate",
        (
            ("Throughput", "flow", ("throughput_bps",), True),
            ("Sending rate", "flow", ("send_bps",), True),
            ("Pacing rate", "flow", ("pacing_bps",), True),
            ("Throughput and pacing rate", "flow", ("throughput_bps", "pacing_bps"), True),
        ),
    ),
    (
        "window",
        (
            ("Congestion window", "flow", ("cwnd_bytes",), True),
            ("Data in flight", "flow", ("in_flight_bytes",), True),
            ("Congestion window and data in flight", "flow", ("cwnd_bytes", "in_flight_bytes"), True),
        ),
    ),
    (
        "delay",
        (
            ("RTT", "flow", ("rtt_ms",), False),
            ("Smoothed RTT", "flow", ("srtt_ms",), False),
            ("Queueing delay", "flow", ("queueing_delay_ms",), True),
        ),
    ),
    (
        "queue",
        (
            ("Queue, as time", "link", ("queue_ms",), True),
            ("Queue, as bytes", "link", ("queue_bytes",), True),
        ),
    ),
    (
        "loss",
        (
            ("Packets lost, total", "flow", ("lost_packets",), True),
            ("Packets retransmitted, total", "flow", ("retransmitted_packets",), True),
            ("Packets delivered, total", "flow", ("delivered_packets",), True),
            ("Drops at the link, total", "link", ("drops",), True),
            ("Marks at the link, total", "link", ("marks",), True),
        ),
    ),
)


def payload(runs: Sequence[Run]) -> dict[str, object]:
    """Everything the script needs, ready for JSON."""
    times = _Times()
    lines: list[dict[str, object]] = []
    # Flows of one controller keep its hue and differ in shade, within a run and from run to run.
    used: dict[str, int] = {}
    links_used: dict[palette.Mark, int] = {}
    for index, run in enumerate(runs):
        span = time_span(run)
        controllers = list(dict.fromkeys(flow.controller for flow in run.flows))
        for flow in run.flows[:FLOWS_DRAWN]:
            shade = used.get(flow.controller, 0)
            used[flow.controller] = shade + 1
            text = flow.name
            if (len(runs) == 1 or len(controllers) > 1) and flow.controller not in flow.name:
                text = f"{flow.name} ({flow.controller})"
            lines.append(_line(index, "flow", flow, text, palette.mark(flow.controller).shade(shade), span, times))
        mark = palette.mark(controllers[0]) if len(controllers) == 1 else palette.Mark("#555555", "#AAAAAA", "circle")
        for link in run.links:
            step = links_used.get(mark, 0)
            links_used[mark] = step + 1
            lines.append(_line(index, "link", link, link.name, mark.shade(step), span, times))
    return {
        "runs": [{"label": run.label, "end": _rounded(time_span(run)[1], 9)} for run in runs],
        "times": times.values,
        "lines": lines,
        "capacities": _capacities(runs, times),
        "panels": _panels(runs),
        "scatter": _scatter(runs),
    }


class _Times:
    """Time axes, each kept once."""

    def __init__(self) -> None:
        self.values: list[list[float | int | None]] = []
        self._index: dict[bytes, int] = {}

    def add(self, time_s: np.ndarray) -> int:
        key = time_s.tobytes()
        if key not in self._index:
            self._index[key] = len(self.values)
            self.values.append(_compact(time_s, 9))
        return self._index[key]


def _line(
    run: int, kind: str, source: Flow | Link, text: str, mark: palette.Mark, span: tuple[float, float], times: _Times
) -> dict[str, object]:
    time_s, columns = decimate(source.samples, span)
    return {
        "run": run,
        "kind": kind,
        "name": source.name,
        "text": text,
        "light": mark.light,
        "dark": mark.dark,
        "time": times.add(time_s),
        "columns": {name: _compact(values, 5) for name, values in columns.items() if name != "capacity_bps"},
    }


def _capacities(runs: Sequence[Run], times: _Times) -> list[dict[str, object]]:
    """Capacity of each run's bottleneck over time, equal ones once with the runs they belong to."""
    found: dict[tuple[Any, ...], dict[str, object]] = {}
    for index, run in enumerate(runs):
        link = run.bottleneck
        if link is None or "capacity_bps" not in link.samples.columns:
            continue
        time_s, columns = decimate(link.samples, time_span(run))
        values = columns["capacity_bps"]
        entry = found.setdefault(
            (time_s.tobytes(), values.tobytes()),
            {"runs": [], "name": link.name, "time": times.add(time_s), "values": _compact(values, 5)},
        )
        entry["runs"].append(index)  # type: ignore[attr-defined]
    return list(found.values())


def _panels(runs: Sequence[Run]) -> list[dict[str, object]]:
    panels = []
    for key, choices in _PANELS:
        present = [_choice(runs, *choice) for choice in choices if _has(runs, choice[1], choice[2])]
        if present:
            panels.append({"id": key, "choices": present, "capacity": key == "rate"})
    extra = dict.fromkeys(
        name for run in runs for flow in run.flows[:FLOWS_DRAWN] for name in flow.samples.columns if name not in FLOW_COLUMNS
    )
    if extra:
        observed = [_choice(runs, f"Controller state: {name}", "flow", (name,), False) for name in extra]
        panels.append({"id": "observed", "choices": observed, "capacity": False})
    return panels


def _choice(runs: Sequence[Run], title: str, kind: str, columns: tuple[str, ...], zero: bool) -> dict[str, object]:
    unit = next((s.samples.columns[c].unit for s in _drawn(runs, kind) for c in columns if c in s.samples.columns), "")
    peaks = [
        np.nanmax(np.abs(source.samples.columns[name].values))
        for source in _drawn(runs, kind)
        for name in columns
        if name in source.samples.columns
    ]
    factor, printed = units.scale(unit, float(max(peaks, default=0.0)))
    return {"title": title, "unit": printed, "factor": factor, "kind": kind, "columns": list(columns), "zero": zero}


def _has(runs: Sequence[Run], kind: str, columns: tuple[str, ...]) -> bool:
    return all(any(name in source.samples.columns for source in _drawn(runs, kind)) for name in columns)


def _drawn(runs: Sequence[Run], kind: str) -> list[Flow | Link]:
    return [source for run in runs for source in (run.flows[:FLOWS_DRAWN] if kind == "flow" else run.links)]


def _scatter(runs: Sequence[Run]) -> dict[str, object]:
    found = summary.points(runs)
    factor, unit = units.scale("bit/s", max((point.throughput_bps for point in found), default=0.0))
    marks = [palette.mark(point.controller) for point in found]
    return {
        "unit": unit,
        "delays": [{"key": key, "title": title} for key, title in summary.delays(found)],
        "points": [
            {
                "name": point.name,
                "group": point.group,
                "mean": point.mean,
                "y": _rounded(factor * point.throughput_bps, 6),
                "x": {key: _rounded(value, 6) for key, value in point.delay_ms.items()},
                "light": mark.light,
                "dark": mark.dark,
                "marker": mark.marker,
            }
            for point, mark in zip(found, marks, strict=True)
        ],
    }


def time_span(run: Run) -> tuple[float, float]:
    """Start and end of a run's time axis, s."""
    times = [samples.time_s for samples in run.samples() if len(samples.time_s)]
    start = min((float(time_s[0]) for time_s in times), default=0.0)
    end = max((float(time_s[-1]) for time_s in times), default=0.0)
    return min(0.0, start), max(end, run.duration_s or 0.0)


def _compact(values: Iterable[float], digits: int) -> list[float | int | None]:
    return [None if math.isnan(value) else _rounded(value, digits) for value in map(float, values)]


def _rounded(value: float, digits: int) -> float | int:
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e15 else rounded
