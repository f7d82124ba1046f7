"""The hash that Java has of a string, by which Kafka says which partition keeps what."""

import sys
from array import array
from functools import lru_cache

_NATIVE = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"


def java_hash(text: str, begun: int = 0) -> int:
    """Return the hash of a text, as 32 bits without a sign; `begun` is that of what stands before it."""
    units = array("H", text.encode(_NATIVE, "surrogatepass"))
    for unit in units:
        begun = (31 * begun + unit) & 0xFFFFFFFF
    return begun


@lru_cache(maxsize=64)
def known_hash(text: str) -> int:
    """The same of a text that is asked for again and again, and may be long, as the id of a group."""
    return java_hash(text)


def absolute(number: int) -> int:
    """Return the absolute value of 32 bits, as Kafka has it: of the least int, which has none in Java, 0."""
    signed = number if number < 0x80000000 else number - 0x100000000
    return 0 if signed == -0x80000000 else abs(signed)
