"""The links of an arena: traces of a folder, in pairs where there are pairs, and where in a trace a run begins.

In: a folder with traces in mahimahi's format. Out: :class:`Link` s, and for seeds but the first the trace from another moment on.
"""

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
import numpy.typing as npt

from paceline import _native
from paceline._native import InputError

#: What a file is called that is taken for a trace. The first two are the directions of a pair.
SUFFIXES = (".down", ".up", ".trace")
#: The other direction of each.
_OTHER = {".down": ".up", ".up": ".down"}

#: Links that are generated where no folder is named, and for how long, s.
_PRESETS = ("lte", "umts", "evdo")
_GENERATED_S = 140.0
#: Capacity that a line of a trace stands for, bytes.
_OPPORTUNITY_BYTES = 1504


class Direction(StrEnum):
    """Which traces of a pair carry data."""

    BOTH = "both"
    DOWN = "down"
    UP = "up"


@dataclass(frozen=True)
class Link:
    """Data over one trace, ACKs over another or over a link without limit."""

    #: The file name of the data's trace.
    name: str
    data: Path
    #: ``None``: the ACKs' way has no limit.
    acks: Path | None
    #: After this the data's trace begins again, ms.
    period_ms: int
    mean_bps: float
    data_sha256: str
    acks_sha256: str | None

    def start_ms(self, seed: int) -> int:
        """Where in the trace a run begins: at its beginning with seed 0, anywhere with another.

        The moment follows from what the file holds and the seed, not from what the file is called.
        """
        if seed == 0 or self.period_ms == 1:
            return 0
        digest = hashlib.sha256(f"{self.data_sha256} {seed}".encode()).digest()
        return 1 + int.from_bytes(digest[:8], "big") % (self.period_ms - 1)


def find(folder: Path, direction: Direction = Direction.BOTH) -> list[Link]:
    """The links of ``folder``, by name: every trace as the data's, with the other direction of its pair as the ACKs'.

    Raises:
        InputError: no trace is there, or one cannot be read; the message says which file and line.
    """
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and path.is_file())
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}") from None
    left_out = {Direction.DOWN: ".up", Direction.UP: ".down"}.get(direction)
    chosen = [file for file in files if file.suffix != left_out]
    if not chosen:
        wanted = [f"NAME{suffix}" for suffix in SUFFIXES if suffix != left_out]
        raise InputError(f"{folder}: no trace is there; wanted: {', '.join(wanted)}")
    return [_link(file, files) for file in chosen]


def generate(folder: Path) -> None:
    """Writes a pair of generated traces of every kind to ``folder``; the same ones every time."""
    folder.mkdir(parents=True, exist_ok=True)
    for preset in _PRESETS:
        for seed, suffix in enumerate((".down", ".up"), start=1):
            _native.trace_synth(preset, seed, _GENERATED_S, None, str(folder / f"synth-{preset}{suffix}"))


def from_moment(trace: Path, start_ms: int, length_ms: int) -> str:
    """The trace as if recorded from ``start_ms`` on, what comes before following after the end, for as long as a run lasts.

    It ends with the opportunities of ``length_ms`` or the first one after, so that it does not begin again before.
    """
    times_ms = _opportunities(trace)
    period_ms = int(times_ms[-1])
    # What happens at the moment itself happens again a period later; time 0 is of no use to a packet.
    turned = np.sort((times_ms - start_ms - 1) % period_ms + 1)
    rounds = 1
    while turned[-1] + (rounds - 1) * period_ms < length_ms:
        rounds += 1
    unrolled = (turned + period_ms * np.arange(rounds)[:, None]).ravel()
    end = max(np.searchsorted(unrolled, length_ms, "right"), np.searchsorted(unrolled, length_ms) + 1)
    return "\n".join(map(str, unrolled[:end].tolist())) + "\n"


def _link(file: Path, files: list[Path]) -> Link:
    acks = file.with_suffix(_OTHER[file.suffix]) if file.suffix in _OTHER else None
    if acks not in files:
        acks = None
    stats = _statistics(file)
    if acks is not None:
        _statistics(acks)
    period_ms = round(stats["duration_s"] * 1e3)
    mean_bps = stats["opportunities"] * _OPPORTUNITY_BYTES * 8e3 / period_ms
    return Link(file.name, file, acks, period_ms, mean_bps, _sha256(file), None if acks is None else _sha256(acks))


def _statistics(file: Path) -> dict[str, float]:
    """Reads the file as a run will: whatever is wrong with it is said here."""
    stats: dict[str, float] = json.loads(_native.trace_info(str(file)))
    if "opportunities" not in stats:
        raise InputError(f"{file}: is the log of a link, not a trace")
    return stats


def _opportunities(trace: Path) -> npt.NDArray[np.int64]:
    return np.fromstring(trace.read_text(encoding="ascii"), dtype=np.int64, sep="\n")


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
