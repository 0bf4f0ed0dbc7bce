"""World ``vm``: what it refuses, and a short run in a guest where this machine has what that needs."""

import json
from pathlib import Path

import pytest

import paceline as pl
from handmade import Command
from paceline import _native
from paceline.machine import examine
from paceline.running import GUEST

SCENARIO = """
duration = "2 s"
warmup = "0.5 s"
[link]
rate = "20 Mbit/s"
delay = "10 ms"
[[flows]]
controller = "{controller}"
stack = "tcp"
"""


def _missing() -> str | None:
    return _native.vm_missing() if GUEST.is_file() else f"{GUEST} is not built (make build)"


real = pytest.mark.skipif(_missing() is not None, reason=str(_missing()))


class Mine(pl.Controller):
    """A controller in Python."""

    def on_ack(self, ack: pl.Ack) -> None:
        """Leaves everything as it is."""


@real
def test_a_python_controller_is_refused() -> None:
    with pytest.raises(pl.InputError, match="controller = Mine: a guest has no Python"):
        pl.run(SCENARIO.format(controller="reno"), Mine, on="vm")


@real
def test_a_run_in_a_guest_has_the_record_of_any_other(paceline: Command, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(SCENARIO.format(controller="mpc,cap=10 Mbit/s"))
    done = {}
    for world in ("sim", "vm"):
        ran = paceline("run", "a.toml", "--on", world, "--out", world, "--json")
        assert ran.returncode == 0, ran.stderr
        done[world] = json.loads(ran.stdout)
    simulated, carried_out = done["sim"], done["vm"]
    assert carried_out["world"] == "vm"
    assert list(carried_out) == list(simulated)
    assert list(carried_out["flows"][0]) == list(simulated["flows"][0])
    # Loaded with its parameter: the kernel keeps the cap as the simulator does.
    rates = [result["flows"][0]["throughput_bps"] / 1e6 for result in (simulated, carried_out)]
    assert rates[1] == pytest.approx(rates[0], rel=0.05)
    manifest = json.loads((tmp_path / "vm" / "manifest.json").read_text())
    assert manifest["host"]["cores"] == 1
    assert manifest["host"]["cpu_model"].startswith("QEMU")
    assert {check["name"]: check["ok"] for check in manifest["checks"]}["machine_kept_up"]


def test_doctor_names_what_guests_need() -> None:
    found = {finding.name: finding for finding in examine() if finding.used_for == "runs in world `vm`"}
    assert list(found) == ["qemu", "guest kernel"]
    assert found["qemu"].fix is not None
    assert found["qemu"].fix.endswith("qemu-system-x86")
