"""The command tree: every command in the order of ``paceline --help``."""

from typing import Annotated

import typer

from paceline import __version__
from paceline._native import build_info
from paceline.cli import arena, contest, controllers, doctor, kernel, link, records, replay, reproduce, run, trace

app = typer.Typer(
    name="paceline",
    help="Congestion control from equation to kernel: run controllers over links and compare them.",
    epilog="Exit status: 0 done, 1 the run failed, 2 bad usage or input, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        info = build_info()
        typer.echo(f"paceline {__version__} ({info['profile']}, {info['target']})")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


app.command("run")(run.run)
app.command("compare")(records.compare)
app.command("report")(records.report)
app.command("controllers")(controllers.controllers)
app.command("arena")(arena.arena)
app.command("reproduce")(reproduce.reproduce)
app.command("link", context_settings={"allow_interspersed_args": False})(link.link)
app.add_typer(kernel.app, name="kernel")
app.command("replay")(replay.replay)
app.add_typer(trace.app, name="trace")
app.add_typer(contest.app, name="contest")
app.add_typer(records.export_app, name="export")
app.command("schema")(run.schema)
app.command("doctor")(doctor.doctor)
