"""Attention: how long this controller has listened.

    listen(now) --> listened_ms          a clock that runs only while somebody listens

L1  Time in which the controller was not called, because it was stopped, starved or at work, is hardly counted: of each
    gap between two calls no more than COUNTED_MAX_MS. What brokers said meanwhile lies unread in its sockets.
L2  A gap of more than STALL_MS is a stall. What came before `resumed_ms` is not held against anybody.
L3  Jumps of the clock, ahead or back, are gaps like others.

The host calls at least every `PULSE_MS` while there is somebody to listen for.
"""

from ottla.replicated.decision import Millis

PULSE_MS = 100
COUNTED_MAX_MS = 500
STALL_MS = 1_200
_NEVER = -(1 << 62)


class Attention:
    """The clock by which silence is measured."""

    __slots__ = ("_called_ms", "listened_ms", "resumed_ms")

    def __init__(self, now: Millis) -> None:
        self._called_ms = now
        self.listened_ms = 0
        self.resumed_ms = _NEVER  # by this clock, when the last stall was noticed

    def listen(self, now: Millis) -> int:
        """Note a call, and return how long we have listened."""
        gap_ms = now - self._called_ms
        self._called_ms = now
        if gap_ms > 0:
            self.listened_ms += min(gap_ms, COUNTED_MAX_MS)
        if gap_ms > STALL_MS:
            self.resumed_ms = self.listened_ms
        return self.listened_ms
