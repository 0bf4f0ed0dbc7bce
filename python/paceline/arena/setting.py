"""What the cells of an arena have in common: a scenario whose link takes the traces in turn.

In: the tables of a scenario file. Out: the scenario of a link and a seed, as a file that ``paceline run`` takes as well.
"""

import hashlib
import json
import os
import tomllib
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from paceline._native import InputError
from paceline.arena.traces import Link, from_moment

#: The setting of the CS 244 contest.
CONTEST = Path(__file__).parent / "link.toml"

#: How long a run is where nothing else is said and the trace is not shorter, ms.
_LONGEST_MS = 140_000
#: Keys of a link that say how fast it is; the trace replaces them.
_CAPACITY = ("rate", "steps", "trace", "once")


@dataclass(frozen=True)
class Setting:
    """A scenario but for its traces."""

    tables: Mapping[str, Any]
    #: Which of ``[[links]]`` takes the trace; ``None``: ``[link]``.
    index: int | None
    #: Of every run, ms; ``None``: as long as the trace, up to :data:`_LONGEST_MS`.
    duration_ms: int | None
    source: str

    @classmethod
    def read(cls, file: Path, duration_ms: int | None) -> "Setting":
        """Reads a scenario file.

        Raises:
            InputError: it cannot be read, or no link of it is the one that takes the trace.
        """
        try:
            tables = tomllib.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{file}: {error.strerror}") from None
        except ValueError as error:
            raise InputError(f"{file}: {error}") from None
        return cls(tables, _traced(tables, file), duration_ms, "" if file == CONTEST else str(file))

    @property
    def link_name(self) -> str:
        """What the record calls the link that takes the trace."""
        if self.index is None:
            return "bottleneck"
        return str(self.tables["links"][self.index].get("name", f"link-{self.index + 1}"))

    def length_ms(self, link: Link) -> int:
        """How long a run over ``link`` is."""
        return self.duration_ms or min(link.period_ms, _LONGEST_MS)

    def sha256(self) -> str:
        """Of all that the cells have in common."""
        return hashlib.sha256(json.dumps(self.tables, sort_keys=True, default=str).encode()).hexdigest()

    def write(self, link: Link, seed: int, folder: Path) -> Path:
        """Writes the scenario of ``link`` and ``seed`` below ``folder``, with the traces it needs, and returns its path.

        Raises:
            OSError: ``folder`` cannot be written.
        """
        scenarios = folder / "scenarios"
        scenarios.mkdir(parents=True, exist_ok=True)
        start_ms = link.start_ms(seed)
        length_ms = self.length_ms(link)

        def traced(file: Path, sha256: str | None) -> str:
            if seed == 0 and length_ms == link.period_ms:
                return os.path.relpath(file, scenarios)
            # The name says all that it is made of: what is there already need not be made again.
            name = f"{file.stem}-{(sha256 or '')[:8]}-from-{start_ms}-ms-for-{length_ms}-ms{file.suffix}"
            turned = folder / "traces" / name
            if not turned.is_file():
                turned.parent.mkdir(exist_ok=True)
                _write(turned, from_moment(file, start_ms, length_ms))
            return os.path.relpath(turned, scenarios)

        tables = deepcopy(dict(self.tables))
        tables |= {"title": f"{link.name}, seed {seed}", "duration": f"{length_ms} ms", "seed": seed}
        line: dict[str, Any] = tables["link"] if self.index is None else tables["links"][self.index]
        back: dict[str, Any] = {**line.pop("reverse", {})}
        for key in _CAPACITY:
            line.pop(key, None)
            back.pop(key, None)
        line["trace"] = traced(link.data, link.data_sha256)
        back |= {"rate": "unlimited"} if link.acks is None else {"trace": traced(link.acks, link.acks_sha256)}
        # A table that gives a trace of its own has a buffer of its own, too.
        back.setdefault("buffer", "unlimited" if link.acks is None else line.get("buffer", "1 BDP"))
        line["reverse"] = back
        path = scenarios / f"{link.name}.seed-{seed}.toml"
        _write(path, tomli_w.dumps(tables))
        return path


def _traced(tables: Mapping[str, Any], file: Path) -> int | None:
    """Which link takes the trace: the only one that has one, or the only one there is."""
    topology = tables.get("topology")
    if isinstance(topology, dict) and topology.get("kind") == "parking-lot":
        raise InputError(f'{file}: topology.kind = "parking-lot": an arena has one link with a trace')
    if isinstance(tables.get("link"), dict):
        return None
    links = tables.get("links")
    if not (isinstance(links, list) and all(isinstance(link, dict) for link in links)):
        raise InputError(f"{file}: neither [link] nor [[links]] is there")
    traced = [index for index, link in enumerate(links) if "trace" in link]
    if len(traced) != 1:
        mark = 'trace = "synth:lte" marks it'
        raise InputError(f"{file}: {len(traced)} of [[links]] have a `trace`; allowed: one, which takes the arena's ({mark})")
    return traced[0]


def _write(path: Path, text: str) -> None:
    """Whole or not at all: an arena that is killed leaves nothing that the next one would take for a trace."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
