"""Hangs up on connections that the HTTP server itself would hold for ever.

G1  Granian waits without end for the first 24 bytes of a connection, by which it tells HTTP/1.1 from HTTP/2. A client
    that has not sent them in the idle time, and has got no answer, is hung up on. What comes after is bounded there.
G2  There are at most `connections_max` connections; the newest above that are hung up on.
"""

from typing import Protocol

from ottla.world.accepted_sockets import AcceptedSocket

PREFACE_BYTES = 24
EVERY_S = 1.0


class Connections(Protocol):
    """Where connections are found."""

    def look(self) -> list[AcceptedSocket]:
        """Return those there are."""
        ...


class ConnectionGuard:
    """Looks at the connections of one port every now and then."""

    def __init__(self, connections: Connections, *, connections_max: int, silence_s: float) -> None:
        self._connections = connections
        self._connections_max = connections_max
        self._silence_s = silence_s
        self._since: dict[int, float] = {}  # when each was first seen, the oldest first
        self.hung_up = 0

    @property
    def open(self) -> int:
        """How many there were when last looked at."""
        return len(self._since)

    def check(self, now: float) -> None:
        """Hang up on those who are silent, and on those who are too many."""
        found = {each.number: each for each in self._connections.look()}
        self._since = {number: at for number, at in self._since.items() if number in found}
        for number in found:
            self._since.setdefault(number, now)
        for place, (number, since) in enumerate(self._since.items()):
            one = found[number]
            is_silent = one.bytes_received < PREFACE_BYTES and one.bytes_taken <= 1  # the SYN counts as one
            if place >= self._connections_max or (is_silent and now - since >= self._silence_s):
                one.hang_up()
                self.hung_up += 1

    def hang_up_on_all(self) -> None:
        """End every connection, at the end of a stop."""
        for each in self._connections.look():
            each.hang_up()
