"""The consumer on a server in good health: what it reads, from where, and what it leaves out."""

import asyncio
import json
import time
from contextlib import suppress

import pytest
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from ottla.client import Consumer, Record, TopicPartition
from ottla.client.errors import (
    ClientError,
    Closed,
    NoBroker,
    NoOffset,
    Refused,
    SerializationFailed,
    TimedOut,
    WrongState,
)
from tests.client.writing import open_transaction, write, write_transaction
from tests.peers.server import free_ports

EARLIEST = {"auto.offset.reset": "earliest"}
MOMENT_MS = int(time.time() * 1000) - 3_600_000


async def read(consumer, count, seconds_max=20):
    """Poll until so many records have come."""
    found = []
    async with asyncio.timeout(seconds_max):
        while len(found) < count:
            found += await consumer.poll(timeout=1.0)
    return found


def values(records):
    return [record.value for record in records]


# What comes out


@pytest.mark.parametrize("uvloop", [False, True])
def test_a_record_comes_out_as_it_went_in(bootstrap, topic, run, uvloop):
    headers = [("a", b"1"), ("a", None), ("b", b"")]
    write(bootstrap, topic, [{"key": b"k", "value": b"v", "timestamp": MOMENT_MS, "headers": headers},
                             {"key": None, "value": b"", "timestamp": MOMENT_MS - 5},
                             {"key": b"", "value": None, "timestamp": MOMENT_MS + 90_000}])  # fmt: skip

    async def main():
        async with Consumer(bootstrap, EARLIEST) as consumer:
            consumer.assign([(topic, 0)])
            return await read(consumer, 3)

    assert run(main(), uvloop=uvloop) == [
        Record(topic, 0, 0, MOMENT_MS, b"k", b"v", tuple(headers), 0, 0),
        Record(topic, 0, 1, MOMENT_MS - 5, None, b"", (), 0, 0),
        Record(topic, 0, 2, MOMENT_MS + 90_000, b"", None, (), 0, 0),
    ]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec(bootstrap, topic, run, codec):
    wanted = [b"%d " % n * 50 for n in range(3_000)]
    write(bootstrap, topic, wanted, compression_type=codec, linger_ms=20)

    async def main():
        async with Consumer(bootstrap, EARLIEST, max_poll_records=700) as consumer:
            consumer.assign([(topic, 0)])
            return await read(consumer, 3_000)

    found = run(main())
    assert values(found) == wanted
    assert [record.offset for record in found] == list(range(3_000))


def test_many_partitions_are_read_each_in_its_order(bootstrap, make_topic, run):
    name = make_topic(5)
    for number in range(5):
        write(bootstrap, name, [b"%d %d" % (number, n) for n in range(400)], number, batch_size=2000)

    async def main():
        # Small fetches, so that partitions take turns.
        keywords = {"max_partition_fetch_bytes": 3_000, "fetch_max_bytes": 7_000, "max_poll_records": 33}
        async with Consumer(bootstrap, EARLIEST, **keywords) as consumer:
            consumer.assign([(name, number) for number in range(5)])
            found = []
            async for record in consumer:
                found.append(record)
                if len(found) == 2_000:
                    break
            return found, consumer.statistics()

    found, statistics = run(main())
    for number in range(5):
        mine = [record.value for record in found if record.partition == number]
        assert mine == [b"%d %d" % (number, n) for n in range(400)]
    assert statistics["fetches"] > 3
    assert statistics["records"] == 2_000


def test_a_record_larger_than_a_fetch_comes_alone(bootstrap, topic, run):
    write(bootstrap, topic, [b"a", b"x" * 500_000, b"b"], linger_ms=0)

    async def main():
        async with Consumer(
            bootstrap, EARLIEST, max_partition_fetch_bytes=1_000, fetch_max_bytes=1_000
        ) as consumer:
            consumer.assign([(topic, 0)])
            return [len(record.value) for record in await read(consumer, 3)]

    assert run(main()) == [1, 500_000, 1]


def test_records_arrive_as_they_are_written(bootstrap, topic, run):
    async def main():
        async with Consumer(bootstrap, EARLIEST) as consumer:
            consumer.assign([(topic, 0)])
            assert await consumer.poll(timeout=0.1) == []
            for n in range(5):
                waiting = asyncio.create_task(read(consumer, 1))
                await asyncio.to_thread(write, bootstrap, topic, [b"%d" % n])
                assert values(await waiting) == [b"%d" % n]

    run(main())


def test_deserializers_and_a_record_they_cannot_read(bootstrap, topic, run):
    write(bootstrap, topic, [{"key": b"a", "value": b"[1]"}, {"key": None, "value": b"nonsense"}, b"3"])

    async def main():
        async with Consumer(
            bootstrap, EARLIEST, key_deserializer="string", value_deserializer=json.loads
        ) as consumer:
            consumer.assign([(topic, 0)])
            first = await read(consumer, 1)
            assert [(record.key, record.value) for record in first] == [("a", [1])]
            for _ in range(2):
                with pytest.raises(SerializationFailed, match="offset 1"):
                    await consumer.poll(timeout=5.0)
            consumer.seek(TopicPartition(topic, 0), 2)
            assert values(await read(consumer, 1)) == [3]

    run(main())


def test_the_brokers_time_counts_where_the_topic_says_so(bootstrap, make_topic, run):
    name = make_topic(message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    write(bootstrap, name, [{"value": b"a", "timestamp": MOMENT_MS}])

    async def main():
        async with Consumer(bootstrap, EARLIEST) as consumer:
            consumer.assign([(name, 0)])
            [record] = await read(consumer, 1)
            return record

    record = run(main())
    assert record.timestamp_type == 1
    assert before - 5 <= record.timestamp <= int(time.time() * 1000) + 5


# Transactions


def test_only_what_was_committed_is_read(bootstrap, topic, topic_name, run):
    write(bootstrap, topic, [b"plain"])
    write_transaction(bootstrap, topic, [b"no", b"no"], commit=False, name=topic_name + "-a")
    write_transaction(bootstrap, topic, [b"yes", b"yes"], commit=True, name=topic_name + "-b")
    producer = open_transaction(bootstrap, topic, [b"later"], name=topic_name + "-c")
    write(bootstrap, topic, [b"behind it"])

    async def main():
        place = TopicPartition(topic, 0)
        async with Consumer(bootstrap, EARLIEST, isolation_level="read_committed") as consumer:
            consumer.assign([place])
            assert values(await read(consumer, 3)) == [b"plain", b"yes", b"yes"]
            assert await consumer.poll(timeout=0.3) == []
            ends = await consumer.end_offsets([place])
            assert ends[place] == await consumer.position(place)
            assert consumer.lag(place) == 0
            await asyncio.to_thread(producer.commit_transaction, 30)
            assert values(await read(consumer, 2)) == [b"later", b"behind it"]
        async with Consumer(bootstrap, EARLIEST) as consumer:
            consumer.assign([place])
            everything = values(await read(consumer, 7))
            assert everything == [b"plain", b"no", b"no", b"yes", b"yes", b"later", b"behind it"]
            assert (await consumer.end_offsets([place]))[place] > ends[place]

    run(main())


# Where to read


def test_positions(bootstrap, make_topic, run):
    name = make_topic(2)
    write(bootstrap, name, [{"value": b"%d" % n, "timestamp": MOMENT_MS + n * 1000} for n in range(10)])
    zero, one = TopicPartition(name, 0), TopicPartition(name, 1)

    async def main():
        async with Consumer(bootstrap, EARLIEST) as consumer:
            assert await consumer.beginning_offsets([zero, one]) == {zero: 0, one: 0}
            assert await consumer.end_offsets([zero, one]) == {zero: 10, one: 0}
            found = await consumer.offsets_for_times({zero: MOMENT_MS + 4_500, one: MOMENT_MS})
            assert (found[zero].offset, found[zero].timestamp) == (5, MOMENT_MS + 5_000)
            assert found[one] is None
            assert await consumer.partitions_for(name) == [0, 1]
            with pytest.raises(WrongState):
                await consumer.position(zero)
            consumer.assign([zero])
            assert await consumer.position(zero) == 0
            assert len(await read(consumer, 10)) == 10
            assert await consumer.position(zero) == 10
            assert consumer.lag(zero) == 0
            consumer.seek(zero, 7)
            assert values(await read(consumer, 3)) == [b"7", b"8", b"9"]
            consumer.seek_to_beginning()
            assert values(await read(consumer, 10))[0] == b"0"
            consumer.seek_to_end()
            assert await consumer.position(zero) == 10
            consumer.assign([zero, one])
            assert await consumer.position(zero) == 10, "what stays assigned keeps its position"

    run(main())


@pytest.mark.parametrize(
    ("reset", "first"),
    [("latest", b"new"), ("earliest", b"old"), ("by_duration:PT2H", b"old"), ("by_duration:PT1M", b"new")],
)
def test_where_to_begin(bootstrap, topic, run, reset, first):
    write(bootstrap, topic, [{"value": b"old", "timestamp": MOMENT_MS}])

    async def main():
        async with Consumer(bootstrap, auto_offset_reset=reset) as consumer:
            consumer.assign([(topic, 0)])
            await consumer.position(TopicPartition(topic, 0))
            await asyncio.to_thread(write, bootstrap, topic, [b"new"])
            return (await read(consumer, 1))[0].value

    assert run(main()) == first


def test_an_offset_that_was_deleted(bootstrap, topic, run):
    write(bootstrap, topic, [b"%d" % n for n in range(10)], batch_size=1)
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for each in admin.delete_records([Place(topic, 0, 6)]).values():
        each.result(20)
    place = TopicPartition(topic, 0)

    async def main():
        async with Consumer(bootstrap, EARLIEST) as consumer:
            consumer.assign([place])
            consumer.seek(place, 2)
            assert values(await read(consumer, 4)) == [b"6", b"7", b"8", b"9"]
        async with Consumer(bootstrap, auto_offset_reset="none") as consumer:
            consumer.assign([place])
            with pytest.raises(NoOffset):
                await consumer.poll(timeout=5.0)
            consumer.seek(place, 2)
            with pytest.raises(NoOffset, match="no offset 2"):
                await consumer.poll(timeout=5.0)
            consumer.seek(place, 8)
            assert values(await read(consumer, 2)) == [b"8", b"9"]

    run(main())


def test_pausing(bootstrap, make_topic, run):
    name = make_topic(2)
    for number in (0, 1):
        write(bootstrap, name, [b"%d" % number] * 50, number)
    zero, one = TopicPartition(name, 0), TopicPartition(name, 1)

    async def main():
        async with Consumer(bootstrap, EARLIEST, max_poll_records=10) as consumer:
            consumer.assign([zero, one])
            await read(consumer, 10)
            consumer.pause([zero])
            done = await consumer.position(zero)
            found = await read(consumer, 50 - await consumer.position(one))
            assert {record.partition for record in found} <= {1}
            assert await consumer.poll(timeout=0.2) == []
            assert await consumer.position(zero) == done
            consumer.resume([zero])
            assert len(await read(consumer, 50 - done)) == 50 - done

    run(main())


def test_arrow(bootstrap, make_topic, run):
    pytest.importorskip("pyarrow")
    name = make_topic(2)
    for number in (0, 1):
        write(bootstrap, name, [b"%d %d" % (number, n) for n in range(500)], number)

    async def main():
        async with Consumer(bootstrap, EARLIEST) as consumer:
            consumer.assign([(name, 0), (name, 1)])
            rows = []
            async with asyncio.timeout(20):
                while len(rows) < 1_000:
                    batch = await consumer.poll_arrow(timeout=1.0, max_records=300)
                    if batch is not None:
                        assert batch.num_rows <= 300
                        rows += batch.to_pylist()
            assert await consumer.position(TopicPartition(name, 0)) == 500
            assert await consumer.poll_arrow(timeout=0.1) is None
            return rows

    rows = run(main())
    for number in (0, 1):
        mine = [row["value"] for row in rows if row["partition"] == number]
        assert mine == [b"%d %d" % (number, n) for n in range(500)]


# Waiting, giving up, ending


def test_a_cancelled_poll_loses_nothing(bootstrap, topic, run):
    write(bootstrap, topic, [b"%d" % n for n in range(2_000)], batch_size=500)

    async def main():
        found = []
        async with Consumer(
            bootstrap, EARLIEST, max_poll_records=50, max_partition_fetch_bytes=2_000
        ) as consumer:
            consumer.assign([(topic, 0)])
            turn = 0
            while len(found) < 2_000:
                turn += 1
                polling = asyncio.create_task(consumer.poll(timeout=5.0))
                if turn % 2:
                    await asyncio.sleep(0.0005 * (turn % 7))
                    polling.cancel()
                with suppress(asyncio.CancelledError):
                    found += await polling
        return values(found)

    assert run(main()) == [b"%d" % n for n in range(2_000)]


def test_a_topic_that_is_not_there_yet(bootstrap, topic_name, run):
    async def main():
        async with Consumer(
            bootstrap, EARLIEST, allow_auto_create_topics=False, metadata_max_age_ms=200
        ) as consumer:
            consumer.assign([(topic_name, 0)])
            assert await consumer.poll(timeout=0.3) == []
            with pytest.raises(TimedOut):
                await consumer.position(TopicPartition(topic_name, 0), timeout=0.1)
            await asyncio.to_thread(write, bootstrap, topic_name, [b"here"])
            assert values(await read(consumer, 1)) == [b"here"]

    run(main())


def test_a_topic_that_cannot_be(bootstrap, run):
    async def main():
        async with Consumer(bootstrap, EARLIEST) as consumer:
            consumer.assign([("no/such/name", 0)])
            with pytest.raises(Refused, match="INVALID_TOPIC_EXCEPTION"):
                await consumer.poll(timeout=10.0)

    run(main())


def test_nobody_there(run):
    [port] = free_ports(1)

    async def main():
        consumer = Consumer(f"127.0.0.1:{port}", default_api_timeout_ms=300)
        with pytest.raises(NoBroker, match="bootstrap.servers"):
            await consumer.open()
        await consumer.close()

    run(main())


def test_closing_ends_a_poll_that_waits(bootstrap, topic, run):
    async def main():
        consumer = Consumer(bootstrap, EARLIEST)
        await consumer.open()
        consumer.assign([(topic, 0)])
        polling = asyncio.create_task(consumer.poll(timeout=None))
        await asyncio.sleep(0.05)
        began = time.monotonic()
        await consumer.close()
        with pytest.raises(Closed):
            await polling
        assert time.monotonic() - began < 2
        for call in (consumer.poll, consumer.unsubscribe):
            with pytest.raises(ClientError):
                await call()

    run(main())


def test_a_failing_body_closes_the_consumer(bootstrap, topic, run):
    async def main():
        async with Consumer(bootstrap, EARLIEST) as consumer:
            consumer.assign([(topic, 0)])
            await consumer.poll(timeout=0.05)
            raise ZeroDivisionError

    async def outer():
        with pytest.raises(ZeroDivisionError):
            await main()

    run(outer())
