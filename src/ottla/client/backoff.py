"""Pauses before retries: each is twice as long as the last one, up to a limit, with 20% of random jitter."""

from ottla.world.entropy import Entropy

_JITTER = 0.2


class Backoff:
    """The pauses between the retries of one operation."""

    __slots__ = ("_entropy", "_first_ms", "_max_ms", "failures")

    def __init__(self, first_ms: int, max_ms: int, entropy: Entropy) -> None:
        self._first_ms = first_ms
        self._max_ms = max(first_ms, max_ms)
        self._entropy = entropy
        self.failures = 0

    def failed(self) -> float:
        """Note one more failure; return the seconds to wait."""
        # Many more doublings would overflow a float.
        pause_ms = min(self._first_ms * 2.0 ** min(self.failures, 32), self._max_ms)
        self.failures += 1
        return pause_ms * (1 + _JITTER * (2 * self._entropy.random() - 1)) / 1000

    def succeeded(self) -> None:
        """Start again with the first pause."""
        self.failures = 0
