"""Finding records by time, and aborted transactions by offset: the questions that look into more than one segment.

K1  The indexes say which batch may hold a record of that time. That is asked on the loop, and takes microseconds. Where
    many batches have one time, the indexes know none of them: their headers are walked over, some thousand at a time,
    with a `Pause` between.
K2  To look through the batch may take long, and needs nothing but its bytes: whoever has a thread does it there, and
    asks for the next candidate if the record is not in it. The log may be another by then, so nothing is kept of it.
    Nor are the bytes kept by who waits for the thread: they are read, on the loop, when it is free.
K3  No object is made of a record, and no compressed batch is whole in memory.
"""

import struct
from bisect import bisect_right
from typing import NamedTuple

from ottla.log.inspection import is_long
from ottla.log.segment import Header, Segment
from ottla.log.transaction_index import AbortedTransaction
from ottla.wire.batch import BATCH_HEADER_SIZE, CODEC_MASK, LOG_APPEND_TIME, LOG_OVERHEAD
from ottla.wire.compression import Codec, stream
from ottla.wire.errors import BrokerError, ErrorCode, ProtocolError
from ottla.wire.record_walk import INT64_MAX, INT64_MIN, complaint, search_of
from ottla.world.disk import Bytes

# What a batch may hold that is looked through: more than a producer may send, for batches of other times and brokers.
BATCH_BYTES_MAX = 256 << 20
_HEADERS_AT_ONCE = 4096
_read_start = struct.Struct(">qi").unpack_from
_read_delta = struct.Struct(">i").unpack_from
_DELTA_AT = 23  # of a batch's last offset


class Found(NamedTuple):
    """A record found by time; the leader epoch is None when its batch has none."""

    timestamp: int
    offset: int
    leader_epoch: int | None


class UnreadableBatchError(BrokerError):
    """A batch of a log whose records cannot be read: what was asked of that log fails, and nothing else."""

    def __init__(self, offset: int, why: str) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, f"the batch at offset {offset} cannot be read: {why}")
        self.offset = offset
        self.why = why


class Candidate(NamedTuple):
    """A batch that may hold the first record with a timestamp from `low` to `high`, at `start_offset` or above."""

    segment: Segment
    position: int
    header: Header
    low: int
    high: int
    start_offset: int

    @property
    def end_offset(self) -> int:
        """Where to look for the next candidate."""
        return self.header[0] + self.header[6] + 1

    @property
    def size_bytes(self) -> int:
        """How long the batch is."""
        return self.header[1] + LOG_OVERHEAD

    @property
    def is_long(self) -> bool:
        """Whether it is for a thread to look through."""
        return is_long(self.header[5] & CODEC_MASK, self.size_bytes, self.header[12])

    def read(self) -> Bytes:
        """Return the batch; the log must be as it was when this was found in it."""
        return self.segment.file.read(self.position, self.size_bytes)

    def search(self, size_bytes_max: int = BATCH_BYTES_MAX) -> Found | None:
        """Read the batch and look through it."""
        return self.search_in(self.read(), size_bytes_max)

    def search_in(self, batch: Bytes, size_bytes_max: int = BATCH_BYTES_MAX) -> Found | None:
        """Return the record, if it is there; UnreadableBatchError if that cannot be told, or would take more bytes."""
        header = self.header
        walk = search_of(
            header[12],
            header[7],
            header[8] if header[5] & LOG_APPEND_TIME else None,
            self.low,
            self.high,
            max(self.start_offset - header[0], INT64_MIN),
        )
        body = memoryview(batch)[BATCH_HEADER_SIZE:]
        try:
            if header[12] < 0 or header[5] & CODEC_MASK > Codec.ZSTD:
                raise ProtocolError(f"{header[12]} records, attributes {header[5]:#x}")
            if header[12] or body:  # what compaction leaves of a compressed batch is no stream of its codec
                for piece in stream(Codec(header[5] & CODEC_MASK), body, size_bytes_max):
                    if not walk.feed(piece):
                        break
                if walk.end():
                    raise complaint(walk)
        except ProtocolError as error:
            raise UnreadableBatchError(header[0], str(error)) from None
        if not walk.found:
            return None
        return Found(walk.found_time, header[0] + walk.found_delta, header[2] if header[2] >= 0 else None)


class Pause(NamedTuple):
    """Where a search for a candidate goes on; it means nothing once the log was cut."""

    segment: Segment
    position: int


def next_candidate(
    segments: list[Segment], timestamp: int, start_offset: int, from_offset: int, pause: Pause | None = None
) -> Candidate | Pause | None:
    """Return the first batch from `from_offset` on that may hold a record not older than `timestamp`.

    Only the first segment that is young enough is searched, as in Kafka; records before `start_offset` do not count.
    """
    for segment in segments:
        if segment.largest_timestamp() < timestamp:
            continue
        segment.ensure_indexed()
        if pause is not None and pause.segment is segment:
            start = pause.position
        else:
            offset = max(segment.time_index.offset_before(timestamp), start_offset, from_offset)
            start = segment.offset_index.position_at_or_before(offset)
        for number, (position, header) in enumerate(segment.headers(start)):
            if number == _HEADERS_AT_ONCE:
                return Pause(segment, position)
            if header[8] >= timestamp and header[0] + header[6] >= from_offset:
                return Candidate(segment, position, header, timestamp, INT64_MAX, start_offset)
        return None
    return None


def newest_candidate(segments: list[Segment]) -> Candidate | None:
    """Return the batch that holds the first record with the greatest timestamp of all segments."""
    newest = segments[0]
    for segment in segments[1:]:
        if segment.load_max_timestamp() > newest.load_max_timestamp():
            newest = segment
    timestamp = newest.load_max_timestamp()
    newest.ensure_indexed()
    for position, header in newest.headers(
        newest.offset_index.position_at_or_before(newest.max_timestamp_offset)
    ):
        if header[8] == timestamp:
            return Candidate(newest, position, header, timestamp, timestamp, INT64_MIN)
    return None


def aborted_transactions(
    segments: list[Segment], bases: list[int], start_offset: int, end_offset: int, data: Bytes | None = None
) -> list[tuple[int, int]]:
    """Return producer and first offset of aborted transactions that touch `[start_offset, end_offset)`, by marker.

    With `data`, which was read from `start_offset` on, those that touch what it holds.
    """
    found = list[AbortedTransaction]()
    for at in range(max(bisect_right(bases, start_offset) - 1, 0), len(segments)):
        index = segments[at].transaction_index
        if not index.count and not index.torn:
            continue
        if data is not None:  # asked only now: most logs have no aborted transactions
            end_offset, data = min(end_offset, end_of(data)), None
        if index.collect(start_offset, end_offset, found):
            break
    return [(each.producer_id, each.first_offset) for each in found] if found else []


def end_of(batches: Bytes) -> int:
    """Return the offset behind the last of some whole batches; 0 where there is none."""
    at = end_offset = 0
    while at + BATCH_HEADER_SIZE <= len(batches):
        base_offset, length = _read_start(batches, at)
        (delta,) = _read_delta(batches, at + _DELTA_AT)
        end_offset = base_offset + delta + 1
        at += length + LOG_OVERHEAD
    return end_offset
