"""Parcels and the shelf they wait on: order, eras, pauses, faults, deserializers, raw batches."""

import gc
import json

import pytest

from ottla.client.consumer.assigned_partition import AssignedPartition, FetchPosition
from ottla.client.consumer.completed_fetch import CompletedFetch, deserialization, end_of_last_batch
from ottla.client.consumer.fetch_buffer import NEVER, FetchBuffer
from ottla.client.consumer.fetched_batches import FetchedBatches
from ottla.client.errors import Malformed, RecordTooLarge, SerializationFailed
from ottla.client.record import TopicPartition
from ottla.client.serializer import SerializerCall
from ottla.wire.batch import build_batch
from ottla.wire.compression import Codec
from ottla.wire.control import end_transaction_batch
from ottla.wire.record import Record as WireRecord


def batch(first, count, epoch=4, value=b"v%d"):
    records = [
        WireRecord(n, 1_000 + n, b"k", value % n if b"%" in value else value)
        for n in range(first, first + count)
    ]
    return bytes(build_batch(records, base_offset=first, leader_epoch=epoch))


def assigned(number=0, offset=0):
    made = AssignedPartition(TopicPartition("t", number))
    made.seek(FetchPosition(offset, -1, 1, 4))
    return made


def fetch(owner, data, node=1, offset=None):
    start = owner.fetch_offset if offset is None else offset
    fetched = FetchedBatches("t", owner.partition.partition, memoryview(data), start)
    end, epoch = end_of_last_batch(data)
    owner.fetch_offset = end
    return CompletedFetch(owner, node, fetched, end, epoch)


def buffer(decode=None):
    return FetchBuffer(lambda each: each.is_fetchable, decode)


def offsets(records):
    return [record.offset for record in records]


def test_the_last_whole_batch_says_where_to_go_on():
    data = batch(10, 5, epoch=3) + batch(15, 7, epoch=4)
    assert end_of_last_batch(data) == (22, 4)
    assert end_of_last_batch(data[:-1]) == (15, 3)
    assert end_of_last_batch(data[:40]) is None
    assert end_of_last_batch(b"") is None


def test_records_come_in_portions_and_the_position_follows():
    owner, held = assigned(), buffer()
    held.put(fetch(owner, batch(0, 5) + batch(5, 5)))
    records, moved = held.take(4)
    assert (offsets(records), moved, owner.position.offset) == ([0, 1, 2, 3], True, 4)
    assert offsets(held.take(4)[0]) == [4, 5, 6, 7]
    assert held.bytes_of
    assert offsets(held.take(4)[0]) == [8, 9]
    assert owner.position == FetchPosition(10, 4, 1, 4)
    assert held.take(4) == ([], False)
    assert not held.bytes_of
    assert held.records == 10


def test_one_poll_takes_from_several_partitions_in_the_order_they_came():
    one, two, held = assigned(1), assigned(2), buffer()
    held.put(fetch(one, batch(0, 3)))
    held.put(fetch(two, batch(0, 3)))
    records, _ = held.take(5)
    assert [(record.partition, record.offset) for record in records] == [
        (1, 0),
        (1, 1),
        (1, 2),
        (2, 0),
        (2, 1),
    ]
    assert (one.position.offset, two.position.offset) == (3, 2)


def test_records_before_the_position_are_passed_over():
    owner, held = assigned(offset=7), buffer()
    held.put(fetch(owner, batch(5, 5), offset=7))
    assert offsets(held.take(9)[0]) == [7, 8, 9]


def test_an_earlier_era_is_thrown_away():
    owner, held = assigned(), buffer()
    held.put(fetch(owner, batch(0, 5)))
    owner.seek(FetchPosition(100))
    assert held.take(9) == ([], False)
    assert len(held) == 0
    assert not held.bytes_of
    assert owner.position.offset == 100


def test_what_is_of_an_earlier_era_can_be_thrown_away_at_once():
    one, two, held = assigned(1), assigned(2), buffer()
    held.put(fetch(two, batch(0, 5)))
    held.put(fetch(one, batch(0, 5)))
    one.seek(FetchPosition(100))
    held.purge()
    assert len(held) == 1
    assert held.bytes_of == {1: len(batch(0, 5))}


def test_a_paused_partition_waits_and_holds_up_nobody():
    one, two, held = assigned(1), assigned(2), buffer()
    held.put(fetch(one, batch(0, 2)))
    held.put(fetch(two, batch(0, 2)))
    held.put(fetch(one, batch(2, 2)))
    one.paused = True
    assert [record.partition for record in held.take(9)[0]] == [2, 2]
    assert len(held) == 2
    one.paused = False
    assert offsets(held.take(9)[0]) == [0, 1, 2, 3]


def test_what_is_paused_does_not_count_against_fetching_ahead():
    one, two, held = assigned(1), assigned(2), buffer()
    held.put(fetch(one, batch(0, 2)))
    held.put(fetch(two, batch(0, 2)))
    both = held.bytes_of[1]
    one.paused = True
    held.take(1)
    assert held.bytes_of[1] == both / 2
    held.take(9)
    assert not held.bytes_of
    one.paused = False
    assert offsets(held.take(9)[0]) == [0, 1]
    assert not held.bytes_of


def test_batches_without_records_for_the_application_move_the_position():
    owner, held = assigned(), buffer()
    marker = bytes(
        end_transaction_batch(
            commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp_ms=1, leader_epoch=6
        )
    )
    held.put(fetch(owner, marker))
    assert held.take(9) == ([], True)
    assert owner.position == FetchPosition(1, 6, 1, 4)


def broken(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_a_fault_comes_out_after_what_is_before_it_and_again_until_somebody_seeks():
    good = batch(0, 3)
    owner, held = assigned(), buffer()
    held.put(fetch(owner, good + broken(batch(3, 3), 80)))
    assert offsets(held.take(9)[0]) == [0, 1, 2]
    assert owner.position.offset == 3
    for _ in range(2):
        with pytest.raises(Malformed, match="offset 3 of t-0.*\n.*seek to offset 6"):
            held.take(9)
    assert owner.retry_at == NEVER
    owner.seek(FetchPosition(6))
    assert held.take(9) == ([], False)
    assert owner.retry_at == 0


def test_a_fault_waits_for_other_partitions_records():
    bad, good, held = assigned(1), assigned(2), buffer()
    held.put(fetch(good, batch(0, 2)))
    held.put(fetch(bad, broken(batch(0, 2), 80)))
    assert offsets(held.take(9)[0]) == [0, 1]
    with pytest.raises(Malformed):
        held.take(9)


def test_deserializers_are_applied_and_see_where_a_record_comes_from():
    seen = []

    def contextual(topic, headers, data):
        seen.append((topic, headers))
        return data.decode()

    owner = assigned()
    held = buffer(deserialization(SerializerCall(contextual, contextual=True), SerializerCall(json.loads)))
    held.put(fetch(owner, batch(0, 2, value=b"[%d]")))
    records, _ = held.take(9)
    assert [(record.key, record.value) for record in records] == [("k", [0]), ("k", [1])]
    assert seen == [("t", ()), ("t", ())]
    assert deserialization(None, None) is None


def test_a_record_that_cannot_be_deserialized_stops_before_it():
    owner = assigned()
    held = buffer(
        deserialization(None, SerializerCall(lambda data: int(data[1:]) if data != b"v2" else 1 // 0))
    )
    held.put(fetch(owner, batch(0, 5)))
    assert [record.value for record in held.take(9)[0]] == [0, 1]
    assert owner.position.offset == 2
    for _ in range(2):
        with pytest.raises(SerializationFailed, match="value of the record at offset 2 of t-0.*\n.*offset 3"):
            held.take(9)
    owner.seek(FetchPosition(3))
    held.put(fetch(owner, batch(0, 5), offset=3))
    assert [record.value for record in held.take(9)[0]] == [3, 4]


def test_raw_parcels_move_the_position_and_can_be_given_back():
    one, two, held = assigned(1), assigned(2), buffer()
    held.put(fetch(one, batch(0, 5)))
    held.put(fetch(two, batch(0, 5)))
    first, second = held.take_unopened(1 << 20)
    assert (one.position.offset, two.position.offset, len(held)) == (5, 5, 0)
    held.give_back(second, 5)
    held.give_back(first, 2)
    assert len(held) == 1
    assert one.position.offset == 2
    assert offsets(held.take(9)[0]) == [2, 3, 4]


def test_raw_parcels_are_limited_by_size_but_one_comes_anyway():
    owner, held = assigned(), buffer()
    held.put(fetch(owner, batch(0, 5)))
    held.put(fetch(owner, batch(5, 5)))
    assert len(held.take_unopened(1)) == 1
    assert owner.position.offset == 5
    assert len(held.take_unopened(1)) == 1


def test_what_was_begun_as_objects_is_fetched_again_for_raw_reading():
    owner, held = assigned(), buffer()
    held.put(fetch(owner, batch(0, 5)))
    held.put(fetch(owner, batch(5, 5)))
    held.take(2)
    assert held.take_unopened(1 << 20) == []
    assert len(held) == 0
    assert owner.fetch_offset == 2


def test_opening_leaves_the_collector_as_it_was():
    owner, held = assigned(), buffer()
    held.put(fetch(owner, batch(0, 5)))
    held.put(fetch(owner, batch(5, 5)))
    assert gc.isenabled()
    held.take(5)
    assert gc.isenabled()
    gc.disable()
    try:
        held.take(5)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_decompresses_to_very_much_is_opened_in_turns(monkeypatch):
    monkeypatch.setattr("ottla.client.consumer.fetched_batches.BATCH_BYTES_MAX", 3_000)
    monkeypatch.setattr("ottla.client.consumer.record_objects.BATCH_BYTES_MAX", 3_000)
    owner, held = assigned(), buffer()
    large = [
        bytes(
            build_batch(
                [WireRecord(n, 1, b"k", bytes(size))], base_offset=n, leader_epoch=4, codec=Codec.GZIP
            )
        )
        for n, size in enumerate((1_000, 1_000, 1_000, 2_000, 4_000, 10))
    ]
    held.put(fetch(owner, b"".join(large)))
    assert offsets(held.take(100)[0]) == [0, 1, 2, 3]
    assert owner.position.offset == 4
    with pytest.raises(RecordTooLarge, match="batch at offset 4 of t-0") as raised:
        held.take(100)
    assert raised.value.hint == "to go on without it, seek to offset 5"
    owner.seek(FetchPosition(5, -1, 1, 4))
    held.put(fetch(owner, b"".join(large), offset=5))
    assert offsets(held.take(100)[0]) == [5]


def test_portions_and_turns_do_not_mix_up_the_position(monkeypatch):
    monkeypatch.setattr("ottla.client.consumer.fetched_batches.BATCH_BYTES_MAX", 300)
    monkeypatch.setattr("ottla.client.consumer.record_objects.BATCH_BYTES_MAX", 300)
    owner, held = assigned(), buffer()
    data = b"".join(
        bytes(
            build_batch(
                [WireRecord(n, 1, b"k", bytes(30)) for n in range(first, first + 5)],
                base_offset=first,
                codec=Codec.GZIP,
                leader_epoch=first,
            )
        )
        for first in range(0, 40, 5)
    )
    held.put(fetch(owner, data))
    seen = []
    while (found := held.take(3)[0]) or len(seen) < 40:
        seen += found
        assert owner.position.offset == len(seen)
    assert offsets(seen) == list(range(40))
    assert owner.position == FetchPosition(40, 35, 1, 4)
