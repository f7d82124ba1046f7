"""Records as Arrow and as objects, from a server: both are what another client reads."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer

from ottla.client.consumer.arrow_records import SCHEMA
from ottla.client.consumer.consumer import Consumer
from ottla.client.record import Record, TopicPartition
from tests.client.readback import Read, read
from tests.compat.chosen import MakeTopic

Run = Callable[..., Any]
ByPartition = dict[int, list[Read]]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]  # one for each partition
MOMENT_MS = 1_700_000_000_000
MANY, FEW, IN_TRANSACTION = 500, 3, 10


def write(bootstrap: str, topic: str) -> None:
    """Batches large and small, and then transactions, of which every other is aborted."""
    settings = {"bootstrap.servers": bootstrap, "log_level": 0}

    def send(producer: Producer, partition: int, number: int) -> None:
        key = None if number % 5 == 0 else b"key-%d" % number
        value = None if number % 7 == 0 else b"value" * (number % 50)
        headers = [("a", b"%d" % number), ("b", None)][: number % 3]
        producer.produce(topic, value, key, partition, timestamp=MOMENT_MS + number, headers=headers)

    for partition, codec in enumerate(CODECS):
        producer = Producer({**settings, "compression.type": codec, "linger.ms": 20})
        for number in range(MANY):
            send(producer, partition, number)
        for number in range(FEW):
            assert producer.flush(30) == 0
            send(producer, partition, number)
        assert producer.flush(30) == 0
    producer = Producer({**settings, "transactional.id": topic})
    producer.init_transactions(30)
    for turn in range(4):
        producer.begin_transaction()
        for number in range(IN_TRANSACTION):
            for partition in range(len(CODECS)):
                send(producer, partition, number)
        producer.flush(30)
        (producer.abort_transaction if turn % 2 else producer.commit_transaction)(30)


async def poll_to_the_end(consumer: Consumer, poll: Callable[[], Any]) -> list[Any]:
    """Read all from the beginning, and return what each poll gave."""
    places = list(consumer.assignment)
    consumer.seek_to_beginning(places)
    ends = await consumer.end_offsets(places)
    found = []
    async with asyncio.timeout(60):
        while any([await consumer.position(place) < ends[place] for place in places]):
            found.append(await poll())
    return [each for each in found if each is not None]


def sorted_out(records: Iterable[tuple[int, Read]]) -> ByPartition:
    found: ByPartition = defaultdict(list)
    for partition, record in records:
        found[partition].append(record)
    return found


def of_tables(tables: list[pa.RecordBatch]) -> ByPartition:
    table = pa.Table.from_batches(tables, SCHEMA)
    times = table.column("timestamp").cast(pa.int64()).to_pylist()
    headers = [
        tuple((each["key"], each["value"]) for each in pairs) for pairs in table.column("headers").to_pylist()
    ]
    return sorted_out(
        (row["partition"], Read(row["offset"], time, row["key"], row["value"], extra))
        for row, time, extra in zip(table.to_pylist(), times, headers, strict=True)
    )


def of_records(lists: list[list[Record]]) -> ByPartition:
    return sorted_out(
        (each.partition, Read(each.offset, each.timestamp, each.key, each.value, each.headers))
        for records in lists
        for each in records
    )


def test_all_read_the_same(bootstrap: str, make_topic: MakeTopic, run: Run) -> None:
    topic = make_topic(len(CODECS))
    write(bootstrap, topic)

    async def main(level: str) -> tuple[ByPartition, ByPartition, ByPartition]:
        settings = {
            "isolation.level": level,
            "auto.offset.reset": "earliest",
            "max.partition.fetch.bytes": 30_000,
        }
        async with Consumer(bootstrap, settings) as consumer:
            consumer.assign([TopicPartition(topic, partition) for partition in range(len(CODECS))])
            whole = await poll_to_the_end(consumer, lambda: consumer.poll_arrow(timeout=0.2))
            parts = await poll_to_the_end(consumer, lambda: consumer.poll_arrow(timeout=0.2, max_records=90))
            records = await poll_to_the_end(consumer, lambda: consumer.poll(timeout=0.2))
        assert max(part.num_rows for part in parts) == 90
        assert {name for table in whole for name in table.column("topic").to_pylist()} == {topic}
        return of_tables(whole), of_tables(parts), of_records(records)

    expected = {
        partition: read(bootstrap, topic, partition, committed=True) for partition in range(len(CODECS))
    }
    assert {len(records) for records in expected.values()} == {MANY + FEW + 2 * IN_TRANSACTION}
    whole, parts, records = run(main("read_committed"))
    assert whole == expected
    assert parts == expected
    assert records == expected

    whole, parts, records = run(main("read_uncommitted"))
    assert {len(records) for records in whole.values()} == {MANY + FEW + 4 * IN_TRANSACTION}
    assert whole[0] == read(bootstrap, topic, 0)
    assert whole == parts == records
