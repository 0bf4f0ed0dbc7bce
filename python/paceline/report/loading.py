"""Reads record directories into the one structure that the page and the figures share.

In: directories as ``paceline run`` leaves them: ``manifest.json`` and, beside it, ``series.parquet`` and ``links.parquet``.
Out: :class:`Run`. Whatever a world did not measure is absent here too: ``None`` for a number, no column for a series. Only what
cannot be understood at all is an error, and it names the file.
"""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paceline._native import InputError
from paceline.record import read_manifest

#: Columns of ``series.parquet`` that every controller shares; all others are what a controller chose to show. Counts are
#: running totals.
FLOW_COLUMNS = {
    "throughput_bps": "bit/s",
    "send_bps": "bit/s",
    "pacing_bps": "bit/s",
    "cwnd_bytes": "B",
    "in_flight_bytes": "B",
    "sent_packets": "packets",
    "rtt_ms": "ms",
    "srtt_ms": "ms",
    "queueing_delay_ms": "ms",
    "delivered_packets": "packets",
    "lost_packets": "packets",
    "retransmitted_packets": "packets",
}

#: Columns of ``links.parquet``. Counts are running totals.
LINK_COLUMNS = {
    "capacity_bps": "bit/s",
    "throughput_bps": "bit/s",
    "queue_bytes": "B",
    "queue_ms": "ms",
    "drops": "packets",
    "marks": "packets",
}


class RecordError(ValueError):
    """A directory that is not a readable record. The message names the file and what is wrong with it."""


@dataclass(frozen=True)
class Column:
    """One quantity over time: its unit for the axis and one float64 per sample, NaN where there is no value."""

    unit: str
    values: np.ndarray


@dataclass(frozen=True)
class Samples:
    """A time series: sample times in s, ascending, and columns of that length by name. Empty where nothing was recorded."""

    time_s: np.ndarray = field(default_factory=lambda: np.empty(0))
    columns: Mapping[str, Column] = field(default_factory=dict)


@dataclass(frozen=True)
class Summary:
    """The numbers of one flow or link in the record's result (``paceline run --json``), read without trusting them."""

    values: Mapping[str, Any]

    def number(self, *path: str) -> float | None:
        """The number at ``path`` (``"rtt_ms", "p95"``), in the unit its key names; ``None`` if absent or not finite."""
        return finite(lookup(self.values, *path))

    def text(self, key: str) -> str | None:
        """The text at ``key``, or ``None``."""
        value = self.values.get(key)
        return value if isinstance(value, str) else None


@dataclass(frozen=True)
class Flow:
    """One flow: name, controller, summary and samples."""

    name: str
    controller: str
    summary: Summary
    samples: Samples


@dataclass(frozen=True)
class Link:
    """One link: name, summary and samples."""

    name: str
    summary: Summary
    samples: Samples


@dataclass(frozen=True)
class Check:
    """One self-check of the run. ``ok`` is ``None`` where the record does not say."""

    name: str
    ok: bool | None
    detail: str


@dataclass(frozen=True)
class Run:
    """One record. ``label`` is short and differs from that of every other run loaded with it."""

    directory: Path
    label: str
    title: str
    scenario_text: str
    scenario_id: str
    manifest: Mapping[str, Any]
    duration_s: float | None
    jain_index: float | None
    flows: Sequence[Flow]
    links: Sequence[Link]
    checks: Sequence[Check]

    def samples(self) -> list[Samples]:
        """The samples of every flow and link."""
        return [flow.samples for flow in self.flows] + [link.samples for link in self.links]

    @property
    def bottleneck(self) -> Link | None:
        """The recorded link with the least capacity; ``None`` if none states one."""
        known = [link for link in self.links if link.summary.number("capacity_bps") is not None]
        return min(known, key=lambda link: link.summary.number("capacity_bps") or 0.0, default=None)


def load(directories: Sequence[Path]) -> list[Run]:
    """Reads every record, in the order given.

    Raises:
        RecordError: no directory given, or one of them is not a readable record.
    """
    if not directories:
        raise RecordError("no record given: name at least one directory written by `paceline run`")
    runs = [_load_one(Path(directory)) for directory in directories]
    labels = _labels(runs)
    return [Run(**{**vars(run), "label": label}) for run, label in zip(runs, labels, strict=True)]


def finite(value: object) -> float | None:
    """``value`` as a float if it is a finite number, else ``None``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def lookup(tree: object, *path: str) -> Any:
    """What lies at ``path`` in nested mappings, or ``None``."""
    for key in path:
        if not isinstance(tree, Mapping):
            return None
        tree = tree.get(key)
    return tree


def _load_one(directory: Path) -> Run:
    manifest = _manifest(directory)
    result = manifest.get("result")
    result = result if isinstance(result, dict) else {}
    series = _by_source(directory / "series.parquet", "flow", FLOW_COLUMNS)
    links = _by_source(directory / "links.parquet", "link", LINK_COLUMNS)
    text = lookup(manifest, "scenario", "text")
    text = text if isinstance(text, str) else ""
    return Run(
        directory=directory,
        label=directory.name,
        title=_title(text, manifest, directory),
        scenario_text=text,
        scenario_id=str(lookup(manifest, "scenario", "sha256") or text),
        manifest=manifest,
        duration_s=finite(result.get("duration_s")),
        jain_index=finite(result.get("jain_index")),
        flows=[
            Flow(name, summary.text("controller") or "unknown", summary, samples)
            for name, summary, samples in _sources(result.get("flows"), series, "flow")
        ],
        links=[Link(*source) for source in _sources(result.get("links"), links, "link")],
        checks=_checks(manifest.get("checks")),
    )


def _manifest(directory: Path) -> dict[str, Any]:
    try:
        return read_manifest(directory)
    except InputError as error:
        raise RecordError(str(error)) from None


def _sources(summaries: object, samples: Mapping[str, Samples], kind: str) -> list[tuple[str, Summary, Samples]]:
    """Joins summaries and samples by name, in the order of the summaries; samples without a summary come last."""
    rows = [row for row in summaries if isinstance(row, dict)] if isinstance(summaries, list) else []
    left = dict(samples)
    joined = []
    for index, row in enumerate(rows):
        name = str(row.get("name") or f"{kind} {index + 1}")
        joined.append((name, Summary(row), left.pop(name, Samples())))
    joined += [(name, Summary({}), rest) for name, rest in left.items()]
    return joined


def _by_source(path: Path, key: str, known: Mapping[str, str]) -> dict[str, Samples]:
    """The table at ``path``, split by its column ``key``. Empty if there is no such file."""
    if not path.is_file():
        return {}
    try:
        table = pq.read_table(path, partitioning=None)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise RecordError(f"{path}: not a readable Parquet file: {error}") from None
    for required in ("time_s", key):
        if required not in table.column_names:
            raise RecordError(f"{path}: no column `{required}` (it has: {', '.join(table.column_names) or 'none'})")
    time_s = _floats(table, "time_s")
    if time_s is None:
        raise RecordError(f"{path}: column `time_s` is {table.schema.field('time_s').type}, not a number")
    names = [n for n in dict.fromkeys(table.column_names) if n not in ("time_s", key)]
    columns = {name: values for name in names if (values := _floats(table, name)) is not None}
    units = {name: _unit(table.schema.field(name), known.get(name, "")) for name in columns}
    source = table.column(key).cast(pa.string()).combine_chunks().dictionary_encode()
    code = pc.fill_null(source.indices, -1).to_numpy(zero_copy_only=False)
    split = {}
    for index, name in enumerate(source.dictionary.to_pylist()):
        rows = np.flatnonzero((code == index) & np.isfinite(time_s))
        rows = rows[np.argsort(time_s[rows], kind="stable")]
        split[name] = Samples(
            time_s[rows],
            {
                column: Column(units[column], values[rows])
                for column, values in columns.items()
                if np.isfinite(values[rows]).any()
            },
        )
    return split


def _floats(table: pa.Table, name: str) -> np.ndarray | None:
    """The column as float64 with NaN for null and infinity; ``None`` if it is not numeric (or its name is ambiguous)."""
    if table.column_names.count(name) != 1:
        return None
    column = table.column(name)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type)):
        return None
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64)
    return np.where(np.isfinite(values), values, np.nan)


def _unit(column: pa.Field, fallback: str) -> str:
    unit = (column.metadata or {}).get(b"unit")
    return unit.decode("utf-8", "replace") if unit else fallback


def _checks(checks: object) -> list[Check]:
    rows = [row for row in checks if isinstance(row, dict)] if isinstance(checks, list) else []
    return [
        Check(
            name=str(row.get("name") or "check").replace("_", " "),
            ok=row.get("ok") if isinstance(row.get("ok"), bool) else None,
            detail=str(row.get("detail") or ""),
        )
        for row in rows
    ]


def _title(text: str, manifest: Mapping[str, Any], directory: Path) -> str:
    try:
        title = tomllib.loads(text).get("title")
    except (tomllib.TOMLDecodeError, RecursionError):
        title = None
    for candidate in (title, lookup(manifest, "scenario", "name"), lookup(manifest, "scenario", "path")):
        if isinstance(candidate, str) and candidate.strip():
            return candidate.strip()
    return directory.name


def _labels(runs: Sequence[Run]) -> list[str]:
    """Short names that differ: the controllers, then whichever of title, world, seed and directory tells the runs apart."""
    labels = []
    for run in runs:
        controllers = list(dict.fromkeys(flow.controller for flow in run.flows)) or [run.directory.name]
        rest = f" + {len(controllers) - 3} more" if len(controllers) > 3 else ""
        labels.append(" + ".join(controllers[:3]) + rest)
    details = (
        lambda run: run.title,
        lambda run: str(run.manifest.get("world") or "unknown world"),
        lambda run: f"seed {run.manifest.get('seed')}",
        lambda run: run.directory.name,
    )
    for detail in details:
        alike = [[i for i, other in enumerate(labels) if other == label] for label in labels]
        told = [len({detail(runs[i]) for i in same}) > 1 for same in alike]
        labels = [f"{label}, {detail(run)}" if tell else label for label, run, tell in zip(labels, runs, told, strict=True)]
    seen: dict[str, int] = {}
    for index, label in enumerate(labels):
        seen[label] = seen.get(label, 0) + 1
        if seen[label] > 1:
            labels[index] = f"{label} ({seen[label]})"
    return labels
