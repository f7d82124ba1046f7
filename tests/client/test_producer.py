"""The producer on a server in good health."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from ottla.client.errors import (
    BufferFull,
    ClientError,
    Closed,
    RecordTooLarge,
    Refused,
    SerializationFailed,
    TopicUnknown,
    WrongState,
)
from ottla.client.producer import Delivery, Outgoing, Producer
from ottla.client.record import RecordMetadata
from ottla.wire.errors import ErrorCode
from tests.client.conftest import create_topic
from tests.client.readback import Read, read, values
from tests.compat.chosen import MakeTopic

Run = Callable[..., Any]
MOMENT_MS = 1_700_000_000_000


async def warm_up(producer: Producer, topic: str, partitions: int) -> None:
    """Send a record to each partition: Apache Kafka refuses the first where it has just begun to lead."""
    sent = [await producer.send(topic, b"first", partition=number) for number in range(partitions)]
    for each in sent:
        await each


@pytest.mark.parametrize("uvloop", [False, True])
def test_a_record_comes_back_as_it_was_sent(bootstrap: str, topic: str, run: Run, uvloop: bool) -> None:
    async def main() -> list[RecordMetadata]:
        async with Producer(bootstrap) as producer:
            sent = [
                await producer.send(
                    topic, b"value", b"key", 0, MOMENT_MS, [("a", b"1"), ("b", None), ("a", b"")]
                ),
                await producer.send(topic, None, b"only a key", timestamp=MOMENT_MS + 1),
                await producer.send(topic, b"", timestamp=MOMENT_MS - 7),
                await producer.send(
                    topic, bytearray(b"array"), memoryview(b"view"), timestamp=MOMENT_MS + 90_000
                ),
                await producer.send(topic, b"long" * 5000, timestamp=MOMENT_MS),
            ]
            return [await each for each in sent]

    before = read(bootstrap, topic)
    metadata = run(main(), uvloop=uvloop)
    first = len(before)
    assert read(bootstrap, topic)[first:] == [
        Read(first, MOMENT_MS, b"key", b"value", (("a", b"1"), ("b", None), ("a", b""))),
        Read(first + 1, MOMENT_MS + 1, b"only a key", None, ()),
        Read(first + 2, MOMENT_MS - 7, None, b"", ()),
        Read(first + 3, MOMENT_MS + 90_000, b"view", b"array", ()),
        Read(first + 4, MOMENT_MS, None, b"long" * 5000, ()),
    ]
    assert metadata[0] == RecordMetadata(topic, 0, first, MOMENT_MS)
    assert [each.offset for each in metadata] == list(range(first, first + 5))


@pytest.mark.parametrize(
    ("codec", "level"),
    [
        ("none", {}),
        ("gzip", {"compression_gzip_level": 9}),
        ("snappy", {}),
        ("lz4", {"compression_lz4_level": 12}),
        ("lz4", {}),
        ("zstd", {"compression_zstd_level": 7}),
    ],
)
def test_codecs(bootstrap: str, topic: str, run: Run, codec: str, level: dict[str, int]) -> None:
    sent = [b"%d: the same words again and again " % number * 3 for number in range(2000)]

    async def main() -> Any:
        async with Producer(bootstrap, compression_type=codec, **level) as producer:
            for value in sent:
                await producer.send(topic, value)
            await producer.flush()
            return producer.statistics()

    counts = run(main())
    assert values(bootstrap, topic) == sent
    assert counts.records_sent == 2000
    if codec != "none":
        assert counts.bytes_compressed < counts.bytes_plain / 2


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acknowledgements(bootstrap: str, topic: str, run: Run, acks: int | str) -> None:
    async def main() -> list[RecordMetadata]:
        async with Producer(bootstrap, acks=acks) as producer:
            deliveries = [await producer.send(topic, b"%d" % number) for number in range(500)]
            return [await each for each in deliveries]

    offsets = [each.offset for each in run(main())]
    assert offsets == ([-1] * 500 if acks == 0 else list(range(500)))
    deadline = time.monotonic() + 10
    while len(values(bootstrap, topic)) < 500:
        assert time.monotonic() < deadline
    assert values(bootstrap, topic) == [b"%d" % number for number in range(500)]


@pytest.mark.parametrize("idempotent", [True, False])
def test_order_with_many_requests_in_flight(bootstrap: str, topic: str, run: Run, idempotent: bool) -> None:
    async def main() -> Any:
        async with Producer(
            bootstrap, batch_size=400, linger_ms=0, enable_idempotence=idempotent
        ) as producer:
            await warm_up(producer, topic, 1)
            for number in range(3000):
                await producer.send(topic, b"%d" % number)
            await producer.flush()
            return producer.statistics()

    counts = run(main())
    assert counts.requests > 50
    assert values(bootstrap, topic)[1:] == [b"%d" % number for number in range(3000)]


def test_many_partitions_share_requests(bootstrap: str, make_topic: MakeTopic, run: Run) -> None:
    topic = make_topic(40)

    async def main() -> None:
        async with Producer(bootstrap, linger_ms=50) as producer:
            await warm_up(producer, topic, 40)
            before = producer.statistics()
            for number in range(400):
                await producer.send(topic, b"%d" % number, partition=number % 40)
            await producer.flush()
            after = producer.statistics()
            assert after.batches_sent - before.batches_sent == 40
            assert after.requests - before.requests <= 3

    run(main())
    assert values(bootstrap, topic, 7)[1:] == [b"%d" % number for number in range(7, 400, 40)]


def test_requests_stay_within_their_size(bootstrap: str, make_topic: MakeTopic, run: Run) -> None:
    topic = make_topic(8)

    async def main() -> None:
        async with Producer(bootstrap, linger_ms=100, max_request_size=20_000) as producer:
            await warm_up(producer, topic, 8)
            before = producer.statistics()
            for number in range(8):
                for _ in range(10):
                    await producer.send(topic, b"x" * 1000, partition=number)
            await producer.flush()
            after = producer.statistics()
            # One batch of ten thousand bytes fits a request, two do not.
            assert after.batches_sent - before.batches_sent == 8
            assert after.requests - before.requests == 8

    run(main())


def test_a_batch_too_large_is_split(bootstrap: str, make_topic: MakeTopic, run: Run) -> None:
    topic = make_topic(max_message_bytes=3000)
    sent = [b"%d " % number + b"x" * 300 for number in range(200)]

    async def main() -> Any:
        async with Producer(bootstrap, linger_ms=20) as producer:
            deliveries = [await producer.send(topic, value) for value in sent]
            offsets = [(await each).offset for each in deliveries]
            with pytest.raises(RecordTooLarge, match=r"max\.message\.bytes"):
                await producer.send_and_wait(topic, b"x" * 4000)
            # And it goes on as if nothing had been.
            offsets.append((await producer.send_and_wait(topic, b"after")).offset)
            return offsets, producer.statistics()

    offsets, counts = run(main())
    assert offsets == list(range(201))
    assert counts.batches_split > 0
    assert counts.records_failed == 1
    assert values(bootstrap, topic) == [*sent, b"after"]


def test_a_compressed_batch_too_large_is_split(bootstrap: str, make_topic: MakeTopic, run: Run) -> None:
    topic = make_topic(max_message_bytes=700)
    sent = [b"%d " % number + bytes((number * 7 + i * i) % 251 for i in range(200)) for number in range(60)]

    async def main() -> None:
        async with Producer(bootstrap, linger_ms=20, compression_type="gzip") as producer:
            deliveries = [await producer.send(topic, value) for value in sent]
            assert [(await each).offset for each in deliveries] == list(range(60))

    run(main())
    assert values(bootstrap, topic) == sent


def test_one_bad_record_and_its_company(bootstrap: str, make_topic: MakeTopic, run: Run) -> None:
    topic = make_topic(cleanup_policy="compact")

    async def main() -> None:
        async with Producer(bootstrap, linger_ms=20) as producer:
            good = await producer.send(topic, b"value", b"key")
            bad = await producer.send(topic, b"value without a key")
            with pytest.raises(Refused) as told:
                await bad
            assert told.value.code is ErrorCode.INVALID_RECORD
            with pytest.raises(ClientError, match="in a batch with one"):
                await good
            # The partition goes on, in an epoch of its own.
            assert (await producer.send_and_wait(topic, b"after", b"key")).offset == 0
            assert [(await producer.send_and_wait(topic, b"%d" % n, b"key")).offset for n in range(3)] == [
                1,
                2,
                3,
            ]

    run(main())


def test_the_broker_stamps_where_the_topic_says_so(bootstrap: str, make_topic: MakeTopic, run: Run) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")

    async def main() -> RecordMetadata:
        async with Producer(bootstrap) as producer:
            return await producer.send_and_wait(topic, b"value", timestamp=MOMENT_MS)

    metadata = run(main())
    assert metadata.timestamp > MOMENT_MS
    assert read(bootstrap, topic)[0].timestamp == metadata.timestamp


def test_topics(bootstrap: str, topic_name: str, run: Run) -> None:
    async def main() -> None:
        async with Producer(bootstrap, max_block_ms=5000) as producer:
            with pytest.raises(TopicUnknown, match="not known yet"):
                producer.send_nowait(topic_name, b"early")
            # Brokers make topics that are asked for.
            assert (await producer.send_and_wait(topic_name, b"first")).offset == 0
            assert (await producer.send_nowait(topic_name, b"second")).offset == 1
            assert list(await producer.partitions_for(topic_name)) == [0]
            with pytest.raises(Refused) as told:
                await producer.send("no topic/has this name", b"")
            assert told.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION

    run(main())


def test_partitions_that_come_later(bootstrap: str, topic: str, run: Run) -> None:
    async def main() -> None:
        async with Producer(bootstrap, max_block_ms=400) as producer:
            with pytest.raises(TopicUnknown, match="no partition 2"):
                await producer.send(topic, b"", partition=2)
            with pytest.raises(TopicUnknown, match="no partition -1"):
                await producer.send(topic, b"", partition=-1)
        async with Producer(bootstrap, max_block_ms=20_000) as producer:
            await producer.send_and_wait(topic, b"", partition=0)
            sending = asyncio.create_task(producer.send_and_wait(topic, b"patient", partition=2))
            await asyncio.sleep(0.1)
            admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
            await asyncio.to_thread(admin.create_partitions([NewPartitions(topic, 3)])[topic].result, 20)
            assert (await sending).partition == 2

    run(main())
    assert values(bootstrap, topic, 2) == [b"patient"]


def test_a_topic_made_anew(bootstrap: str, topic: str, run: Run) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    async def main() -> None:
        async with Producer(bootstrap, linger_ms=0, retry_backoff_ms=20) as producer:
            for number in range(5):
                await producer.send_and_wait(topic, b"%d" % number)
            await asyncio.to_thread(admin.delete_topics([topic])[topic].result, 20)
            await asyncio.to_thread(create_topic, bootstrap, topic)
            assert (await producer.send_and_wait(topic, b"anew")).offset == 0
            assert (await producer.send_and_wait(topic, b"again")).offset == 1

    run(main())
    assert values(bootstrap, topic) == [b"anew", b"again"]


def test_records_without_a_key_are_spread_evenly(bootstrap: str, make_topic: MakeTopic, run: Run) -> None:
    topic = make_topic(4)

    async def main() -> dict[int, int]:
        async with Producer(bootstrap, batch_size=1000) as producer:
            deliveries = [await producer.send(topic, b"x" * 50) for _ in range(8000)]
            counts = dict.fromkeys(range(4), 0)
            for each in deliveries:
                counts[(await each).partition] += 1
            return counts

    counts = run(main())
    assert sum(counts.values()) == 8000
    assert min(counts.values()) > 800, counts


def test_round_robin_and_a_function_of_ones_own(bootstrap: str, make_topic: MakeTopic, run: Run) -> None:
    topic = make_topic(3)

    async def main() -> None:
        async with Producer(bootstrap, partitioner="roundrobin") as producer:
            found = [(await producer.send_and_wait(topic, b"", b"the same key")).partition for _ in range(6)]
            assert found == [0, 1, 2, 0, 1, 2]

        def last(name: str, key: bytes | None, value: bytes | None, count: int, available: Any) -> int | None:
            assert (name, value, sorted(available)) == (topic, b"value", [0, 1, 2])
            return None if key is None else count - 1

        async with Producer(bootstrap, partitioner=last) as producer:
            assert (await producer.send_and_wait(topic, b"value", b"key")).partition == 2
            assert (await producer.send_and_wait(topic, b"value")).partition in (0, 1, 2)

    run(main())


def test_serializers(bootstrap: str, topic: str, run: Run) -> None:
    class Contextual:
        def serialize(self, topic: str, headers: Any, data: Any) -> bytes:
            return f"{topic} {dict(headers)} {data}".encode()

    async def main() -> None:
        async with Producer(bootstrap, key_serializer="integer", value_serializer="json") as producer:
            await producer.send_and_wait(topic, {"a": [1, 2]}, 7)
            await producer.send_and_wait(topic, None, None)
            with pytest.raises(SerializationFailed, match="the key"):
                await producer.send(topic, {}, "seven")
        async with Producer(bootstrap, key_serializer=str.encode, value_serializer=Contextual()) as producer:
            await producer.send_and_wait(topic, 5, "five", headers=[("h", b"1")])
        async with Producer(bootstrap) as producer:
            with pytest.raises(SerializationFailed, match="value_serializer"):
                await producer.send(topic, "text")
            with pytest.raises(SerializationFailed, match="key_serializer"):
                producer.send_nowait(topic, b"", 5)
            with pytest.raises(SerializationFailed, match="headers"):
                await producer.send(topic, b"", headers=["x"])
            with pytest.raises(SerializationFailed, match="time"):
                await producer.send(topic, b"", timestamp=-1)

    run(main())
    assert [(each.key, each.value) for each in read(bootstrap, topic)] == [
        (b"\0\0\0\x07", b'{"a":[1,2]}'),
        (None, None),
        (b"five", f"{topic} {{'h': b'1'}} 5".encode()),
    ]


def test_interceptors_and_callbacks(bootstrap: str, topic: str, run: Run) -> None:
    heard: list[Any] = []
    delivered: list[tuple[int, ClientError | None]] = []

    class Stamping:
        def on_send(self, record: Outgoing) -> Outgoing:
            return record._replace(headers=[*record.headers, ("stamp", b"1")])

        def on_acknowledgement(self, metadata: RecordMetadata, error: ClientError | None) -> None:
            heard.append((metadata.topic, metadata.offset, error))

        def close(self) -> None:
            heard.append("closed")

    class Failing:
        def on_send(self, record: Outgoing) -> Outgoing:
            raise ValueError("no")

        def on_acknowledgement(self, metadata: RecordMetadata, error: ClientError | None) -> None:
            raise ValueError("no")

    async def main() -> None:
        async with Producer(
            bootstrap,
            interceptors=[Failing(), Stamping()],
            on_delivery=lambda metadata, error: delivered.append((metadata.offset, error)),
            max_request_size=5000,
        ) as producer:
            await producer.send_and_wait(topic, b"one")
            with pytest.raises(RecordTooLarge):
                await producer.send(topic, b"x" * 6000)
            own: list[int] = []
            delivery = await producer.send(topic, b"two")
            delivery.add_done_callback(lambda each: own.append(each.metadata().offset))
            delivery.add_done_callback(lambda each: 1 / 0)
            assert not delivery.done()
            with pytest.raises(WrongState):
                delivery.result()
            await delivery
            delivery.add_done_callback(lambda each: own.append(each.metadata().offset))
            assert own == [1, 1]
            assert delivery.result().offset == 1 and delivery.exception() is None

    run(main())
    assert [each.headers for each in read(bootstrap, topic)] == [(("stamp", b"1"),)] * 2
    assert heard[0] == (topic, 0, None) and heard[2] == (topic, 1, None) and heard[3] == "closed"
    assert heard[1][:2] == (topic, -1) and isinstance(heard[1][2], RecordTooLarge)
    assert delivered == [(0, None), (1, None)]


def test_lingering_and_flushing(bootstrap: str, topic: str, run: Run) -> None:
    async def main() -> None:
        async with Producer(bootstrap, linger_ms=20_000) as producer:
            delivery = await producer.send(topic, b"lingers")
            await asyncio.sleep(0.1)
            assert not delivery.done()
            await producer.flush()
            assert delivery.result().offset == 0
            await producer.flush()
            last = await producer.send(topic, b"closing flushes, too")
        assert last.result().offset == 1
        async with Producer(bootstrap, linger_ms=50) as producer:
            begun = time.monotonic()
            await producer.send_and_wait(topic, b"")
            assert 0.045 <= time.monotonic() - begun < 5
            await asyncio.gather(*(producer.send_and_wait(topic, b"%d" % number) for number in range(100)))
            assert producer.statistics().batches_sent == 2

    run(main())


def test_after_and_before_life(bootstrap: str, topic: str, run: Run) -> None:
    async def main() -> None:
        producer = Producer(bootstrap)
        with pytest.raises(WrongState, match="not open"):
            await producer.send(topic, b"")
        await producer.open()
        await producer.open()
        delivery = await producer.send(topic, b"")
        await asyncio.gather(producer.close(), producer.close())
        assert delivery.result().offset == 0
        with pytest.raises(Closed):
            await producer.send(topic, b"")
        with pytest.raises(Closed):
            producer.send_nowait(topic, b"")
        with pytest.raises(Closed):
            await producer.flush()
        with pytest.raises(Closed):
            await producer.open()
        await Producer(bootstrap).close()

    run(main())


def test_giving_up_changes_nothing(bootstrap: str, topic: str, run: Run) -> None:
    async def main() -> None:
        async with Producer(bootstrap, linger_ms=200) as producer:
            deliveries: list[Delivery] = [await producer.send(topic, b"%d" % number) for number in range(3)]
            waiting = [asyncio.ensure_future(_await(each)) for each in deliveries]
            flushing = asyncio.create_task(producer.flush())
            await asyncio.sleep(0)
            waiting[1].cancel()
            flushing.cancel()
            assert [(await each).offset for each in (deliveries[0], deliveries[1], deliveries[2])] == [
                0,
                1,
                2,
            ]
            done = await asyncio.gather(*waiting, return_exceptions=True)
            assert [isinstance(each, asyncio.CancelledError) for each in done] == [False, True, False]

    run(main())
    assert values(bootstrap, topic) == [b"0", b"1", b"2"]


async def _await(delivery: Delivery) -> RecordMetadata:
    return await delivery


def test_a_full_buffer_holds_senders_up(bootstrap: str, topic: str, run: Run) -> None:
    async def main() -> Any:
        async with Producer(bootstrap, buffer_memory=100_000, linger_ms=1000) as producer:
            await producer.partitions_for(topic)
            for _ in range(6 * 16):
                producer.send_nowait(topic, b"x" * 1000)
            with pytest.raises(BufferFull, match="bytes are free"):
                producer.send_nowait(topic, b"x" * 1000)
            await asyncio.gather(*(producer.send(topic, b"%d" % n + b"y" * 900) for n in range(1000)))
            await producer.flush()
            counts = producer.statistics()
            assert counts.buffer_bytes_free == 100_000 and counts.waiting == 0
            return counts

    counts = run(main())
    found = [each for each in values(bootstrap, topic) if each and each[-1:] == b"y"]
    # Who waits is served in turn.
    assert found == [b"%d" % number + b"y" * 900 for number in range(1000)]
    assert counts.records_failed == 0
