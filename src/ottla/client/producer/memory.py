"""The bytes that records under way may take: `buffer.memory`.

Y1  Bytes are taken for a whole batch at a time, so a record that fits an open batch never asks.
Y2  Who waits is served in the order of asking, and nobody who comes later takes bytes before.
"""

from collections import deque
from collections.abc import Callable


class Claim:
    """Somebody who waits for bytes."""

    __slots__ = ("granted", "size", "tell")

    def __init__(self, size: int, tell: Callable[[], object]) -> None:
        self.size = size
        self.tell = tell
        self.granted = False


class Memory:
    """How many bytes are free, and who waits for some."""

    __slots__ = ("_claims", "free", "total")

    def __init__(self, total: int) -> None:
        self.total = total
        self.free = total
        self._claims: deque[Claim] = deque()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._claims)

    def take(self, size: int) -> bool:
        """Take bytes if there are enough and nobody waits; whether it was so."""
        if self._claims or self.free < size:
            return False
        self.free -= size
        return True

    def give(self, size: int) -> None:
        """Give bytes back."""
        self.free += size
        self._serve()

    def queue(self, size: int, tell: Callable[[], object]) -> Claim:
        """Stand in line for bytes; `tell` is called when they have been set aside."""
        claim = Claim(size, tell)
        self._claims.append(claim)
        self._serve()
        return claim

    def leave(self, claim: Claim) -> None:
        """Leave the line, or give back what was set aside."""
        if claim.granted:
            self.give(claim.size)
        else:
            self._claims.remove(claim)
            self._serve()

    def _serve(self) -> None:
        while self._claims and self._claims[0].size <= self.free:
            claim = self._claims.popleft()
            self.free -= claim.size
            claim.granted = True
            claim.tell()
