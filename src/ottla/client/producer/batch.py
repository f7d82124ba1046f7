"""A record batch on its way: filled by the accumulator, numbered and sent by the sender, ended by an answer.

    open --seal()--> sealed --encode()--> on the wire --end()--> done
                       ^                       |
                       +------ retry_at -------+---split()--> its parts go on in its place

T1  The buffer is the batch as it will travel: 61 bytes for the header, then records in wire form. `encode` writes the
    header, and is the only one to do so: never while the bytes may still be in a transport.
T2  A batch ends once, and tells each of its watchers once. What was split ends when its last part does.
T3  Times are monotonic seconds that somebody else has read.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ottla.client.errors import Aborted, ClientError
from ottla.client.producer.delivery import LOGGER
from ottla.wire.batch import (
    BATCH_HEADER,
    BATCH_HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    SEQUENCE_MAX,
    TRANSACTIONAL,
    restamp_crc,
)
from ottla.wire.compression import Codec, compress, decompress
from ottla.wire.record import walk, zigzag

if TYPE_CHECKING:
    from ottla.client.producer.lane import Lane

Watcher = Callable[[], object]

NARROW_END, WIDE_END = 1 << 6, 1 << 13
"""Where the numbers end that take one byte, and those that take two."""
_NUMBER_ENDS = (NARROW_END, WIDE_END, 1 << 20, 1 << 27, 1 << 34)
_NO_OFFSET = -1
_NO_TIME = -1


class Filled(NamedTuple):
    """Records that somebody else has put into wire form, and compressed, behind room for the header."""

    buffer: bytearray
    record_count: int
    base_timestamp: int
    max_timestamp: int
    codec: Codec


class Batch:
    """Records of one partition that travel, and succeed or fail, together."""

    __slots__ = (
        "_codec",
        "_errors",
        "_parts",
        "_unended",
        "_watchers",
        "append_time",
        "around",
        "attempts",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "buffer",
        "count",
        "created_at",
        "done",
        "error",
        "is_doubtful",
        "lane",
        "leader_epoch",
        "limit",
        "max_timestamp",
        "number_end",
        "ordinal",
        "owner",
        "plain_bytes",
        "producer_epoch",
        "producer_id",
        "renumbered",
        "reserved",
        "retry_at",
        "sent_at",
        "time",
        "time_bytes",
    )

    def __init__(self, lane: "Lane", limit: int, timestamp: int, now: float, reserved: int) -> None:
        self.lane = lane
        self.limit = limit
        self.buffer = bytearray(BATCH_HEADER_SIZE)
        self.count = 0
        self.base_timestamp = timestamp
        self.max_timestamp = timestamp
        # What records of one millisecond have in common: the bytes of their time, and how many bytes a record takes
        # besides its key, value and headers, as long as the numbers of the records are below `number_end`.
        self.time = timestamp
        self.time_bytes = b"\0"
        self.around = 3
        self.number_end = NARROW_END
        self.created_at = now
        self.sent_at = now
        self.retry_at = 0.0
        self.attempts = 0
        # Whether a broker may have it that has not said so.
        self.is_doubtful = False
        self.reserved = reserved
        self.plain_bytes = 0
        self.leader_epoch = -1
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.base_sequence = NO_SEQUENCE
        self.renumbered = False
        self.ordinal = 0
        self.owner: Batch | None = None
        self.done = False
        self.base_offset = _NO_OFFSET
        self.append_time = _NO_TIME
        self.error: ClientError | None = None
        self._errors: dict[int, ClientError] | None = None
        self._codec = Codec.NONE
        self._parts: list[tuple[int, Batch]] = []
        self._unended = 0
        self._watchers: list[tuple[int, Watcher]] | None = None

    # Records

    def take(self, filled: Filled) -> None:
        """Have these records, and no others."""
        self.buffer, self.count = filled.buffer, filled.record_count
        self.max_timestamp = filled.max_timestamp
        self._codec = filled.codec

    def stamp(self, timestamp: int) -> None:
        """Prepare for records of another time, or with longer numbers."""
        self.time = timestamp
        self.time_bytes = zigzag(timestamp - self.base_timestamp)
        number = self.count
        self.number_end = next(end for end in _NUMBER_ENDS if number < end)
        self.around = len(self.time_bytes) + len(zigzag(number)) + 1
        self.max_timestamp = max(self.max_timestamp, timestamp)

    # Onto the wire

    @property
    def has_sequence(self) -> bool:
        """Whether it was numbered, and so perhaps sent."""
        return self.base_sequence != NO_SEQUENCE

    @property
    def last_sequence(self) -> int:
        """The number of its last record."""
        return self.base_sequence + self.count - 1 & SEQUENCE_MAX

    def number(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        """Give its records numbers, by which a broker knows them again."""
        self.producer_id, self.producer_epoch, self.base_sequence = producer_id, producer_epoch, base_sequence

    def encode(self, codec: Codec, level: int | None, transactional: bool) -> float:
        """Compress the records, unless that was done, and write the header; return compressed by plain size."""
        buffer, ratio = self.buffer, 1.0
        if not self.plain_bytes:
            self.plain_bytes = len(buffer)
        if codec and self._codec is Codec.NONE:
            with memoryview(buffer) as view:
                records = compress(codec, view[BATCH_HEADER_SIZE:], level)
            buffer = self.buffer = bytearray(BATCH_HEADER_SIZE)
            buffer += records
            self._codec = codec
            ratio = len(records) / (self.plain_bytes - BATCH_HEADER_SIZE)
        BATCH_HEADER.pack_into(
            buffer,
            0,
            0,
            len(buffer) - LOG_OVERHEAD,
            NO_LEADER_EPOCH,
            MAGIC,
            0,
            self._codec | TRANSACTIONAL if transactional else self._codec,
            self.count - 1,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        )
        restamp_crc(buffer, 0, len(buffer))
        self.renumbered = False
        return ratio

    # Outcome

    def end(
        self,
        error: ClientError | None,
        base_offset: int = _NO_OFFSET,
        append_time: int = _NO_TIME,
        errors: dict[int, ClientError] | None = None,
    ) -> "Batch | None":
        """Record the outcome; return the batch it was split from, or itself, when nothing of that is left.

        The watchers hear of it by `tell`, when whatever else follows from it is in order.
        """
        self.done = True
        self.error, self._errors = error, errors
        self.base_offset, self.append_time = base_offset, append_time
        self.buffer = bytearray()
        owner = self.owner
        if owner is None:
            return self
        owner._unended -= 1
        return None if owner._unended else owner

    def tell(self) -> None:
        """Call those who watch."""
        watchers, self._watchers = self._watchers, None
        if self.error is not None and watchers is None and not isinstance(self.error, Aborted):
            # Whoever sent them may never ask.
            count, lane = self.count, self.lane
            LOGGER.warning("%d records for %s-%d were not written: %s", count, lane.topic, lane.partition, self.error)
        for _, watcher in watchers or ():
            watcher()

    def error_of(self, place: int) -> ClientError | None:
        """Return what kept one record from being written."""
        return self.error if self._errors is None else self._errors.get(place, self.error)

    def watch(self, place: int, watcher: Watcher) -> None:
        """Have `watcher` called when the record's outcome is known."""
        if self._watchers is None:
            self._watchers = []
        self._watchers.append((place, watcher))

    def find(self, place: int) -> "tuple[Batch, int]":
        """Return the batch that a record travels in, and its place there."""
        batch = self
        while batch._parts:
            first, part = next(each for each in reversed(batch._parts) if each[0] <= place)
            batch, place = part, place - first
        return batch, place

    def leaves(self) -> "Iterator[Batch]":
        """Yield the batches that its records travel in: itself, or what it was split into."""
        if not self._parts:
            yield self
        for _, part in self._parts:
            yield from part.leaves()

    # Splitting

    def split(self, size: int) -> "list[Batch]":
        """Return batches of about `size` bytes before compression with the same records, which go on in its place."""
        body = decompress(self._codec, memoryview(self.buffer)[BATCH_HEADER_SIZE:])
        root = self.owner or self
        parts: list[Batch] = []
        base_timestamp = self.base_timestamp
        part: Batch | None = None
        sequence = self.base_sequence
        first = 0
        for index, span in enumerate(walk(body, self.count)):
            timestamp = base_timestamp + span.timestamp_delta
            if part is None or len(part.buffer) + span.end - span.start > size:
                part = Batch(self.lane, 0, timestamp, self.created_at, 0)
                part.owner = root
                part.attempts, part.is_doubtful = self.attempts, self.is_doubtful
                part.ordinal = self.ordinal
                parts.append(part)
                self._parts.append((index, part))
                first = index
                if sequence != NO_SEQUENCE:
                    part.number(self.producer_id, self.producer_epoch, sequence + index & SEQUENCE_MAX)
            behind = body[span.tail + len(zigzag(span.offset_delta)) : span.end]
            record = b"\0" + zigzag(timestamp - part.base_timestamp) + zigzag(index - first) + behind
            part.buffer += zigzag(len(record)) + record
            part.count += 1
            part.max_timestamp = max(part.max_timestamp, timestamp)
        root._unended += len(parts) - (0 if root is self else 1)
        for place, watcher in self._watchers or ():
            batch, within = self.find(place)
            batch.watch(within, watcher)
        self._watchers = None
        self.buffer = bytearray()
        return parts
