"""Record sets for Produce: whole batches in every codec, several at once, and batches damaged in every field."""

import random
import struct

from crc32c import crc32c

from ottla.wire.batch import BATCH_HEADER, build_batch
from ottla.wire.compression import Codec
from ottla.wire.record import Record

_CRC_AT = 17
_CRC_FROM = 21
# Offset, width and name of what a damaged header lies about; the CRC is made to fit mostly, so that it is believed.
_FIELDS = {
    "base_offset": (0, ">q"),
    "batch_length": (8, ">i"),
    "partition_leader_epoch": (12, ">i"),
    "magic": (16, ">b"),
    "attributes": (21, ">h"),
    "last_offset_delta": (23, ">i"),
    "base_timestamp": (27, ">q"),
    "max_timestamp": (35, ">q"),
    "producer_id": (43, ">q"),
    "producer_epoch": (51, ">h"),
    "base_sequence": (53, ">i"),
    "record_count": (57, ">i"),
}
_BITS = {"q": 63, "i": 31, "h": 15, "b": 7}


def whole_batch(
    chance: random.Random, now_ms: int, producer: tuple[int, int] | None = None, transactional: bool = False
) -> bytearray:
    """A batch as a producer sends it, of one to twenty records."""
    count = chance.choice((1, 1, 1, 2, 5, 20))
    timestamp = chance.choice((now_ms, now_ms, now_ms, 0, -1, now_ms + 10**10))
    records = [
        Record(
            number,
            timestamp,
            chance.choice((b"key", b"k%d" % chance.randrange(50), b"", None)),
            chance.choice((b"value", b"", None, b"x" * chance.choice((10, 300, 6000)))),
            chance.choice(((), (("header", b"1"),), (("", None), ("h", b"")))),
        )
        for number in range(count)
    ]
    producer_id, epoch = producer or (-1, -1)
    return build_batch(
        records,
        codec=chance.choice(tuple(Codec)),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=chance.choice((0, 0, 1, count, 2**31 - 1)) if producer else -1,
        transactional=transactional,
    )


def damaged_batch(chance: random.Random, whole: bytearray) -> bytearray:
    """The batch with a lie in its header, or with broken records."""
    batch = bytearray(whole)
    for _ in range(chance.choice((1, 1, 2))):
        kind = chance.choice(("field", "field", "field", "flip", "cut", "longer", "body"))
        if kind == "field":
            name = chance.choice(tuple(_FIELDS))
            at, form = _FIELDS[name]
            edge = 1 << _BITS[form[1]]
            value = chance.choice((0, 1, -1, -2, 2, 7, 100, 1000, edge - 1, -edge, chance.randrange(-edge, edge)))
            struct.pack_into(form, batch, at, max(-edge, min(value, edge - 1)))
        elif kind == "flip" and len(batch) > BATCH_HEADER.size:
            batch[chance.randrange(BATCH_HEADER.size, len(batch))] ^= 1 << chance.randrange(8)
        elif kind == "cut":
            del batch[chance.randrange(BATCH_HEADER.size, len(batch) + 1) :]
        elif kind == "longer":
            batch += chance.randbytes(chance.randrange(1, 40))
        elif kind == "body":
            batch[BATCH_HEADER.size :] = chance.choice(
                (b"\xff" * 40, b"\x00", chance.randbytes(60), b"\xfe\xff\xff\xff\x0f" * 4)
            )
        if len(batch) < BATCH_HEADER.size:
            return batch
    if chance.random() < 0.5:
        struct.pack_into(">i", batch, 8, len(batch) - 12)
    if chance.random() < 0.85:
        struct.pack_into(">I", batch, _CRC_AT, crc32c(bytes(batch[_CRC_FROM:])))
    return batch


class BatchPool:
    """A few hundred record sets, made once: encoding them anew for each request would cost more than serving it."""

    def __init__(self, seed: int, now_ms: int, size: int = 400) -> None:
        chance = random.Random(seed)
        self._sets: list[bytes] = []
        for _ in range(size):
            whole = whole_batch(chance, now_ms)
            kind = chance.random()
            if kind < 0.55:
                self._sets.append(bytes(whole))
            elif kind < 0.9:
                self._sets.append(bytes(damaged_batch(chance, whole)))
            elif kind < 0.95:
                self._sets.append(bytes(whole) + bytes(whole_batch(chance, now_ms)))
            else:
                self._sets.append(
                    chance.choice((b"", b"\0", bytes(whole[: chance.randrange(80)]), chance.randbytes(99)))
                )
        self._now_ms = now_ms

    def pick(self, chance: random.Random) -> bytes:
        """Any of them."""
        return chance.choice(self._sets)

    def of_producer(self, chance: random.Random, producer: tuple[int, int], transactional: bool) -> bytes:
        """A batch with a producer's id and epoch."""
        whole = whole_batch(chance, self._now_ms, producer, transactional)
        return bytes(whole if chance.random() < 0.8 else damaged_batch(chance, whole))
