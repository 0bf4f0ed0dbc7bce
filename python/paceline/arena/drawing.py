"""The pictures of an arena's page as SVG, made here: they need no script and print as they are.

In: points of throughput against delay, each a controller. Out: an ``<svg>`` element. Colours are classes of the page's style
sheet (:func:`styles`), so that they follow the reader's light or dark page.
"""

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paceline.report import palette, units

_LABEL_PX = 11
#: Mean width of a character of a label, and its height, px.
_CHARACTER_PX, _LINE_PX = 6.3, 14
#: Room for the axes, px: left, top, right, bottom.
_MARGIN = (52, 10, 14, 44)


@dataclass(frozen=True)
class Point:
    """A controller's place in a picture. ``main``: its label comes before those of others."""

    controller: str
    share: float
    delay_ms: float
    on_front: bool
    main: bool
    title: str


def styles(controllers: Iterable[str]) -> str:
    """The style sheet of all pictures and swatches of ``controllers``."""
    light, dark = [], []
    for name in controllers:
        mark = palette.mark(name)
        light.append(f".{_class(name)}{{fill:{mark.light}}}")
        dark.append(f".{_class(name)}{{fill:{mark.dark}}}")
    return f"{''.join(light)}@media screen and (prefers-color-scheme: dark){{{''.join(dark)}}}"


def swatch(controller: str) -> str:
    """The mark of a controller beside its name."""
    return f'<svg class="swatch" viewBox="-8 -8 16 16" aria-hidden="true">{_mark(controller, 0, 0, 5.2)}</svg>'


def scatter(points: Sequence[Point], faint: Sequence[tuple[str, float, float]], width: int, height: int) -> str:
    """Share of the capacity against delay, larger delays to the left, so that up and right is better; the front as a line.

    ``faint`` are the controllers' places with each seed by itself: (controller, share, delay).
    """
    left, top, right, bottom = _MARGIN
    box = (left, top, width - right, height - bottom)
    delays = [point.delay_ms for point in points] + [delay for _, _, delay in faint]
    low, high = min(delays) / 1.3, max(delays) * 1.3
    largest = max([point.share for point in points] + [share for _, share, _ in faint])
    step = _step(100 * max(largest, 0.01))
    # A link that is full is no reason for room above it.
    most = max(step, step * math.ceil(100 * largest * (1.0 if largest > 0.95 else 1.02) / step - 0.02)) / 100

    def x(delay: float) -> float:
        return box[0] + math.log(high / delay) / math.log(high / low) * (box[2] - box[0])

    def y(share: float) -> float:
        return box[3] - share / most * (box[3] - box[1])

    parts = [f'<svg class="scatter" viewBox="0 0 {width} {height}" role="img" aria-label="Throughput against delay">']
    for tick in _log_ticks(low, high):
        shown = f"{units.number(tick / 1e3)} s" if tick >= 1e3 else f"{units.number(tick)} ms"
        parts.append(f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{box[1]}" y2="{box[3]}"/>')
        parts.append(f'<text x="{x(tick):.1f}" y="{box[3] + 16}" text-anchor="middle">{shown}</text>')
    for number in range(round(100 * most / step) + 1):
        at = y(number * step / 100)
        parts.append(f'<line class="grid" x1="{box[0]}" x2="{box[2]}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{box[0] - 6}" y="{at + 4:.1f}" text-anchor="end">{number * step:g}</text>')
    middle_x, middle_y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    parts.append(f'<text x="{middle_x}" y="{height - 8}" text-anchor="middle">p95 signal delay, shorter is to the right</text>')
    turned = f'transform="rotate(-90 14 {middle_y})"'
    parts.append(f'<text x="14" y="{middle_y}" text-anchor="middle" {turned}>throughput, % of capacity</text>')
    parts.append(_front_line([(x(p.delay_ms), y(p.share)) for p in points if p.on_front], box))
    parts += [f'<g class="faint">{_mark(name, x(delay), y(share), 2.4)}</g>' for name, share, delay in faint]
    for point in points:
        mark = _mark(point.controller, x(point.delay_ms), y(point.share), 5.2)
        parts.append(f"<g><title>{html.escape(point.title)}</title>{mark}</g>")
    taken = [_area(x(p.delay_ms) - 5, y(p.share) - 5, 10, 10) for p in points]
    for point in sorted(points, key=lambda p: (not p.main, not p.on_front, -p.share / p.delay_ms)):
        parts.append(_label(point, x(point.delay_ms), y(point.share), taken, box))
    return "".join([*parts, "</svg>"])


_Area = tuple[float, float, float, float]


def _area(x: float, y: float, width: float, height: float) -> _Area:
    return x, y, x + width, y + height


def _label(point: Point, x: float, y: float, taken: list[_Area], box: tuple[int, int, int, int]) -> str:
    """The name beside the mark, where it hits nothing; nowhere if there is no such place."""
    width = _CHARACTER_PX * len(point.controller) + 2
    right, left, middle = x + 8, x - 8 - width, x - width / 2
    places = [(right, y - _LINE_PX / 2), (left, y - _LINE_PX / 2), (middle, y - 7 - _LINE_PX), (middle, y + 7)]
    places += [(side, y + up) for up in (-_LINE_PX - 2, 2) for side in (right - 4, left + 4)]
    for at in places:
        area = _area(*at, width, _LINE_PX)
        inside = area[0] >= box[0] and area[2] <= box[2] and area[1] >= box[1] and area[3] <= box[3]
        if inside and not any(area[0] < b[2] and b[0] < area[2] and area[1] < b[3] and b[1] < area[3] for b in taken):
            taken.append(area)
            kind = ' class="main"' if point.main else ""
            return f'<text{kind} x="{area[0] + 1:.1f}" y="{area[3] - 3.5:.1f}">{html.escape(point.controller)}</text>'
    return ""


def _front_line(points: Sequence[tuple[float, float]], box: tuple[int, int, int, int]) -> str:
    """The edge of what somebody reaches: nobody is above and to the right of it."""
    if not points:
        return ""
    ordered = sorted(set(points), reverse=True)
    path = [f"M{ordered[0][0]:.1f} {box[3]}V{ordered[0][1]:.1f}"]
    path += [f"H{x:.1f}V{y:.1f}" for x, y in ordered[1:]]
    return f'<path class="front" d="{"".join(path)}H{box[0]}"/>'


def _class(controller: str) -> str:
    """A class name for any controller: names may hold what classes may not."""
    return "c" + controller.encode().hex()


def _mark(controller: str, x: float, y: float, radius: float) -> str:
    marker = palette.mark(controller).marker
    sides, scale, turn = {
        "square": (4, 1.25, math.pi / 4),
        "diamond": (4, 1.3, 0.0),
        "triangle-up": (3, 1.4, 0.0),
        "triangle-down": (3, 1.4, math.pi),
        "pentagon": (5, 1.15, 0.0),
    }.get(marker, (0, 1.0, 0.0))
    name = _class(controller)
    if not sides:
        return f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>'
    angles = [turn + 2 * math.pi * corner / sides for corner in range(sides)]
    r = scale * radius
    corners = " ".join(f"{x + r * math.sin(angle):.1f},{y - r * math.cos(angle):.1f}" for angle in angles)
    return f'<polygon class="{name}" points="{corners}"/>'


def _log_ticks(low: float, high: float) -> list[float]:
    factors = (1,) if high / low > 1000 else (1, 2, 5)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [factor * 10.0**power for power in powers for factor in factors if low <= factor * 10.0**power <= high]


def _step(largest: float) -> float:
    """A round step that cuts 0 to ``largest`` into at most five."""
    power = 10.0 ** math.floor(math.log10(largest / 5))
    return power * next(factor for factor in (1, 2, 5, 10) if factor * power * 5 >= largest * 0.999)
