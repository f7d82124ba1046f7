"""What stays of a batch when its log is compacted.

Z1  A record stays if it is the last of its key, or lies behind what the map covers. A record without a key does not.
Z2  A tombstone, and a marker whose transaction is gone, stay until their batch's delete horizon: the first cleaning
    that meets them sets it to now plus `delete.retention.ms`, a later one drops them when it has passed (KIP-534).
Z3  Records of an aborted transaction go.
Z4  A batch keeps base offset, last offset, producer and sequence numbers, whatever it loses. It stays even when empty
    if it holds the last sequence or epoch of a producer still known, or is the last one of the segments it is in.

A batch that loses nothing is copied as it is. The rest keep the bytes of their records; only a new delete horizon,
which takes the place of the base timestamp, makes the records' own timestamps be written anew.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ottla.log.cleaned_transactions import CleanedTransactions
from ottla.log.latest_offsets import LatestOffsets
from ottla.wire.batch import (
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    Batch,
    assemble,
    crc_ok,
    record_bytes,
)
from ottla.wire.compression import Codec, compress
from ottla.wire.control import ControlType, control_type
from ottla.wire.errors import ProtocolError
from ottla.wire.record import Span, walk, zigzag
from ottla.world.disk import Bytes

# More than any honest batch decompresses to, and little enough to hold in memory.
RECORDS_BYTES_MAX = 256 << 20
# Likewise of a compressed batch: each costs some microseconds, and 11 KB may hold 16 M of them.
RECORDS_MAX = 4 << 20

_SPANS_MAX = 1 << 16  # in a list: enough for any honest batch, and a few megabytes

_INT64_MAX = (1 << 63) - 1
_INT64_MIN = -(1 << 63)
_UINT64 = 1 << 64


class LastBatch(NamedTuple):
    """The end of a producer's state: its last batch of data, or only an epoch if all that is known is a marker."""

    last_offset: int | None
    epoch: int


class Sieve:
    """Decides batch by batch, front to back."""

    __slots__ = (
        "_delete_retention_ms",
        "_latest",
        "_now_ms",
        "_producers",
        "records_kept",
        "records_read",
        "transactions",
    )

    def __init__(
        self,
        latest: LatestOffsets,
        transactions: CleanedTransactions,
        producers: Mapping[int, LastBatch],
        *,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self.transactions = transactions
        self.records_read = 0
        self.records_kept = 0
        self._latest = latest
        self._producers = producers
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms

    def sift(self, data: bytes, pos: int, batch: Batch, *, is_last: bool = False) -> Bytes | None:
        """Return what stays of the batch at `pos`, or None; of the last one before a new segment, something does."""
        self.records_read += batch.record_count
        control = batch.attributes & CONTROL != 0
        if control:
            needless = self.transactions.on_marker(batch, marker_type(data, pos, batch))
            horizon = batch.delete_horizon_ms
            dropped = needless and horizon is not None and horizon <= self._now_ms
        else:
            dropped = needless = self.transactions.on_data(batch)
        if dropped:
            return self._emptied(batch, is_last)
        records = read_body(data, pos, batch)
        kept: Iterable[Span] = _Kept(self, records, batch)
        if batch.record_count <= _SPANS_MAX:
            kept = list(kept)
        count, has_tombstone = 0, False
        for span in kept:
            count += 1
            has_tombstone |= not span.has_value
        if not count:
            return self._emptied(batch, is_last)
        self.records_kept += count
        expires = needless if control else has_tombstone
        if expires and not batch.has_delete_horizon:
            return _rewritten(batch, records, kept, count, self._now_ms + self._delete_retention_ms)
        if count == batch.record_count:
            return memoryview(data)[pos : pos + batch.batch_length + LOG_OVERHEAD]
        return _rewritten(batch, records, kept, count, None)

    def _emptied(self, batch: Batch, is_last: bool) -> bytearray | None:
        max_timestamp = batch.max_timestamp
        if not self._ends_producer(batch):
            if not is_last:
                return None
            # Only a producer's age is counted from a batch without records; the segment's is from its records.
            max_timestamp = NO_TIMESTAMP
        header = batch._replace(
            attributes=batch.attributes & ~(CODEC_MASK | DELETE_HORIZON),
            base_timestamp=NO_TIMESTAMP,
            max_timestamp=max_timestamp,
            record_count=0,
        )
        return assemble(header, b"")

    def _ends_producer(self, batch: Batch) -> bool:
        if batch.producer_id == NO_PRODUCER_ID:
            return False
        last = self._producers.get(batch.producer_id)
        if last is None:
            return False
        if last.last_offset is not None:
            return batch.last_offset == last.last_offset
        return batch.is_control and batch.producer_epoch == last.epoch

    def latest_of(self, spans: Iterable[Span], batch: Batch) -> Iterator[Span]:
        """Yield those of a batch that stay."""
        if batch.attributes & CONTROL:
            yield from spans
            return
        latest, base_offset = self._latest, batch.base_offset
        covered = latest.end_offset - base_offset
        horizon = batch.delete_horizon_ms
        keep_tombstones = horizon is None or self._now_ms < horizon
        for span in spans:
            if span.offset_delta >= covered:
                yield span
            elif span.key is not None and (span.has_value or keep_tombstones):
                if base_offset + span.offset_delta >= latest.get(span.key):
                    yield span


class _Kept:
    """What stays of a batch with very many records: found anew each time it is asked for, and never in a list."""

    __slots__ = ("_batch", "_records", "_sieve")

    def __init__(self, sieve: Sieve, records: bytes, batch: Batch) -> None:
        self._sieve, self._records, self._batch = sieve, records, batch

    def __iter__(self) -> Iterator[Span]:
        return self._sieve.latest_of(walk_body(self._records, self._batch), self._batch)


def read_body(data: bytes, pos: int, batch: Batch) -> bytes:
    """Return a batch's records decompressed, sure that they are those that were written."""
    try:
        if not crc_ok(data, pos, batch.batch_length + LOG_OVERHEAD):
            raise ProtocolError("its CRC is wrong")
        if batch.record_count > RECORDS_MAX and batch.codec is not Codec.NONE:
            raise ProtocolError(f"it has {batch.record_count} records, of {RECORDS_MAX} that are read")
        return record_bytes(data, pos, batch, RECORDS_BYTES_MAX)
    except ProtocolError as error:
        raise _unreadable(batch, error) from None


def walk_body(records: bytes, batch: Batch) -> Iterator[Span]:
    """Yield where each record of a batch lies in its body; ProtocolError names the batch."""
    try:
        yield from walk(records, batch.record_count)
    except ProtocolError as error:
        raise _unreadable(batch, error) from None


def _unreadable(batch: Batch, error: ProtocolError) -> ProtocolError:
    return ProtocolError(f"the batch at offset {batch.base_offset} cannot be read: {error}")


def marker_type(data: bytes, pos: int, batch: Batch) -> ControlType | None:
    """Return what a control batch says, or None when a cleaning has emptied it.

    A type from the future reads as LEADER_CHANGE: kept, as any control record that ends no transaction.
    """
    for span in walk_body(read_body(data, pos, batch), batch):
        kind = control_type(span.key)
        return ControlType.LEADER_CHANGE if kind is None else kind
    return None


def _rewritten(
    batch: Batch, records: bytes, kept: Iterable[Span], count: int, horizon_ms: int | None
) -> bytearray:
    attributes, base_timestamp = batch.attributes, batch.base_timestamp
    body = bytearray()
    latest = _INT64_MIN
    if horizon_ms is None:
        for start, _, end, timestamp_delta, _, _, _ in kept:
            body += records[start:end]
            latest = max(latest, _int64(batch.base_timestamp + timestamp_delta))
    else:
        attributes |= DELETE_HORIZON
        shift = base_timestamp - horizon_ms
        base_timestamp = horizon_ms
        for _, at, end, timestamp_delta, _, _, _ in kept:
            tail = records[at:end]
            time = zigzag(_int64(timestamp_delta + shift))
            body += b"".join((zigzag(1 + len(time) + len(tail)), b"\0", time, tail))
            latest = max(latest, _int64(batch.base_timestamp + timestamp_delta))
    max_timestamp = batch.max_timestamp if attributes & LOG_APPEND_TIME else latest
    header = batch._replace(
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        record_count=count,
    )
    codec = batch.codec
    return assemble(header, compress(codec, body) if codec is not Codec.NONE else body)


def _int64(number: int) -> int:
    """Wrap as Java does, since nobody has checked the timestamps inside a batch."""
    number %= _UINT64
    return number - _UINT64 if number > _INT64_MAX else number
