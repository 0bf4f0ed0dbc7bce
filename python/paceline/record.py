"""A record on disk, read: tables as Polars data frames, the summary as a dict.

In: a directory that ``paceline run`` or :func:`paceline.run` wrote. Out: :class:`Run`. Tables are read when first asked for.
"""

import html
import json
import shutil
import weakref
from collections.abc import Mapping
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline._native import InputError
from paceline.summary import HEADINGS, Row

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

#: What every manifest calls itself, and the newest version of the layout that this package reads.
FORMAT = "paceline-record"
FORMAT_VERSION = 1
#: What makes a directory a record.
MANIFEST = "manifest.json"


class Run:
    """One run: what was asked for, what came out, where it lies."""

    def __init__(self, directory: str | PathLike[str], *, temporary: Path | None = None) -> None:
        """Use :func:`load`, or :func:`paceline.run`.

        Args:
            directory: the record.
            temporary: a directory that is removed with this object; it holds the record.
        """
        self.directory = Path(directory)
        if temporary is not None:
            weakref.finalize(self, shutil.rmtree, temporary, ignore_errors=True)
        self.manifest: dict[str, Any] = read_manifest(self.directory)
        if not isinstance(self.manifest.get("result"), Mapping):
            raise InputError(f"{self.directory / MANIFEST}: no object under the key `result`")
        if not isinstance(self.manifest.get("scenario", {}), Mapping):
            raise InputError(f"{self.directory / MANIFEST}: no object under the key `scenario`")
        for key in ("flows", "links"):
            parts = self.result.get(key, [])
            if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
                raise InputError(f"{self.directory / MANIFEST}: no list of objects under the key `result.{key}`")

    @property
    def result(self) -> dict[str, Any]:
        """The summary, as ``paceline run --json`` prints it. Units are in the keys; absent measurements are ``None``."""
        result: dict[str, Any] = self.manifest["result"]
        return result

    @cached_property
    def flows(self) -> "pl.DataFrame":
        """One row per flow: counters over the whole run, statistics over [warmup, duration]."""
        return self._table("flows")

    @cached_property
    def series(self) -> "pl.DataFrame":
        """Time series of the flows: ``time_s``, ``flow``, then one column per quantity; its unit is in the Parquet metadata."""
        return self._table("series")

    @cached_property
    def links(self) -> "pl.DataFrame":
        """Time series of the links: ``time_s``, ``link``, then one column per quantity."""
        return self._table("links")

    def plot(self) -> "Figure":
        """Throughput, RTT and window over time, one line per flow.

        Raises:
            InputError: Matplotlib is not installed.
        """
        from paceline.plotting import plot_run

        return plot_run(self)

    def to_html(self, out: str | PathLike[str]) -> Path:
        """Writes the interactive report of this run to ``out``: one HTML file that needs nothing else."""
        from paceline.report import write_html

        write_html([self.directory], Path(out))
        return Path(out)

    def _table(self, name: str) -> "pl.DataFrame":
        import polars as pl

        path = self.directory / f"{name}.parquet"
        if not self.directory.is_dir():
            raise InputError(
                f"{self.directory}: the record is gone; a temporary one goes with the Run that made it, not with copies: "
                "name a directory with `out`"
            )
        if not path.is_file():
            raise InputError(f"{path}: no such file; the record is incomplete")
        return pl.read_parquet(path)

    def __repr__(self) -> str:
        controllers = dict.fromkeys(flow.get("controller") for flow in self.result.get("flows", []))
        return f"<Run of {self.result.get('scenario')!r}: {', '.join(map(str, controllers))}; {self.directory}>"

    def _repr_html_(self) -> str:
        rows = [Row.of_flow(flow, self.result) for flow in self.result.get("flows", [])]
        head = "".join(f"<th>{html.escape(heading)}</th>" for heading in HEADINGS)
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row.cells())}</tr>" for row in rows)
        title = html.escape(str(self.result.get("scenario")))
        return f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def load(directory: str | PathLike[str]) -> Run:
    """Reads a record.

    Raises:
        InputError: the directory is not a record, or one of another format.
    """
    return Run(directory)


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of a record.

    Raises:
        InputError: the directory is not a record, or one of another format.
    """
    path = directory / MANIFEST
    if not directory.is_dir():
        raise InputError(f"{directory}: {'not a directory' if directory.exists() else 'no such directory'}")
    try:
        manifest = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise InputError(f"{directory}: no manifest.json in it, so it is not a record of a run") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    if not isinstance(manifest, Mapping):
        raise InputError(f"{path}: expected one JSON object, found {type(manifest).__name__}")
    if manifest.get("format") != FORMAT:
        raise InputError(f'{path}: key `format` is {_shown(manifest.get("format"))}; expected "{FORMAT}"')
    version = manifest.get("format_version")
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= FORMAT_VERSION:
        raise InputError(f"{path}: record format {_shown(version)}; this version reads up to {FORMAT_VERSION}")
    return dict(manifest)


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
