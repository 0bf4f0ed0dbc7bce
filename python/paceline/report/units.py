"""Numbers as people read them: a prefix that suits the data, and as many decimals as mean something.

In: values in the record's units (bit/s, bytes, ms, packets). Out: a factor and the unit to print, or text.
"""

import math
from collections.abc import Iterable, Sequence

#: Steps of the prefixes, smallest first: values from ``threshold`` on are multiplied by ``factor`` and printed in ``unit``.
_SCALES = {
    "bit/s": ((0, 1, "bit/s"), (1e3, 1e-3, "kbit/s"), (1e6, 1e-6, "Mbit/s"), (1e9, 1e-9, "Gbit/s")),
    "bytes/s": ((0, 1, "B/s"), (1e3, 1e-3, "kB/s"), (1e6, 1e-6, "MB/s"), (1e9, 1e-9, "GB/s")),
    "B": ((0, 1, "B"), (1e3, 1e-3, "kB"), (1e6, 1e-6, "MB"), (1e9, 1e-9, "GB")),
    "ms": ((0, 1e3, "µs"), (0.1, 1, "ms"), (1e4, 1e-3, "s")),
}
_ALIASES = {"bps": "bit/s", "bytes": "B", "byte": "B"}

#: What stands where nothing was measured.
ABSENT = "–"


def scale(unit: str, largest: float) -> tuple[float, str]:
    """Factor and printed unit for values of ``unit`` up to ``largest`` (in that unit). Unknown units stay as they are."""
    unit = _ALIASES.get(unit, unit)
    if not largest > 0:
        largest = 1e6 if unit == "bit/s" else 1.0
    chosen = (1.0, "" if unit == "1" else unit)
    for threshold, factor, name in _SCALES.get(unit, ()):
        if largest >= threshold:
            chosen = (float(factor), name)
    return chosen


def decimals(values: Iterable[float | None], most: int = 3) -> int:
    """Decimals that show three significant digits of the smallest value that is not zero; at most ``most``."""
    sizes = [abs(value) for value in values if value]
    if not sizes:
        return 0
    return min(most, max(0, 2 - math.floor(math.log10(min(sizes)))))


def column(values: Sequence[float | None], most: int = 3) -> list[str]:
    """A column of a table as text, all with the same decimals, so that they align; :data:`ABSENT` for ``None``."""
    places = decimals(values, most)
    return [ABSENT if value is None else f"{value:,.{places}f}".replace(",", "\u2009") for value in values]


def number(value: float | None) -> str:
    """One number in running text, with about four significant digits."""
    if value is None:
        return ABSENT
    text = f"{value:.{max(0, min(3, 3 - math.floor(math.log10(abs(value)))))}f}" if value else "0"
    return text.rstrip("0").rstrip(".") if "." in text else text
