"""The report's delay threshold as it is printed: the window may fall below a packet, and then nothing but the timeout sends.

The built-in `delay-threshold` stops at one packet. At low thresholds that makes another sender of it.
"""

import math
from functools import cache

from paceline._native import Ack, PathInfo, Timeout
from paceline.controller import Controller

_START_PACKETS = 50.0
_TIMEOUT_NS = 10**9
#: A window below a packet holds every packet back.
_SHUT_PACKETS = 0.5


class DelayThreshold(Controller):
    """w += 1/w per ACK with an RTT below the threshold, w -= 1/w with any other while w > 1; w /= 2 per timeout while w > 1."""

    #: RTT from which on the window shrinks.
    THRESHOLD_NS = 0

    def __init__(self, path: PathInfo) -> None:
        super().__init__(path)
        self.window = _START_PACKETS
        self.timeout_ns = _TIMEOUT_NS
        self._use()

    def on_ack(self, ack: Ack) -> None:
        """Up or down by a packet per round trip."""
        if ack.rtt_ns is not None and ack.rtt_ns < self.THRESHOLD_NS:
            self.window += 1 / self.window
        elif self.window > 1:
            self.window -= 1 / self.window
        self._use()

    def on_rto(self, timeout: Timeout) -> None:  # noqa: ARG002
        """Silence."""
        if self.window > 1:
            self.window /= 2
        self._use()

    def _use(self) -> None:
        self.cwnd_packets = max(math.floor(self.window), _SHUT_PACKETS)


@cache
def delay_threshold(threshold_ms: int) -> type[Controller]:
    """The sender with that threshold."""
    return type(f"DelayThreshold{threshold_ms}", (DelayThreshold,), {"THRESHOLD_NS": threshold_ms * 10**6})
