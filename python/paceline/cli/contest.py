"""``paceline contest``: a datagram flow between two machines, compatible on the wire with the contest's programs."""

import json
from typing import Annotated, Any

import typer

from paceline import _native
from paceline.cli.output import MOST_SEED, console, print_json
from paceline.cli.run import controller_class
from paceline.quantity import duration_s

app = typer.Typer(
    help="Sender and receiver of datagrams for two machines, under any controller.", no_args_is_help=True, rich_markup_mode=None
)

#: Without --duration a sender goes on for so long, s.
FOREVER_S = 30 * 86_400.0


@app.command()
def send(
    host: Annotated[str, typer.Argument(metavar="HOST", help="Where the receiver is.", show_default=False)],
    port: Annotated[int, typer.Argument(metavar="PORT", min=1, max=65_535, help="Its UDP port.", show_default=False)],
    controller: Annotated[
        str,
        typer.Option(
            "--controller",
            "-c",
            metavar="NAME",
            help="NAME, NAME:PROFILE, NAME,KEY=VALUE or FILE.py:CLASS.",
            show_default=False,
        ),
    ],
    duration: Annotated[str | None, typer.Option(help='How long, as "60 s" [default: until Ctrl-C].', show_default=False)] = None,
    seed: Annotated[int, typer.Option(min=0, max=MOST_SEED, help="Seed of a controller that draws random numbers.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")] = False,
) -> None:
    """Send packets of 1500 bytes to a receiver and say what came of them. None is sent again.

    Behind an emulated link: paceline link … -- sh -c 'paceline contest send $PACELINE_BASE PORT -c cubic --duration "10 s"'.
    """
    seconds = FOREVER_S if duration is None else duration_s("--duration", duration)
    answer = json.loads(_native.contest_send(host, port, controller_class(controller), seconds, seed))
    if as_json:
        print_json(answer)
    else:
        console().print(_summary(answer))


@app.command()
def receive(
    port: Annotated[int, typer.Argument(metavar="PORT", min=0, max=65_535, help="UDP port; 0: a free one.", show_default=False)],
    duration: Annotated[str | None, typer.Option(help='How long, as "60 s" [default: until Ctrl-C].', show_default=False)] = None,
) -> None:
    """Acknowledge every packet that comes to a UDP port. Prints the port."""
    _native.contest_receive(port, None if duration is None else duration_s("--duration", duration), _ready)


def _ready(port: int) -> None:
    print(port, flush=True)


def _summary(answer: dict[str, Any]) -> str:
    sent, acked, missing = answer["sent_packets"], answer["acked_packets"], answer["missing_packets"]
    text = f"{sent} packets in {answer['duration_s']:.1f} s: {acked} acknowledged, {missing} missing at the receiver"
    rtt = answer["rtt_ms"]
    if rtt["mean"] is not None:
        text += f"; RTT {rtt['min']:.2f} ms at least, {rtt['mean']:.2f} on average, {rtt['p95']:.2f} for 95 %"
    return text
