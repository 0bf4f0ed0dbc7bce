"""The registry as Python sees it, and controllers driven by written events."""

import pytest

import paceline as pl
from paceline.controller import FAMILIES


def test_the_registry_lists_the_fixed_window_with_its_one_parameter() -> None:
    spec = pl.controllers()["window"]
    assert spec.title == "Fixed window"
    assert spec.needs == ()
    (packets,) = spec.params
    assert (packets.name, packets.kind, packets.unit, packets.default) == ("packets", "integer", "packets", 12)
    assert isinstance(packets.default, int)
    assert (packets.min, packets.max) == (1, 10_000_000)


def test_every_controller_is_described_completely() -> None:
    for name, spec in pl.controllers().items():
        assert name == spec.name
        assert spec.title
        assert spec.family in FAMILIES
        assert spec.source
        for param in spec.params:
            assert param.doc, f"{name}.{param.name}"
            assert param.unit, f"{name}.{param.name}"
            if param.choices is None and param.kind != "bool":
                assert param.min is None or param.max is None or param.min <= param.default <= param.max, f"{name}.{param.name}"
            elif param.choices is not None:
                assert param.default in param.choices, f"{name}.{param.name}"
        for observed in spec.fields:
            assert observed.unit, f"{name}.{observed.name}"


def test_a_built_in_is_driven_by_name() -> None:
    states = pl.drive("window", [("ack", {"now_ns": 1, "acked_packets": 1}), ("rto", {"now_ns": 2, "consecutive": 1})])
    # 12 packets of 1500 bytes, whatever happens; a datagram host waits 1 s.
    assert [state["cwnd_bytes"] for state in states] == [18_000, 18_000, 18_000]
    assert states[0]["timeout_ns"] == 1_000_000_000
    assert states[0]["pacing_bps"] is None
    assert states[0]["next_timer_ns"] is None


def test_the_packet_size_scales_the_window() -> None:
    assert pl.drive("window", [], packet_bytes=500)[0]["cwnd_bytes"] == 6000


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([("nack", {})], 'event 0 is a "nack"; allowed: ack, loss, rto, spurious_loss, send, resume, timer'),
        ([("rto", {"when": 1})], "event 0 (rto): there is no field `when` (there are: now_ns, in_flight_bytes, consecutive)"),
        ([("ack", {"now_ns": -1})], "event 0 (ack): `now_ns` is -1; allowed: whole numbers of 0 or more"),
        ([("timer", {"now_ns": 2}), ("timer", {"now_ns": 1})], "event 1: now_ns is before that of the event before"),
    ],
)
def test_wrong_events_are_refused(events: list[tuple[str, dict[str, object]]], message: str) -> None:
    with pytest.raises(pl.InputError) as raised:
        pl.drive("window", events)
    assert str(raised.value) == message


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(pl.InputError, match=r"^no controller is called `windw`; there are: .*\bwindow\b"):
        pl.drive("windw", [])


def test_input_and_run_errors_share_one_base() -> None:
    assert issubclass(pl.InputError, pl.PacelineError)
    assert issubclass(pl.RunError, pl.PacelineError)
    assert not issubclass(pl.InputError, pl.RunError)
