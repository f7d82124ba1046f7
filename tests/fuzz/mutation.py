"""Bytes that were a request: flipped, cut, spliced with another, and with lengths that lie."""

import random
import struct

_LENGTHS = (-1, -2, 0, 1, 1 << 30, (1 << 31) - 1, -(1 << 31), 65536, 127, 32767)
_VARINTS = (b"\xff\xff\xff\xff\x0f", b"\x80" * 12, b"\x00", b"\xff\xff\x03", b"\x80\x01", b"\x01")


def mutate(chance: random.Random, frame: bytes, other: bytes) -> bytes:
    """The frame damaged behind its size, which is made to fit. API, version and number stay as they were, mostly."""
    body = bytearray(frame[4:])
    floor = 8 if chance.random() < 0.97 else 0
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        at = chance.randint(min(floor, len(body)), len(body))
        match chance.randrange(7):
            case 0 | 1:
                if at < len(body):
                    body[at] ^= 1 << chance.randrange(8)
            case 2:
                del body[at : at + chance.choice((1, 2, 8, 10_000))]
            case 3:
                body[at:at] = chance.randbytes(chance.choice((1, 4, 40)))
            case 4:
                body[at : at + 4] = struct.pack(">i", chance.choice(_LENGTHS))
            case 5:
                body[at : at + 1] = chance.choice(_VARINTS)
            case 6:
                start = chance.randint(0, len(other))
                body[at:] = other[start : start + chance.choice((4, 20, 10_000))]
    return struct.pack(">i", len(body)) + bytes(body)


def misframe(chance: random.Random, frame: bytes) -> bytes:
    """The frame with a size that is not its own: what comes behind it is read as something else."""
    size = len(frame) - 4
    lie = chance.choice((size - 1, size + 1, size - 3, size + 1000, 0, 1, -1, 104_857_601, (1 << 31) - 1, 104_857_600))
    return struct.pack(">i", lie) + frame[4:]
