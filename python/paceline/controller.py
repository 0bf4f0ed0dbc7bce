"""Controllers: the built-in ones by name, and the base class for your own.

In: nothing but the registry of the extension. Out: :func:`controllers` lists what there is, :class:`Controller` is what you
subclass, :func:`drive` feeds either with written events, without a simulation.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from paceline import _native
from paceline._native import Ack, Loss, PathInfo, Resume, Sent, Timeout, Undo


class Controller(_native.ControllerCore):
    """A congestion controller written in Python; it runs in the simulator like a built-in.

    Subclass it, define :meth:`on_ack`, and whatever else the algorithm hears. Inside a callback set

    * ``self.cwnd_packets`` or ``self.cwnd_bytes``: congestion window, above 0; fractions count, the host rounds down to bytes,
    * ``self.pacing_bps``: pacing rate, bit/s on the wire; ``None`` (the default) leaves pacing to the window,
    * ``self.send_quantum_bytes``: largest burst of the pacer, bytes; 0 = one packet,
    * ``self.next_timer_ns``: when to call :meth:`on_timer`, ns from the start of the run; ``None`` = never,
    * ``self.timeout_ns``: silence after which a datagram host calls :meth:`on_rto`, ns; ``None`` = the host's own rule.

    Before ``__init__`` the window is the host's initial one and nothing is paced. Time comes with the events only: a controller
    that reads a clock or a global random state makes runs that cannot be repeated (``self.path.seed`` is there to seed your own).

    ``FIELDS`` names what :meth:`observe` reports, with units; the record keeps it and plots label themselves with it.
    ``NEEDS`` lists what the host must provide (``pacing``, ``ce-count``, ``rate-sample``, ``send-events``, ``timers``,
    ``one-way-delay``); ``on_send`` and ``on_timer`` imply theirs.

    An exception in a callback ends the run: ``RunError`` with the original as its cause.

    >>> class Mine(Controller):
    ...     FIELDS = {"base_rtt": "ms"}
    ...     def on_ack(self, ack):
    ...         self.cwnd_packets += ack.acked_packets / self.cwnd_packets
    ...     def on_loss(self, loss):
    ...         if loss.starts_episode:
    ...             self.cwnd_packets = max(2.0, self.cwnd_packets / 2)
    >>> drive(Mine, [("ack", {"acked_packets": 5})])[-1]["cwnd_bytes"]
    15750
    """

    #: What :meth:`observe` reports: name (``snake_case``) to unit (``ms``, ``packets``, ``Mbit/s``, ``1``).
    FIELDS: ClassVar[Mapping[str, str]] = {}
    #: What the host must provide beside window, losses and timeouts.
    NEEDS: ClassVar[Iterable[str]] = ()

    def __init__(self, path: PathInfo) -> None:
        """``path`` tells ``packet_bytes``, ``initial_window_packets``, ``seed`` and ``now_ns``; it stays as ``self.path``."""

    def on_ack(self, ack: Ack) -> None:
        """One acknowledgement that newly acknowledges data; exactly one call per such ACK. Must be defined."""
        raise NotImplementedError

    def on_loss(self, loss: Loss) -> None:
        """Packets newly found lost; at most once per step, before the ``on_ack`` of that step."""

    def on_rto(self, timeout: Timeout) -> None:
        """A retransmission timeout, or a datagram host's silence timer."""

    def on_spurious_loss(self, undo: Undo) -> None:
        """The last episode was reordering: restore what it took."""

    def on_send(self, sent: Sent) -> None:
        """A packet leaves."""

    def on_resume(self, resume: Resume) -> None:
        """First packet after the flow had nothing in flight."""

    def on_timer(self, now_ns: int) -> None:
        """At or after ``next_timer_ns``, which is ``None`` again by then."""

    def observe(self) -> Mapping[str, float | None]:
        """One value per name in ``FIELDS``, in its unit; what is missing or ``None`` is recorded as absent."""
        return {}


#: What a controller mainly goes by, in the order of lists.
FAMILIES = {
    "loss-based": "losses say when the window falls",
    "delay-based": "the queueing delay decides, alone or beside losses",
    "model-based": "an estimate of what the path delivers",
    "rate-based": "a rate that a utility, a cost or a setpoint chooses",
    "mark-based": "the share of packets that a queue has marked",
    "data-centre": "what clocks or switches of a data centre tell",
    "contest": "the senders of the CS 244 contest",
}


@dataclass(frozen=True)
class ParamSpec:
    """One parameter of a built-in controller. Numbers are in ``unit`` (durations: s, rates: bit/s)."""

    name: str
    kind: str
    unit: str
    default: float | int | bool | str
    min: float | None
    max: float | None
    choices: tuple[str, ...] | None
    allowed: str
    doc: str


@dataclass(frozen=True)
class ProfileSpec:
    """A named set of constants, chosen with ``profile = "…"``."""

    name: str
    source: str
    values: Mapping[str, float | int | bool | str]


@dataclass(frozen=True)
class FieldSpec:
    """A quantity the controller reports into the record."""

    name: str
    unit: str
    doc: str


@dataclass(frozen=True)
class ControllerSpec:
    """A built-in controller: what it is called, where it is from, what can be set."""

    name: str
    title: str
    family: str
    """A key of :data:`FAMILIES`."""
    source: str
    about: str
    """Idea and equations, Markdown."""
    needs: tuple[str, ...]
    params: tuple[ParamSpec, ...]
    profiles: tuple[ProfileSpec, ...]
    fields: tuple[FieldSpec, ...]


def controllers() -> dict[str, ControllerSpec]:
    """Every built-in controller by name, in the registry's order."""
    return {entry["name"]: _spec(entry) for entry in json.loads(_native.controllers())}


def value_text(value: float | int | bool | str) -> str:
    """A parameter's value as a scenario writes it, words without their quotes and numbers without their unit."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.10g}"
        case _:
            return str(value)


def drive(
    controller: str | type[Controller],
    events: Iterable[tuple[str, Mapping[str, Any]]],
    *,
    packet_bytes: int = 1500,
    initial_window_packets: int = 10,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Feeds ``events`` to a controller without a simulation: for tests of a controller, or to hold a port to its original.

    Args:
        controller: a built-in's name, or a subclass of :class:`Controller`.
        events: ``(kind, fields)`` pairs in order of time. Kinds: ``ack``, ``loss``, ``rto``, ``spurious_loss``, ``send``,
            ``resume``, ``timer``; fields are those of the event of that name (``now_ns``, ``acked_packets``, ``rtt_ns``,
            ``starts_episode`` …); what is left out is 0 or false.
        packet_bytes: size of a full data packet, bytes.
        initial_window_packets: window the host starts with, packets.
        seed: for controllers that draw random numbers.

    Returns:
        The state before any event, then one per event: ``cwnd_bytes``, ``pacing_bps``, ``send_quantum_bytes``,
        ``next_timer_ns``, ``timeout_ns``, and ``observed`` by field name. Absent values are ``None``.

    Raises:
        InputError: an unknown controller, kind or field, or a time that decreases.
        RunError: the controller raised; the original is the cause.
    """
    states: list[dict[str, Any]] = json.loads(
        _native.drive_controller(
            controller, [(kind, dict(fields)) for kind, fields in events], packet_bytes, initial_window_packets, seed
        )
    )
    return states


def _spec(entry: Mapping[str, Any]) -> ControllerSpec:
    return ControllerSpec(
        name=entry["name"],
        title=entry["title"],
        family=entry["family"],
        source=entry["source"],
        about=entry["about"],
        needs=tuple(entry["needs"]),
        params=tuple(
            ParamSpec(**{**param, "choices": None if param["choices"] is None else tuple(param["choices"])})
            for param in entry["params"]
        ),
        profiles=tuple(ProfileSpec(**profile) for profile in entry["profiles"]),
        fields=tuple(FieldSpec(**observed) for observed in entry["fields"]),
    )
