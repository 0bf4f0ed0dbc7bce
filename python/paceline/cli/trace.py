"""``paceline trace``: link traces."""

import json
from pathlib import Path
from typing import Annotated

import typer

from paceline import _native
from paceline._native import InputError
from paceline.cli.output import console, print_json, print_table
from paceline.quantity import duration_s, rate_bps

app = typer.Typer(help="Link traces: statistics, seeded generator, formats.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def info(
    trace: Annotated[Path, typer.Argument(metavar="FILE", help="Trace, or log of a link.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")] = False,
) -> None:
    """Print statistics of a trace, or of the log of a link (paceline link --uplink-log, mm-link --uplink-log)."""
    stats = json.loads(_native.trace_info(str(trace)))
    if as_json:
        print_json(stats)
    else:
        print_table(["quantity", "value"], [(key, _shown(value)) for key, value in stats.items()])


@app.command()
def synth(
    preset: Annotated[str, typer.Argument(metavar="PRESET", help="lte, umts, evdo or constant.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The trace file.", show_default=False)],
    seed: Annotated[int, typer.Option(min=0, help="Equal seeds give equal traces.")] = 1,
    duration: Annotated[str, typer.Option(help='Length, as "60 s".')] = "60 s",
    mean: Annotated[
        str | None, typer.Option(help='Mean capacity, as "10 Mbit/s" [default: the preset\'s].', show_default=False)
    ] = None,
) -> None:
    """Generate a trace from a seed."""
    seconds = duration_s("--duration", duration)
    bps = None if mean is None else rate_bps("--mean", mean)
    _native.trace_synth(preset, seed, seconds, bps, str(out))
    console().print(f"trace  {out}", soft_wrap=True)


@app.command()
def convert(
    src: Annotated[Path, typer.Argument(metavar="SRC", help="Trace to read.", show_default=False)],
    dst: Annotated[Path, typer.Argument(metavar="DST", help="Trace to write.", show_default=False)],
    from_format: Annotated[
        str | None, typer.Option("--from", help="mahimahi or csv [default: csv for .csv, else mahimahi].", show_default=False)
    ] = None,
    to_format: Annotated[
        str | None, typer.Option("--to", help="mahimahi or csv [default: csv for .csv, else mahimahi].", show_default=False)
    ] = None,
    bin_width: Annotated[str, typer.Option("--bin", help="Bin of formats that hold rates.")] = "100 ms",
) -> None:
    """Convert a trace between formats."""
    if src.resolve() == dst.resolve():
        raise InputError(f"{dst}: is the file to read as well; name another to write")
    means = json.loads(_native.trace_convert(str(src), str(dst), from_format, to_format, duration_s("--bin", bin_width) * 1e3))
    console().print(f"trace  {dst}", soft_wrap=True)
    console().print(f"mean   {means['from_mbps']:.4f} Mbit/s before, {means['to_mbps']:.4f} Mbit/s after", soft_wrap=True)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value) if isinstance(value, dict | list) else "–" if value is None else str(value)
