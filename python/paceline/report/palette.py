"""One colour and one marker per controller, the same in every page and figure.

In: a controller's name. Out: its :class:`Mark`. The table is ``palette.toml``; a name it does not know gets a mark derived from
a hash of the name alone, so that it never changes with what else is drawn (Pantheon fixes colours the same way).
"""

import colorsys
import hashlib
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

#: Marker names and what Matplotlib calls them. The page draws the same shapes as SVG paths.
MARKERS = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "triangle-down": "v",
    "pentagon": "p",
}


@dataclass(frozen=True)
class Mark:
    """How a controller is drawn: colour on a light and on a dark page (``#RRGGBB``), and marker (a key of :data:`MARKERS`)."""

    light: str
    dark: str
    marker: str

    def shade(self, step: int) -> "Mark":
        """The mark of the ``step``-th flow of one controller: the same hue, lighter and darker in turn; 0 is the mark itself.

        Steps repeat after five, beyond which no reader tells shades apart.
        """
        return Mark(_shade(self.light, step), _shade(self.dark, step), self.marker)


def mark(controller: str) -> Mark:
    """The mark of ``controller``. Never fails: unknown names get one from a hash of the name."""
    colours, table = _palette()
    if controller in table:
        colour, marker = table[controller]
    else:
        digest = hashlib.sha256(controller.encode("utf-8", "replace")).digest()
        colour = sorted(colours)[digest[0] % len(colours)]
        # The pentagon is left to unknown names first, so that they rarely look like a known controller.
        marker = ("pentagon", *MARKERS)[digest[1] % (len(MARKERS) + 1)]
    return Mark(colours[colour]["light"], colours[colour]["dark"], marker)


@cache
def _palette() -> tuple[dict[str, Any], dict[str, Any]]:
    with (Path(__file__).parent / "palette.toml").open("rb") as file:
        palette = tomllib.load(file)
    return palette["colours"], palette["controllers"]


def _shade(colour: str, step: int) -> str:
    shift = (0.0, 0.16, -0.16, 0.28, -0.26)[step % 5]
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    shaded = colorsys.hls_to_rgb(hue, min(0.85, max(0.15, lightness + shift)), saturation) if shift else (red, green, blue)
    return "#" + "".join(f"{round(255 * part):02X}" for part in shaded)
