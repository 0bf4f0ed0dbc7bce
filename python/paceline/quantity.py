"""Quantities with units, read and written as in a scenario: ``"60 s"``, ``"10 Mbit/s"``."""

import math
import re
from collections.abc import Mapping

from paceline._native import InputError

#: Units of durations, s.
DURATIONS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
#: Units of rates, bit/s.
RATES_BPS = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "Tbit/s": 1e12}


def duration_s(option: str, text: str) -> float:
    """A duration above zero, in s. ``option`` is named in the error.

    Raises:
        InputError: no number, no unit or an unknown one, or not above zero.
    """
    return _quantity(option, text, DURATIONS_S)


def rate_bps(option: str, text: str) -> float:
    """A rate above zero, in bit/s. ``option`` is named in the error.

    Raises:
        InputError: no number, no unit or an unknown one, or not above zero.
    """
    return _quantity(option, text, RATES_BPS)


def quantity_text(value: float, units: Mapping[str, float]) -> str:
    """``value`` in the largest of ``units`` in which it is at least 1; nothing goes beyond seconds."""
    fitting = [(size, name) for name, size in units.items() if size <= value and name not in ("min", "h", "µs")]
    size, name = max(fitting, default=(1.0, next(unit for unit, size in units.items() if size == 1.0)))
    return f"{value / size:.10g} {name}"


def _quantity(option: str, text: str, units: dict[str, float]) -> float:
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*(\S+)\s*", text)
    if found is None or found[2] not in units:
        raise InputError(f"{option} {text}: expected a number with a unit: {', '.join(units)}")
    value = float(found[1]) * units[found[2]]
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{option} {text}: allowed: above 0")
    return value
