"""``paceline controllers``: what there is, and what can be set."""

import dataclasses
import difflib
from typing import Annotated

import typer

from paceline._native import InputError
from paceline.cli.output import console, print_json, print_table
from paceline.controller import ControllerSpec, ParamSpec
from paceline.controller import controllers as all_controllers


def controllers(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Show this one with its parameters.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")] = False,
) -> None:
    """List the controllers, or show one: parameters with unit, default, range, meaning, source."""
    known = all_controllers()
    if name is None:
        if as_json:
            print_json({"controllers": [dataclasses.asdict(spec) for spec in known.values()]})
        else:
            rows = [(spec.name, spec.title, ", ".join(spec.needs) or "–", spec.source) for spec in known.values()]
            print_table(["name", "title", "needs", "source"], rows, left=4)
        return
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean `{near[0]}`?" if near else ""
        raise InputError(f"no controller is called `{name}`{hint} (there are: {', '.join(known)})")
    if as_json:
        print_json(dataclasses.asdict(known[name]))
    else:
        _print_one(known[name])


def _print_one(spec: ControllerSpec) -> None:
    plain = console()
    plain.print(f"{spec.name}: {spec.title}")
    plain.print(f"source: {spec.source}")
    plain.print(f"\n{spec.about.rstrip()}\n", markup=False, soft_wrap=True)
    plain.print(f"needs: {', '.join(spec.needs) or 'nothing beside window, losses and timeouts'}")
    if spec.params:
        plain.print("\nparameters")
        print_table(["name", "unit", "default", "allowed", "meaning"], [_param(param) for param in spec.params], left=5)
    for profile in spec.profiles:
        plain.print(f'\nprofile "{profile.name}": {profile.source}')
        plain.print("  " + ", ".join(f"{key} = {_toml(value)}" for key, value in profile.values.items()))
    if spec.fields:
        plain.print("\nrecorded quantities")
        print_table(["name", "unit", "meaning"], [(field.name, field.unit, field.doc) for field in spec.fields], left=3)


def _toml(value: object) -> str:
    """A value as a scenario writes it, words without their quotes."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _param(param: ParamSpec) -> tuple[str, str, str, str, str]:
    match param.default:
        case bool():
            default = "true" if param.default else "false"
        case float():
            default = f"{param.default:g}"
        case _:
            default = str(param.default)
    return param.name, param.unit, default, param.allowed, param.doc
