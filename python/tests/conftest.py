"""Shared fixtures: the command in a process of its own, and a small record written by hand."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from paceline import RunError, _native

Command = Callable[..., subprocess.CompletedProcess[str]]


def _engine_is_built() -> bool:
    try:
        _native.scenario_schema()
    except RunError as error:
        return str(error) != "not built yet"
    return True


#: Tests that run scenarios. They switch themselves on with the extension that can.
needs_engine = pytest.mark.skipif(not _engine_is_built(), reason="this build of the extension has no engine yet")


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


def stats(mean: float, p95: float) -> dict[str, float]:
    """A distribution whose other quantiles no test looks at."""
    return dict.fromkeys(("mean", "std", "min", "p5", "p25", "p50", "p75", "p99", "max"), mean) | {"p95": p95}


def result(*flows: dict[str, object], jain: float | None = None) -> dict[str, object]:
    """A result with one 10 Mbit/s link used to 90 %."""
    return {
        "scenario": "by hand",
        "world": "sim",
        "seed": 1,
        "duration_s": 10.0,
        "paceline_version": "0.1.0",
        "links": [
            {"name": "bottleneck", "capacity_bps": 10e6, "throughput_bps": 9e6, "utilization": 0.9, "drops": 3, "marks": 0}
        ],
        "flows": list(flows),
        "jain_index": jain,
        "engine": {"events": 1000, "packets": 7500, "cpu_s": 0.5},
    }


def flow(
    name: str, controller: str, throughput_bps: float, *, sent: int = 1000, lost: int = 0, p95: float = 50.0
) -> dict[str, object]:
    """A flow with a median RTT of 40 ms and queueing delay 20 ms below the RTT."""
    return {
        "name": name,
        "controller": controller,
        "throughput_bps": throughput_bps,
        "rtt_ms": stats(40.0, p95),
        "queueing_delay_ms": stats(20.0, p95 - 20.0),
        "signal_delay_ms": {"p95": None},
        "power_score": None,
        "sent_packets": sent,
        "lost_packets": lost,
        "loss_fraction": lost / sent,
    }


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
