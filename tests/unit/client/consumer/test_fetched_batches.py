"""What of a fetch is for the application, and what becomes of batches that cannot be read."""

import pytest

from ottla.client.consumer.fetched_batches import FetchedBatches, ReadableBatches, read_batches
from ottla.client.errors import Malformed, RecordTooLarge, Unsupported
from ottla.wire.batch import Batch, assemble, build_batch, restamp_crc
from ottla.wire.compression import Codec
from ottla.wire.control import end_transaction_batch
from ottla.wire.errors import ProtocolError
from ottla.wire.record import Record, decode_records


def batch(start: int, count: int = 1, *, producer_id: int = -1, codec: Codec = Codec.NONE) -> bytearray:
    return build_batch(
        [Record(start + n, 1_000, None, b"v%d" % (start + n)) for n in range(count)],
        base_offset=start,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        transactional=producer_id >= 0,
    )


def marker(offset: int, producer_id: int, *, commit: bool) -> bytearray:
    return end_transaction_batch(
        commit=commit,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp_ms=0,
        base_offset=offset,
    )


def offsets(readable: ReadableBatches) -> list[int]:
    return [
        record.offset
        for header, body in zip(readable.batches, readable.bodies, strict=True)
        for record in decode_records(bytes(body), header.record_count, header.base_offset, 0)
    ]


def opened(*batches: bytearray, start: int = 0, aborted=(), **more) -> ReadableBatches:
    return read_batches(FetchedBatches("t", 3, b"".join(batches), start, aborted, **more))


TRANSACTIONS = [
    batch(0, 2, producer_id=7),
    batch(2),
    batch(3, producer_id=8),
    marker(4, 7, commit=False),
    batch(5, producer_id=7),
    marker(6, 8, commit=False),
    marker(7, 7, commit=True),
    batch(8, producer_id=7),
    marker(9, 7, commit=False),
]
ABORTED = [(8, 3), (7, 0), (7, 8)]  # in no order


def test_markers_are_for_nobody_and_aborted_batches_neither():
    committed = opened(*TRANSACTIONS, aborted=ABORTED)
    assert offsets(committed) == [2, 5]
    assert committed.next_offset == 10
    assert offsets(opened(*TRANSACTIONS)) == [0, 1, 2, 3, 5, 8]


def test_only_what_is_in_a_transaction_is_aborted_with_it():
    plain = build_batch(
        [Record(1, 0, None, b"v")], base_offset=1, producer_id=7, producer_epoch=0, base_sequence=0
    )
    found = opened(batch(0, producer_id=7), plain, marker(2, 7, commit=False), aborted=[(7, 0)])
    assert offsets(found) == [1]


@pytest.mark.parametrize("start", range(11))
def test_a_chunk_can_be_opened_again_further_on(start):
    later = opened(*TRANSACTIONS, start=start, aborted=ABORTED)
    assert offsets(later) == [offset for offset in (2, 5) if offset >= start]
    assert later.next_offset == max(start, 10)
    assert later.fault is None


def test_batches_before_the_start_are_not_even_looked_at():
    bad = batch(0, 2, codec=Codec.LZ4)
    bad[-3] ^= 1
    assert offsets(opened(bad, batch(2), start=2)) == [2]
    assert isinstance(opened(bad, batch(2), start=1).fault, Malformed)


def wrong_checksum() -> bytearray:
    bad = batch(5, 3)
    bad[-3] ^= 1
    return bad


def wrong_stream() -> bytearray:
    bad = batch(5, 3, codec=Codec.ZSTD)
    bad[61] ^= 1
    restamp_crc(bad, 0, len(bad))
    return bad


def unknown_codec() -> bytearray:
    header = Batch.parse(batch(5, 3))
    return assemble(header._replace(attributes=7), b"")


def wrong_marker() -> bytearray:
    return assemble(Batch.parse(marker(5, 7, commit=False))._replace(last_offset_delta=2), b"\0")


@pytest.mark.parametrize("bad", [wrong_checksum, wrong_stream, unknown_codec, wrong_marker])
@pytest.mark.parametrize("before", [True, False])
def test_what_cannot_be_read_hides_nothing_before_it(bad, before):
    first = [batch(0, 5, producer_id=7)] if before else []
    found = opened(*first, bad(), batch(8), start=0 if before else 5, aborted=[(7, 5)])
    assert offsets(found) == ([0, 1, 2, 3, 4] if before else [])
    assert found.next_offset == 5
    assert isinstance(found.fault, Malformed)
    assert "batch at offset 5 of t-3 cannot be read" in str(found.fault)
    assert "seek to offset 8" in found.fault.hint


def test_a_header_that_cannot_be_read():
    bad = batch(5)
    bad[16] = 9
    found = opened(batch(4), bad, start=4)
    assert (offsets(found), found.next_offset) == ([4], 5)
    assert "batch at offset 5 of t-3 cannot be read: batch has unknown magic 9" in str(found.fault)
    assert not found.fault.hint
    bad[16] = 1
    found = opened(batch(4), bad, start=4)
    assert (offsets(found), found.next_offset) == ([4], 5)
    assert isinstance(found.fault, Unsupported)


def test_checksums_are_the_readers_choice():
    bad = wrong_checksum()
    assert offsets(opened(bad, start=5, check_crcs=False)) == [5, 6, 7]


def test_nothing_whole():
    assert isinstance(opened(batch(0, 5)[:-1]).fault, RecordTooLarge)
    nothing = opened()
    assert (nothing.batches, nothing.next_offset, nothing.fault) == ([], 0, None)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_what_is_too_much_at_once_waits(codec):
    value = bytes(1_000)
    batches = [build_batch([Record(n, 0, None, value)], base_offset=n, codec=codec) for n in range(3)]
    fetched = FetchedBatches("t", 3, b"".join(batches), 0)
    found = read_batches(fetched, 2_500)
    assert (offsets(found), found.next_offset, found.fault) == ([0, 1], 2, None)
    found = read_batches(fetched._replace(start_offset=2), 2_500)
    assert (offsets(found), found.next_offset, found.fault) == ([2], 3, None)
    found = read_batches(fetched, 500)
    assert (found.batches, found.next_offset) == ([], 0)
    assert isinstance(found.fault, RecordTooLarge)


def test_no_more_is_opened_than_is_asked_for():
    bad = wrong_checksum()
    fetched = FetchedBatches("t", 3, batch(0, 3) + batch(3, 2) + bad, 0)
    for records_max, expected in ((1, 3), (3, 3), (4, 5), (5, 5)):
        found = read_batches(fetched, records_max=records_max)
        assert (offsets(found), found.next_offset, found.fault) == ([*range(expected)], expected, None)
    assert isinstance(read_batches(fetched, records_max=6).fault, Malformed)
    # Of the first batch only one record counts.
    found = read_batches(fetched._replace(start_offset=2), records_max=2)
    assert (offsets(found), found.next_offset) == ([0, 1, 2, 3, 4], 5)
    found = read_batches(fetched._replace(start_offset=2), records_max=0)
    assert (found.batches, found.next_offset) == ([], 2)


def test_keep_readable_cuts_at_the_first_that_is_not():
    found = opened(batch(0, 2), batch(2, 2), batch(4, 2))

    def read(header: Batch, body: object) -> None:
        if header.base_offset >= 2:
            raise ProtocolError("no")

    found.keep_readable(read)
    assert (offsets(found), found.next_offset) == ([0, 1], 2)
    assert "batch at offset 2 of t-3 cannot be read: no\nhint: to go on without it, seek to offset 4" in str(
        found.fault
    )
    late = opened(batch(0, 4), start=2)
    late.keep_readable(lambda header, body: read(header._replace(base_offset=2), body))
    assert (late.batches, late.next_offset) == ([], 2)


def test_a_batch_that_is_too_much_for_anyone_is_not_opened(monkeypatch):
    monkeypatch.setattr("ottla.client.consumer.fetched_batches.BATCH_BYTES_MAX", 10_000)
    monkeypatch.setattr("ottla.client.consumer.fetched_batches._BATCH_RECORDS_MAX", 100)
    large = build_batch([Record(1, 0, None, bytes(20_000))], base_offset=1, codec=Codec.ZSTD)
    for bad in (large, batch(1, 101, codec=Codec.GZIP)):
        readable = opened(batch(0), bad)
        assert (offsets(readable), readable.next_offset, readable.fault, readable.is_partial) == (
            [0],
            1,
            None,
            True,
        )
        readable = opened(batch(0), bad, start=1)
        assert (offsets(readable), readable.next_offset, readable.is_partial) == ([], 1, False)
        assert isinstance(readable.fault, RecordTooLarge)
        assert "batch at offset 1 of t-3" in str(readable.fault)
        assert readable.fault.hint == f"to go on without it, seek to offset {Batch.parse(bad).end_offset}"
    assert offsets(opened(batch(0, 101))) == list(range(101)), "without a codec the bytes are here anyway"


def test_a_control_batch_is_short():
    """Bytes that anyone may have put into a log are not decompressed without a limit to see who aborted."""
    bomb = build_batch(
        [Record(1, 0, b"\0\0\0\0", bytes(1 << 20))],
        base_offset=1, codec=Codec.ZSTD, producer_id=7, producer_epoch=0, transactional=True, control=True,
    )  # fmt: skip
    readable = opened(batch(0, producer_id=7), bomb, aborted=[(7, 0)])
    assert isinstance(readable.fault, RecordTooLarge | Malformed)
    assert "offset 1 of t-3" in str(readable.fault)
