"""Fuzz targets of the compiled parts, a few to each of them; `tests.fuzz.sanitized` runs them under sanitizers.

    python -m tests.fuzz.compiled_targets INPUTS SEED [TARGET]

What an input does is for other tests to judge, which compare C and Python. Here it only must not touch memory that is
not its own, which a sanitizer sees, or raise what nobody expects. So buffers end where what they hold does; `bytes` and
`bytearray` have one byte more than they say.
"""

import contextlib
import random
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from crc32c import crc32c

from ottla.broker import lane
from ottla.channel import swift
from ottla.client.consumer.fetched_batches import FetchedBatches
from ottla.client.consumer.packed_records import pack_records
from ottla.log import plain
from ottla.log.config import LogConfig
from ottla.wire.batch import BATCH_HEADER_SIZE, scan
from ottla.wire.catalog import every_message
from ottla.wire.columns import decode_columns, decode_headers
from ottla.wire.errors import BrokerError, ProtocolError
from ottla.wire.record import Record, encode_records
from ottla.wire.record_walk import INT64_MAX, INT64_MIN, walk_of
from tests.fuzz.batches import damaged_batch, whole_batch
from tests.fuzz.mutation import misframe, mutate
from tests.unit.broker.test_express import NOW
from tests.unit.broker.test_lane import World, fetched, produced, written
from tests.unit.channel.test_connection import feed, frame
from tests.unit.log.test_directory import open_directory
from tests.unit.wire.samples import Sampler

Target = Callable[[random.Random, Path], Iterator[None]]
_EDGES = (0, 1, 2, 3, 0x7E, 0x7F, 0x80, 0xFF)


def spoil(chance: random.Random, data: bytes) -> bytes:
    """Some bytes changed, cut off, or doubled."""
    changed = bytearray(data)
    for _ in range(chance.choice((0, 1, 1, 2, 5))):
        if changed:
            changed[chance.randrange(len(changed))] = chance.choice((*_EDGES, chance.randrange(256)))
    if chance.random() < 0.3:
        place = chance.randrange(len(changed) + 1)
        changed[place:] = chance.choice((b"", changed[place:] * 2, chance.randbytes(10)))
    return bytes(changed)


def exact(data: bytes) -> memoryview:
    """The data in memory that ends with it."""
    return memoryview(array("B", data)[:])  # which, unlike the array that it is cut from, has no room to grow


def messages(chance: random.Random, _: Path) -> Iterator[None]:
    """`wire/_swift.c`: any message at any version."""
    kinds = every_message()
    while True:
        cls = chance.choice(kinds)
        version = chance.choice(cls.versions)
        decode, sampler = cls.decoder(version), Sampler(chance.randrange(1 << 30))
        for _ in range(20):
            data = sampler.message(cls, version).encode(version)[:4000]
            for _ in range(10):
                body = bytearray(spoil(chance, data))
                # Some lie within a longer buffer, as those of a connection do.
                position = chance.choice((0, 0, 3))
                with contextlib.suppress(ProtocolError):
                    decode(bytearray(position) + body, position, position + len(body))
                yield


def _records(chance: random.Random) -> tuple[int, bytes]:
    sizes = (None, 0, 1, 62, 63, 64, 65, 500)
    given = [
        Record(
            number,
            chance.choice((NOW, NOW + 1, 0, -1, 1 << 50)),
            *(None if size is None else chance.randbytes(size) for size in chance.choices(sizes, k=2)),
            tuple(("name", chance.choice((None, b"", b"value"))) for _ in range(chance.choice((0, 0, 1, 3)))),
        )
        for number in range(chance.choice((0, 1, 2, 5, 40)))
    ]
    return len(given), encode_records(given, 0, NOW)[0] if given else b""


def walks(chance: random.Random, _: Path) -> Iterator[None]:
    """`wire/_walk.h`: the pass over records, in pieces."""
    while True:
        count, body = _records(chance)
        for _ in range(30):
            data = spoil(chance, body)
            walk = walk_of(
                count + chance.choice((0, 0, 0, 1, -1, (1 << 31) - 1)),
                chance.choice((NOW, INT64_MAX, INT64_MIN)),
                chance.choice((None, NOW)),
                is_dense=chance.random() < 0.7,
                is_keyed=chance.random() < 0.3,
            )
            size = chance.choice((1, 7, 100, 1 << 20) if len(data) < 2000 else (1000, 1 << 20))
            for start in range(0, len(data), size):
                if not walk.feed(exact(data[start : start + size])):
                    break
            walk.end()
            _ = walk.bad, walk.fault, walk.index, walk.max_time
            yield


def readers(chance: random.Random, _: Path) -> Iterator[None]:
    """`wire/_records.c`: objects and columns made of records."""
    while True:
        batch = whole_batch(chance, NOW)
        batch[21:23] = chance.choice((0, 8)).to_bytes(
            2
        )  # not compressed: what follows is the records themselves
        count, body = _records(chance)
        batch[57:61] = max(count + chance.choice((0, 0, 0, 1)), 0).to_bytes(4)
        for _ in range(30):
            data = spoil(chance, body)
            batch[8:12] = (BATCH_HEADER_SIZE - 12 + len(data)).to_bytes(4)
            whole = bytes(batch[:BATCH_HEADER_SIZE]) + data
            [(_, found)] = scan(whole)
            packed = pack_records(FetchedBatches("t", 0, b"", chance.choice((0, 1, 3, 1 << 60))), [found], [data])
            if packed is not None:
                _ = packed[:], packed[1:2]
            try:
                columns = decode_columns([found], [data], payloads=chance.random() < 0.8)
                decode_headers(columns)
            except ProtocolError:
                pass
            yield


def appends(chance: random.Random, directory: Path) -> Iterator[None]:
    """`log/_plain.c`: batches of producers, to logs of several settings."""
    kinds = (
        LogConfig(),
        LogConfig(segment_bytes=20_000),
        LogConfig(index_interval_bytes=1, max_message_bytes=3000),
    )
    for number in range(sys.maxsize):
        place = directory / f"appends-{number}"
        place.mkdir()
        logs = open_directory(place)
        made = [logs.create_log("t", index, bytes(16), config) for index, config in enumerate(kinds)]
        before = plain.stored()
        for turn in range(3000):
            if turn % 20 == 0:
                producer = chance.choice((None, None, (chance.randrange(5), chance.randrange(2))))
                batch = whole_batch(chance, NOW, producer, producer is not None and chance.random() < 0.3)
            data = bytearray(batch if chance.random() < 0.3 else damaged_batch(chance, batch))
            if chance.random() < 0.2 and len(data) > BATCH_HEADER_SIZE:
                data[17:21] = crc32c(bytes(data[21:])).to_bytes(4)
            if chance.random() < 0.05:
                del data[chance.randrange(BATCH_HEADER_SIZE) :]
            log = chance.choice(made)
            with contextlib.suppress(BrokerError):
                log.append(data if chance.random() < 0.3 else exact(data), chance.choice((0, 0, 1)), NOW)
            if chance.random() < 0.2:
                log.read(chance.randrange(log.end_offset + 1), 10_000, log.end_offset)
            yield
        assert plain.stored() > before, "the compiled append has stored nothing"
        logs.close()


def requests(chance: random.Random, directory: Path) -> Iterator[None]:
    """`channel/_frames.c` and `broker/_lane.c`: frames in pieces, of producers and of readers that wait."""
    for number in range(sys.maxsize):
        world = _Broker(directory / f"requests-{number}", swift=True, flush=chance.choice(("os", "ack")))
        before = lane.served()
        for turn in range(3000):
            if turn % 100 == 0:
                pool = _requests(chance, world)
            kind = chance.random()
            data = chance.choice(pool)
            if kind > 0.97:
                data = misframe(chance, data)
            elif kind > 0.6:
                data = mutate(chance, data, chance.choice(pool))
            who = chance.randrange(len(world.clients))
            if kind < 0.97 and not world.clients[who].owed and chance.random() < 0.5:
                # In a buffer that ends where the request does, since the one of a connection goes on behind it.
                world.serve(world.clients[who], bytearray(data[4:]), 0, len(data) - 4)
                data = b""
            cuts = sorted(chance.choices(range(len(data) + 1), k=chance.choice((0, 0, 0, 1, 3))))
            for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
                feed(world.clients[who], data[start:end])
            world.station.settle()
            if turn % 50 == 49:
                world.station.clock.ms += 501
                world.station.settle()
            if world.clients[who].closed:
                world.clients[who].connection_lost(None)
                world.connect(who)
            for transport in world.transports:
                transport.written.clear()
                transport.parts.clear()
            yield
        assert sum(lane.served()) > sum(before), "the compiled lane has served nothing"


class _Broker(World):
    """What the lane leaves is served, of whatever form it is."""

    @property
    def serve(self) -> Any:
        """What frames are handed to."""
        return self._make.args[2]

    def _left(self, connection: Any, buffer: Any, position: int, end: int) -> None:
        self._serve(connection, buffer, position, end)


def _requests(chance: random.Random, world: World) -> list[bytes]:
    pool = []
    for _ in range(40):
        name, index, at = chance.choice(("t", "u")), chance.choice((0, 0, 1, 9)), chance.randrange(20)
        if chance.random() < 0.7:
            batch = whole_batch(chance, NOW)
            if chance.random() < 0.3:
                batch = damaged_batch(chance, batch)
            message = produced(
                world,
                chance.choice(range(3, 14)),
                batch,
                name=name,
                index=index,
                acks=chance.choice((1, -1, 0, 1)),
            )
        else:
            partition = world.partitions[("t", "u").index(name) * 2 + (index if index < 2 else 0)]
            message = fetched(
                world,
                chance.choice(range(4, 18)),
                chance.choice((partition.log.end_offset, partition.log.end_offset, at)),
                name=name,
                indexes=chance.choice(((index,), (0, 1), ())),
                min_bytes=chance.choice((1, 1, 1000)),
                session=chance.choice((-1, -1, 0, 1)),
            )
        pool.append(frame(written(*message)))
    return pool


TARGETS: dict[str, tuple[Target, float]] = {
    "messages": (messages, 0.35),
    "walks": (walks, 0.2),
    "readers": (readers, 0.15),
    "appends": (appends, 0.15),
    "requests": (requests, 0.15),
}


def run(inputs: int, seed: int, only: str | None = None) -> dict[str, int]:
    """Give so many inputs to the targets, each its share of them."""
    done = {}
    for name, (target, share) in TARGETS.items():
        if only not in (None, name):
            continue
        wanted = inputs if only else int(inputs * share)
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as directory:
            steps = target(random.Random(f"{seed} {name}"), Path(directory))
            for _ in range(wanted):
                next(steps)
        done[name] = wanted
        print(f"{name}: {wanted} inputs in {time.monotonic() - began:.1f} s", flush=True)
    return done


def main() -> None:
    assert lane.IS_HERE, "the compiled parts are not here"
    assert swift.IS_HERE
    run(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)


if __name__ == "__main__":
    main()
