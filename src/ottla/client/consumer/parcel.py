"""What a fetch brought of one partition, until it has been handed out.

P1  It is opened, that is decompressed and looked through, when its first record is asked for, and all at once, unless
    it decompresses to very much: then the rest is opened once what came before was handed out.
P2  From then on it holds no bytes of the answer it came in, so that one slow partition does not keep all others' alive.
P3  Of a record that a deserializer cannot read, those before it come out first; it is tried again each time, until
    somebody seeks past it.
"""

import gc
import struct
from collections.abc import Callable
from typing import Any

from ottla.client.consumer.chunk import Chunk
from ottla.client.consumer.objects import Rows, rows_of
from ottla.client.consumer.packed import PackedRows
from ottla.client.consumer.reading import NO_EPOCH, Reading
from ottla.client.errors import ClientError, SerializationFailed
from ottla.client.record import Record
from ottla.client.serializer import Coding
from ottla.wire.batch import BATCH_HEADER_SIZE, LOG_OVERHEAD
from ottla.wire.compression import Buffer

_HEAD = struct.Struct(">qii")
_LAST_DELTA_AT = 23
_INT32 = struct.Struct(">i")

Decode = Callable[[list[Record]], list[Record]]


def last_of(data: Buffer) -> tuple[int, int] | None:
    """Return the offset behind the last whole batch, and its leader epoch; None when there is no whole batch."""
    head, end, pos, last = _HEAD.unpack_from, len(data), 0, -1
    while end - pos >= BATCH_HEADER_SIZE:
        size: int = head(data, pos)[1] + LOG_OVERHEAD
        if size < BATCH_HEADER_SIZE or pos + size > end:
            break
        last = pos
        pos += size
    if last < 0:
        return None
    base, _, epoch = head(data, last)
    return base + _INT32.unpack_from(data, last + _LAST_DELTA_AT)[0] + 1, epoch


class Parcel:
    """One partition's share of a fetch answer."""

    __slots__ = (
        "_rest",
        "_rows",
        "_taken",
        "chunk",
        "counted",
        "end_offset",
        "epoch",
        "era",
        "fault",
        "node",
        "reading",
        "size",
    )

    def __init__(self, reading: Reading, node: int, chunk: Chunk, end_offset: int, epoch: int) -> None:
        self.reading = reading
        self.era = reading.era
        self.node = node
        self.chunk: Chunk | None = chunk
        self.size = len(chunk.data)
        self.counted = False  # whether its bytes count against what may be fetched ahead
        self.end_offset = end_offset
        self.epoch = epoch
        self.fault: ClientError | None = None
        self._rest: Chunk | None = None  # what is not opened yet of a chunk that was
        self._rows: list[Record] | Rows | PackedRows = []
        self._taken = 0

    @property
    def is_current(self) -> bool:
        """Whether the partition is still read where this was fetched."""
        return self.era == self.reading.era

    @property
    def is_empty(self) -> bool:
        """Whether all of it was handed out."""
        is_taken = self._taken >= len(self._rows)
        return self.chunk is None and self._rest is None and is_taken and self.fault is None

    def detach(self) -> None:
        """Let go of the answer it came in, since it will lie here for a while."""
        chunk = self.chunk
        if chunk is not None and isinstance(chunk.data, memoryview):
            self.chunk = chunk._replace(data=bytes(chunk.data))

    def take(self, count: int, decode: Decode | None) -> list[Record]:
        """Hand out up to `count` records, and move the position behind them; raises what is wrong with the next one.

        None come out of a parcel that holds nothing for the application, though the position moves.
        """
        if self.chunk is not None:
            self._open(self.chunk)
        elif self._rest is not None and self._taken >= len(self._rows):
            self._open(self._rest)
        start = self._taken
        records = _made(self._rows, start, start + count)
        if decode is not None and records:
            records = decode(records)
        if not records and self.fault is not None:
            raise self.fault
        self._taken = start + len(records)
        if self._taken < len(self._rows):
            if records:
                self.reading.advance(records[-1].offset + 1, records[-1].leader_epoch)
        else:
            self._rows, self._taken = [], 0
            if self._rest is None:
                self.reading.advance(self.end_offset, self.epoch)
            elif records:
                self.reading.advance(self._rest.start_offset, records[-1].leader_epoch)
        return records

    def _open(self, chunk: Chunk) -> None:
        self._rows, next_offset, self.fault, is_cut = rows_of(chunk)
        self._taken = 0
        self.chunk = None
        self._rest = chunk._replace(start_offset=next_offset, data=bytes(chunk.data)) if is_cut else None
        if self.fault is not None:
            self.end_offset = next_offset
            last = self._rows[len(self._rows) - 1 :]
            self.epoch = last[0].leader_epoch if last else NO_EPOCH


def _made(rows: list[Record] | Rows | PackedRows, start: int, stop: int) -> list[Record]:
    """Make a portion of records; none of them is garbage, so the collector is not to look through them meanwhile."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return rows[start:stop]
    finally:
        if collects:
            gc.enable()


def decoder(key: Coding | None, value: Coding | None) -> Decode | None:
    """Return what applies deserializers to records of one partition, or None where bytes stay bytes."""
    if key is None and value is None:
        return None
    key_of, value_of = _call(key), _call(value)
    new = tuple.__new__

    def decode(records: list[Record]) -> list[Record]:
        done: list[Record] = []
        append = done.append
        part = "key"
        for record in records:
            topic, partition, offset, timestamp, raw_key, raw_value, headers, *rest = record
            try:
                part = "key"
                made_key = None if raw_key is None else key_of(topic, headers, raw_key)
                part = "value"
                made_value = None if raw_value is None else value_of(topic, headers, raw_value)
            except Exception as error:
                if done:
                    return done
                raise SerializationFailed(
                    f"the {part} of the record at offset {offset} of {topic}-{partition} cannot be read: {error!r}",
                    hint=f"to go on without it, seek to offset {offset + 1}",
                ) from error
            append(new(Record, (topic, partition, offset, timestamp, made_key, made_value, headers, *rest)))
        return done

    return decode


def _call(coding: Coding | None) -> Callable[[str, Any, bytes], Any]:
    if coding is None:
        return lambda topic, headers, data: data
    if coding.contextual:
        return coding.call
    plain = coding.call
    return lambda topic, headers, data: plain(data)
