"""Scenarios built in code: the same keys as in a scenario file, as dataclasses.

In: Python values. Out: TOML text, which the extension parses and checks like any file; nothing is validated twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from os import PathLike, fspath
from typing import Any

import tomli_w

from paceline.controller import Controller

#: A value with its unit as a scenario file writes it ("12 Mbit/s", "25 ms", "0.5 BDP"), or a table of such values.
Value = str | int | float | bool | Mapping[str, Any]


@dataclass(kw_only=True)
class Link:
    """A bottleneck. Leave a key ``None`` for its default; units are part of the text (``"12 Mbit/s"``)."""

    #: Name in the record; needed when there are several links.
    name: str | None = None
    #: Capacity ("40 Gbit/s"). Either this or ``trace``.
    rate: str | None = None
    #: Trace file with the delivery opportunities.
    trace: str | PathLike[str] | None = None
    #: The trace does not repeat.
    once: bool | None = None
    #: One-way propagation delay ("12.5 ms"). Either this or ``rtt``.
    delay: str | None = None
    #: One-way propagation delay over time: a file with a line "TIME DELAY" per change, in ms.
    delay_trace: str | PathLike[str] | None = None
    #: Round-trip propagation delay ("25 ms").
    rtt: str | None = None
    #: "0.25 BDP", "500 packets", "64 KiB", "10 ms" or "unlimited"; default 1 BDP.
    buffer: str | None = None
    #: "droptail", or a table: ``{"kind": "codel", "target": "5 ms"}``.
    queue: Value | None = None
    #: Random loss: "0.1%", or a table.
    loss: Value | None = None
    #: Noise on the RTT, put on the ACK direction: ``{"kind": "exponential", "mean": "1% rtt", "max": "10% rtt"}``.
    noise: Value | None = None
    #: The same on the data direction.
    jitter: Value | None = None
    #: Packets held back so that others overtake them: ``{"probability": "1%", "extra": "5 ms"}``.
    reorder: Value | None = None
    #: The ACK direction; default: same delay, never a bottleneck.
    reverse: Value | None = None
    #: Keys that have no attribute here.
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Flow:
    """One or several equal flows."""

    #: A name, a table (``{"name": "mpc-2020", "target": 0.5}``), or a subclass of :class:`paceline.Controller`.
    controller: Value | type[Controller]
    _: KW_ONLY
    #: Name in the record.
    name: str | None = None
    #: How many.
    count: int | None = None
    #: When they start ("5 s").
    start: str | None = None
    #: Each starts later by a random time up to this.
    start_spread: str | None = None
    #: When they stop sending new data.
    stop: str | None = None
    #: Base RTT of these flows where it differs from the links' ("80 ms").
    rtt: str | None = None
    #: "tcp" or "datagram", or a table.
    stack: Value | None = None
    #: Ceiling of the sending rate ("20 Gbit/s").
    cap: str | None = None
    #: Payload to transfer ("1 GB"); endless without.
    size: str | None = None
    #: Keys that have no attribute here (``from`` and ``to``).
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class Scenario:
    """Links, flows, duration, seed.

    >>> print(Scenario(link=Link(rate="12 Mbit/s", rtt="40 ms"), flows=[Flow("cubic")], duration="10 s").to_toml())
    duration = "10 s"
    flows = [
        { controller = "cubic" },
    ]
    <BLANKLINE>
    [link]
    rate = "12 Mbit/s"
    rtt = "40 ms"
    <BLANKLINE>
    """

    flows: Sequence[Flow]
    #: The one bottleneck. Either this or ``links``.
    link: Link | None = None
    links: Sequence[Link] = ()
    #: Which links a flow crosses, when there are several.
    topology: Mapping[str, Any] | None = None
    title: str | None = None
    #: Simulated time ("30 s").
    duration: str | None = None
    #: Statistics begin here ("5 s").
    warmup: str | None = None
    seed: int | None = None
    #: Top-level keys that have no attribute here.
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The scenario as the tables of a scenario file. A flow's controller class appears by its name."""
        table: dict[str, Any] = {}
        for key in ("title", "duration", "warmup", "seed"):
            if (value := getattr(self, key)) is not None:
                table[key] = value
        table |= self.extra
        if self.topology is not None:
            table["topology"] = dict(self.topology)
        if self.link is not None:
            table["link"] = _table("link", self.link, Link)
        if self.links:
            table["links"] = [_table(f"links[{i}]", link, Link) for i, link in enumerate(self.links)]
        table["flows"] = [_table(f"flows[{i}]", flow, Flow) for i, flow in enumerate(self.flows)]
        return table

    def to_toml(self) -> str:
        """The scenario as the text of a scenario file."""
        return tomli_w.dumps(self.to_dict())

    def python_controllers(self) -> dict[str, type[Controller]]:
        """The classes that its flows use, by name.

        Raises:
            ValueError: two different classes share a name, so the record could not tell them apart.
        """
        classes: dict[str, type[Controller]] = {}
        for flow in self.flows:
            if (
                isinstance(flow.controller, type)
                and classes.setdefault(flow.controller.__name__, flow.controller) is not flow.controller
            ):
                raise ValueError(f"two controller classes are called {flow.controller.__name__}; rename one")
        return classes


def _table(key: str, part: Link | Flow, expected: type) -> dict[str, Any]:
    if not isinstance(part, expected):
        raise TypeError(f"{key} is {part!r}; expected a paceline.{expected.__name__}")
    table: dict[str, Any] = {}
    for entry in fields(part):
        value = getattr(part, entry.name)
        if value is None or entry.name == "extra":
            continue
        if isinstance(value, type):
            value = value.__name__
        elif isinstance(value, PathLike):
            value = fspath(value)
        elif isinstance(value, Mapping):
            value = dict(value)
        table[entry.name] = value
    return table | dict(part.extra)
