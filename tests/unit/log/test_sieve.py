"""What stays of a batch: keys, tombstones, transactions, producers."""

import tracemalloc

import pytest

from ottla.log.cleaned_transactions import CleanedTransactions
from ottla.log.latest_offsets import LatestOffsets
from ottla.log.sieve import LastBatch, Sieve
from ottla.log.transaction_index import AbortedTransaction
from ottla.wire.batch import Batch, assemble, build_batch, crc_ok, read_records
from ottla.wire.compression import Codec, compress
from ottla.wire.control import ControlType, end_transaction_batch, quorum_batch, read_control
from ottla.wire.errors import ProtocolError
from ottla.wire.messages.control import SnapshotFooterRecord
from ottla.wire.record import Record

NOW = 1_800_000_000_000
RETENTION = 60_000
THEN = 1_700_000_000_000


def sieve(latest=(), *, covered=1_000, aborted=(), producers=None, now_ms=NOW):
    offsets = LatestOffsets(1 << 20, 0)
    for key, offset in dict(latest).items():
        offsets.put(key, offset)
    offsets.end_offset = covered
    return Sieve(
        offsets,
        CleanedTransactions(aborted),
        producers or {},
        now_ms=now_ms,
        delete_retention_ms=RETENTION,
    )


def sift(s, data, pos=0, **how):
    return s.sift(bytes(data), pos, Batch.parse(data, pos), **how)


def records(*pairs, start=0):
    return [
        Record(start + i, THEN + i, key, value, (("h", b"%d" % i),)) for i, (key, value) in enumerate(pairs)
    ]


def batch(*pairs, start=0, **how):
    return build_batch(records(*pairs, start=start), base_offset=start, **how)


def test_a_batch_that_loses_nothing_is_copied():
    data = batch((b"a", b"1"), (b"b", b"2"))
    assert sift(sieve({b"a": 0, b"b": 1}), b"junk" + data, 4) == data
    assert sift(sieve(), data) == data


@pytest.mark.parametrize("codec", list(Codec))
def test_only_the_last_record_of_a_key_stays(codec):
    data = batch(
        (b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", b"4"), start=10, codec=codec, leader_epoch=7
    )
    s = sieve({b"a": 12, b"b": 11, b"c": 40})
    kept = sift(s, data)
    assert read_records(kept) == [read_records(data)[1], read_records(data)[2]]
    assert crc_ok(kept, 0, len(kept))
    before, after = Batch.parse(data), Batch.parse(kept)
    assert (after.base_offset, after.last_offset, after.record_count) == (10, 13, 2)
    assert (after.partition_leader_epoch, after.codec) == (7, codec)
    assert after.max_timestamp == THEN + 2 < before.max_timestamp
    assert (s.records_read, s.records_kept) == (4, 2)


def test_nothing_stays_of_a_batch_without_last_records():
    assert sift(sieve({b"a": 50, b"b": 60}), batch((b"a", b"1"), (b"b", None))) is None


def test_records_behind_the_map_stay():
    data = batch((b"a", b"1"), (b"a", b"2"), (None, b"3"), start=10)
    kept = sift(sieve({b"a": 99}, covered=11), data)
    assert [record.offset for record in read_records(kept)] == [11, 12]


def test_records_without_a_key_go():
    kept = sift(sieve(), batch((None, b"1"), (b"a", b"2")))
    assert [record.key for record in read_records(kept)] == [b"a"]


def test_log_append_time_is_kept():
    data = batch((b"a", b"1"), (b"b", b"2"), log_append_time_ms=THEN + 99)
    kept = sift(sieve({b"b": 5}), data)
    assert Batch.parse(kept).max_timestamp == THEN + 99
    assert [record.timestamp for record in read_records(kept)] == [THEN + 99]


def test_a_tombstone_goes_in_the_second_cleaning_after_its_horizon():
    data = batch((b"a", None), (b"b", b"2"), codec=Codec.ZSTD)
    first = sift(sieve(), data)
    assert read_records(first) == read_records(data)
    assert Batch.parse(first).delete_horizon_ms == NOW + RETENTION
    assert Batch.parse(first).max_timestamp == THEN + 1
    assert crc_ok(first, 0, len(first))
    again = sift(sieve(now_ms=NOW + RETENTION - 1), first)
    assert again == first
    last = sift(sieve(now_ms=NOW + RETENTION), again)
    assert read_records(last) == [read_records(data)[1]]
    assert Batch.parse(last).delete_horizon_ms == NOW + RETENTION


def test_a_superseded_tombstone_goes_at_once():
    kept = sift(sieve({b"a": 70}), batch((b"a", None), (b"b", b"2")))
    assert [record.key for record in read_records(kept)] == [b"b"]
    assert not Batch.parse(kept).has_delete_horizon


def test_horizon_and_removal_in_one_go():
    data = batch((b"a", b"old"), (b"b", None), (b"c", b"3"))
    kept = sift(sieve({b"a": 70}), data)
    assert read_records(kept) == read_records(data)[1:]
    assert Batch.parse(kept).has_delete_horizon


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_the_last_batch_of_a_producer_stays_empty(codec):
    data = batch(
        (b"a", b"1"), (b"b", b"2"), start=20, codec=codec, producer_id=4, producer_epoch=1, base_sequence=6
    )
    latest = {b"a": 70, b"b": 71}
    assert sift(sieve(latest), data) is None
    assert sift(sieve(latest, producers={4: LastBatch(50, 1)}), data) is None
    assert sift(sieve(latest, producers={5: LastBatch(21, 1)}), data) is None
    kept = sift(sieve(latest, producers={4: LastBatch(21, 1)}), data)
    assert len(kept) == 61
    assert crc_ok(kept, 0, 61)
    assert read_records(kept) == []
    before, after = Batch.parse(data), Batch.parse(kept)
    assert (after.base_offset, after.last_offset, after.record_count) == (20, 21, 0)
    assert (after.producer_id, after.producer_epoch, after.base_sequence, after.last_sequence) == (4, 1, 6, 7)
    assert (after.base_timestamp, after.max_timestamp) == (-1, before.max_timestamp)
    assert after.codec is Codec.NONE
    # It goes once the producer has written more, or has been forgotten.
    assert sift(sieve(producers={4: LastBatch(21, 1)}), kept) == kept
    assert sift(sieve(), kept) is None


def test_the_last_batch_of_the_segments_stays_empty():
    data = batch((b"a", b"1"), (b"b", b"2"), start=20)
    kept = sift(sieve({b"a": 70, b"b": 71}), data, is_last=True)
    assert Batch.parse(kept).record_count == 0
    assert Batch.parse(kept).end_offset == 22
    assert Batch.parse(kept).max_timestamp == -1


def transaction(offset, *pairs, producer_id=1, epoch=0):
    return batch(
        *pairs,
        start=offset,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        transactional=True,
    )


def marker(offset, *, commit, producer_id=1, epoch=0):
    return end_transaction_batch(
        commit=commit,
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=0,
        timestamp_ms=THEN,
        base_offset=offset,
    )


def kind(data):
    (record,) = read_records(data)
    return read_control(record).type


def test_records_of_an_aborted_transaction_go_and_its_marker_follows():
    aborted = AbortedTransaction(1, 10, 12, 13)
    s = sieve(aborted=[aborted])
    assert sift(s, transaction(8, (b"a", b"committed"), producer_id=2)) is not None
    assert sift(s, transaction(10, (b"a", b"1"), (b"b", b"2"))) is None
    # The marker stays as it is, since a batch was still seen, and so does the entry of the index.
    first = sift(s, marker(12, commit=False))
    assert first == marker(12, commit=False)
    assert s.transactions.kept == [aborted]
    # The next cleaning finds no batch: the marker gets its horizon, the index loses the transaction.
    s = sieve(aborted=[aborted])
    second = sift(s, first)
    assert kind(second) is ControlType.ABORT
    assert Batch.parse(second).delete_horizon_ms == NOW + RETENTION
    assert s.transactions.kept == []
    assert sift(sieve(now_ms=NOW + RETENTION - 1), second) == second
    assert sift(sieve(now_ms=NOW + RETENTION), second) is None


def test_a_commit_marker_stays_while_its_records_do():
    s = sieve({b"a": 10}, now_ms=NOW + 10 * RETENTION)
    assert sift(s, transaction(10, (b"a", b"1"))) is not None
    assert sift(s, marker(11, commit=True)) == marker(11, commit=True)
    s = sieve({b"a": 99})
    assert sift(s, transaction(10, (b"a", b"1"))) is None
    assert sift(s, marker(11, commit=True)) == marker(11, commit=True)
    first = sift(sieve(), marker(11, commit=True))
    assert Batch.parse(first).has_delete_horizon
    assert sift(sieve(now_ms=NOW + RETENTION), first) is None


def test_transactions_of_one_producer_follow_each_other():
    s = sieve(aborted=[AbortedTransaction(1, 10, 11, 12)])
    assert sift(s, transaction(10, (b"a", b"1"))) is None
    assert sift(s, marker(11, commit=False)) is not None
    kept = sift(s, transaction(12, (b"a", b"2")))
    assert [record.value for record in read_records(kept)] == [b"2"]
    assert sift(s, marker(13, commit=True)) == marker(13, commit=True)


def test_an_aborted_transaction_may_begin_before_another_ends():
    s = sieve(aborted=[AbortedTransaction(1, 10, 13, 14), AbortedTransaction(2, 11, 14, 15)])
    assert sift(s, transaction(10, (b"a", b"1"), producer_id=1)) is None
    assert sift(s, transaction(11, (b"a", b"1"), producer_id=2)) is None
    assert sift(s, transaction(12, (b"a", b"1"), producer_id=3)) is not None
    assert sift(s, marker(13, commit=False, producer_id=1)) is not None
    assert sift(s, marker(14, commit=False, producer_id=2)) is not None
    assert [aborted.producer_id for aborted in s.transactions.kept] == [1, 2]


def test_an_aborted_last_batch_of_a_producer_stays_empty():
    s = sieve(aborted=[AbortedTransaction(1, 10, 12, 13)], producers={1: LastBatch(11, 0)})
    kept = sift(s, transaction(10, (b"a", b"1"), (b"b", b"2")))
    after = Batch.parse(kept)
    assert (after.record_count, after.last_sequence, after.is_transactional) == (0, 1, True)
    assert sift(s, marker(12, commit=False)) == marker(12, commit=False)


def test_a_marker_with_a_producers_last_epoch_stays_empty():
    old = sift(sieve(), marker(12, commit=True, epoch=3))
    late = NOW + RETENTION
    assert sift(sieve(now_ms=late, producers={1: LastBatch(None, 4)}), old) is None
    kept = sift(sieve(now_ms=late, producers={1: LastBatch(None, 3)}), old)
    after = Batch.parse(kept)
    assert (after.record_count, after.is_control, after.producer_epoch) == (0, True, 3)
    assert not after.has_delete_horizon
    assert sift(sieve(now_ms=late), kept) is None


def test_other_control_records_stay():
    data = quorum_batch([SnapshotFooterRecord(version=0)], timestamp_ms=THEN)
    assert sift(sieve(now_ms=NOW), data) == data
    unknown = bytearray(data)
    at = unknown.rindex(b"\x00\x00\x00\x04")
    unknown[at + 3] = 99
    data = assemble(Batch.parse(data), unknown[61:])
    assert sift(sieve(now_ms=NOW), data) == data


def test_timestamps_nobody_checked_do_no_harm():
    wild = [Record(0, -(1 << 63), b"a", None), Record(1, (1 << 63) - 1, b"b", b"2"), Record(2, 0, b"b", b"3")]
    data = bytearray(build_batch([Record(0, 0, b"a", None)]))
    data = assemble(
        Batch.parse(data)._replace(base_timestamp=-(1 << 62), record_count=3, last_offset_delta=2),
        bytes(build_batch(wild, delete_horizon_ms=-(1 << 62))[61:]),
    )
    kept = sift(sieve({b"b": 2}), data)
    assert [record.key for record in read_records(kept)] == [b"a", b"b"]


def test_damaged_batches_are_not_given_a_new_crc():
    data = batch((b"a", b"1"), (b"b", b"2"))
    data[-3] ^= 1
    with pytest.raises(ProtocolError):
        sift(sieve({b"a": 9}), data)


@pytest.mark.parametrize("body", [b"\xff" * 40, b"\0"])
def test_a_batch_that_cannot_be_read_is_named(body):
    data = assemble(Batch.parse(batch((b"a", b"1"), start=77)), body)
    with pytest.raises(ProtocolError, match="the batch at offset 77 cannot be read"):
        sift(sieve({b"a": 100}), data)
    lying = assemble(Batch.parse(batch((b"a", b"1"), start=77, codec=Codec.ZSTD)), body)
    with pytest.raises(ProtocolError, match="the batch at offset 77 cannot be read"):
        sift(sieve({b"a": 100}), lying)


@pytest.mark.parametrize("latest", [{b"a": 2, b"b": 3}, {b"a": 9, b"b": 3}, {b"a": 9, b"b": 9}, {b"a": 0, b"b": 0}])
@pytest.mark.parametrize("values", [(b"1", b"2", b"3", b"4"), (b"1", None, b"3", None)])
def test_very_many_records_are_sifted_as_few_are(monkeypatch, latest, values):
    data = batch(*zip((b"a", b"b", b"a", b"b"), values, strict=True))
    few = sift(sieve(latest), data)
    monkeypatch.setattr("ottla.log.sieve._SPANS_MAX", 3)
    assert sift(sieve(latest), data) == few


def test_the_records_of_a_bomb_are_never_in_a_list():
    """What is held is their bytes, and what stays of them."""
    count = 300_000
    one = build_batch([Record(0, THEN, b"", b"")])[61:]
    header = Batch.parse(build_batch([Record(0, THEN, b"", b"")]))
    body = compress(Codec.ZSTD, bytes(one) * count)
    data = assemble(header._replace(record_count=count, last_offset_delta=count - 1, attributes=Codec.ZSTD), body)
    tracemalloc.start()
    try:
        assert sift(sieve({b"": 1}), data) is None
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 4 * count * len(one)
