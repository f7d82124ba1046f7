"""A partition's log: append at the end, read anywhere.

L1  Offsets grow, densely on a leader; nothing is stored of an append that fails.
L6  The cost of an append and of a read does not depend on how much the log holds.

`append` is the hottest code of the program: one unpacking of the header, one expression that tells a plain batch from
one that needs a second look (`validation`), one write. No clock is read here, `now_ms` comes in.
"""

import errno
import struct
from typing import ClassVar

from crc32c import crc32c

from ottla.log import plain
from ottla.log.appended import Appended
from ottla.log.config import LogConfig
from ottla.log.home import Home
from ottla.log.inspection import Allowance, Inspected, inspect, is_plain, looks_into
from ottla.log.producer_state import ProducerEntry
from ottla.log.reading import ReadableLog
from ottla.log.replay import aborted_by, apply_batch, read_marker
from ottla.log.segment import RELATIVE_OFFSET_MAX, UNREAD, Header, Segment
from ottla.log.tail import NEWEST_BYTES_MAX
from ottla.log.validation import check_client_batch, conform, conform_own, split, too_large_for_segment
from ottla.log.verification import Verification
from ottla.wire.batch import (
    BATCH_HEADER,
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    TRANSACTIONAL,
    crc_ok,
    stamp,
)
from ottla.wire.compression import Codec
from ottla.wire.errors import BrokerError, ErrorCode, ProtocolError
from ottla.wire.record_walk import INT64_MAX, INT64_MIN
from ottla.world.disk import Bytes, Disk, File

_append_plain = plain.append
_appended = tuple.__new__  # of an Appended: its own constructor costs three times as much
_unpack_header = BATCH_HEADER.unpack_from
_stamp = struct.Struct(">qii").pack_into  # `stamp` without its frame: the length in between is written anew
_CRC_FROM = 21
_PLAIN_BITS = CODEC_MASK | LOG_APPEND_TIME | CONTROL
_CODEC_MAX = Codec.ZSTD.value


class Log(ReadableLog):
    """The batches of one partition in one directory."""

    __slots__ = (
        "_after_max_ms",
        "_before_max_ms",
        "_checkpoints",
        "_flush_messages",
        "_is_plain",
        "_is_trusting",
        "_max_decompressed_bytes",
        "_max_message_bytes",
        "_max_message_records",
        "_segment_bytes",
    )

    is_dormant: ClassVar[bool] = False
    is_nascent: ClassVar[bool] = False

    # Of a log that has not been opened yet: start offset and recovery point, and whether its files are as a clean stop
    # left them.
    _checkpoints: tuple[int, int, bool]

    def __init__(
        self, home: Home, disk: Disk, path: str, topic: str, partition: int, config: LogConfig
    ) -> None:
        super().__init__(home, disk, path, topic, partition, config)
        self.config = config
        self._unreadable = set()

    @property
    def config(self) -> LogConfig:
        """The settings in force; replacing them takes effect with the next append."""
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        self._max_message_bytes = min(config.max_message_bytes, config.segment_bytes)
        self._segment_bytes = config.segment_bytes
        self._interval_bytes = config.index_interval_bytes
        self._flush_messages = config.flush_messages
        self._before_max_ms = config.message_timestamp_before_max_ms
        self._after_max_ms = config.message_timestamp_after_max_ms
        self._max_message_records = config.max_message_records
        self._max_decompressed_bytes = config.max_decompressed_message_bytes
        self._is_plain = not config.is_compacted and not config.uses_append_time and config.codec is None
        self._is_trusting = not looks_into(config)
        self._roll_after = UNREAD

    # Writing

    def append(
        self,
        records: bytearray | memoryview,
        leader_epoch: int,
        now_ms: int,
        *,
        from_client: bool = True,
        transaction_version: int = 0,
        inspected: Inspected | BrokerError | None = None,
        verification: Verification | None = None,
        allowance: Allowance | None = None,
        any_length: bool = False,
    ) -> Appended:
        """Give one client batch (or several of the broker's own) the next offsets and write it.

        The buffer is stamped in place. BrokerError says why a batch was refused; nothing of it is stored then, and the
        buffer is as it was. PostponedError asks for a look through it in a thread, whose result is `inspected`. With
        `verification` a batch opens a transaction only if that holds. What is decompressed is counted in `allowance`.
        With `any_length` batches of the broker's own may be longer than `max.message.bytes`.
        """
        if not from_client:
            return self._append_own(records, leader_epoch, now_ms, transaction_version, any_length=any_length)
        if _append_plain is not None and inspected is None:
            offset = _append_plain(self, records, leader_epoch, now_ms)
            if offset is not None:
                return _appended(Appended, (offset, self.end_offset, -1, False))
        size = len(records)
        if size < BATCH_HEADER_SIZE:
            check_client_batch(records, self._config)
        header: Header = _unpack_header(records)
        (
            zero,
            length,
            _,
            magic,
            crc,
            attributes,
            delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            epoch,
            sequence,
            count,
        ) = header
        append_time = -1
        if (
            zero
            or length + LOG_OVERHEAD != size
            or magic != 2
            or size > self._max_message_bytes
            or delta < 0
            or delta + 1 != count
            or attributes & _PLAIN_BITS > _CODEC_MAX
            or max_timestamp > now_ms + self._after_max_ms
            or base_timestamp < now_ms - self._before_max_ms
            or (producer_id >= 0 and sequence < 0)
            or not self._is_plain
            or inspected is not None
            or crc32c(memoryview(records)[_CRC_FROM:]) != crc
            or not (
                (self._is_trusting and attributes & CODEC_MASK)
                or is_plain(
                    records,
                    header,
                    max(now_ms - self._before_max_ms, INT64_MIN),
                    min(now_ms + self._after_max_ms, INT64_MAX),
                    self._max_message_records,
                    self._max_decompressed_bytes,
                    allowance,
                )
            )
        ):
            config = self._config
            header = check_client_batch(records, config)
            if isinstance(inspected, BrokerError):
                raise BrokerError(inspected.code, inspected.message, inspected.records)
            if inspected is not None:
                inspected.check_is_of(header)
            size = length + LOG_OVERHEAD
            records = memoryview(records)[:size]
            if inspected is None or inspected.config != config:
                inspected = inspect(records, header, config, now_ms, on_loop=True, allowance=allowance)
            max_timestamp = inspected.max_timestamp
            if config.uses_append_time:
                append_time = max_timestamp = now_ms
            if inspected.body is not None:
                size = BATCH_HEADER_SIZE + len(inspected.body)
            if size > self._segment_bytes:
                raise too_large_for_segment(size, self._segment_bytes)
        transactional = attributes & TRANSACTIONAL != 0
        if producer_id >= 0:
            producers = self._producers
            entry = producers.entries.get(producer_id)
            if verification is not None or (
                entry is not None
                and (
                    entry.next_sequence != sequence
                    or entry.epoch != epoch
                    or entry.transaction_first_offset >= 0
                )
            ):
                duplicate = producers.admit(
                    producer_id,
                    epoch,
                    sequence,
                    count,
                    transactional=transactional,
                    from_client=True,
                    verification=verification,
                )
                if duplicate is not None:
                    first, last = duplicate.first_offset, duplicate.last_offset
                    return Appended(first, last + 1, duplicate.timestamp, True)
        offset = self.end_offset
        last_offset = offset + delta
        segment = self._active
        if (
            max_timestamp > self._roll_after
            or segment.file.size + size > self._segment_bytes
            or last_offset - segment.base_offset > RELATIVE_OFFSET_MAX
        ):
            segment = self._make_room(size, offset, last_offset, max_timestamp, now_ms)
        file = segment.file
        position = file.size
        theirs = records
        if inspected is not None:  # all that it may be refused for is behind us
            records = conform(records, header, config, now_ms, inspected)
            length = size - LOG_OVERHEAD
        _stamp(records, 0, offset, length, leader_epoch)
        try:
            file.append(records)
        except OSError as error:
            try:
                self._write_again_or_fail(file, records, error)
            except BrokerError:
                BATCH_HEADER.pack_into(theirs, 0, *header)  # as it came
                raise
        end_offset = self.end_offset = last_offset + 1
        if max_timestamp > segment.max_timestamp:
            segment.max_timestamp = max_timestamp
            segment.max_timestamp_offset = last_offset
        if segment.bytes_since_index > self._interval_bytes:
            self._index(segment, last_offset, position)
        segment.bytes_since_index += size
        tail = self._tail
        tail.ends.append(end_offset)
        tail.positions.append(position)
        if size <= NEWEST_BYTES_MAX:
            tail.newest = bytes(records)
            tail.newest_offset = offset
        else:
            tail.newest_offset = -1
        if leader_epoch != self._epochs.latest:
            self._epochs.assign(leader_epoch, offset)
        if producer_id >= 0:
            producers.record(producer_id, epoch, sequence, offset, last_offset, max_timestamp, transactional)
        return _appended(Appended, (offset, end_offset, append_time, False))

    def begin_epoch(self, leader_epoch: int) -> None:
        """Let a leader epoch begin at the end of the log."""
        if leader_epoch != self._epochs.latest:
            self._epochs.assign(leader_epoch, self.end_offset)

    def append_as_follower(self, records: Bytes) -> Appended:
        """Write batches that a leader has stamped, offsets and epochs and all; gaps are fine, going back is not."""
        headers = split(records)
        expected = self.end_offset
        at = 0
        for header in headers:
            size = header[1] + LOG_OVERHEAD
            if not crc_ok(records, at, size):
                raise BrokerError(
                    ErrorCode.CORRUPT_MESSAGE, f"batch at offset {header[0]} does not match its CRC"
                )
            if header[0] < expected or header[6] < 0:
                raise BrokerError(
                    ErrorCode.OFFSET_OUT_OF_RANGE, f"batch begins at {header[0]}, the log ends at {expected}"
                )
            if header[5] & CONTROL and header[9] >= 0:
                _check_marker(records, at, header)
            expected = header[0] + header[6] + 1
            at += size
        if not headers:
            return Appended(self.end_offset, self.end_offset)
        self._store(records, headers, now_ms=UNREAD)
        return Appended(headers[0][0], self.end_offset)

    def _append_own(
        self,
        records: bytearray | memoryview,
        leader_epoch: int,
        now_ms: int,
        transaction_version: int,
        *,
        any_length: bool,
    ) -> Appended:
        """Write batches of the broker itself: coordinators' records, transaction markers, the quorum's records."""
        config = self._config
        view = memoryview(records)
        offset = base_offset = self.end_offset
        stamped: list[Header] = []
        parts: list[bytearray | memoryview] = []
        at = 0
        for header in split(records):
            size = header[1] + LOG_OVERHEAD
            batch = conform_own(view[at : at + size], header, config, now_ms)
            at += size
            self._admit_own(batch, header, transaction_version, any_length=any_length)
            stamp(batch, 0, offset, leader_epoch)
            header = _unpack_header(batch)
            offset += header[6] + 1
            stamped.append(header)
            parts.append(batch)
        if not stamped:
            raise BrokerError(ErrorCode.INVALID_RECORD, "there is no batch to append")
        self._store(parts[0] if len(parts) == 1 else b"".join(parts), stamped, now_ms)
        return Appended(base_offset, offset, now_ms if config.uses_append_time else -1)

    def _admit_own(self, batch: Bytes, header: Header, transaction_version: int, *, any_length: bool) -> None:
        if len(batch) > self._config.max_message_bytes and not any_length:
            raise BrokerError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"batch of {len(batch)} bytes, max.message.bytes is {self._config.max_message_bytes}",
            )
        if not crc_ok(batch, 0, len(batch)):
            raise BrokerError(ErrorCode.CORRUPT_MESSAGE, "batch does not match its CRC")
        if header[6] < 0:
            raise BrokerError(ErrorCode.INVALID_RECORD, f"batch has last offset delta {header[6]}")
        producer_id, epoch = header[9], header[10]
        if producer_id < 0:
            return
        if header[5] & CONTROL:
            marker = read_marker(batch)
            if marker is not None:
                self._producers.admit_marker(
                    producer_id, epoch, marker.coordinator_epoch, transaction_version
                )
        else:
            transactional = header[5] & TRANSACTIONAL != 0
            self._producers.admit(
                producer_id, epoch, header[11], header[12], transactional=transactional, from_client=False
            )

    def _store(self, records: Bytes, headers: list[Header], now_ms: int) -> None:
        """Write stamped batches, then index and remember each."""
        size = len(records)
        if size > self._segment_bytes:
            raise too_large_for_segment(size, self._segment_bytes)
        last_offset = headers[-1][0] + headers[-1][6]
        max_timestamp = max(header[8] for header in headers)
        segment = self._make_room(size, headers[0][0], last_offset, max_timestamp, now_ms)
        position = segment.file.size
        try:
            segment.file.append(records)
        except OSError as error:
            self._write_again_or_fail(segment.file, records, error)
        at = 0
        for header in headers:
            segment.note_batch(header, position + at, self._interval_bytes)
            self._tail.ends.append(header[0] + header[6] + 1)
            self._tail.positions.append(position + at)
            if header[2] != self._epochs.latest:
                self._epochs.assign(header[2], header[0])
            completed = apply_batch(self._producers, header, records, at)
            if completed is not None and completed.aborted:
                segment.transaction_index.append(aborted_by(completed, self._producers))
            at += header[1] + LOG_OVERHEAD
        self.end_offset = last_offset + 1
        self._tail.newest_offset = -1
        self._tail.trim()
        if self._index_is_full(segment):
            self._roll_after = UNREAD

    def _index(self, segment: Segment, last_offset: int, position: int) -> None:
        """Add an index entry, and take the occasion to keep the tail short."""
        segment.offset_index.append(last_offset, position)
        segment.time_index.append(segment.max_timestamp, segment.max_timestamp_offset)
        segment.bytes_since_index = 0
        self._tail.trim()
        if self._index_is_full(segment):
            self._roll_after = UNREAD

    def _write_again_or_fail(self, file: File, records: Bytes, error: OSError) -> None:
        """Write after all once other logs have given back descriptors; any other failure is a storage error."""
        if error.errno in (errno.EMFILE, errno.ENFILE):
            self._home.rest_idle()
            try:
                file.append(records)
                return
            except OSError as again:
                error = again
        if not file.size:
            self._active.first_timestamp = self._roll_after = UNREAD
        raise self.storage_error(error) from error

    # Producers

    def producers(self) -> list[ProducerEntry]:
        """Return what is known of each producer."""
        return list(self._producers.entries.values())

    def expire_producers(self, now_ms: int) -> int:
        """Forget producers that were quiet for `producer.id.expiration.ms`; return how many."""
        return self._producers.expire(now_ms, self._config.producer_id_expiration_ms)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path})"


def _check_marker(records: Bytes, at: int, header: Header) -> None:
    """Refuse a control batch that cannot be read before it is written, since what it ends has to be noted then."""
    try:
        read_marker(records, at)
    except ProtocolError as error:
        raise BrokerError(
            ErrorCode.CORRUPT_MESSAGE, f"the control batch at offset {header[0]} cannot be read: {error}"
        ) from None


plain.teach(Log)
