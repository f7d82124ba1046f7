"""A segment: a stretch of the log in one file, with the indexes that make it searchable.

S1  The file holds whole batches, back to back, with ascending offsets, all at or above the base offset.
S2  An index entry is added for the batch that comes when more than `index.interval.bytes` have gone by since the last
    entry; the time index gets the greatest timestamp so far on the same occasions, and once more when the segment
    goes out of use. Apache Kafka's dump-log checks both.
S3  Opening a segment costs no system call: name and sizes come from the directory listing, the rest is read when
    asked for.

A segment that is being appended to is driven by `Log.append`, which keeps the fields below in step without a call.
"""

import struct
from collections.abc import Iterator, Mapping

from ottla.log import names
from ottla.log.offset_index import OffsetIndex
from ottla.log.time_index import TimeIndex
from ottla.log.transaction_index import TransactionIndex
from ottla.wire.batch import BATCH_HEADER, BATCH_HEADER_SIZE, LOG_OVERHEAD, MAGIC
from ottla.world.disk import Bytes, Disk

Header = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]

UNREAD = -(1 << 63)
RELATIVE_OFFSET_MAX = 0x7FFF_FFFF

_HEADERS_CHUNK = 8192
_EXTENT = struct.Struct(
    ">qi11xi"
)  # base offset, length, last offset delta: what it takes to step over a batch
_extent = _EXTENT.unpack_from
_unpack_header = BATCH_HEADER.unpack_from
_length = struct.Struct(">i").unpack_from
_LENGTH_AT = 8
_LENGTH_MIN = BATCH_HEADER_SIZE - LOG_OVERHEAD
_REBUILD_INTERVAL_BYTES = 4096


class Segment:
    """One file of batches and its indexes."""

    __slots__ = (
        "base_offset",
        "bytes_since_index",
        "created_ms",
        "directory",
        "disk",
        "file",
        "first_timestamp",
        "jitter_ms",
        "max_timestamp",
        "max_timestamp_offset",
        "offset_index",
        "suffix",
        "time_index",
        "transaction_index",
        "unindexed",
        "verified",
    )

    def __init__(
        self, disk: Disk, directory: str, base_offset: int, sizes: Mapping[str, int], suffix: str = ""
    ) -> None:
        """Know a segment by the sizes of its files, which are keyed by their first suffix."""
        stem = f"{directory}/{names.segment_stem(base_offset)}"
        self.disk = disk
        self.directory = directory
        self.suffix = suffix
        self.base_offset = base_offset
        self.file = disk.open(stem + names.LOG + suffix, size=sizes.get(names.LOG, 0))
        index_size = sizes.get(names.OFFSET_INDEX)
        time_size = sizes.get(names.TIME_INDEX)
        self.offset_index = OffsetIndex(
            disk, stem + names.OFFSET_INDEX + suffix, base_offset, index_size or 0
        )
        self.time_index = TimeIndex(disk, stem + names.TIME_INDEX + suffix, base_offset, time_size or 0)
        self.transaction_index = TransactionIndex(
            disk, stem + names.TRANSACTION_INDEX + suffix, base_offset, sizes.get(names.TRANSACTION_INDEX, 0)
        )
        # Whether an index is absent, or cannot be one by its size alone; `ensure_indexed` mends it before use.
        self.unindexed = (
            index_size is None
            or time_size is None
            or index_size % OffsetIndex.entry.size != 0
            or time_size % TimeIndex.entry.size != 0
        )
        self.verified = False
        self.max_timestamp = UNREAD
        self.max_timestamp_offset = base_offset
        self.first_timestamp = UNREAD
        self.bytes_since_index = 0
        self.jitter_ms = 0
        self.created_ms = UNREAD

    @classmethod
    def create(cls, disk: Disk, directory: str, base_offset: int, suffix: str = "") -> "Segment":
        """Make an empty segment; files that an interrupted attempt left under its names go first."""
        stem = f"{directory}/{names.segment_stem(base_offset)}"
        for kind in names.SEGMENT_SUFFIXES:
            path = stem + kind + suffix
            if disk.exists(path):
                disk.remove(path)
        for kind in (names.LOG, names.OFFSET_INDEX, names.TIME_INDEX):
            disk.open(stem + kind + suffix).rest()
        return cls.blank(disk, directory, base_offset, suffix)

    @classmethod
    def blank(cls, disk: Disk, directory: str, base_offset: int, suffix: str = "") -> "Segment":
        """Know an empty segment, whose files are empty or still to be made."""
        segment = cls(disk, directory, base_offset, {names.OFFSET_INDEX: 0, names.TIME_INDEX: 0}, suffix)
        segment.max_timestamp = -1
        segment.verified = True
        return segment

    @property
    def size_bytes(self) -> int:
        """The bytes of batches in the segment."""
        return self.file.size

    def headers(self, position: int = 0, end: int | None = None) -> Iterator[tuple[int, Header]]:
        """Yield position and header of each whole batch from `position` on; stop before what is no batch."""
        file = self.file
        stop = file.size if end is None else end
        chunk = b""
        chunk_at = position
        while stop - position >= BATCH_HEADER_SIZE:
            at = position - chunk_at
            if at + BATCH_HEADER_SIZE > len(chunk):
                chunk = file.read(position, _HEADERS_CHUNK)
                chunk_at = position
                at = 0
                if len(chunk) < BATCH_HEADER_SIZE:
                    return
            header: Header = _unpack_header(chunk, at)
            following = position + header[1] + LOG_OVERHEAD
            if header[1] < _LENGTH_MIN or header[3] != MAGIC or following > stop:
                return
            yield position, header
            position = following

    def locate(self, offset: int) -> tuple[int, Header] | None:
        """Return position and header of the first batch that reaches `offset`, or None when all end before it."""
        self.ensure_indexed()
        for position, header in self.headers(self.offset_index.position_at_or_before(offset)):
            if header[0] + header[6] >= offset:
                return position, header
        return None

    def read(
        self, offset: int, size_bytes_max: int, stop: int, at_least_one: bool, interval_bytes: int
    ) -> Bytes | None:
        """Return whole batches from the one that reaches `offset` on, none of which ends behind position `stop`.

        None says that no batch before `stop` reaches `offset`.

        One read fetches what was asked for and the little that lies between the index entry and the batch.
        """
        self.ensure_indexed()
        file = self.file
        begin = self.offset_index.position_at_or_before(offset)
        if begin > stop:
            return None  # an index that points behind the batches
        data = file.read(begin, min(stop - begin, size_bytes_max + interval_bytes + BATCH_HEADER_SIZE))
        at = 0
        while True:
            if at + BATCH_HEADER_SIZE > len(data):
                # The batch before the one looked for is longer than the interval; go on behind it.
                begin += at
                at = 0
                if begin > stop:
                    return None
                data = file.read(begin, min(stop - begin, max(size_bytes_max, BATCH_HEADER_SIZE)))
                if len(data) < BATCH_HEADER_SIZE:
                    return None
            base_offset, length, delta = _extent(data, at)
            size = length + LOG_OVERHEAD
            if base_offset + delta >= offset:
                break
            if length < _LENGTH_MIN:
                return None
            at += size
        if begin + at + size > stop:
            return b""
        if size > size_bytes_max:
            if not at_least_one:
                return b""
            return data[at : at + size] if at + size <= len(data) else file.read(begin + at, size)
        if at + size > len(data):
            data = file.read(begin + at, min(stop - begin - at, size_bytes_max))
            begin += at
            at = 0
        cut = self._last_boundary(data, begin, at + size, min(at + size_bytes_max, len(data)), stop)
        return data if at == 0 and cut == len(data) else memoryview(data)[at:cut]

    def _last_boundary(self, data: bytes, begin: int, whole: int, limit: int, stop: int) -> int:
        """Return where in `data` the last batch that fits below `limit` ends, given that `whole` is such an end."""
        if begin + limit == stop:
            return limit
        known = self.offset_index.position_from(begin + limit)
        at = whole if known is None else max(whole, known - begin)
        while at + LOG_OVERHEAD <= limit:
            following = at + _length(data, at + _LENGTH_AT)[0] + LOG_OVERHEAD
            if following > limit:
                break
            at = following
        return at

    def tail_end_offset(self) -> int | None:
        """Return the offset behind the last batch, reading from the newest index entry on.

        None says that the file does not end with a whole batch, or that the index is of no use. The greatest timestamp
        falls out of the same walk.
        """
        index = self.offset_index
        if self.unindexed:
            return None
        last_offset, position = index.newest()
        if index.count and not index.could_be(last_offset, position, self.file.size):
            return None
        self.max_timestamp, self.max_timestamp_offset = self.time_index.newest()
        if self.max_timestamp_offset < self.base_offset or self.max_timestamp < -1:
            return None
        expected = last_offset if index.count else None
        end_offset = self.base_offset
        for at, header in self.headers(position):
            reached = header[0] + header[6]
            if expected is not None:
                # With an offset index there is a time index too, unless no record has a time.
                if reached != expected or (header[8] >= 0 and not self.time_index.count):
                    return None
                expected = None
            if header[8] > self.max_timestamp:
                self.max_timestamp = header[8]
                self.max_timestamp_offset = reached
            end_offset = reached + 1
            position = at + header[1] + LOG_OVERHEAD
        return end_offset if position == self.file.size else None

    def append(self, batches: Bytes, interval_bytes: int) -> None:
        """Add whole batches that already have their offsets, and index them, as the cleaner does."""
        position = self.file.size
        self.file.append(batches)
        at = 0
        while at < len(batches):
            header: Header = _unpack_header(batches, at)
            self.note_batch(header, position + at, interval_bytes)
            at += header[1] + LOG_OVERHEAD

    def note_batch(self, header: Header, position: int, interval_bytes: int) -> None:
        """Keep timestamps and indexes in step with a batch that stands at `position`."""
        last_offset = header[0] + header[6]
        if self.first_timestamp == UNREAD and position == 0:
            self.first_timestamp = header[8]
        if header[8] > self.max_timestamp:
            self.max_timestamp = header[8]
            self.max_timestamp_offset = last_offset
        if self.bytes_since_index > interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
            self.bytes_since_index = 0
        self.bytes_since_index += header[1] + LOG_OVERHEAD

    def largest_timestamp(self) -> int:
        """Return the greatest timestamp of any record, or when the file was last written if no record has one."""
        return self.load_max_timestamp() if self.load_max_timestamp() >= 0 else self.modified_ms()

    def load_max_timestamp(self) -> int:
        """Return the greatest timestamp of any record, or -1."""
        if self.max_timestamp == UNREAD:
            self.ensure_indexed()
            self.max_timestamp, self.max_timestamp_offset = self.time_index.newest()
        return self.max_timestamp

    def load_first_timestamp(self) -> int:
        """Return the greatest timestamp of the first batch, where a segment's age counts from; UNREAD when empty."""
        if self.first_timestamp == UNREAD:
            for _, header in self.headers():
                self.first_timestamp = header[8]
                break
        return self.first_timestamp

    def modified_ms(self) -> int:
        """Return when the file was last written."""
        return self.disk.modified_ms(self.file.path)

    def ensure_indexed(self) -> None:
        """Rebuild offset and time index from the batches when a file is absent or cannot be right."""
        if self.verified:
            return
        if not self.unindexed and self.offset_index.is_sane(self.file.size) and self._times_are_sane():
            self.verified = True
            return
        self.reset_indexes()
        self.max_timestamp = -1
        for position, header in self.headers():
            self.note_batch(header, position, _REBUILD_INTERVAL_BYTES)
        self.retire()

    def _times_are_sane(self) -> bool:
        """Say whether the time index can be right: a segment that has gone out of use has an entry if it has a time."""
        if self.time_index.count:
            return self.time_index.is_sane()
        return self.load_first_timestamp() < 0

    def reset_indexes(self) -> None:
        """Empty offset and time index, to be filled anew."""
        for index in (self.offset_index, self.time_index):
            index.reset(self.disk.size(index.path) if self.disk.exists(index.path) else 0)
        self.bytes_since_index = 0
        self.unindexed = False
        self.verified = True

    def retire(self) -> None:
        """Close the time index with the greatest timestamp, and write what the index files lack."""
        if self.load_max_timestamp() >= 0:
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
        self.flush_indexes()

    def flush_indexes(self) -> None:
        """Write what the index files lack."""
        self.offset_index.flush()
        self.time_index.flush()
        self.transaction_index.flush()

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that reaches `offset`."""
        found = self.locate(offset)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        if found is not None:
            self.file.truncate(found[0])
        if self.file.size == 0:
            self.created_ms = self.first_timestamp = UNREAD
        self.bytes_since_index = 0
        self.max_timestamp, self.max_timestamp_offset = self.time_index.newest()
        # Both indexes get their entries together (S2): what the time index does not know lies behind the newest.
        for _, header in self.headers(self.offset_index.newest()[1]):
            if header[8] > self.max_timestamp:
                self.max_timestamp = header[8]
                self.max_timestamp_offset = header[0] + header[6]

    def paths(self) -> list[str]:
        """Return the files that exist on disk for this segment."""
        paths = [self.file.path, self.offset_index.path, self.time_index.path]
        if self.transaction_index.written or self.transaction_index.torn:
            paths.append(self.transaction_index.path)
        return paths

    def rename(self, suffix: str, directory: str | None = None) -> None:
        """Give the files another passing suffix, or another directory's name when that was renamed."""
        stem = f"{directory or self.directory}/{names.segment_stem(self.base_offset)}"
        self.rest()
        for index, kind in (
            (self.transaction_index, names.TRANSACTION_INDEX),
            (self.time_index, names.TIME_INDEX),
            (self.offset_index, names.OFFSET_INDEX),
        ):
            target = stem + kind + suffix
            if directory is None and self.disk.exists(index.path):
                self.disk.rename(index.path, target)
            index.path = target
        # The batches go last: while they have their old name, the segment is the old one.
        target = stem + names.LOG + suffix
        if directory is None:
            self.disk.rename(self.file.path, target)
        else:
            self.directory = directory
        self.file.path = target
        self.suffix = suffix

    def remove(self) -> None:
        """Remove the files."""
        self.file.close()
        for path in (
            self.file.path,
            self.offset_index.path,
            self.time_index.path,
            self.transaction_index.path,
        ):
            self.disk.remove(path)

    def rest(self) -> None:
        """Give descriptor and cached index entries back until the next use."""
        self.file.rest()
        self.offset_index.forget()
        self.time_index.forget()
        self.transaction_index.forget()

    def __repr__(self) -> str:
        return f"Segment({self.file.path}, size_bytes={self.file.size})"
