"""Runs a scenario from Python.

In: a scenario (file, text, dict or :class:`paceline.Scenario`) and what to change about it. Out: a :class:`paceline.Run`.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import tomli_w

from paceline import _native
from paceline._native import InputError
from paceline.controller import Controller
from paceline.record import Run
from paceline.scenario import Scenario

#: What can be run: a path, TOML text (any string with a line break), the tables as a dict, or a scenario built in code.
ScenarioLike = str | PathLike[str] | Mapping[str, Any] | Scenario
#: Changes on top of a scenario: ``{"link.rate": "10 Mbit/s"}``, or ``["link.rate=10 Mbit/s"]`` as on the command line.
Overrides = Mapping[str, Any] | Sequence[str]

#: What runs in the guest of world ``vm``; built beside the extension.
GUEST = Path(__file__).parent / "_guest"


def run(
    scenario: ScenarioLike,
    controller: str | type[Controller] | None = None,
    *,
    seed: int | None = None,
    out: str | PathLike[str] | None = None,
    overrides: Overrides = (),
    on: str = "sim",
    realtime: bool = False,
    events: str | PathLike[str] | None = None,
) -> Run:
    """Runs a scenario, in the simulator unless ``on`` says otherwise.

    Args:
        scenario: a path, TOML text (a string with a line break), a dict with the keys of a scenario file, or a
            :class:`paceline.Scenario`.
        controller: the controller of every flow, a name or a subclass of :class:`paceline.Controller`; ``None``: those the
            scenario names.
        seed: replaces the scenario's.
        out: directory of the record; ``None``: a temporary one that goes with the returned object.
        overrides: changes on top, with dotted keys: ``{"link.rate": "10 Mbit/s"}``.
        on: the world that carries the packets: ``sim``; ``live``, real sockets and the link emulator in real time; or ``vm``,
            the same in a virtual machine whose time is counted in instructions.
        realtime: in world ``live``, emulator and endpoints run before all programs without real-time priority.
        events: file for what controllers in integer C hear and answer, for ``paceline replay``.

    Raises:
        InputError: the scenario, an override or a name cannot be used.
        RunError: the run failed, or a Python controller raised (its exception is the cause).
        KeyboardInterrupt: Ctrl-C; no record is left.
    """
    source = Source.of(scenario)
    carry_out = partial(
        execute,
        source,
        controller,
        seed=seed,
        overrides=override_list(overrides),
        command=sys.argv,
        on=on,
        realtime=realtime,
        events=None if events is None else Path(events),
    )
    if out is not None:
        return Run(carry_out(out=Path(out))["record"])
    temporary = Path(tempfile.mkdtemp(prefix="paceline-"))
    try:
        answer = carry_out(out=temporary / "record")
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return Run(answer["record"], temporary=temporary)


def check(scenario: ScenarioLike, *, overrides: Overrides = ()) -> dict[str, Any]:
    """The scenario as it would run, every default filled in, without running it.

    Raises:
        InputError: it could not run; the message says where and what is allowed.
    """
    source = Source.of(scenario)
    resolved: dict[str, Any] = json.loads(_native.check_scenario(source.text, source.path, override_list(overrides)))
    return resolved


@dataclass(frozen=True)
class Source:
    """A scenario as text, with where it is from and the classes its flows name."""

    text: str
    path: str | None
    classes: Mapping[str, type[Controller]]

    @classmethod
    def of(cls, scenario: ScenarioLike) -> "Source":
        """Reads a scenario in any of its forms.

        Raises:
            InputError: a file that cannot be read, or a dict that TOML cannot hold.
        """
        if isinstance(scenario, Scenario):
            try:
                return cls(_dump(scenario.to_dict()), None, scenario.python_controllers())
            except ValueError as error:
                raise InputError(str(error)) from None
        if isinstance(scenario, Mapping):
            return cls(_dump(scenario), None, {})
        if isinstance(scenario, str) and "\n" in scenario:
            return cls(scenario, None, {})
        path = Path(scenario)
        try:
            return cls(path.read_text(encoding="utf-8"), str(path), {})
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from None
        except ValueError as error:
            raise InputError(f"{path}: not UTF-8 text: {error}") from None


def execute(
    source: Source,
    controller: str | type[Controller] | None,
    *,
    seed: int | None,
    out: Path | None,
    overrides: Sequence[str],
    command: Sequence[str],
    progress: Callable[[float], object] | None = None,
    on: str = "sim",
    realtime: bool = False,
    events: Path | None = None,
) -> dict[str, Any]:
    """One run; returns ``{"record": …, "result": …}``. Releases the interpreter lock, so runs may go on in threads.

    ``progress`` is called about ten times a second with the simulated time reached, s.
    """
    if seed is not None and not 0 <= seed < 2**64:
        raise InputError(f"seed is {seed}; allowed: whole numbers 0 to 2^64 - 1")
    classes = dict(source.classes)
    if isinstance(controller, type):
        classes[controller.__name__] = controller
        controller = controller.__name__
    answer: dict[str, Any] = json.loads(
        _native.run(
            scenario_text=source.text,
            scenario_path=source.path,
            overrides=list(overrides),
            controller=controller,
            seed=seed,
            out=None if out is None else str(out),
            command=list(command),
            python_controllers=classes or None,
            progress=progress,
            world=on,
            realtime=realtime,
            guest=str(GUEST) if GUEST.is_file() else None,
            events=None if events is None else str(events),
        )
    )
    return answer


def override_list(overrides: Overrides) -> list[str]:
    """Overrides as the extension takes them: ``key=value`` with TOML values."""
    if isinstance(overrides, str):
        raise InputError(f'overrides is one string, "{overrides}"; expected a dict, or a list of "key=value"')
    if isinstance(overrides, Mapping):
        return [f"{key}={_dump({'value': value}, inline=True)}" for key, value in overrides.items()]
    return list(overrides)


def _dump(table: Mapping[str, Any], *, inline: bool = False) -> str:
    try:
        if inline:
            # A lone value: an array of one writes tables inline.
            return (
                tomli_w.dumps({"v": [table["value"]]}, indent=0)
                .removeprefix("v = [")
                .strip()
                .removesuffix("]")
                .strip()
                .rstrip(",")
            )
        return tomli_w.dumps(dict(table))
    except (TypeError, ValueError) as error:
        raise InputError(f"the scenario cannot be written as TOML: {error}") from None
