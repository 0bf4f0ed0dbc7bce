"""Shared fixtures: the command in a process of its own, and a small record written by hand."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from handmade import Command
from paceline import _native
from paceline.reproduce import entries


@pytest.fixture
def paceline(tmp_path: Path) -> Command:
    """Runs ``paceline ARGUMENTS`` in an empty directory, without colour."""

    def call(*arguments: object, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", "from paceline.cli import main; main()", *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "NO_COLOR": "1", "COLUMNS": "120", "TERM": "dumb"},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return call


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a generated trace under the name of every recording that an entry of ``paceline reproduce`` asks for."""
    folder = tmp_path_factory.mktemp("recordings")
    names = {name for entry in entries().values() for name in entry.traces}
    for seed, name in enumerate(sorted(names), start=1):
        _native.trace_synth("lte", seed, 30.0, None, str(folder / name))
    return folder


@pytest.fixture
def write_record(tmp_path: Path) -> Callable[..., Path]:
    """Writes a record directory with this result."""

    def write(name: str, outcome: dict[str, object], **manifest: object) -> Path:
        directory = tmp_path / name
        directory.mkdir()
        names = [entry["name"] for entry in outcome["flows"]]  # type: ignore[union-attr]
        times = [float(t) for t in range(3)]
        rows = len(times) * len(names)
        series = {
            "time_s": times * len(names),
            "flow": [name for name in names for _ in times],
            "throughput_bps": [1e6] * rows,
            "rtt_ms": [40.0] * rows,
            "cwnd_bytes": [15000.0] * rows,
        }
        pl.DataFrame({"name": names}).write_parquet(directory / "flows.parquet")
        pl.DataFrame(series).write_parquet(directory / "series.parquet")
        pl.DataFrame({"time_s": times, "link": ["bottleneck"] * 3, "queue_ms": [1.0, 2.0, 3.0]}).write_parquet(
            directory / "links.parquet"
        )
        (directory / "manifest.json").write_text(
            json.dumps({"format": "paceline-record", "format_version": 1, "result": outcome} | manifest)
        )
        return directory

    return write
