"""``paceline compare``, ``report`` and ``export``: what can be done with records."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from paceline import _native
from paceline._native import InputError
from paceline.cli.output import console, print_json, print_rows, print_runs
from paceline.record import MANIFEST, Run, load
from paceline.summary import Row, label_of

Records = Annotated[
    list[Path], typer.Argument(metavar="RUN", help="Record directories, or folders that hold records.", show_default=False)
]
FORMATS = ("pdf", "png", "svg")
#: Dialects of qlog, and the suffix each goes with.
QLOG_SUFFIXES = {"current": ".sqlog", "02": ".qlog"}

export_app = typer.Typer(help="Write records in other tools' formats.", no_args_is_help=True, rich_markup_mode=None)


def compare(
    runs: Records,
    per_flow: Annotated[bool, typer.Option("--per-flow", help="One line per flow instead of one per run.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")] = False,
) -> None:
    """Print records side by side."""
    loaded = [load(directory) for directory in _records(runs)]
    if as_json:
        print_json({"runs": [{**run.result, "record": str(run.directory)} for run in loaded]})
        return
    if per_flow:
        names = _short_names(run.directory for run in loaded)
        print_rows(
            [_prefixed(names[run.directory], Row.of_flow(flow, run.result)) for run in loaded for flow in run.result["flows"]]
        )
        return
    print_runs(_labels(loaded), [run.result for run in loaded])


def _records(paths: Sequence[Path]) -> list[Path]:
    """The record directories among and below ``paths``, each once, in order of name below each path.

    A path without any stands for itself.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        below = [] if (path / MANIFEST).is_file() else sorted(manifest.parent for manifest in path.rglob(MANIFEST))
        for record in below or [path]:
            found.setdefault(record.resolve(), record)
    return list(found.values())


def _labels(runs: Sequence[Run]) -> list[str]:
    """The controllers of each run, and where these name several things the directory. Runs with one label are repetitions.

    Repetitions are runs of one scenario in one world that differ in their seed alone.
    """
    members: dict[str, dict[tuple[object, object], list[int]]] = {}
    for index, run in enumerate(runs):
        scenario = (run.manifest.get("scenario") or {}).get("sha256")
        what = (scenario, run.result.get("world"))
        members.setdefault(label_of(run.result), {}).setdefault(what, []).append(index)
    labels = [""] * len(runs)
    for controllers, groups in members.items():
        places: dict[int, Path] = {}
        distinct = 0
        for group in groups.values():
            repeated = len({runs[index].result.get("seed") for index in group}) == len(group)
            found = {index: runs[index].directory.absolute() for index in group}
            if repeated:
                found = dict.fromkeys(group, Path(os.path.commonpath(found.values())))
            distinct += len(set(found.values()))
            places |= found
        if distinct > len(set(places.values())):
            # One folder holds repetitions of several scenarios, and therefore names none of them.
            places = {index: runs[index].directory.absolute() for index in places}
        names = _short_names(places.values())
        for index, place in places.items():
            labels[index] = controllers if len(names) == 1 else f"{names[place]} ({controllers})"
    return labels


def _short_names(directories: Iterable[Path]) -> dict[Path, str]:
    """The least of the end of each path that tells it from the others."""
    parts = {directory: directory.absolute().parts for directory in directories}
    for length in range(1, max(map(len, parts.values())) + 1):
        names = {directory: str(Path(*each[-length:])) for directory, each in parts.items()}
        if len(set(names.values())) == len(names):
            break
    return names


def report(
    runs: Records,
    out: Annotated[Path, typer.Option(help="The HTML file.")] = Path("report.html"),
    figures: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write figures to this directory too (needs Matplotlib).", show_default=False),
    ] = None,
    formats: Annotated[
        list[str] | None, typer.Option("--format", metavar="pdf|png|svg", help="Format of the figures; repeatable.")
    ] = None,
) -> None:
    """Write one self-contained HTML report of records, and figures on request."""
    from paceline.report import RecordError, write_figures, write_html

    chosen = formats or ["pdf"]
    for name in chosen:
        if name not in FORMATS:
            raise InputError(f"--format {name}: allowed: {', '.join(FORMATS)}")
    target = out
    written: Sequence[Path] = []
    try:
        records = _records(runs)
        write_html(records, out)
        if figures is not None:
            target = figures
            written = write_figures(records, figures, chosen)
    except RecordError as error:
        raise InputError(str(error)) from None
    except ImportError as error:
        raise InputError(f"figures need Matplotlib: pip install 'paceline[plot]' ({error})") from None
    except OSError as error:
        raise InputError(f"{error.filename or target}: {error.strerror}") from None
    for path in [out, *written]:
        console().print(f"report  {path}" if path == out else f"figure  {path}", soft_wrap=True)


@export_app.command("qlog")
def qlog(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Record directory.", show_default=False)],
    flow: Annotated[str, typer.Option(help="Name of the flow.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="The file [default: FLOW.sqlog or FLOW.qlog here].", show_default=False)
    ] = None,
    draft: Annotated[str, typer.Option(help="Dialect: current, or 02 for viewers that know no later one.")] = "current",
) -> None:
    """Write one flow as qlog, which qvis opens."""
    if draft not in QLOG_SUFFIXES:
        raise InputError(f"--draft {draft}: allowed: {', '.join(QLOG_SUFFIXES)}")
    names = [str(entry.get("name")) for entry in load(run).result.get("flows") or []]
    if flow not in names:
        raise InputError(f"--flow {flow}: {run} has no such flow (it has: {', '.join(names) or 'none'})")
    target = out or Path(f"{flow.replace('/', '_')}{QLOG_SUFFIXES[draft]}")
    _native.export_qlog(str(run), flow, str(target), draft)
    console().print(f"qlog  {target}", soft_wrap=True)


def _prefixed(prefix: str, row: Row) -> Row:
    return Row(**{**vars(row), "label": f"{prefix}: {row.label}"})
