"""``paceline kernel``: controllers in this machine's TCP."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from paceline import _native
from paceline._native import InputError
from paceline.cli.output import console, print_json, print_table
from paceline.quantity import RATES_BPS, duration_s, quantity_text, rate_bps

app = typer.Typer(
    help="Controllers in this machine's TCP: load, cap, watch, record, unload.", no_args_is_help=True, rich_markup_mode=None
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="As `paceline kernel list` shows it.", show_default=False)]


@app.command()
def load(
    controller: Annotated[
        str,
        typer.Argument(
            metavar="CONTROLLER", help='As in a scenario: "mpc", "mpc:PROFILE" or "mpc,cap=300 Mbit/s".', show_default=False
        ),
    ],
    param: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="KEY=VALUE", help="A parameter; may be given again.", show_default=False),
    ] = None,
    profile: Annotated[str | None, typer.Option(metavar="PROFILE", help="A named set of constants.", show_default=False)] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="NAME", help='Name for TCP_CONGESTION [default: "pl_" and the controller\'s].', show_default=False
        ),
    ] = None,
    record_events: Annotated[
        bool, typer.Option("--record", help="Keep what its flows hear and answer for `paceline kernel record`.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Load a controller into the kernel: any program can then choose it (TCP_CONGESTION, iperf3 -C). No default changes."""
    head, *assignments = controller.split(",")
    if profile is not None:
        head = f"{head}:{profile}"
    loaded = json.loads(_native.kernel_load(",".join([head, *assignments, *(param or [])]), name, record_events))
    if as_json:
        print_json(loaded)
        return
    out = console()
    out.print(f"loaded  {loaded['algorithm']} as {loaded['name']}", soft_wrap=True)
    out.print(f"use     iperf3 -C {loaded['name']} …, or TCP_CONGESTION in any program", soft_wrap=True)
    if loaded["records"]:
        out.print(f"record  paceline kernel record {loaded['name']} --out FILE", soft_wrap=True)
    out.print(f"unload  paceline kernel unload {loaded['name']}", soft_wrap=True)


@app.command()
def unload(name: Name, as_json: Json = False) -> None:
    """Unload a controller. Flows that use it go on with it; with the last of them it leaves the kernel."""
    flows = _native.kernel_unload(name)
    if as_json:
        print_json({"name": name, "flows": flows})
    elif flows:
        them = "1 flow goes" if flows == 1 else f"{flows} flows go"
        console().print(f"unloaded  {name}: no new flow can choose it; {them} on with it until the end", soft_wrap=True)
    else:
        console().print(f"unloaded  {name}", soft_wrap=True)


def _state(entry: Mapping[str, Any]) -> str:
    """What becomes of a controller, in a few words."""
    if not entry["registered"]:
        return "leaves with its last flow"
    if entry["held"]:
        return "loaded for a run"
    return "loaded, records" if entry["records"] else "loaded"


@app.command("list")
def list_(as_json: Json = False) -> None:
    """Show what is loaded, and how many flows use it."""
    loaded = json.loads(_native.kernel_list())
    if as_json:
        print_json({"loaded": loaded})
        return
    rows = [
        (
            entry["name"],
            entry["algorithm"],
            _state(entry),
            ", ".join(_cap_text(cap) for cap in entry["caps"]) or "–",
            str(entry["flows"]),
        )
        for entry in loaded
    ]
    print_table(["name", "controller", "state", "caps", "flows"], rows, left=4)


@app.command()
def cap(
    rate: Annotated[str, typer.Argument(metavar="RATE", help='As "3 Gbit/s", or "none".', show_default=False)],
    dst: Annotated[str, typer.Option(metavar="ADDRESS", help="Destination of the flows.", show_default=False)],
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Destination port [default: every port].", show_default=False)
    ] = None,
    name: Annotated[
        str | None, typer.Option("--of", metavar="NAME", help="Of this controller [default: of all loaded].", show_default=False)
    ] = None,
) -> None:
    """Cap the rate of every flow to a destination, from now on, also of flows that run already.

    The rate is that of SO_MAX_PACING_RATE: payload, or whole packets where the queueing discipline paces (fq).
    """
    bytes_per_s = None if rate == "none" else int(_rate_bps(rate) / 8)
    _native.kernel_cap(dst, port, bytes_per_s, name)


@app.command()
def record(
    out: Annotated[Path, typer.Option(metavar="FILE", help="The recording.", show_default=False)],
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One controller [default: all that record].", show_default=False)
    ] = None,
    duration: Annotated[
        str | None, typer.Option(help='Length, as "60 s" [default: until interrupted].', show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Record what controllers loaded with --record hear and answer, until Ctrl-C; `paceline replay` repeats it.

    Start it before the flows: one whose beginning is missing cannot be repeated.
    """
    seconds = None if duration is None else duration_s("--duration", duration)
    if seconds is None and not as_json:
        console(stderr=True).print("recording, until Ctrl-C", soft_wrap=True)
    recorded = json.loads(_native.kernel_record(name, out, seconds))
    if as_json:
        print_json(recorded)
        return
    console().print(f"recording  {out}: {recorded['records']} records, {recorded['bytes'] / 1e6:.1f} MB", soft_wrap=True)
    if recorded["lost"]:
        console().print(f"lost       {recorded['lost']} records, for which the buffer had no room", soft_wrap=True)


@app.command()
def top(
    interval: Annotated[str, typer.Option(help="Between two looks; rates are means over it.")] = "1 s",
    count: Annotated[int | None, typer.Option(min=1, help="Looks [default: until interrupted].", show_default=False)] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per look, one per line [one look unless --count].")
    ] = False,
) -> None:
    """Watch the flows of loaded controllers."""
    seconds = duration_s("--interval", interval)
    looks = 1 if count is None and as_json else count
    before = _flows()
    while looks is None or looks > 0:
        time.sleep(seconds)
        now = _flows()
        flows = [{**flow, "rate_bps": _rate(before.get(key), flow)} for key, flow in now.items()]
        if as_json:
            typer.echo(json.dumps({"flows": flows}, ensure_ascii=False, allow_nan=False))
        else:
            _print_flows(flows, clear=looks is None)
        before = now
        looks = None if looks is None else looks - 1


def _flows() -> dict[tuple[str, str, str], dict[str, Any]]:
    flows = json.loads(_native.kernel_flows())
    return {(flow["controller"], flow["local"], flow["remote"]): flow for flow in flows}


def _rate(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> float | None:
    """Bits of whole packets delivered per second, between the last ACKs of two looks."""
    if before is None or before["started_ns"] != now["started_ns"] or now["acked_ns"] <= before["acked_ns"]:
        return None
    delivered = now["delivered_bytes"] - before["delivered_bytes"]
    return float(delivered * 8e9 / (now["acked_ns"] - before["acked_ns"]))


def _print_flows(flows: Sequence[Mapping[str, Any]], *, clear: bool) -> None:
    out = console()
    if clear and out.is_terminal:
        out.clear()
    rows = [
        (
            flow["controller"],
            flow["local"],
            flow["remote"],
            _mbps(flow["rate_bps"]),
            _mbps(flow["pacing_bps"]),
            _mbps(flow["cap_bps"]),
            _number(flow["srtt_ms"]),
            _number(flow["min_rtt_ms"]),
            f"{flow['cwnd_bytes'] // max(flow['packet_bytes'], 1)}",
            str(flow["lost_packets"]),
            " ".join(f"{key}={_number(value)}" for key, value in flow["observed"].items()),
        )
        for flow in flows
    ]
    headings = ["controller", "local", "remote", "Mbit/s", "paced", "cap", "RTT ms", "least", "window", "lost", "state"]
    print_table(headings, rows, left=3)


def _mbps(bps: float | None) -> str:
    return "–" if bps is None else f"{bps / 1e6:.1f}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _cap_text(cap: Mapping[str, Any]) -> str:
    port = "" if cap["port"] is None else f" port {cap['port']}"
    return f"{cap['destination']}{port}: {quantity_text(cap['bps'], RATES_BPS)}"


def _rate_bps(text: str) -> float:
    """A rate, also as iproute2 writes it: "3gbit"."""
    units = {"kbit": "kbit/s", "mbit": "Mbit/s", "gbit": "Gbit/s"}
    for short, unit in units.items():
        if text.lower().endswith(short):
            return rate_bps("RATE", f"{text[: -len(short)]} {unit}")
    try:
        return rate_bps("RATE", text)
    except InputError as error:
        raise InputError(f'{error}, as "3 Gbit/s"; "none" removes a cap') from None
