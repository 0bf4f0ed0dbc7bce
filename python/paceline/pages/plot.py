"""The plot of a page: throughput, RTT and window of one flow over time, as a small SVG that is the same on every machine.

In: a run of one flow over one link. Out: the text of an SVG file. It is drawn on white, so that it can be read on a dark page
too; its letters are text, its title the summary of the run.
"""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import numpy as np

from paceline.record import Run
from paceline.report import figures, palette, units
from paceline.report.decimation import decimate
from paceline.report.loading import load

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Points per line; the plot is 460 points wide.
_POINTS = 280

#: Size of a packet in the scenarios of the pages, bytes on the wire.
_PACKET_BYTES = 1500

_STYLE = Path(__file__).parent / "page.mplstyle"
_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


def svg(run: Run, title: str) -> str:
    """The plot of ``run``.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    return small_svg(lambda: _draw(run), title)


def small_svg(draw: Callable[[], "Figure"], title: str) -> str:
    """What ``draw`` draws, called in the style of pages, with a title that readers of the file find.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    file = io.StringIO()
    with figures.style(_STYLE):
        draw().savefig(file, format="svg", metadata=_METADATA)
    return re.sub(
        r"(?<=<svg )[^>]*>", lambda tag: f"{tag[0]}\n<title>{escape(title)}</title>", _compact(file.getvalue()), count=1
    )


def _draw(run: Run) -> "Figure":
    from matplotlib.figure import Figure

    (loaded,) = load([run.directory])
    (flow,) = loaded.flows
    (link,) = loaded.links
    duration_s = loaded.duration_s or 0.0
    time_s, columns = decimate(flow.samples, (0.0, duration_s), _POINTS)
    time_factor, time_unit = (1.0, "s") if duration_s >= 1 else (1e3, "ms")
    capacity_bps = link.summary.number("capacity_bps") or 0.0
    rate_factor, rate_unit = units.scale("bit/s", capacity_bps)
    rtt_ms = columns["rtt_ms"]
    most_ms = float(np.nanmax(rtt_ms))
    empty_ms = (flow.summary.number("rtt_ms", "min") or 0.0) - (flow.summary.number("queueing_delay_ms", "min") or 0.0)
    rtt_factor, rtt_unit = (1.0, "ms") if most_ms >= 2 else (1e3, "µs")

    figure = Figure(figsize=(6.4, 3.6))
    axes = figure.subplots(3, 1, sharex=True)
    colour = palette.mark(flow.controller).light
    lines = (
        (f"Rate ({rate_unit})", rate_factor * columns["throughput_bps"]),
        (f"RTT ({rtt_unit})", rtt_factor * rtt_ms),
        ("Window (packets)", columns["cwnd_bytes"] / _PACKET_BYTES),
    )
    for axis, (label, values) in zip(axes, lines, strict=True):
        axis.plot(time_factor * time_s, values, color=colour)
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)
    axes[0].axhspan(0, rate_factor * capacity_bps, color="#EEF0F3", linewidth=0, zorder=0)
    axes[0].set_ylim(top=1.1 * rate_factor * capacity_bps)
    # From just below the empty path's RTT, and never so near that a queue of a few packets looks like a full one.
    axes[1].set_ylim(rtt_factor * 0.95 * empty_ms, rtt_factor * max(1.02 * most_ms, 1.25 * empty_ms))
    axes[2].set_xlim(0, time_factor * duration_s)
    axes[2].set_xlabel(f"Time ({time_unit})")
    figure.align_ylabels(axes)
    return figure


def _compact(text: str) -> str:
    """Numbers to a tenth of a point, no metadata, no indentation: half the size."""
    text = re.sub(r"-?\d+\.\d{2,}", lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), text)
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r'(?<= d=")[^"]*', lambda path: " ".join(path[0].split()).replace(" L ", " "), text)
    return re.sub(r"\s*\n\s*", "\n", text)
