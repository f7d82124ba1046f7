"""What one fetch brought of one partition, and what of it is for the application.

C1  Control batches are for clients, and batches of aborted transactions for nobody; neither is opened.
C2  `next_offset` lies behind the last batch that was looked at, shown or not, so a reader gets past what is hidden.
C3  A batch that cannot be read hides nothing before it: those come out, and `fault` says what stopped the reading. The
    next fetch begins at that batch and has nothing else to say.
C5  A batch that would decompress to more than 256 MB, or that claims more than 4 M records in compressed form, is not
    opened: that is a fault too.
C4  A chunk may be opened again with a later `start_offset`: the walk begins at its first batch anyhow, since only there
    the list of aborted transactions is true.
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


class Chunk(NamedTuple):
    """The batches that a fetch brought of one partition; the last may be cut off.

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
class Contents:
    """The batches of a chunk that are for the application, each with its records in wire form.

    `records` is how many of these are not before the start, at most: compaction may have taken some. `is_cut` says that
    there are more, which can be had by opening the chunk again from `next_offset` on.
    """

    chunk: Chunk
    next_offset: int
    records: int = 0
    batches: list[Batch] = field(default_factory=list)
    bodies: list[Buffer] = field(default_factory=list)
    fault: ClientError | None = None
    is_cut: bool = False

    def cut(self, index: int) -> None:
        """Take away the batches from `index` on, to be read another time."""
        self.next_offset = max(self.chunk.start_offset, self.batches[index].base_offset)
        self.fault = None
        self.is_cut = True
        del self.batches[index:]
        del self.bodies[index:]

    def keep_readable(self, read: Callable[[Batch, Buffer], object]) -> None:
        """Cut at the first batch that `read` cannot make sense of."""
        for index, (batch, body) in enumerate(zip(self.batches, self.bodies, strict=True)):
            try:
                read(batch, body)
            except ProtocolError as error:
                self.cut(index)
                self.is_cut = False
                self.fault = _malformed(self, batch, str(error))
                return


def open_chunk(chunk: Chunk, size_bytes_max: int | None = None, records_max: int | None = None) -> Contents:
    """Walk through the batches, and decompress what is for the application.

    No batch is opened that would make it more than `size_bytes_max`, or when there are `records_max` records already.
    """
    data, start_offset, check_crcs = chunk.data, chunk.start_offset, chunk.check_crcs
    view = memoryview(data)
    contents = Contents(chunk, start_offset)
    batches, bodies = contents.batches, contents.bodies
    hidden = _Aborted(chunk.aborted) if chunk.aborted else None
    size_bytes = records = 0
    next_offset = start_offset
    batch = None
    try:
        for pos, batch in scan(view):
            if records_max is not None and records >= records_max:
                contents.is_cut = True
                break
            # One unpacking instead of a look-up by name for each: a batch of 16 KB is a small thing.
            base_offset, length, _, _, crc, attributes, delta, _, _, _, _, _, count = batch
            end = pos + length + LOG_OVERHEAD
            last_offset = base_offset + delta
            wanted = last_offset >= start_offset
            if wanted and check_crcs and crc32c(view[pos + CRC_FROM : end]) != crc:
                raise ProtocolError("its checksum is wrong")
            if hidden is not None and hidden.hides(data, pos, batch):
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
        contents.next_offset = next_offset
    except OversizedError as error:
        contents.next_offset = next_offset
        # With others before it, it only has to wait.
        contents.is_cut = bool(batches)
        if not batches and batch is not None:
            contents.fault = RecordTooLarge(
                f"batch at offset {batch.base_offset} of {chunk.name}: {error}", hint=_way_past(batch)
            )
    except ProtocolError as error:
        contents.next_offset = next_offset
        contents.fault = _malformed(contents, batch, str(error))
    except BrokerError as error:
        contents.next_offset = next_offset
        contents.fault = Unsupported(f"{chunk.name}: {error}")
    contents.records = records
    if batch is None and contents.fault is None and len(data):
        contents.fault = RecordTooLarge(
            f"no whole batch of {chunk.name} fits into a fetch at offset {start_offset}",
            hint="raise max.partition.fetch.bytes and fetch.max.bytes",
        )
    return contents


def _way_past(batch: Batch) -> str:
    return f"to go on without it, seek to offset {batch.end_offset}"


def _malformed(contents: Contents, batch: Batch | None, why: str) -> Malformed:
    """The complaint about the batch at `next_offset`, which is `batch` if so much as its header could be read."""
    offset = contents.next_offset
    hint = ""
    if batch is not None and batch.last_offset >= offset:
        hint = _way_past(batch)
    return Malformed(f"batch at offset {offset} of {contents.chunk.name} cannot be read: {why}", hint=hint)


class _Aborted:
    """Which producers are within an aborted transaction, at the place where the walk has come to."""

    def __init__(self, transactions: Sequence[tuple[int, int]]) -> None:
        self._ahead = sorted(transactions, key=lambda each: each[1], reverse=True)
        self._open: set[int] = set()

    def hides(self, data: Buffer, pos: int, batch: Batch) -> bool:
        """Step over the next batch, and say whether it belongs to an aborted transaction."""
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
