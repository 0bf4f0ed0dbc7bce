"""Controllers written in Python, against the contract: what they hear, what they decide, how they fail."""

import doctest
import traceback
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

import paceline as pl
import paceline.controller


class Aimd(pl.Controller):
    """Reno's congestion avoidance: one packet per window, halved once per episode, one packet after a timeout."""

    def on_ack(self, ack: pl.Ack) -> None:
        self.cwnd_packets += ack.acked_packets / self.cwnd_packets

    def on_loss(self, loss: pl.Loss) -> None:
        if loss.starts_episode:
            self.cwnd_packets = max(2.0, self.cwnd_packets / 2)

    def on_rto(self, timeout: pl.Timeout) -> None:
        self.cwnd_packets = 1


def test_additive_increase_multiplicative_decrease_by_hand() -> None:
    states = pl.drive(
        Aimd,
        [
            ("ack", {"now_ns": 10, "acked_packets": 10}),  # 10 + 10/10 = 11 packets
            ("loss", {"now_ns": 20, "lost_packets": 1, "starts_episode": True}),  # 5.5
            ("loss", {"now_ns": 30, "lost_packets": 1}),  # the same episode
            ("ack", {"now_ns": 40, "acked_packets": 11}),  # 5.5 + 11/5.5 = 7.5
            ("rto", {"now_ns": 50, "consecutive": 1}),
        ],
    )
    assert [state["cwnd_bytes"] / 1500 for state in states] == [10, 11, 5.5, 5.5, 7.5, 1]


def test_an_ack_tells_what_the_host_measured_and_none_where_it_did_not() -> None:
    heard: list[pl.Ack] = []

    class Ear(pl.Controller):
        def on_ack(self, ack: pl.Ack) -> None:
            heard.append(ack)

    pl.drive(
        Ear,
        [
            ("ack", {"now_ns": 0}),
            (
                "ack",
                {
                    "now_ns": 2_500_000_000,
                    "rtt_ns": 40_000_000,
                    "delivered_bytes": 15_000,
                    "interval_ns": 10_000_000,
                    "app_limited": True,
                },
            ),
        ],
    )
    empty, full = heard
    absent = (empty.rtt_ns, empty.rtt_ms, empty.srtt_ms, empty.min_rtt_ns, empty.one_way_delay_ms, empty.delivery_rate_bps)
    assert absent == (None,) * 6
    assert not empty.app_limited
    assert (full.now_s, full.rtt_ns, full.rtt_ms) == (2.5, 40_000_000, 40.0)
    # 15000 bytes in 10 ms are 12 Mbit/s.
    assert full.delivery_rate_bps == 12e6
    assert full.app_limited
    assert not full.in_recovery
    with pytest.raises(AttributeError):
        full.rtt_ns = 1  # type: ignore[misc]


def test_the_constructor_sees_the_path_and_may_skip_super() -> None:
    class Mine(pl.Controller):
        def __init__(self, path: pl.PathInfo) -> None:
            assert (path.packet_bytes, path.initial_window_packets, path.seed) == (1000, 4, 7)
            assert self.path.seed == 7
            assert self.cwnd_packets == 4
            self.cwnd_packets = 20
            self.pacing_bps = 8e6

        def on_ack(self, ack: pl.Ack) -> None: ...

    (state,) = pl.drive(Mine, [], packet_bytes=1000, initial_window_packets=4, seed=7)
    assert state["cwnd_bytes"] == 20_000
    assert state["pacing_bps"] == 8e6


def test_pacing_is_absent_until_set_and_may_be_taken_back() -> None:
    class Pacer(pl.Controller):
        def on_ack(self, ack: pl.Ack) -> None:
            self.pacing_bps = 10e6 if self.pacing_bps is None else None

    states = pl.drive(Pacer, [("ack", {}), ("ack", {})])
    assert [state["pacing_bps"] for state in states] == [None, 10e6, None]


def test_a_timer_fires_once_unless_it_is_set_again() -> None:
    class Alarm(pl.Controller):
        def on_ack(self, ack: pl.Ack) -> None:
            self.next_timer_ns = ack.now_ns + 5

        def on_timer(self, now_ns: int) -> None:
            assert self.next_timer_ns is None
            self.cwnd_packets = now_ns

    states = pl.drive(Alarm, [("ack", {"now_ns": 10}), ("timer", {"now_ns": 15})])
    assert [state["next_timer_ns"] for state in states] == [None, 15, None]
    assert states[-1]["cwnd_bytes"] == 15 * 1500


def test_every_callback_arrives() -> None:
    heard: list[tuple[str, int]] = []

    def note(name: str) -> Callable[[Any, Any], None]:
        return lambda _, event: heard.append((name, event if isinstance(event, int) else event.now_ns))

    kinds = ("ack", "loss", "rto", "spurious_loss", "send", "resume", "timer")
    chatty = type("Chatty", (pl.Controller,), {f"on_{kind}": note(kind) for kind in kinds})
    pl.drive(chatty, [(kind, {"now_ns": index}) for index, kind in enumerate(kinds)])
    assert heard == [(kind, index) for index, kind in enumerate(kinds)]


def test_observe_fills_the_declared_fields() -> None:
    class Watched(pl.Controller):
        FIELDS: ClassVar[Mapping[str, str]] = {"base_rtt": "ms", "mode": "1"}

        def on_ack(self, ack: pl.Ack) -> None: ...

        def observe(self) -> Mapping[str, float | None]:
            return {"base_rtt": 12.5, "mode": None}

    assert pl.drive(Watched, [])[0]["observed"] == {"base_rtt": 12.5, "mode": None}


class Boom(pl.Controller):
    def on_ack(self, ack: pl.Ack) -> None:
        _ = 1 / 0


def test_an_exception_becomes_a_run_error_that_names_callback_and_time() -> None:
    with pytest.raises(pl.RunError) as raised:
        pl.drive(Boom, [("ack", {"now_ns": 1_500_000_000})])
    assert str(raised.value) == "controller `Boom`: on_ack at 1.5 s raised ZeroDivisionError: division by zero"
    cause = raised.value.__cause__
    assert isinstance(cause, ZeroDivisionError)
    assert "_ = 1 / 0" in "".join(traceback.format_exception(cause))


def test_an_exception_in_the_constructor_is_one_too() -> None:
    class Mute(pl.Controller):
        def __init__(self, path: pl.PathInfo) -> None:
            raise ValueError("no")

        def on_ack(self, ack: pl.Ack) -> None: ...

    with pytest.raises(pl.RunError, match=r"^controller `Mute`: __init__ at 0 s raised ValueError: no$"):
        pl.drive(Mute, [])


def test_an_interrupt_stays_an_interrupt() -> None:
    class Stopped(pl.Controller):
        def on_ack(self, ack: pl.Ack) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pl.drive(Stopped, [("ack", {})])


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("cwnd_packets", -3, "cwnd_packets is -3; allowed: finite numbers above 0"),
        ("cwnd_bytes", 0, "cwnd_bytes is 0; allowed: finite numbers above 0"),
        ("cwnd_bytes", float("nan"), "cwnd_bytes is NaN; allowed: finite numbers above 0"),
        ("pacing_bps", float("inf"), "pacing_bps is inf; allowed: finite numbers above 0"),
    ],
)
def test_an_impossible_decision_is_refused_where_it_is_made(attribute: str, value: float, message: str) -> None:
    class Wrong(pl.Controller):
        def on_ack(self, ack: pl.Ack) -> None:
            setattr(self, attribute, value)

    with pytest.raises(pl.RunError) as raised:
        pl.drive(Wrong, [("ack", {})])
    assert str(raised.value.__cause__) == message


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_any_allowed_window_reaches_the_host_rounded_down(cwnd_bytes: float) -> None:
    class Set(pl.Controller):
        def on_ack(self, ack: pl.Ack) -> None:
            self.cwnd_bytes = cwnd_bytes

    state = pl.drive(Set, [("ack", {})])[-1]
    assert state["cwnd_bytes"] == min(int(cwnd_bytes), 2**64 - 1)


def test_what_is_no_controller_is_refused() -> None:
    class NoAck(pl.Controller): ...

    class BadField(Aimd):
        FIELDS: ClassVar[Mapping[str, str]] = {"Base RTT": "ms"}

    class BadNeed(Aimd):
        NEEDS = ("speed",)

    cases: list[tuple[Any, str]] = [
        (int, "a controller in Python is a subclass of paceline.Controller"),
        (Aimd(_path()), "a controller in Python is a subclass of paceline.Controller"),
        (NoAck, "controller `NoAck` does not define on_ack(self, ack)"),
        (BadField, 'FIELDS of controller `BadField` must map a name (snake_case) to a unit: {"base_rtt": "ms"}'),
        (
            BadNeed,
            'NEEDS of controller `BadNeed` has "speed"; '
            "allowed: pacing, ce-count, rate-sample, send-events, timers, one-way-delay",
        ),
    ]
    for candidate, message in cases:
        with pytest.raises(pl.InputError) as raised:
            pl.drive(candidate, [])
        assert str(raised.value) == message


def test_a_field_that_was_not_declared_is_an_error() -> None:
    class Sloppy(pl.Controller):
        def on_ack(self, ack: pl.Ack) -> None: ...

        def observe(self) -> Mapping[str, float | None]:
            return {"base_rtt": 1.0}

    with pytest.raises(
        pl.RunError, match="observe raised ValueError: observe\\(\\) returned `base_rtt`, which FIELDS does not name"
    ):
        pl.drive(Sloppy, [])


def test_the_examples_in_the_docstrings_work() -> None:
    for module in (paceline.controller, paceline.scenario):
        outcome = doctest.testmod(module)
        assert outcome.attempted > 0
        assert outcome.failed == 0


def _path() -> pl.PathInfo:
    seen: list[pl.PathInfo] = []

    class Spy(pl.Controller):
        def __init__(self, path: pl.PathInfo) -> None:
            seen.append(path)

        def on_ack(self, ack: pl.Ack) -> None: ...

    pl.drive(Spy, [])
    return seen[0]
