"""``paceline trace``: link traces."""

import json
from pathlib import Path
from typing import Annotated

import typer

from paceline import _native
from paceline._native import InputError
from paceline.cli.output import MOST_SEED, console, print_json, print_table
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
    seed: Annotated[int, typer.Option(min=0, max=MOST_SEED, help="Equal seeds give equal traces.")] = 1,
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


#: TCP and UDP port of `trace serve`.
PORT = 5310


@app.command()
def serve(
    port: Annotated[int, typer.Option(min=0, max=65535, help="TCP and UDP port; 0 for any.")] = PORT,
    bind: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen at.")] = "0.0.0.0",  # noqa: S104
) -> None:
    """Be the far end of measurements (paceline trace record), one after the other, until Ctrl-C."""

    def told(line: str) -> None:
        console().print(line, soft_wrap=True)

    _native.trace_serve(bind, port, told)


@app.command()
def record(
    server: Annotated[str, typer.Argument(metavar="HOST[:PORT]", help="Where trace serve runs.", show_default=False)],
    uplink: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Measure the way to the server into this file.", show_default=False)
    ] = None,
    downlink: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Measure the way from the server into this file.", show_default=False)
    ] = None,
    duration: Annotated[str, typer.Option(help='Length of the traces, as "60 s".')] = "60 s",
    warm_up: Annotated[str, typer.Option(help="How long the link is loaded before.")] = "5 s",
    least_wait: Annotated[str, typer.Option(help="More is sent while packets wait for less than this.")] = "750 ms",
    most_wait: Annotated[str, typer.Option(help="Less is sent while packets wait for longer.")] = "3 s",
    packet: Annotated[int, typer.Option(metavar="BYTES", min=100, max=9000, help="Size of the packets, IP.")] = 1500,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")] = False,
) -> None:
    """Measure a live link into traces: load it, so that packets always wait, and write down when they arrive.

    Of two directions, one is measured after the other.
    """
    if uplink is None and downlink is None:
        raise InputError("nothing to measure: name a file with --uplink, --downlink or both")
    if uplink is not None and downlink is not None and uplink.resolve() == downlink.resolve():
        raise InputError(f"--downlink {downlink}: is the trace of the uplink as well")
    host, port = _host_and_port(server)
    times = (
        duration_s("--duration", duration),
        duration_s("--warm-up", warm_up),
        duration_s("--least-wait", least_wait),
        duration_s("--most-wait", most_wait),
    )
    measured: dict[str, dict[str, float]] = {}
    for direction, path in (("uplink", uplink), ("downlink", downlink)):
        if path is None:
            continue
        answer = _native.trace_record(host, port, direction == "uplink", str(path), times, packet)
        if answer is None:
            raise typer.Exit(130)
        measured[direction] = json.loads(answer)
        if not as_json:
            console().print(f"{direction}: {path}, {_described(measured[direction])}", soft_wrap=True)
    if as_json:
        print_json(measured)


def _host_and_port(server: str) -> tuple[str, int]:
    """The two parts of ``HOST[:PORT]``; an IPv6 address with a port stands in brackets."""
    host, colon, port = server.rpartition(":")
    if server.startswith("[") and server.endswith("]"):
        return server[1:-1], PORT
    if not colon or (":" in host and not host.startswith("[")):
        return server, PORT
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise InputError(f"{server}: {port!r} is no port; allowed: 1 to 65535")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _described(found: dict[str, float]) -> str:
    text = f"mean {found['mean_mbps']:.3f} Mbit/s, {found['packets']:.0f} packets, {found['lost']:.0f} lost"
    text += f", waited {found['mean_wait_ms']:.0f} ms on average"
    if idle := found["hardly_waited"]:
        text += f"\n  {idle:.0f} of them waited for less than 10 ms: there the link may have been idle, and can do more than this"
    return text


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value) if isinstance(value, dict | list) else "–" if value is None else str(value)
