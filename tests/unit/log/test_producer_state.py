"""Sequences, epochs, markers, expiry and snapshots of producers."""

import struct

import pytest
from crc32c import crc32c

from ottla.log.producer_snapshot import SnapshotEntry, SnapshotError, decode_snapshot, encode_snapshot
from ottla.log.producer_state import Producers
from ottla.wire.errors import BrokerError

LAST = 0x7FFF_FFFF


def admit(producers, epoch, sequence, count=1, *, transactional=False, from_client=True):
    return producers.admit(1, epoch, sequence, count, transactional=transactional, from_client=from_client)


def record(producers, epoch, sequence, offset, count=1, *, transactional=False, timestamp=50):
    producers.record(1, epoch, sequence, offset, offset + count - 1, timestamp, transactional)


def refusal(call, *arguments, **more):
    with pytest.raises(BrokerError) as caught:
        call(*arguments, **more)
    return caught.value.code.name


def test_an_unknown_producer_may_begin_anywhere():
    assert admit(Producers(), 3, 17) is None


def test_sequences_follow_each_other():
    producers = Producers()
    record(producers, 0, 0, 100, count=3)
    assert admit(producers, 0, 3) is None
    assert refusal(admit, producers, 0, 4) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert refusal(admit, producers, 0, 1) == "OUT_OF_ORDER_SEQUENCE_NUMBER"


def test_five_batches_are_remembered():
    producers = Producers()
    for n in range(6):
        record(producers, 0, 2 * n, 100 + 2 * n, count=2)
    assert [admit(producers, 0, 2 * n, count=2).first_offset for n in range(1, 6)] == [
        102,
        104,
        106,
        108,
        110,
    ]
    assert refusal(admit, producers, 0, 0, count=2) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert refusal(admit, producers, 0, 10, count=1) == "OUT_OF_ORDER_SEQUENCE_NUMBER"


def test_sequences_wrap():
    producers = Producers()
    record(producers, 0, LAST - 1, 0, count=2)
    assert admit(producers, 0, 0) is None
    record(producers, 0, 0, 2)
    producers = Producers()
    record(producers, 0, LAST - 1, 0, count=4)
    assert producers.entries[1].next_sequence == 2
    assert admit(producers, 0, LAST - 1, count=4).last_offset == 3
    again = Producers()
    again.load(producers.snapshot(), 4)
    assert again.entries[1].batches == producers.entries[1].batches


def test_epochs_only_grow_and_begin_at_zero():
    producers = Producers()
    record(producers, 4, 9, 0)
    assert refusal(admit, producers, 3, 10) == "INVALID_PRODUCER_EPOCH"
    assert refusal(admit, producers, 5, 10) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert admit(producers, 5, 0) is None
    record(producers, 5, 0, 1)
    assert list(producers.entries[1].batches) == [(0, 0, 1, 1, 50)]


def test_coordinators_write_without_sequences():
    producers = Producers()
    record(producers, 4, 9, 0)
    assert admit(producers, 4, -1, from_client=False) is None
    assert refusal(admit, producers, 3, -1, from_client=False) == "INVALID_PRODUCER_EPOCH"


def test_a_transaction_from_begin_to_end():
    producers = Producers()
    record(producers, 0, 0, 10, transactional=True)
    record(producers, 0, 1, 11, transactional=True)
    assert producers.first_ongoing_offset == 10
    assert refusal(admit, producers, 0, 2) == "INVALID_TXN_STATE"
    assert producers.last_stable_offset(12) == 10
    completed = producers.complete(1, 0, 5, 12, 60, aborted=True)
    assert completed == (1, 10, 12, True)
    assert producers.stable_after(completed) == 13
    assert producers.first_ongoing_offset is None
    assert producers.last_stable_offset(11) == 10, "the marker is not replicated yet"
    assert producers.last_stable_offset(13) == 13
    assert admit(producers, 0, 2, transactional=True) is None
    assert producers.complete(1, 0, 5, 20, 60, aborted=False) is None


def test_the_oldest_open_transaction_holds_the_stable_offset():
    producers = Producers()
    producers.record(1, 0, 0, 10, 10, 50, True)
    producers.record(2, 0, 0, 11, 11, 50, True)
    completed = producers.complete(1, 0, 0, 12, 60, aborted=True)
    assert producers.stable_after(completed) == 11
    assert producers.last_stable_offset(13) == 11


def test_markers_of_the_superseded_are_refused():
    producers = Producers()
    record(producers, 3, 0, 10, transactional=True)
    producers.complete(1, 3, 7, 11, 60, aborted=False)
    assert refusal(producers.admit_marker, 1, 2, 7, 0) == "INVALID_PRODUCER_EPOCH"
    assert refusal(producers.admit_marker, 1, 3, 6, 0) == "TRANSACTION_COORDINATOR_FENCED"
    producers.admit_marker(1, 3, 7, 0)
    producers.admit_marker(9, 0, 0, 0)


def test_markers_of_transactions_v2_raise_the_epoch():
    producers = Producers()
    record(producers, 3, 0, 10, transactional=True)
    assert refusal(producers.admit_marker, 1, 3, 7, 2) == "INVALID_PRODUCER_EPOCH"
    producers.admit_marker(1, 4, 7, 2)
    producers.complete(1, 4, 7, 11, 60, aborted=False)
    producers.admit_marker(1, 4, 7, 2)
    assert refusal(producers.admit_marker, 1, 3, 7, 2) == "INVALID_PRODUCER_EPOCH"
    assert admit(producers, 4, 0, transactional=True) is None


def test_the_quiet_are_forgotten_unless_a_transaction_is_open():
    producers = Producers()
    producers.record(1, 0, 0, 0, 0, 1000, False)
    producers.record(2, 0, 0, 1, 1, 1000, True)
    producers.record(3, 0, 0, 2, 2, 1500, False)
    assert producers.expire(1999, 1000) == 0
    assert producers.expire(2000, 1000) == 1
    assert sorted(producers.entries) == [2, 3]


def test_the_snapshot_file_is_kafkas():
    entry = SnapshotEntry(5, 2, 30, 1000, 4, 99, 6, -1)
    body = struct.pack(">iqhiqiqiq", 1, 5, 2, 30, 1000, 4, 99, 6, -1)
    data = struct.pack(">hI", 1, crc32c(body)) + body
    assert encode_snapshot([entry]) == data
    assert decode_snapshot(data) == [entry]
    assert decode_snapshot(encode_snapshot([])) == []
    for bad in (b"", data[:5], data[:-1], data + b"\0", b"\0\2" + data[2:], data[:20] + b"\xff" + data[21:]):
        with pytest.raises(SnapshotError):
            decode_snapshot(bad)


def test_a_snapshot_brings_producers_back():
    producers = Producers()
    producers.record(2, 1, 7, 20, 24, 99, True)
    producers.record(1, 0, 0, 10, 14, 50, True)
    producers.complete(1, 0, 3, 15, 60, aborted=False)
    again = Producers()
    again.load(producers.snapshot(), 25)
    assert again.end_offset == 25
    assert again.first_ongoing_offset == 20
    assert again.entries[1].coordinator_epoch == 3
    assert again.entries[1].last_timestamp == 60
    assert again.admit(2, 1, 7, 5, transactional=True, from_client=True).first_offset == 20
    assert again.admit(1, 0, 5, 1, transactional=False, from_client=True) is None


def test_what_a_snapshot_does_not_remember_is_still_not_written_twice():
    """Three batches were unanswered when the leader stopped; the next one has a snapshot, and is sent all of them."""
    producers = Producers()
    for number in range(3):
        record(producers, 0, number * 2, number * 2, count=2)
    again = Producers()
    again.load(producers.snapshot(), 6)
    for first in (0, 2):
        assert refusal(admit, again, 0, first, count=2) == "DUPLICATE_SEQUENCE_NUMBER"
    assert admit(again, 0, 4, count=2).first_offset == 4
    assert admit(again, 0, 6) is None
    # Neither what was skipped nor what only begins with what is there.
    assert refusal(admit, again, 0, 7) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert refusal(admit, again, 0, 3, count=4) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    # In another epoch nothing was written before.
    record(again, 1, 0, 6)
    assert refusal(admit, again, 1, 3) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
