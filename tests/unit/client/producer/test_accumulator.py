"""Records in, batches out."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.client.cluster import Leader
from ottla.client.errors import (
    BufferFull,
    ClientError,
    Closed,
    RecordTooLarge,
    SerializationFailed,
    TopicUnknown,
)
from ottla.wire.batch import BATCH_HEADER_SIZE
from ottla.wire.compression import Codec
from ottla.wire.record import Record
from tests.unit.client.producer.parts import TOPIC, Bench, records_of

SIZES = st.sampled_from([0, 1, 5, 62, 63, 64, 65, 127, 300, 8180, 8191, 8192, 9000])
BYTES = st.none() | st.builds(lambda size, byte: bytes([byte]) * size, SIZES, st.integers(0, 255))
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=70)), max_size=3)
TIMES = st.sampled_from([1, 1, 1, 2, 64, 65, 9000, 10**6, 10**12])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(BYTES, BYTES, TIMES, HEADERS), min_size=1, max_size=100))
def test_records_are_encoded_as_the_protocol_has_them(given_records: list[Any]) -> None:
    bench = Bench(batch_size=1 << 20)
    for key, value, timestamp, headers in given_records:
        bench.accumulator.append(TOPIC, value, key, 0, timestamp, headers)
    bench.flush()
    found = [record for batch in bench.take() for record in records_of(batch)]
    assert found == [
        Record(number, timestamp, key, value, tuple(headers))
        for number, (key, value, timestamp, headers) in enumerate(given_records)
    ]


def test_numbers_of_many_records() -> None:
    bench = Bench(batch_size=1 << 20)
    for number in range(9000):
        bench.accumulator.append(TOPIC, b"%d" % number, timestamp=5 + number // 100)
    bench.flush()
    (batch,) = bench.take()
    found = records_of(batch)
    assert [int(each.value or b"") for each in found] == list(range(9000))
    assert [each.timestamp for each in found] == [5 + number // 100 for number in range(9000)]
    assert (batch.base_timestamp, batch.max_timestamp) == (5, 94)


def test_a_batch_is_full_before_it_is_too_large() -> None:
    bench = Bench(batch_size=1000)
    deliveries = [bench.accumulator.append(TOPIC, b"x" * 90) for _ in range(50)]
    batches = {id(each[0]): each[0] for each in deliveries}.values()
    sizes = [len(batch.buffer) for batch in batches]
    assert max(sizes) <= 1000
    assert min(sizes[:-1]) > 800
    assert bench.accumulator.has_full_batch
    # All but the open one may leave, one with each request.
    for expected in list(batches)[:-1]:
        (batch,) = bench.take()
        assert batch is expected
        bench.settle_well(batch)
    assert bench.take() == []


def test_no_batches_at_all() -> None:
    bench = Bench(batch_size=0, linger_ms=0)
    deliveries = [bench.accumulator.append(TOPIC, b"x") for _ in range(3)]
    assert len({id(each[0]) for each in deliveries}) == 3


def test_a_batch_waits_for_more_until_it_has_lingered() -> None:
    bench = Bench(linger_ms=20)
    bench.accumulator.append(TOPIC, b"1")
    assert bench.woken == 1
    bench.clock.now += 0.0199
    assert bench.take() == []
    bench.accumulator.append(TOPIC, b"2")
    bench.clock.now += 0.0002
    (batch,) = bench.take()
    assert [each.value for each in records_of(batch)] == [b"1", b"2"]
    # What comes now is for the next.
    assert bench.accumulator.append(TOPIC, b"3")[0] is not batch


def test_compression_makes_room_for_more() -> None:
    bench = Bench(batch_size=2000, compression_type="gzip")
    per_batch = []
    for _ in range(60):
        for _ in range(1000):
            if (
                bench.accumulator.append(TOPIC, b"the same again " * 5)[1] == 0
                and bench.queue().batches[0].count
            ):
                break
        (batch, *_) = bench.take() or [None]
        if batch is not None:
            bench.topic_queues.observe(len(batch.buffer) / batch.plain_bytes)
            per_batch.append(batch.count)
            bench.settle_well(batch)
    assert per_batch[-1] > per_batch[0] * 1.3
    bench.topic_queues.observe(0.9)
    assert bench.topic_queues.ratio == 0.9


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_codecs(codec: str) -> None:
    bench = Bench(compression_type=codec)
    for number in range(100):
        bench.accumulator.append(TOPIC, b"%d and so on and so on" % number)
    bench.flush()
    (batch,) = bench.take()
    assert batch.buffer[22] & 7 == Codec[codec.upper()]
    assert len(batch.buffer) < batch.plain_bytes
    assert [each.value for each in records_of(batch)][99] == b"99 and so on and so on"


def test_memory_is_taken_by_batches_and_given_back() -> None:
    bench = Bench(buffer_memory=10_000, batch_size=4000)
    buffer_pool = bench.accumulator.buffer_pool
    bench.accumulator.append(TOPIC, b"x" * 50)
    assert buffer_pool.free == 6000
    bench.accumulator.append(TOPIC, b"x" * 3890)
    assert buffer_pool.free == 2000
    with pytest.raises(BufferFull, match="4000 are needed") as told:
        bench.accumulator.append(TOPIC, b"x" * 3890)
    assert told.value.retriable
    assert bench.accumulator.missing_bytes == 4000
    assert len(bench.accumulator.incomplete) == 2
    (batch,) = bench.take()
    bench.settle_well(batch)
    assert buffer_pool.free == 6000
    # What was set aside is used, or given back.
    bench.accumulator.reserved_bytes = 4500
    buffer_pool.free -= 4500
    bench.accumulator.append(TOPIC, b"x" * 3890)
    assert (buffer_pool.free, bench.accumulator.reserved_bytes) == (2000, 0)
    bench.accumulator.reserved_bytes, buffer_pool.free = 500, 1500
    bench.accumulator.give_back()
    assert buffer_pool.free == 2000


def test_records_that_are_refused() -> None:
    bench = Bench(2, max_request_size=1000, batch_size=1000)
    append = bench.accumulator.append
    cases: list[tuple[type[ClientError], dict[str, Any]]] = [
        (RecordTooLarge, {"value": b"x" * 1000}),
        (RecordTooLarge, {"value": b"x" * 500, "key": b"k" * 500}),
        (SerializationFailed, {"value": "text"}),
        (SerializationFailed, {"value": b"", "key": 7}),
        (SerializationFailed, {"value": b"", "headers": [("name", "text")]}),
        (SerializationFailed, {"value": b"", "headers": [(b"name", b"")]}),
        (SerializationFailed, {"value": b"", "timestamp": -5}),
        (SerializationFailed, {"value": b"", "timestamp": 1.5}),
        (TopicUnknown, {"value": b"", "partition": 2}),
        (TopicUnknown, {"value": b"", "partition": -1}),
    ]
    for error, record in cases:
        with pytest.raises(error):
            append(TOPIC, **record)
    with pytest.raises(TopicUnknown):
        append("another", b"")
    assert len(bench.accumulator.incomplete) == 0
    assert bench.accumulator.buffer_pool.free == bench.accumulator.buffer_pool.total


def test_the_guard_is_asked_when_a_batch_is_begun() -> None:
    bench = Bench(batch_size=1000)
    admitted: list[Any] = []
    bench.accumulator.on_new_batch = admitted.append
    bench.accumulator.append(TOPIC, b"1")
    assert admitted == [bench.queue()]

    def closed() -> None:
        raise Closed("closed")

    bench.accumulator.check_may_append = closed
    bench.accumulator.append(TOPIC, b"fits the open batch")
    bench.accumulator.seal_all()
    with pytest.raises(Closed):
        bench.accumulator.append(TOPIC, b"3")
    assert len(admitted) == 1
    (batch,) = bench.take()
    assert batch.count == 2


def test_everything_can_be_failed() -> None:
    bench = Bench(3, batch_size=200, linger_ms=0)
    deliveries = [bench.accumulator.append(TOPIC, b"x" * 50, partition=number % 3) for number in range(30)]
    left = bench.take()
    assert len(left) == 3
    bench.accumulator.fail(Closed("closed"), numbered=False)
    assert [each.done() for each in deliveries] == [each[0] not in left for each in deliveries]
    bench.accumulator.fail(Closed("closed"))
    assert all(isinstance(each.exception(), Closed) for each in deliveries)
    assert len(bench.accumulator.incomplete) == 0
    assert bench.accumulator.buffer_pool.free == bench.accumulator.buffer_pool.total
    assert not bench.accumulator.schedule.nonempty


def test_a_topic_that_is_forgotten() -> None:
    bench = Bench(2)
    bench.accumulator.append(TOPIC, b"1", partition=1)
    bench.accumulator.forget(TOPIC)
    with pytest.raises(TopicUnknown):
        bench.accumulator.append(TOPIC, b"2")
    bench.flush()
    assert bench.take() == []
    assert list(bench.accumulator.schedule.leaderless) == [bench.queue(1)]
    # What was taken leaves when somebody leads again.
    bench.set_leader({0: Leader(1, 1), 1: Leader(2, 1)})
    (batch,) = bench.take(2)
    bench.settle_well(batch)
    # A broker remembers the numbers, and so has the producer to.
    bench.accumulator.forget(TOPIC)
    bench.set_leader({0: Leader(1, 1), 1: Leader(2, 1)})
    assert bench.queue(1).sequences.next == 1
    plain = Bench(enable_idempotence=False)
    plain.accumulator.forget(TOPIC)
    assert TOPIC not in plain.accumulator.topics


def test_a_topic_made_anew_begins_with_one_batch() -> None:
    bench = Bench(batch_size=0, linger_ms=0)
    bench.accumulator.append(TOPIC, b"1")
    bench.settle_well(*bench.take())
    bench.accumulator.update_leaders(TOPIC, {0: Leader(1, 0)}, bench.clock.now, b"n" * 16)
    for _ in range(3):
        bench.accumulator.append(TOPIC, b"")
    (first,) = bench.take()
    assert bench.take() == []
    bench.settle_well(first)
    assert len(bench.take()) == 1


def test_the_header_has_room_of_its_own() -> None:
    bench = Bench()
    delivery = bench.accumulator.append(TOPIC, b"value", timestamp=3)
    assert bytes(delivery[0].buffer[:BATCH_HEADER_SIZE]) == bytes(BATCH_HEADER_SIZE)
    assert (delivery.topic, delivery.partition, delivery.timestamp) == (TOPIC, 0, 3)
    assert "under way" in repr(delivery)
