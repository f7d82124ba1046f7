"""The batches of one partition in a fetch response, and those of them that the application may read.

C1  Control batches and batches of aborted transactions are not opened.
C2  `next_offset` is behind the last batch that was examined, readable or not, so a consumer gets past hidden batches.
C3  The batches before an invalid one can be read, and `fault` is the error of the invalid one. The next fetch begins
    there.
C5  A batch that would decompress to more than 256 MB, or that claims more than 4 M records in compressed form, is not
    opened: that is a fault too.
C4  The same data can be read again with a later `start_offset`. Reading always begins at the first batch, because the
    list of aborted transactions is only correct there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from crc32c import crc32c

from ottla.client.errors import ClientError, Malformed, RecordTooLarge, Unsupported
from ottla.wire.batch import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL,
    CRC_FROM,
    LOG_OVERHEAD,
    NO_PRODUCER_ID,
    TRANSACTIONAL,
    Batch,
    read_control_batch,
    record_bytes,
    scan,
)
from ottla.wire.compression import Buffer, OversizedError
from ottla.wire.control import ControlType, control_type
from ottla.wire.errors import BrokerError, ProtocolError

BATCH_BYTES_MAX = 256 << 20
_BATCH_RECORDS_MAX = 4 << 20


class FetchedBatches(NamedTuple):
    """The batches of one partition in a fetch response. The last may be incomplete.

    Records before `start_offset` are not wanted. `aborted` holds producer id and first offset of each aborted
    transaction, as the broker listed them, and is empty when uncommitted records may be read.
    """

    topic: str
    partition: int
    data: Buffer
    start_offset: int
    aborted: Sequence[tuple[int, int]] = ()
    check_crcs: bool = True

    @property
    def name(self) -> str:
        """The partition's name in messages."""
        return f"{self.topic}-{self.partition}"


@dataclass(slots=True)
class ReadableBatches:
    """The batches that the application may read, each with its encoded records.

    `records` is the number of records from the start offset on, or more after a compaction. `is_partial` means that
    there are more batches, which are read by another call with `next_offset` as the start.
    """

    fetched: FetchedBatches
    next_offset: int
    records: int = 0
    batches: list[Batch] = field(default_factory=list)
    bodies: list[Buffer] = field(default_factory=list)
    fault: ClientError | None = None
    is_partial: bool = False

    def cut(self, index: int) -> None:
        """Remove the batches from `index` on. They are read by a later call."""
        self.next_offset = max(self.fetched.start_offset, self.batches[index].base_offset)
        self.fault = None
        self.is_partial = True
        del self.batches[index:]
        del self.bodies[index:]

    def keep_readable(self, read: Callable[[Batch, Buffer], object]) -> None:
        """Cut at the first batch that `read` cannot read."""
        for index, (batch, body) in enumerate(zip(self.batches, self.bodies, strict=True)):
            try:
                read(batch, body)
            except ProtocolError as error:
                self.cut(index)
                self.is_partial = False
                self.fault = _malformed(self, batch, str(error))
                return


def read_batches(
    fetched: FetchedBatches, size_bytes_max: int | None = None, records_max: int | None = None
) -> ReadableBatches:
    """Examine the batches, and decompress those that the application may read.

    Stops before the size exceeds `size_bytes_max`, or once there are `records_max` records.
    """
    data, start_offset, check_crcs = fetched.data, fetched.start_offset, fetched.check_crcs
    view = memoryview(data)
    readable = ReadableBatches(fetched, start_offset)
    batches, bodies = readable.batches, readable.bodies
    aborted = _AbortedTransactions(fetched.aborted) if fetched.aborted else None
    size_bytes = records = 0
    next_offset = start_offset
    batch = None
    try:
        for pos, batch in scan(view):
            if records_max is not None and records >= records_max:
                readable.is_partial = True
                break
            # Unpacking once is faster than access by name, which matters for batches of 16 KB.
            base_offset, length, _, _, crc, attributes, delta, _, _, _, _, _, count = batch
            end = pos + length + LOG_OVERHEAD
            last_offset = base_offset + delta
            wanted = last_offset >= start_offset
            if wanted and check_crcs and crc32c(view[pos + CRC_FROM : end]) != crc:
                raise ProtocolError("its checksum is wrong")
            if aborted is not None and aborted.is_aborted(data, pos, batch):
                wanted = False
            if wanted and not attributes & CONTROL:
                left = None if size_bytes_max is None else size_bytes_max - size_bytes
                if attributes & CODEC_MASK:
                    if count > _BATCH_RECORDS_MAX:
                        raise OversizedError(f"it claims {count} records")
                    limit = BATCH_BYTES_MAX if left is None else min(left, BATCH_BYTES_MAX)
                    body: Buffer = record_bytes(data, pos, batch, limit)
                else:
                    body = view[pos + BATCH_HEADER_SIZE : end]
                    if left is not None and len(body) > left:
                        raise OversizedError(f"its records have more than {left} bytes")
                size_bytes += len(body)
                records += min(count, last_offset + 1 - start_offset)
                batches.append(batch)
                bodies.append(body)
            if last_offset >= next_offset:
                next_offset = last_offset + 1
        readable.next_offset = next_offset
    except OversizedError as error:
        readable.next_offset = next_offset
        # If there are batches before it, it is read by the next call.
        readable.is_partial = bool(batches)
        if not batches and batch is not None:
            readable.fault = RecordTooLarge(
                f"batch at offset {batch.base_offset} of {fetched.name}: {error}", hint=_skip_hint(batch)
            )
    except ProtocolError as error:
        readable.next_offset = next_offset
        readable.fault = _malformed(readable, batch, str(error))
    except BrokerError as error:
        readable.next_offset = next_offset
        readable.fault = Unsupported(f"{fetched.name}: {error}")
    readable.records = records
    if batch is None and readable.fault is None and len(data):
        readable.fault = RecordTooLarge(
            f"no whole batch of {fetched.name} fits into a fetch at offset {start_offset}",
            hint="raise max.partition.fetch.bytes and fetch.max.bytes",
        )
    return readable


def _skip_hint(batch: Batch) -> str:
    return f"to go on without it, seek to offset {batch.end_offset}"


def _malformed(readable: ReadableBatches, batch: Batch | None, why: str) -> Malformed:
    """Return the error for the batch at `next_offset`. It is `batch` if its header could be read."""
    offset = readable.next_offset
    hint = ""
    if batch is not None and batch.last_offset >= offset:
        hint = _skip_hint(batch)
    return Malformed(f"batch at offset {offset} of {readable.fetched.name} cannot be read: {why}", hint=hint)


class _AbortedTransactions:
    """The producers with an open aborted transaction at the current batch."""

    def __init__(self, transactions: Sequence[tuple[int, int]]) -> None:
        self._ahead = sorted(transactions, key=lambda each: each[1], reverse=True)
        self._open: set[int] = set()

    def is_aborted(self, data: Buffer, pos: int, batch: Batch) -> bool:
        """Return whether the next batch belongs to an aborted transaction."""
        producer_id = batch.producer_id
        if producer_id == NO_PRODUCER_ID:
            return False
        while self._ahead and self._ahead[-1][1] <= batch.last_offset:
            self._open.add(self._ahead.pop()[0])
        if producer_id not in self._open or not batch.attributes & TRANSACTIONAL:
            return False
        if batch.attributes & CONTROL:
            records = read_control_batch(data, pos)
            if records and control_type(records[0].key) is ControlType.ABORT:
                self._open.discard(producer_id)
        return True
