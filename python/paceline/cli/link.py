"""``paceline link``: a program behind an emulated link."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from paceline import _native
from paceline._native import InputError
from paceline.cli.output import MOST_SEED, console
from paceline.quantity import duration_s

Text = str | None


def _both(flag: str, metavar: str, meaning: str) -> Any:
    return typer.Option(f"--{flag}", metavar=metavar, help=meaning, show_default=False)


def _one(flag: str) -> Any:
    direction, _, key = flag.partition("-")
    return typer.Option(f"--{flag}", metavar=key.upper(), help=f"The same, for the {direction} alone.", show_default=False)


def link(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[--] [COMMAND]...", help="Program and arguments [default: your shell].", show_default=False),
    ] = None,
    uplink: Annotated[
        Text,
        _both(
            "uplink",
            "RATE|TRACE",
            'Capacity from the command to the outside: "12 Mbit/s", a trace file or synth:NAME [unlimited].',
        ),
    ] = None,
    downlink: Annotated[Text, _both("downlink", "RATE|TRACE", "Capacity from the outside to the command [unlimited].")] = None,
    delay: Annotated[
        Text, _both("delay", "TIME|FILE", 'Propagation delay of each direction, "20 ms", or a file of delays over time [none].')
    ] = None,
    buffer: Annotated[
        Text,
        _both("buffer", "SIZE", 'How much may wait: "1 BDP", "500 packets", "64 KiB", "10 ms" or "unlimited" [1 BDP].'),
    ] = None,
    queue: Annotated[
        Text,
        _both(
            "queue", "KIND[,KEY=VALUE]", 'Queue: droptail, drophead, codel, pie, fq_codel, … as "codel,target=5 ms" [droptail].'
        ),
    ] = None,
    loss: Annotated[
        Text, _both("loss", "SHARE", 'Random loss, "1%", "gilbert-elliott,p=…,r=…,loss_bad=…" or "on-off,on=5 s,off=1 s" [none].')
    ] = None,
    jitter: Annotated[Text, _both("jitter", "KIND,KEY=VALUE", 'Random delay: "exponential,mean=1 ms" [none].')] = None,
    reorder: Annotated[Text, _both("reorder", "KEY=VALUE", 'Some packets held back: "probability=1%,extra=5 ms" [none].')] = None,
    overhead: Annotated[
        Text, _both("overhead", "SIZE", 'Bytes that a packet counts besides its IP bytes; mahimahi\'s links have "4 B" [0 B].')
    ] = None,
    uplink_delay: Annotated[Text, _one("uplink-delay")] = None,
    downlink_delay: Annotated[Text, _one("downlink-delay")] = None,
    uplink_buffer: Annotated[Text, _one("uplink-buffer")] = None,
    downlink_buffer: Annotated[Text, _one("downlink-buffer")] = None,
    uplink_queue: Annotated[Text, _one("uplink-queue")] = None,
    downlink_queue: Annotated[Text, _one("downlink-queue")] = None,
    uplink_loss: Annotated[Text, _one("uplink-loss")] = None,
    downlink_loss: Annotated[Text, _one("downlink-loss")] = None,
    uplink_jitter: Annotated[Text, _one("uplink-jitter")] = None,
    downlink_jitter: Annotated[Text, _one("downlink-jitter")] = None,
    uplink_reorder: Annotated[Text, _one("uplink-reorder")] = None,
    downlink_reorder: Annotated[Text, _one("downlink-reorder")] = None,
    uplink_log: Annotated[
        Path | None,
        typer.Option(
            "--uplink-log", metavar="FILE", help="Write down what the uplink does, as mahimahi does.", show_default=False
        ),
    ] = None,
    downlink_log: Annotated[
        Path | None, typer.Option("--downlink-log", metavar="FILE", help="The same, for the downlink.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Write a record there, as paceline run does: for compare and report.", show_default=False
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Traces do not repeat: after the last opportunity nothing passes.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, max=MOST_SEED, help="Seed of every random draw.")] = 1,
    realtime: Annotated[
        bool,
        typer.Option("--realtime", help="Real-time priority for the emulator: exact on a busy machine, at the cost of the rest."),
    ] = False,
    outside: Annotated[
        bool,
        typer.Option(
            "--outside", help="The command reaches what this machine reaches, too, under this machine's address (IPv4)."
        ),
    ] = False,
    hosts: Annotated[
        int, typer.Option(min=1, max=64, help="Run the command so often, on hosts of their own that share the link.")
    ] = 1,
    host_delay: Annotated[
        list[str] | None,
        typer.Option(
            "--host-delay",
            metavar="TIME",
            help="Delay between a host and the link, each way; repeat it for the second, third, … host [none].",
            show_default=False,
        ),
    ] = None,
    summary: Annotated[bool, typer.Option("--summary", help="At the end, say on stderr what became of the packets.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="The summary as one JSON object, the last line on stderr: stdout is the command's.")
    ] = False,
) -> None:
    """Run a program behind an emulated link; leave with its exit status.

    The program sees one network, whose other end is this machine, at the address in PACELINE_BASE (and MAHIMAHI_BASE). Nothing
    beyond this machine can be reached, unless with --outside. Links nest. Needs root, or CAP_NET_ADMIN and CAP_SYS_ADMIN, and
    /dev/net/tun; --outside needs CAP_NET_RAW as well.
    """
    given = {
        "uplink": uplink,
        "downlink": downlink,
        "delay": delay,
        "buffer": buffer,
        "queue": queue,
        "loss": loss,
        "jitter": jitter,
        "reorder": reorder,
        "overhead": overhead,
        "uplink-delay": uplink_delay,
        "downlink-delay": downlink_delay,
        "uplink-buffer": uplink_buffer,
        "downlink-buffer": downlink_buffer,
        "uplink-queue": uplink_queue,
        "downlink-queue": downlink_queue,
        "uplink-loss": uplink_loss,
        "downlink-loss": downlink_loss,
        "uplink-jitter": uplink_jitter,
        "downlink-jitter": downlink_jitter,
        "uplink-reorder": uplink_reorder,
        "downlink-reorder": downlink_reorder,
        "once": "true" if once else None,
    }
    options = [(flag, value) for flag, value in given.items() if value is not None]
    program = command or [os.environ.get("SHELL", "/bin/sh")]
    sys.stdout.flush()
    delays = _access_delays(hosts, host_delay or [])
    logs = (uplink_log, downlink_log)
    answer = json.loads(_native.run_link(options, seed, realtime, outside, delays, logs, out, program, sys.argv))
    status = next((status for status in answer["statuses"] if status), 0)
    answer = {"status": status, **answer}
    if failure := answer["log_failure"]:
        console(stderr=True).print(f"error: the log is not complete: {failure}", soft_wrap=True)
        status = status or 1
    if as_json:
        typer.echo(json.dumps(answer), err=True)
    elif summary:
        for direction in ("uplink", "downlink"):
            console(stderr=True).print(_summary(direction, answer[direction]), soft_wrap=True)
    raise typer.Exit(status)


def _access_delays(hosts: int, given: list[str]) -> list[float]:
    """The delay of every host, s; those that are not given have none."""
    if len(given) > hosts:
        raise InputError(f"--host-delay {given[hosts]}: there is no host {hosts + 1}; add --hosts {len(given)}")
    delays = [0.0 if text.strip() in ("0 s", "0s") else duration_s("--host-delay", text) for text in given]
    return delays + [0.0] * (hosts - len(given))


def _summary(direction: str, counts: dict[str, Any]) -> str:
    dropped = {why: counts[f"dropped_{why}"] for why in ("full", "managed", "random", "exhausted")}
    reasons = ", ".join(f"{number} {why}" for why, number in dropped.items() if number)
    late = counts["late_us"]
    text = (
        f"{direction}: {counts['entered_packets']} packets, {counts['left_packets']} delivered, {sum(dropped.values())} dropped"
    )
    text += f" ({reasons})" if reasons else ""
    if late["mean"] is not None:
        text += f"; late by {late['mean']:.0f} us on average, {late['p99']:.0f} us at most for 99 %"
    return text
