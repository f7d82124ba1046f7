"""What no client should send: requests with odd values, requests with broken bytes, and frames that are none."""

import random
import struct
from collections.abc import Iterator
from typing import Any

from ottla.broker.served import APIS
from ottla.wire.field import Field
from ottla.wire.message import Message
from ottla.wire.primitive import Primitive
from tests.faults.by_hand import batch
from tests.peers.connection import request_frame
from tests.unit.wire.samples import Sampler

FETCH = 1
INT_RANGES = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
CORRELATION = 0x0DDB


class OddSampler(Sampler):
    """Fills requests with names that exist, names that cannot, and numbers from the edges of their types."""

    def __init__(self, seed: int, topic: str, topic_id: bytes) -> None:
        super().__init__(seed)
        self._names = (
            topic,
            topic,
            topic,
            "absent",
            "",
            "..",
            "a" * 300,
            "é\0\n",
            "1",
            "segment.bytes",
            "-1",
        )
        self._ids = (topic_id, bytes(16), b"\xff" * 16)

    def value(self, field: Field, version: int) -> Any:
        kind = field.kind
        if not isinstance(kind, Primitive):
            return self.struct(kind, version)
        chance = self.random
        match kind.name:
            case "string":
                return chance.choice(self._names)
            case "uuid":
                return chance.choice(self._ids)
            case "records":
                whole = batch(b"odd")
                return chance.choice((whole, whole[: chance.randrange(80)], b"", chance.randbytes(99)))
            case name if name in INT_RANGES:
                edge = 1 << INT_RANGES[name]
                # Long waits are for patient clients.
                if field.name in ("max_wait_ms", "timeout_ms"):
                    return chance.choice((-1, 0, 1, 5))
                return chance.choice(
                    (0, 0, 0, 1, 1, 2, -1, -2, 3, 90, edge - 1, -edge, chance.randrange(-edge, edge))
                )
        return super().value(field, version)


def odd_requests(seed: int, rounds: int, topic: str, topic_id: bytes) -> Iterator[tuple[int, int, bytes]]:
    """API key, version and frame of well-formed requests of every API and version served, filled oddly."""
    sampler = OddSampler(seed, topic, topic_id)
    for _ in range(rounds):
        for api in APIS:
            for version in api.versions:
                yield (
                    api.key,
                    version,
                    request_frame(sampler.message(api.request, version), version, CORRELATION),
                )


def plain_request(request: type[Message], version: int) -> bytes:
    """A request with nothing in it but defaults."""
    return request_frame(request(), version, CORRELATION)


def mutate(frame: bytes, chance: random.Random) -> bytes:
    """The frame with its header's first ten bytes intact, damaged behind them; the size is made to fit, mostly."""
    body = bytearray(frame[4:])
    floor = min(10, len(body))
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randint(floor, len(body))
        kind = chance.choice(("flip", "flip", "cut", "insert", "length", "varint"))
        if kind == "flip" and at < len(body):
            body[at] ^= 1 << chance.randrange(8)
        elif kind == "cut":
            del body[at : at + chance.choice((1, 2, 8, 10_000))]
        elif kind == "insert":
            body[at:at] = chance.randbytes(chance.choice((1, 4, 40)))
        elif kind == "length":
            body[at : at + 4] = struct.pack(
                ">i", chance.choice((-1, -2, 0, 1 << 30, (1 << 31) - 1, -(1 << 31), 65536))
            )
        else:
            body[at : at + 1] = chance.choice(
                (b"\xff\xff\xff\xff\x0f", b"\x80" * 12, b"\x00", b"\xff\xff\x03")
            )
    if chance.random() < 0.1:
        return struct.pack(">i", len(body) + chance.choice((-3, 1, 1000))) + bytes(body)
    return struct.pack(">i", len(body)) + bytes(body)


def frames_that_are_none(chance: random.Random) -> Iterator[bytes]:
    """Bytes that no client would send first, without end."""
    starts = (
        lambda: chance.randbytes(chance.randrange(1, 400)),
        lambda: struct.pack(">i", chance.choice((-1, -(1 << 31), -100))) + chance.randbytes(20),
        lambda: (
            struct.pack(">i", chance.choice((104_857_601, (1 << 31) - 1, 0x16030100))) + chance.randbytes(20)
        ),
        lambda: struct.pack(">i", 0),
        lambda: struct.pack(">i", chance.randrange(1, 14)) + chance.randbytes(20),
        lambda: b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n",
        lambda: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + chance.randbytes(200),
        lambda: b"\0" * chance.randrange(1, 2000),
    )
    while True:
        yield chance.choice(starts)()


def unknown_apis() -> Iterator[bytes]:
    """Keys and versions that are not served."""
    served = {api.key: api.versions for api in APIS}
    for key in (*range(-3, 110), 1000, 32767, -32768):
        for version in (-1, 0, 1, 99, 32767, -32768):
            if key != 18 and version not in served.get(key, ()):
                yield struct.pack(">ihhih", 10, key, version, CORRELATION, -1)
