"""Consuming into Arrow: `poll_arrow()` beside confluent-kafka's `consume()`, made into the same table.

    python -m bench.client.arrow --size 100 --size 1000 --records 200000

Both read the same topic of one partition from its beginning to its end. Values have lengths that differ, keys have
ten bytes, and with `--headers` each record has two. A figure is records a second from the making of the consumer to
the last table, and microseconds of CPU time of this process for each record. The two take turns, and the median of the
rounds is told. Before that their tables are compared, and are equal. `values alone` is the least that can be asked
of confluent-kafka, a table of one column, for scale.

    python -m bench.client.arrow --decode

measures what is made of fetched batches without any server: objects one by one (`wire.record`), objects all at once
(`wire.columns`), and Arrow.
"""

import argparse
import asyncio
import random
import statistics
import tempfile
import time
import timeit
from collections.abc import Callable, Coroutine
from pathlib import Path

import pyarrow as pa
import uvloop

from bench.stage import Sizes, Stage
from ottla.client.consumer import record_objects as objects
from ottla.client.consumer.arrow_records import SCHEMA, record_batch_of
from ottla.client.consumer.fetched_batches import FetchedBatches, read_batches
from ottla.wire.batch import build_batch
from ottla.wire.record import Headers, Record

BATCH_BYTES = 100_000
CONSUME_MESSAGES = 10_000
Keep = Callable[[pa.RecordBatch], None]
HEADERS: Headers = (("trace", b"0123456789abcdef"), ("source", b"bench"))


async def poll_arrow(bootstrap: str, topic: str, count: int, keep: Keep) -> None:
    from ottla.client.consumer.consumer import Consumer
    from ottla.client.record import TopicPartition

    async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        while count > 0:
            table = await consumer.poll_arrow()
            if table is not None:
                count -= table.num_rows
                keep(table)


async def consume(bootstrap: str, topic: str, count: int, keep: Keep) -> None:
    _consume(bootstrap, topic, count, lambda messages: keep(_table(messages)))


async def consume_values(bootstrap: str, topic: str, count: int, keep: Keep) -> None:
    _consume(bootstrap, topic, count, lambda messages: keep(_values(messages)))


def _consume(bootstrap: str, topic: str, count: int, took: Callable[[list], None]) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False, "log_level": 0}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    while count > 0:
        messages = consumer.consume(min(count, CONSUME_MESSAGES), 1.0)
        count -= len(messages)
        if messages:
            took(messages)
    consumer.close()


def _table(messages: list) -> pa.RecordBatch:
    times = [each.timestamp() for each in messages]
    headers = [
        [{"key": name, "value": value} for name, value in each.headers() or ()] if each.headers() else []
        for each in messages
    ]
    columns = [
        [each.topic() for each in messages],
        [each.partition() for each in messages],
        [each.offset() for each in messages],
        [time for _, time in times],
        [kind - 1 for kind, _ in times],
        [each.leader_epoch() for each in messages],
        [each.key() for each in messages],
        [each.value() for each in messages],
        headers,
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _values(messages: list) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array([each.value() for each in messages], pa.binary())})


CLIENTS: dict[str, Callable[[str, str, int, Keep], Coroutine[None, None, None]]] = {
    "poll_arrow": poll_arrow,
    "confluent": consume,
    "values alone": consume_values,
}


def content(size: int, count: int, headers: Headers) -> list[Record]:
    """Records whose values have about that size, always the same ones."""
    chance = random.Random(1)
    sizes = [chance.randint(size - size // 5, size + size // 5) for _ in range(count)]
    letters = chance.randbytes(2 * size)
    return [
        Record(
            number,
            1_700_000_000_000 + number // 50,
            b"key-%06d" % (number % 1_000_000),
            letters[:length],
            headers,
        )
        for number, length in enumerate(sizes)
    ]


def fill(bootstrap: str, topic: str, records: list[Record]) -> None:
    from confluent_kafka import Producer

    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 50, "batch.size": BATCH_BYTES, "log_level": 0}
    )
    for record in records:
        while True:
            try:
                producer.produce(
                    topic,
                    record.value,
                    record.key,
                    0,
                    timestamp=record.timestamp,
                    headers=list(record.headers),
                )
                break
            except BufferError:
                producer.poll(0.01)
    assert producer.flush(60) == 0


def run(client: str, bootstrap: str, topic: str, count: int) -> tuple[float, float]:
    """Records a second, and microseconds of CPU for each; closing is not counted."""
    seen, wall, cpu = 0, 0.0, 0.0

    def keep(table: pa.RecordBatch) -> None:
        nonlocal seen, wall, cpu
        seen += table.num_rows
        wall, cpu = time.perf_counter(), time.process_time()

    cpu_begin, begin = time.process_time(), time.perf_counter()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(CLIENTS[client](bootstrap, topic, count, keep))
    assert seen == count
    return count / (wall - begin), (cpu - cpu_begin) / count * 1e6


def compare(bootstrap: str, topic: str, count: int) -> None:
    """Fail unless both clients make the same table."""
    found: dict[str, list[pa.RecordBatch]] = {"poll_arrow": [], "confluent": []}
    for client, tables in found.items():
        asyncio.run(CLIENTS[client](bootstrap, topic, count, tables.append))
    ours, theirs = map(pa.Table.from_batches, found.values())
    assert ours.num_rows == count
    assert ours.equals(theirs), "the two tables differ"


def measure(options: argparse.Namespace, bootstrap: str) -> None:
    for size in options.size or [100, 1000]:
        topic = f"arrow-{size}"
        fill(bootstrap, topic, content(size, options.records, HEADERS if options.headers else ()))
        compare(bootstrap, topic, options.records)
        found: dict[str, list[tuple[float, float]]] = {client: [] for client in CLIENTS}
        for turn in range(options.rounds):
            for client in list(CLIENTS)[:: 1 if turn % 2 else -1]:
                found[client].append(run(client, bootstrap, topic, options.records))
        base = statistics.median(rate for rate, _ in found["confluent"])
        for client, figures in found.items():
            rate = statistics.median(rate for rate, _ in figures)
            cpu = statistics.median(cpu for _, cpu in figures)
            print(
                f"{size:>6} B  {client:<14} {rate:>12,.0f} records/s  {rate * size / 1e6:>7,.0f} MB/s"
                f"  {cpu:>6.2f} µs CPU a record  {rate / base:>6.2f}x"
            )


def decode(options: argparse.Namespace) -> None:
    """Nanoseconds a record for each way to read a chunk of 1 MB, in batches of so many records."""
    headers = HEADERS if options.headers else ()
    for size in options.size or [100, 1000]:
        for batch_records in (1, 16, 150, 1_000_000_000 // size):
            records = content(size, 1_000_000 // size, headers)
            data = b"".join(
                build_batch(records[start : start + batch_records], base_offset=start)
                for start in range(0, len(records), batch_records)
            )
            chunk = FetchedBatches("t", 0, memoryview(data), 0)
            contents = read_batches(chunk)
            given = (chunk, contents.batches, contents.bodies)
            ways: dict[str, Callable[[], object]] = {
                "open": lambda chunk=chunk: read_batches(chunk),
                "one by one": lambda given=given: objects._one_by_one(*given),
                "all at once": lambda given=given: objects._by_columns(*given),
                "open and arrow": lambda chunk=chunk: record_batch_of([chunk]),
            }
            best = {
                way: min(
                    timeit.repeat(
                        function, "gc.enable()", number=1, repeat=15, globals={"gc": __import__("gc")}
                    )
                )
                for way, function in ways.items()
            }
            told = ", ".join(f"{way} {seconds / len(records) * 1e9:,.0f}" for way, seconds in best.items())
            print(f"{size:>6} B, batches of {min(batch_records, len(records)):>5}: {told} ns a record")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--size", type=int, action="append", help="bytes of a value; may be repeated")
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--headers", action="store_true", help="two headers for each record")
    parser.add_argument("--product", default="ottla", choices=("ottla", "kafka"))
    parser.add_argument("--decode", action="store_true", help="decoding alone, without a server")
    options = parser.parse_args()
    if options.decode:
        decode(options)
        return
    with (
        tempfile.TemporaryDirectory() as place,
        Stage(options.product, Sizes(), Path(place)).server() as server,
    ):
        measure(options, server.bootstrap)


if __name__ == "__main__":
    main()
