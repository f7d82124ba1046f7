"""Chance: identifiers and jitter, drawn from the system or from a seed."""

import random
import secrets
from typing import Protocol

_RESERVED_BELOW = 100  # Kafka keeps the first hundred UUIDs for itself (Uuid.RESERVED).


class Entropy(Protocol):
    """Where chance comes from."""

    def uuid(self) -> bytes:
        """Return 16 random bytes fit for a topic, directory or cluster id."""
        ...

    def random(self) -> float:
        """Return a float in [0, 1)."""
        ...

    def below(self, bound: int) -> int:
        """Return an integer in [0, bound)."""
        ...


def as_identifier(raw: bytes) -> bytes | None:
    """Turn 16 random bytes into a version-4 UUID, or None where Kafka would not take it.

    Kafka draws again when the text form opens with a dash (it would read as a command-line option) or when the value is
    one of its reserved ones.
    """
    value = bytearray(raw)
    value[6] = value[6] & 0x0F | 0x40
    value[8] = value[8] & 0x3F | 0x80
    dash = 0b111110  # '-' in the URL-safe base64 alphabet
    if value[0] >> 2 == dash or int.from_bytes(value, "big") < _RESERVED_BELOW:
        return None
    return bytes(value)


class RealEntropy:
    """The system's entropy."""

    def uuid(self) -> bytes:
        """Return a random version-4 UUID as 16 bytes."""
        while (identifier := as_identifier(secrets.token_bytes(16))) is None:
            pass
        return identifier

    def random(self) -> float:
        """Return a float in [0, 1)."""
        return random.random()

    def below(self, bound: int) -> int:
        """Return an integer in [0, bound)."""
        return secrets.randbelow(bound)


class SeededEntropy:
    """Entropy that repeats itself: the same seed gives the same draws."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def uuid(self) -> bytes:
        """Return the seed's next version-4 UUID."""
        while (identifier := as_identifier(self._random.randbytes(16))) is None:
            pass
        return identifier

    def random(self) -> float:
        """Return the seed's next float in [0, 1)."""
        return self._random.random()

    def below(self, bound: int) -> int:
        """Return the seed's next integer in [0, bound)."""
        return self._random.randrange(bound)
