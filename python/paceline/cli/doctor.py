"""``paceline doctor``: what this machine can run, and the command that adds what is missing."""

import dataclasses
from typing import Annotated

import typer

from paceline._native import build_info
from paceline.cli.output import console, print_json, print_table
from paceline.machine import examine


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")] = False,
) -> None:
    """Show what this machine can run, and the exact command that adds what is missing.

    Always exits with 0: nothing here but the simulator is needed, and that is part of the package.
    """
    findings = examine()
    if as_json:
        print_json({"build": dict(build_info()), "checks": [dataclasses.asdict(finding) for finding in findings]})
        return
    print_table(
        ["what", "", "for", "found"],
        [(found.name, "yes" if found.ok else "no", found.used_for, found.detail) for found in findings],
        left=4,
    )
    missing = [found for found in findings if not found.ok and found.fix]
    if missing:
        console().print("\nto add what is missing:")
        for found in missing:
            console().print(f"  {found.name}: {found.fix}", soft_wrap=True)
