"""Paceline: congestion control from equation to kernel.

>>> import paceline as pl
>>> run = pl.run("scenarios/demo.toml", controller="cubic")  # doctest: +SKIP
>>> run.result["jain_index"]  # doctest: +SKIP

A controller of your own is a class with one method; see :class:`Controller`.
"""

from paceline._native import Ack, InputError, Loss, PacelineError, PathInfo, Resume, RunError, Sent, Timeout, Undo, build_info
from paceline.controller import Controller, ControllerSpec, FieldSpec, ParamSpec, ProfileSpec, controllers, drive
from paceline.record import Run, load
from paceline.running import check, run
from paceline.scenario import Flow, Link, Scenario

__version__ = build_info()["version"]

__all__ = [
    "Ack",
    "Controller",
    "ControllerSpec",
    "FieldSpec",
    "Flow",
    "InputError",
    "Link",
    "Loss",
    "PacelineError",
    "ParamSpec",
    "PathInfo",
    "ProfileSpec",
    "Resume",
    "Run",
    "RunError",
    "Scenario",
    "Sent",
    "Timeout",
    "Undo",
    "__version__",
    "check",
    "controllers",
    "drive",
    "load",
    "run",
]
