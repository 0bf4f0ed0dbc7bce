"""``paceline replay``: what a controller heard, once more."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from paceline import _native
from paceline.cli.output import console, print_json, print_table

#: What the largest number stands for in an output.
NONE = 2**64 - 1


def replay(
    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="Of `paceline kernel record` or `paceline run --events`.", show_default=False)
    ],
    bpf: Annotated[bool, typer.Option("--bpf/--no-bpf", help="Also through the BPF build, where this machine can.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")] = False,
) -> None:
    """Repeat a recording through the native and the BPF build of each controller: recorded, native and BPF must answer the same.

    Exit status 1 where they differ, or where nothing could be compared.
    """
    replayed = json.loads(_native.kernel_replay(log, bpf))
    if as_json:
        print_json(replayed)
    else:
        _print(replayed)
    if not replayed["equal"]:
        raise typer.Exit(1)


def _print(replayed: Mapping[str, Any]) -> None:
    out = console()
    flows = replayed["flows"]
    rows = [
        (
            flow["algorithm"] or "?",
            flow["local"] or "?",
            flow["remote"] or "?",
            _verdict(flow),
            str(flow["events"]),
            str(flow["answers"]),
        )
        for flow in flows
    ]
    print_table(["controller", "local", "remote", "answers", "events", "compared"], rows, left=4)
    for flow in flows:
        if difference := flow["difference"]:
            _print_difference(flow, difference)
    if replayed["bpf_skipped"] is not None:
        out.print(f"BPF skipped: {replayed['bpf_skipped']}", soft_wrap=True)
    if replayed["lost_records"] is None:
        out.print("the recording was not ended: what came last may be missing", soft_wrap=True)
    elif replayed["lost_records"]:
        out.print(f"{replayed['lost_records']} records were lost: the kernel's buffer was full", soft_wrap=True)
    if not any(flow["answers"] for flow in flows):
        out.print("nothing to compare: no flow was recorded from its beginning", soft_wrap=True)


def _verdict(flow: Mapping[str, Any]) -> str:
    if flow["algorithm"] is None:
        return f"beginning missing, {flow['records_after_gap']} records left out"
    verdict = "differ" if flow["difference"] else "equal"
    if flow["missing_records"]:
        after = flow["records_after_gap"]
        verdict += f" until {flow['missing_records']} records are missing, {after} after them left out"
    return verdict


def _print_difference(flow: Mapping[str, Any], difference: Mapping[str, Any]) -> None:
    answers = [(who, difference["values"][who]) for who in ("recorded", "native", "bpf") if who in difference["values"]]
    values = ", ".join(f"{who} {'none' if value == NONE else value}" for who, value in answers)
    where = f"event {difference['index']} ({difference['event']}, {difference['time_s']:.6f} s, byte {difference['byte']})"
    whose = f"{flow['algorithm']} {flow['local']} -> {flow['remote']}"
    console().print(f"{whose}: {difference['what']} differs after {where}: {values}", soft_wrap=True)
