"""``paceline controllers``: what there is, and what can be set."""

import dataclasses
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from paceline._native import InputError
from paceline.cli.output import console, print_json, print_table
from paceline.controller import FAMILIES, ControllerSpec, ParamSpec, value_text
from paceline.controller import controllers as all_controllers


def controllers(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Show this one with its parameters.", show_default=False)
    ] = None,
    pages: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write a page of each with a plot to this directory (needs Matplotlib).", show_default=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")] = False,
) -> None:
    """List the controllers, or show one: idea, equations, parameters with unit, default, range and meaning, profiles, source."""
    known = all_controllers()
    if pages is not None:
        if name is not None or as_json:
            raise InputError("--pages writes the pages of all controllers: it goes with neither NAME nor --json")
        _write_pages(pages)
        return
    if name is None:
        if as_json:
            print_json({"controllers": [dataclasses.asdict(spec) for spec in known.values()]})
        else:
            _print_all(list(known.values()))
        return
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean `{near[0]}`?" if near else ""
        raise InputError(f"no controller is called `{name}`{hint} (there are: {', '.join(known)})")
    if as_json:
        print_json(dataclasses.asdict(known[name]))
    else:
        _print_one(known[name])


def _write_pages(directory: Path) -> None:
    from paceline import pages

    try:
        written = pages.write(directory)
    except ImportError as error:
        raise InputError(f"plots need Matplotlib: pip install 'paceline[plot]' ({error})") from None
    except OSError as error:
        raise InputError(f"{error.filename or directory}: {error.strerror}") from None
    console().print(f"pages  {directory}: {len(written)} files, README.md first", soft_wrap=True)


def _print_all(specs: Sequence[ControllerSpec]) -> None:
    plain = console()
    width = max(len(spec.name) for spec in specs)
    for family, meaning in FAMILIES.items():
        plain.print(f"[bold]{family}[/bold]: {meaning}", markup=True, soft_wrap=True)
        for spec in specs:
            if spec.family == family:
                plain.print(f"{spec.name:<{width}}  {spec.title}", soft_wrap=True)
        plain.print()
    plain.print("paceline controllers NAME shows one: idea, equations, parameters, profiles, source", soft_wrap=True)


def _print_one(spec: ControllerSpec) -> None:
    plain = console()
    plain.print(f"{spec.name}: {spec.title}")
    plain.print(f"family: {spec.family}")
    plain.print(f"source: {spec.source}", soft_wrap=True)
    plain.print(f"\n{spec.about.rstrip()}\n", markup=False, soft_wrap=True)
    plain.print(f"needs: {', '.join(spec.needs) or 'nothing beside window, losses and timeouts'}")
    if spec.params:
        plain.print("\nparameters")
        print_table(["name", "unit", "default", "allowed", "meaning"], [_param(param) for param in spec.params], left=5)
    for profile in spec.profiles:
        plain.print(f'\nprofile "{profile.name}": {profile.source}')
        plain.print("  " + ", ".join(f"{key} = {value_text(value)}" for key, value in profile.values.items()))
    if spec.fields:
        plain.print("\nrecorded quantities")
        print_table(["name", "unit", "meaning"], [(field.name, field.unit, field.doc) for field in spec.fields], left=3)


def _param(param: ParamSpec) -> tuple[str, str, str, str, str]:
    return param.name, param.unit, value_text(param.default), param.allowed, param.doc
