"""``paceline compare``, ``report`` and ``export``: what can be done with records."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from paceline import _native
from paceline._native import InputError
from paceline.cli.output import console, print_json, print_rows, print_runs
from paceline.record import Run, load
from paceline.summary import Row, label_of

Records = Annotated[
    list[Path], typer.Argument(metavar="RUN", help="Record directories, or folders that hold records.", show_default=False)
]
FORMATS = ("pdf", "png", "svg")
#: What makes a directory a record.
MANIFEST = "manifest.json"
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
        print_rows(
            [_prefixed(run.directory.name, Row.of_flow(flow, run.result)) for run in loaded for flow in run.result["flows"]]
        )
        return
    print_runs(_labels(loaded), [run.result for run in loaded])


def _records(paths: Sequence[Path]) -> list[Path]:
    """The record directories among and below ``paths``, in order of name below each. A path without any stands for itself."""
    found: list[Path] = []
    for path in paths:
        below = [] if (path / MANIFEST).is_file() else sorted(manifest.parent for manifest in path.rglob(MANIFEST))
        found += below or [path]
    return found


def _labels(runs: Sequence[Run]) -> list[str]:
    """The controllers of each run; with the directory where that names several runs that are not repetitions over seeds."""
    labels = [label_of(run.result) for run in runs]
    kept = []
    for run, label in zip(runs, labels, strict=True):
        namesakes = [other for other, name in zip(runs, labels, strict=True) if name == label]
        texts = {(other.manifest.get("scenario") or {}).get("sha256") for other in namesakes}
        repeated = len({other.result.get("seed") for other in namesakes}) == len(namesakes) and len(texts) == 1
        kept.append(label if repeated else f"{run.directory.name} ({label})")
    return kept


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
    try:
        records = _records(runs)
        write_html(records, out)
        written = write_figures(records, figures, chosen) if figures is not None else []
    except RecordError as error:
        raise InputError(str(error)) from None
    except ImportError as error:
        raise InputError(f"figures need Matplotlib: pip install 'paceline[plot]' ({error})") from None
    except OSError as error:
        raise InputError(f"{error.filename or out}: {error.strerror}") from None
    for path in [out, *(written or [])]:
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
