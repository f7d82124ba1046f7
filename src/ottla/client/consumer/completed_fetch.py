"""The data of one partition in a fetch response, until all of its records were returned.

P1  It is opened (decompressed and parsed) when its first record is needed. All of it is opened at once, unless it is
    very large: then the rest is opened after the first part was returned.
P2  Once opened it holds no bytes of the response, so that one slow partition does not keep the data of others alive.
P3  If a deserializer fails, the records before the bad one are returned first. The bad one is tried again with each
    poll, until the application seeks past it.
"""

import gc
import struct
from collections.abc import Callable
from typing import Any

from ottla.client.consumer.assigned_partition import NO_EPOCH, AssignedPartition
from ottla.client.consumer.fetched_batches import FetchedBatches
from ottla.client.consumer.packed_records import PackedRecords
from ottla.client.consumer.record_objects import ColumnRecords, lazy_records_of
from ottla.client.errors import ClientError, SerializationFailed
from ottla.client.record import Record
from ottla.client.serializer import SerializerCall
from ottla.wire.batch import BATCH_HEADER_SIZE, LOG_OVERHEAD
from ottla.wire.compression import Buffer

_HEAD = struct.Struct(">qii")
_LAST_DELTA_AT = 23
_INT32 = struct.Struct(">i")

Deserialize = Callable[[list[Record]], list[Record]]


def end_of_last_batch(data: Buffer) -> tuple[int, int] | None:
    """Return the end offset of the last complete batch and its leader epoch, or None without a complete batch."""
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


class CompletedFetch:
    """The data of one partition in a fetch response."""

    __slots__ = (
        "_rest",
        "_rows",
        "_taken",
        "assigned",
        "end_offset",
        "epoch",
        "fault",
        "is_counted",
        "node",
        "position_id",
        "size",
        "unopened",
    )

    def __init__(
        self, assigned: AssignedPartition, node: int, fetched: FetchedBatches, end_offset: int, epoch: int
    ) -> None:
        self.assigned = assigned
        self.position_id = assigned.position_id
        self.node = node
        self.unopened: FetchedBatches | None = fetched
        self.size = len(fetched.data)
        self.is_counted = False  # whether its bytes count against the limit of the fetch buffer
        self.end_offset = end_offset
        self.epoch = epoch
        self.fault: ClientError | None = None
        self._rest: FetchedBatches | None = None  # the part that is not opened yet
        self._rows: list[Record] | ColumnRecords | PackedRecords = []
        self._taken = 0

    @property
    def is_current(self) -> bool:
        """Whether the partition had no seek or new assignment since the fetch."""
        return self.position_id == self.assigned.position_id

    @property
    def is_empty(self) -> bool:
        """Whether all of its records were returned."""
        is_joined = self._taken >= len(self._rows)
        return self.unopened is None and self._rest is None and is_joined and self.fault is None

    def release_response(self) -> None:
        """Copy its bytes out of the response, because it may stay in the buffer for long."""
        fetched = self.unopened
        if fetched is not None and isinstance(fetched.data, memoryview):
            self.unopened = fetched._replace(data=bytes(fetched.data))

    def take(self, count: int, decode: Deserialize | None) -> list[Record]:
        """Return up to `count` records, and advance the position. Raises the error of the next record.

        The list is empty if there are no records for the application. The position moves nevertheless.
        """
        if self.unopened is not None:
            self._open(self.unopened)
        elif self._rest is not None and self._taken >= len(self._rows):
            self._open(self._rest)
        start = self._taken
        records = _make_records(self._rows, start, start + count)
        if decode is not None and records:
            records = decode(records)
        if not records and self.fault is not None:
            raise self.fault
        self._taken = start + len(records)
        if self._taken < len(self._rows):
            if records:
                self.assigned.advance(records[-1].offset + 1, records[-1].leader_epoch)
        else:
            self._rows, self._taken = [], 0
            if self._rest is None:
                self.assigned.advance(self.end_offset, self.epoch)
            elif records:
                self.assigned.advance(self._rest.start_offset, records[-1].leader_epoch)
        return records

    def _open(self, fetched: FetchedBatches) -> None:
        self._rows, next_offset, self.fault, is_partial = lazy_records_of(fetched)
        self._taken = 0
        self.unopened = None
        self._rest = (
            fetched._replace(start_offset=next_offset, data=bytes(fetched.data)) if is_partial else None
        )
        if self.fault is not None:
            self.end_offset = next_offset
            last = self._rows[len(self._rows) - 1 :]
            self.epoch = last[0].leader_epoch if last else NO_EPOCH


def _make_records(rows: list[Record] | ColumnRecords | PackedRecords, start: int, stop: int) -> list[Record]:
    """Make records with the garbage collector off: none of the new objects is garbage."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return rows[start:stop]
    finally:
        if collects:
            gc.enable()


def deserialization(key: SerializerCall | None, value: SerializerCall | None) -> Deserialize | None:
    """Return a function that applies the deserializers to records, or None without deserializers."""
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


def _call(coding: SerializerCall | None) -> Callable[[str, Any, bytes], Any]:
    if coding is None:
        return lambda topic, headers, data: data
    if coding.contextual:
        return coding.call
    plain = coding.call
    return lambda topic, headers, data: plain(data)
