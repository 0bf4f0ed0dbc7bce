"""Who is measured: the controller under test, and the others beside it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def _nothing(_capacity_bps: float, _flows: int) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Sender:
    """A controller and how it is carried."""

    #: Of the controller, as in the registry.
    name: str
    stack: str
    #: What must be set, by the capacity, bit/s, and the number of flows.
    parameters: Callable[[float, int], dict[str, Any]] = _nothing

    @property
    def label(self) -> str:
        """As rows name it."""
        return f"{self.name} over {self.stack}"

    def flow(self, capacity_bps: float, flows: int, *, changed: dict[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
        """One of ``flows`` on a link of ``capacity_bps``; ``changed`` are parameters on top, ``keys`` those of the flow."""
        controller = {"name": self.name, **self.parameters(capacity_bps, flows), **(changed or {})}
        return {"controller": controller, "stack": self.stack, **keys}


def _range_of_2020(capacity_bps: float, flows: int) -> dict[str, Any]:
    """What the 2020 paper is told of the link: r_min = C/(4N), r_max = 2 C."""
    return {"r_min": f"{capacity_bps / (4 * flows):.12g} bit/s", "r_max": f"{2 * capacity_bps:.12g} bit/s"}


#: The controller under test.
MPC = Sender("mpc", "datagram")
#: Beside it in the tables.
RIVALS = (
    Sender("cubic", "tcp"),
    Sender("bbr1", "tcp"),
    Sender("bbr3", "tcp"),
    Sender("pid", "tcp"),
    Sender("mpc-2020", "datagram", _range_of_2020),
)
