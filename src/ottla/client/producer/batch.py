"""A batch of a producer: filled by the accumulator, numbered and sent by the sender, completed by a response.

    open --seal()--> sealed --encode()--> on the wire --end()--> done
                       ^                       |
                       +------ retry_at -------+---split()--> its parts go on in its place

T1  The buffer is the batch as it is sent: 61 bytes for the header, then the encoded records. Only `encode` writes the
    header, and never while the bytes may still be in a transport.
T2  A batch ends once, and calls each callback once. A batch that was split ends when its last part does.
T3  No clock is read here: times are monotonic seconds from the caller.
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
    from ottla.client.producer.partition_queue import PartitionQueue

DoneCallback = Callable[[], object]

NARROW_END, WIDE_END = 1 << 6, 1 << 13
"""The first number that does not fit in one byte as a varint, and the first that does not fit in two."""
_NUMBER_ENDS = (NARROW_END, WIDE_END, 1 << 20, 1 << 27, 1 << 34)
_NO_OFFSET = -1
_NO_TIME = -1


class EncodedRecords(NamedTuple):
    """Records that the caller has encoded and compressed, with room for the batch header in front."""

    buffer: bytearray
    record_count: int
    base_timestamp: int
    max_timestamp: int
    codec: Codec


class ProducerBatch:
    """Records of one partition that are sent, and succeed or fail, together."""

    __slots__ = (
        "_callbacks",
        "_codec",
        "_errors",
        "_parts",
        "_unfinished",
        "append_time",
        "attempts",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "buffer",
        "count",
        "created_at",
        "done",
        "error",
        "leader_epoch",
        "limit",
        "max_timestamp",
        "may_be_stored",
        "number_end",
        "ordinal",
        "overhead_bytes",
        "plain_bytes",
        "producer_epoch",
        "producer_id",
        "queue",
        "renumbered",
        "reserved",
        "retry_at",
        "sent_at",
        "split_from",
        "time",
        "time_bytes",
    )

    def __init__(
        self, queue: "PartitionQueue", limit: int, timestamp: int, now: float, reserved: int
    ) -> None:
        self.queue = queue
        self.limit = limit
        self.buffer = bytearray(BATCH_HEADER_SIZE)
        self.count = 0
        self.base_timestamp = timestamp
        self.max_timestamp = timestamp
        # What records of one millisecond have in common: the bytes of their timestamp, and the size of a record without
        # key, value and headers. Both hold as long as the indexes of the records are below `number_end`.
        self.time = timestamp
        self.time_bytes = b"\0"
        self.overhead_bytes = 3
        self.number_end = NARROW_END
        self.created_at = now
        self.sent_at = now
        self.retry_at = 0.0
        self.attempts = 0
        # Whether a broker may have stored it without a confirmation.
        self.may_be_stored = False
        self.reserved = reserved
        self.plain_bytes = 0
        self.leader_epoch = -1
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.base_sequence = NO_SEQUENCE
        self.renumbered = False
        self.ordinal = 0
        self.split_from: ProducerBatch | None = None
        self.done = False
        self.base_offset = _NO_OFFSET
        self.append_time = _NO_TIME
        self.error: ClientError | None = None
        self._errors: dict[int, ClientError] | None = None
        self._codec = Codec.NONE
        self._parts: list[tuple[int, ProducerBatch]] = []
        self._unfinished = 0
        self._callbacks: list[tuple[int, DoneCallback]] | None = None

    # Records

    def fill(self, encoded: EncodedRecords) -> None:
        """Use these encoded records as the contents of the batch."""
        self.buffer, self.count = encoded.buffer, encoded.record_count
        self.max_timestamp = encoded.max_timestamp
        self._codec = encoded.codec

    def set_time(self, timestamp: int) -> None:
        """Prepare for records with another timestamp, or with longer indexes."""
        self.time = timestamp
        self.time_bytes = zigzag(timestamp - self.base_timestamp)
        number = self.count
        self.number_end = next(end for end in _NUMBER_ENDS if number < end)
        self.overhead_bytes = len(self.time_bytes) + len(zigzag(number)) + 1
        self.max_timestamp = max(self.max_timestamp, timestamp)

    # Encoding

    @property
    def has_sequence(self) -> bool:
        """Whether it has sequence numbers. Only then it may have been sent."""
        return self.base_sequence != NO_SEQUENCE

    @property
    def last_sequence(self) -> int:
        """The sequence number of its last record."""
        return self.base_sequence + self.count - 1 & SEQUENCE_MAX

    def number(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        """Set the sequence numbers of its records, by which a broker finds duplicates."""
        self.producer_id, self.producer_epoch, self.base_sequence = producer_id, producer_epoch, base_sequence

    def encode(self, codec: Codec, level: int | None, transactional: bool) -> float:
        """Compress the records, if they are not compressed yet, and write the header. Return the compression ratio."""
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
    ) -> "ProducerBatch | None":
        """Record the outcome. Return the batch it was split from, or itself, once that has ended completely.

        The caller calls `notify` for the callbacks when its own state is consistent.
        """
        self.done = True
        self.error, self._errors = error, errors
        self.base_offset, self.append_time = base_offset, append_time
        self.buffer = bytearray()
        split_from = self.split_from
        if split_from is None:
            return self
        split_from._unfinished -= 1
        return None if split_from._unfinished else split_from

    def notify(self) -> None:
        """Call the callbacks."""
        callbacks, self._callbacks = self._callbacks, None
        if self.error is not None and callbacks is None and not isinstance(self.error, Aborted):
            # The application may never look at the delivery.
            count, queue = self.count, self.queue
            LOGGER.warning(
                "%d records for %s-%d were not written: %s", count, queue.topic, queue.partition, self.error
            )
        for _, callback in callbacks or ():
            callback()

    def error_of(self, index: int) -> ClientError | None:
        """Return the error of one record, or None."""
        return self.error if self._errors is None else self._errors.get(index, self.error)

    def on_done(self, index: int, callback: DoneCallback) -> None:
        """Call `callback` when the outcome of a record is known."""
        if self._callbacks is None:
            self._callbacks = []
        self._callbacks.append((index, callback))

    def find(self, index: int) -> "tuple[ProducerBatch, int]":
        """Return the batch that a record is in after splits, and its index there."""
        batch = self
        while batch._parts:
            first, part = next(each for each in reversed(batch._parts) if each[0] <= index)
            batch, index = part, index - first
        return batch, index

    def final_parts(self) -> "Iterator[ProducerBatch]":
        """Yield the batches that its records are in: itself, or the parts it was split into."""
        if not self._parts:
            yield self
        for _, part in self._parts:
            yield from part.final_parts()

    # Splitting

    def split(self, size: int) -> "list[ProducerBatch]":
        """Split into batches of about `size` bytes before compression, which replace this one."""
        body = decompress(self._codec, memoryview(self.buffer)[BATCH_HEADER_SIZE:])
        root = self.split_from or self
        parts: list[ProducerBatch] = []
        base_timestamp = self.base_timestamp
        part: ProducerBatch | None = None
        sequence = self.base_sequence
        first = 0
        for index, span in enumerate(walk(body, self.count)):
            timestamp = base_timestamp + span.timestamp_delta
            if part is None or len(part.buffer) + span.end - span.start > size:
                part = ProducerBatch(self.queue, 0, timestamp, self.created_at, 0)
                part.split_from = root
                part.attempts, part.may_be_stored = self.attempts, self.may_be_stored
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
        root._unfinished += len(parts) - (0 if root is self else 1)
        for index, callback in self._callbacks or ():
            batch, within = self.find(index)
            batch.on_done(within, callback)
        self._callbacks = None
        self.buffer = bytearray()
        return parts
