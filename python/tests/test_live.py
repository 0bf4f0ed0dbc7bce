"""World ``live``: what it refuses, and short runs over real sockets where this machine allows them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

import paceline as pl
from emulated import real
from handmade import Command

SCENARIO = """
duration = "2 s"
warmup = "0.5 s"
[link]
rate = "20 Mbit/s"
delay = "10 ms"
[[flows]]
controller = "{controller}"
stack = "{stack}"
"""


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("flows.0.stack=tcp", "flows.0.controller=copa"), "controller = copa: stack `tcp` is the kernel's here"),
        (("flows.0.stack=tcp", "flows.0.controller=reno", "flows.0.ecn=ect1"), "ecn = ect1: the kernel's TCP sends ECT(0)"),
        (("flows.0.controller=hpcc",), "which the live datagram endpoint does not provide"),
        (("topology={kind='dumbbell'}",), "links `access-sender-1` and `bottleneck` both have a rate"),
        (("packets.data=80 B",), "packets.data = 80 B; allowed: "),
    ],
)
def test_what_there_is_not_is_refused(change: tuple[str, ...], error: str) -> None:
    with pytest.raises(pl.InputError) as raised:
        pl.run(SCENARIO.format(controller="window", stack="datagram"), overrides=list(change), on="live")
    assert error in str(raised.value)


@real
def test_a_record_has_the_keys_of_a_simulation(paceline: Command, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(SCENARIO.format(controller="cubic", stack="datagram"))
    done = {}
    for world in ("sim", "live"):
        ran = paceline("run", "a.toml", "--on", world, "--out", world, "--json")
        assert ran.returncode == 0, ran.stderr
        done[world] = json.loads(ran.stdout)
    sim, live = done["sim"], done["live"]
    assert (sim["world"], live["world"]) == ("sim", "live")
    assert sim.keys() == live.keys()
    assert sim["flows"][0].keys() == live["flows"][0].keys()
    assert sim["links"][0].keys() == live["links"][0].keys()
    assert (live["engine"]["events"], live["engine"]["bytes_per_flow"]) == (None, None)
    flow = live["flows"][0]
    assert flow["throughput_bps"] > 0.5 * sim["flows"][0]["throughput_bps"]
    assert flow["rtt_ms"]["min"] >= 20
    records = [pl.Run(str(tmp_path / world)) for world in ("sim", "live")]
    assert records[0].series.columns == records[1].series.columns
    manifest = json.loads((tmp_path / "live" / "manifest.json").read_text())
    checks = {check["name"]: check for check in manifest["checks"]}
    assert checks["packets_conserved"]["ok"], checks
    assert "machine_kept_up" in checks
    assert manifest["flows"][0]["packet_bytes"] == {"data": 1500, "header": 76, "ack": 76}


@real
def test_a_python_controller_is_hosted_and_its_exception_ends_the_run() -> None:
    class Five(pl.Controller):
        FIELDS: ClassVar = {"window": "packets"}
        fail = False

        def on_ack(self, ack: pl.Ack) -> None:
            self.cwnd_packets = 5
            if self.fail:
                raise ValueError("enough")

        def observe(self) -> dict[str, float]:
            return {"window": self.cwnd_packets}

    scenario = SCENARIO.format(controller="window", stack="datagram")
    run = pl.run(scenario, Five, on="live", overrides={"duration": "1 s", "warmup": "0.3 s"})
    assert run.series["window"].drop_nulls()[-1] == 5

    class Failing(Five):
        fail = True

    with pytest.raises(pl.RunError, match="enough"):
        pl.run(scenario, Failing, on="live")


@real
def test_flows_have_rtts_of_their_own() -> None:
    scenario = SCENARIO.format(controller="window,packets=10", stack="datagram")
    other = '[[flows]]\ncontroller = "window,packets=10"\nstack = "datagram"\nrtt = "80 ms"\n'
    done = {world: pl.run(scenario + other, on=world).result for world in ("sim", "live")}
    for number, rtt_ms in enumerate((20, 80)):
        sim, live = (done[world]["flows"][number] for world in ("sim", "live"))
        assert live["rtt_ms"]["min"] >= rtt_ms
        assert live["rtt_ms"]["p50"] == pytest.approx(sim["rtt_ms"]["p50"], abs=20)
        assert live["throughput_bps"] == pytest.approx(sim["throughput_bps"], rel=0.4)
    # Pairs of a dumbbell, whose wires have no rate of their own.
    wires = "kind='dumbbell', pairs=2, access_rate='unlimited', access_delay={from='1 ms', to='11 ms'}"
    changes = [f"topology={{{wires}}}", "duration=1 s", "warmup=0.3 s"]
    near, far = pl.run(scenario + other.replace('rtt = "80 ms"', ""), on="live", overrides=changes).result["flows"]
    assert 24 <= near["rtt_ms"]["min"] < 44
    assert far["rtt_ms"]["min"] >= 64


@real
def test_the_kernels_tcp(tmp_path: Path) -> None:
    run = pl.run(SCENARIO.format(controller="reno", stack="tcp"), on="live", out=tmp_path / "record")
    flow = run.result["flows"][0]
    assert (flow["stack"], flow["controller"]) == ("tcp", "reno")
    assert flow["rtt_ms"]["min"] >= 20
    manifest = json.loads((tmp_path / "record" / "manifest.json").read_text())
    assert manifest["flows"][0]["controller_params"] == {}


def test_contest_programs(paceline: Command) -> None:
    command = [sys.executable, "-c", "from paceline.cli import main; main()", "contest", "receive", "0", "--duration", "20 s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiver:
        try:
            assert receiver.stdout is not None
            port = receiver.stdout.readline().strip()
            arguments = ("contest", "send", "127.0.0.1", port, "-c", "window,packets=3", "--duration", "0.3 s", "--json")
            sent = paceline(*arguments)
        finally:
            receiver.kill()
    assert sent.returncode == 0, sent.stderr
    answer = json.loads(sent.stdout)
    assert answer["acked_packets"] + 3 >= answer["sent_packets"] > 3
    assert answer["missing_packets"] == 0
    assert answer["rtt_ms"]["min"] > 0


def test_contest_programs_say_what_is_wrong(paceline: Command) -> None:
    for arguments, error in [
        (("127.0.0.1", "9", "-c", "nosuch"), "nosuch"),
        (("127.0.0.1", "9", "-c", "hpcc"), "which the live datagram endpoint does not provide"),
        (("127.0.0.1", "9", "-c", "cubic", "--duration", "5"), "expected a number with a unit"),
    ]:
        done = paceline("contest", "send", *arguments)
        assert done.returncode == 2, done.stderr
        assert error in done.stderr
