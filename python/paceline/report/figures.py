"""Figures for papers: vector graphics in one style, each with the data behind it as CSV.

In: record directories. Out: throughput against delay, a stack of time series per run, distributions of RTT and queueing delay.
Files depend on the records alone, byte for byte: no dates, no random identifiers. Matplotlib is an optional extra
(``pip install 'paceline[plot]'``); nothing else in Paceline needs it, and no global state of it is touched.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paceline.report import loading, palette, summary, units
from paceline.report.decimation import decimate
from paceline.report.loading import Flow, Link, Run
from paceline.report.payload import FLOWS_DRAWN, time_span

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Formats that :func:`write_figures` can write.
FORMATS = ("svg", "pdf", "png")

# What would make two equal figures differ: dates and versions. Keys differ by format.
_METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "ModDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}

_QUANTILES = (("min", 0.0), ("p5", 0.05), ("p25", 0.25), ("p50", 0.5), ("p75", 0.75), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))

# Matplotlib's markers of one size differ in area; these factors even them out.
_SIZES = {"square": 0.9, "diamond": 0.82, "triangle-up": 1.1, "triangle-down": 1.1, "pentagon": 1.1}

_STYLE = Path(__file__).parent / "paper.mplstyle"


@dataclass
class _Drawing:
    """A figure on its way to disk: file stem, the figure, and the rows of its CSV, heading first."""

    stem: str
    figure: "Figure"
    rows: list[list[object]] = field(default_factory=list)


def write_figures(records: Sequence[Path], out_dir: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Writes every figure that ``records`` have data for into ``out_dir``, and returns the paths written.

    ``throughput-delay``, ``timeseries-N-LABEL`` for the N-th run, ``cdf-rtt`` and ``cdf-queueing-delay``, each in every one of
    ``formats`` (:data:`FORMATS`) and as ``.csv``. CSV columns name their units; time series in it are not thinned.

    Raises:
        RecordError: a record is missing or unreadable.
        ValueError: an unknown format.
        ImportError: Matplotlib is not installed.
        OSError: ``out_dir`` cannot be written.
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise ValueError(f"unknown figure format {unknown[0]!r}; known: {', '.join(FORMATS)}")
    written = []
    with style():
        runs = loading.load(records)
        out_dir = Path(out_dir)
        out_dir.mkdir(parents=True, exist_ok=True)
        for drawing in _drawings(runs):
            for name in formats:
                path = out_dir / f"{drawing.stem}.{name}"
                drawing.figure.savefig(path, format=name, metadata=_METADATA[name])
                written.append(path)
            table = io.StringIO()
            csv.writer(table, lineterminator="\n").writerows(drawing.rows)
            path = out_dir / f"{drawing.stem}.csv"
            path.write_text(table.getvalue(), encoding="utf-8", errors="replace")
            written.append(path)
    return written


@contextmanager
def style(*more: Path) -> Iterator[None]:
    """Matplotlib in Paceline's style, with the style files ``more`` on top; what was set before returns afterwards.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    try:
        import matplotlib
        import matplotlib.style
    except ImportError as error:
        raise ImportError("figures need Matplotlib, which is not installed: pip install 'paceline[plot]'") from error
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.style.use([_STYLE, *more])
        yield


def _drawings(runs: Sequence[Run]) -> list[_Drawing]:
    found = [_scatter(runs)]
    found += [_stack(number, run) for number, run in enumerate(runs, 1)]
    found.append(_cdf("cdf-rtt", "RTT (ms)", "rtt_ms", runs))
    found.append(_cdf("cdf-queueing-delay", "Queueing delay (ms)", "queueing_delay_ms", runs))
    return [drawing for drawing in found if drawing]


def _figure(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def _scatter(runs: Sequence[Run]) -> _Drawing | None:
    """Throughput against p95 delay, the delay growing to the left: up and right is better (Pantheon, 2018)."""
    found = summary.points(runs)
    kinds = summary.delays(found)
    if not kinds:
        return None
    key, title = kinds[0]
    points = [point for point in found if key in point.delay_ms]
    factor, unit = units.scale("bit/s", max(point.throughput_bps for point in points))
    drawing = _Drawing("throughput-delay", _figure(3.5, 2.7))
    axes = drawing.figure.add_subplot()
    for point in points:
        mark = palette.mark(point.controller)
        style: dict[str, Any] = {"marker": palette.MARKERS[mark.marker], "linestyle": "none", "color": mark.light}
        if point.mean:
            style |= {
                "markersize": 6 * _SIZES.get(mark.marker, 1),
                "markeredgecolor": "white",
                "markeredgewidth": 0.5,
                "zorder": 3,
            }
        else:
            style |= {"markersize": 3.2, "markerfacecolor": "none", "markeredgewidth": 0.7}
        axes.plot(point.delay_ms[key], factor * point.throughput_bps, **style)
    delay_axis(axes, [point.delay_ms[key] for point in points])
    throughput_axis(axes, [factor * point.throughput_bps for point in points])
    named = [(p.name, palette.mark(p.controller).light, p.delay_ms[key], factor * p.throughput_bps) for p in points if p.mean]
    label_points(axes, named)
    axes.set_xlabel(f"{title} (ms)")
    axes.set_ylabel(f"Throughput ({unit})")
    drawing.rows = [["name", "controller", "mean", "throughput_bps", *(f"{name}_p95_ms" for name, _ in kinds)]]
    for p in found:
        drawing.rows.append(
            [p.name, p.controller, int(p.mean), p.throughput_bps, *(p.delay_ms.get(name, "") for name, _ in kinds)]
        )
    return drawing


def delay_axis(axes: "Axes", delays: Sequence[float]) -> None:
    """The axis of ``delays``, growing to the left; logarithmic where they span much."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = min(delays), max(delays)
    axes.margins(0.12, 0.15)
    if low > 0 and high / low > 8:
        axes.set_xscale("log")
        axes.set_xlim(low / 1.6, high * 1.6)
        ticks = [digit * 10.0**power for power in range(-3, 7) for digit in (1, 2, 5)]
        axes.xaxis.set_major_locator(FixedLocator([tick for tick in ticks if low / 1.6 <= tick <= high * 1.6]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: units.number(value)))
    axes.invert_xaxis()


def throughput_axis(axes: "Axes", values: Sequence[float]) -> None:
    """A span of at least a fifth of the value, so that noise does not look like a gap; from zero when that is near."""
    low, high = min(values), max(values)
    pad = max(0.12 * (high - low), 0.5 * (0.2 * high - (high - low))) or 1.0
    axes.set_ylim(0 if low - pad < 0.3 * high else low - pad, high + pad)


def label_points(axes: "Axes", points: Sequence[tuple[str, str, float, float]]) -> None:
    """Names beside their markers, each on the first side where it meets no other name or marker.

    ``points`` are name, colour and place; the axes' limits are set before.
    """
    sides: tuple[tuple[int, int, str, str], ...] = (
        (6, 0, "left", "center"),
        (-6, 0, "right", "center"),
        (0, 6, "center", "bottom"),
        (0, -6, "center", "top"),
    )
    # Where all of these are taken: further above and below.
    sides += tuple((0, way * (6 + 9 * away), "center", "center") for away in (1, 2, 3, 4) for way in (1, -1))
    figure: Any = axes.figure
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer() if hasattr(figure.canvas, "get_renderer") else None
    scale = figure.dpi / 72
    taken = [_around(axes.transData.transform((x, y)), 4 * scale) for _, _, x, y in points]
    frame = axes.get_window_extent(renderer)
    for full_name, colour, x, y in points:
        name = full_name if len(full_name) <= 30 else full_name[:29] + "…"
        best = None
        for right, up, horizontal, vertical in sides:
            text = axes.annotate(
                name, (x, y), (right, up), textcoords="offset points", ha=horizontal, va=vertical, color=colour, fontsize=7
            )
            box = text.get_window_extent(renderer)
            outside = box.x0 < frame.x0 or box.x1 > frame.x1 or box.y0 < frame.y0 or box.y1 > frame.y1
            hits = sum(box.overlaps(other) for other in taken) + 10 * outside
            if best is None or hits < best[0]:
                if best:
                    best[1].remove()
                best = (hits, text, box)
            else:
                text.remove()
            if hits == 0:
                break
        if best:
            taken.append(best[2])


def _around(centre: Any, radius: float) -> Any:
    from matplotlib.transforms import Bbox

    return Bbox([[centre[0] - radius, centre[1] - radius], [centre[0] + radius, centre[1] + radius]])


def _stack(number: int, run: Run) -> _Drawing | None:
    """Throughput over capacity, congestion window, RTT and queue of one run, on one time axis."""
    flows = list(run.flows[:FLOWS_DRAWN])
    sources: list[tuple[str, str, Sequence[Flow | Link]]] = [
        ("Throughput", "throughput_bps", flows),
        ("Cwnd", "cwnd_bytes", flows),
        ("RTT", "rtt_ms", flows),
        ("Queue", "queue_ms", list(run.links)),
    ]
    panels = [(name, key, [s for s in group if key in s.samples.columns]) for name, key, group in sources]
    panels = [panel for panel in panels if panel[2]]
    if not panels:
        return None
    drawing = _Drawing(f"timeseries-{number}-{_slug(run.label)}", _figure(3.5, 0.5 + 1.08 * len(panels)))
    heights = [1.35 if key == "throughput_bps" else 1.0 for _, key, _ in panels]
    grid = drawing.figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=heights)
    all_axes = grid[:, 0]
    drawing.rows = [["kind", "name", "quantity", "unit", "time_s", "value"]]
    colours = _flow_colours(flows)
    span = time_span(run)
    handles: dict[str, Any] = {}
    for axes, (name, key, drawn) in zip(all_axes, panels, strict=True):
        peak = max(float(np.nanmax(np.abs(source.samples.columns[key].values))) for source in drawn)
        factor, unit = units.scale(drawn[0].samples.columns[key].unit, peak)
        if key == "throughput_bps":
            _draw_capacity(axes, run, factor, drawing, handles)
        for source in drawn:
            time_s, columns = decimate(source.samples, span)
            if isinstance(source, Flow):
                (line,) = axes.plot(time_s, factor * columns[key], color=colours[source.name])
                handles.setdefault(f"{source.name} ({source.controller})", line)
                drawing.rows += _samples("flow", source, key)
            else:
                axes.plot(time_s, factor * columns[key], color="#444444")
                drawing.rows += _samples("link", source, key)
        axes.set_ylabel(f"{name} ({unit})" if unit else name)
        if span[1] > span[0]:
            axes.set_xlim(*span)
        if key != "rtt_ms":
            axes.set_ylim(bottom=0)
    all_axes[-1].set_xlabel("Time (s)")
    drawing.figure.align_ylabels(all_axes)
    # More names than this take more room than the plot; the CSV has them all.
    labels = [label if len(label) <= 32 else label[:31] + "…" for label in handles][:9]
    lines = list(handles.values())[:9]
    if lines:
        drawing.figure.legend(lines, labels, loc="outside upper center", ncols=min(3, len(labels)))
    return drawing


def _draw_capacity(axes: "Axes", run: Run, factor: float, drawing: _Drawing, handles: dict[str, Any]) -> None:
    link = run.bottleneck
    if link is None or "capacity_bps" not in link.samples.columns:
        return
    time_s, columns = decimate(link.samples, time_span(run))
    handles["link capacity"] = axes.fill_between(
        time_s, factor * columns["capacity_bps"], step="pre", color="#DFE3E8", linewidth=0
    )
    drawing.rows += _samples("link", link, "capacity_bps")


def _samples(kind: str, source: Any, key: str) -> list[list[object]]:
    column = source.samples.columns[key]
    pairs = zip(source.samples.time_s.tolist(), column.values.tolist(), strict=True)
    return [[kind, source.name, key, column.unit, time_s, value] for time_s, value in pairs if value == value]


def _flow_colours(flows: Sequence[Flow]) -> Mapping[str, str]:
    used: dict[str, int] = {}
    colours = {}
    for flow in flows:
        step = used.get(flow.controller, 0)
        used[flow.controller] = step + 1
        colours[flow.name] = palette.mark(flow.controller).shade(step).light
    return colours


def _cdf(stem: str, title: str, key: str, runs: Sequence[Run]) -> _Drawing | None:
    """Distributions from the quantiles that records keep; the markers are those quantiles, the lines between them a guide."""
    curves = []
    for run in runs:
        for flow in run.flows[:FLOWS_DRAWN]:
            known = [(flow.summary.number(key, name), share) for name, share in _QUANTILES]
            known = [(value, share) for value, share in known if value is not None]
            if len(known) >= 3:
                curves.append((run, flow, known))
    if not curves:
        return None
    drawing = _Drawing(stem, _figure(3.5, 2.4))
    axes = drawing.figure.add_subplot()
    drawing.rows = [["run", "flow", "controller", key, "cumulative_share"]]
    handles: dict[str, Any] = {}
    for run, flow, known in curves:
        mark = palette.mark(flow.controller)
        values, shares = zip(*known, strict=True)
        (line,) = axes.plot(values, shares, color=mark.light, marker=palette.MARKERS[mark.marker], markersize=2.6)
        handles.setdefault(flow.controller, line)
        drawing.rows += [[run.label, flow.name, flow.controller, value, share] for value, share in known]
    positive = [value for _, _, known in curves for value, _ in known if value is not None and value > 0]
    if positive and max(positive) / min(positive) > 30:
        axes.set_xscale("log")
    axes.set_ylim(0, 1.02)
    axes.set_xlabel(title)
    axes.set_ylabel("Share of packets" if key == "queueing_delay_ms" else "Share of samples")
    labels = [name if len(name) <= 24 else name[:23] + "…" for name in handles]
    axes.legend(list(handles.values()), labels, loc="lower right")
    return drawing


def _slug(label: str) -> str:
    """``label`` as part of a file name: lower-case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")[:40].strip("-") or "run"
