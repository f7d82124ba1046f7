"""Recovery after an unclean stop: keep the longest valid prefix, and make everything beside the batches match it.

R1  Batches below the recovery point were synced; they are walked over, not judged.
R2  From the recovery point on, a batch counts if its size is sane, its offsets rise, and its CRC is right. The log is
    cut at the first one that does not, and later segments go.
    So it is where a segment begins below the end of the one before: a truncation had removed it, a loss of power has
    brought its name back, and what lies before it was written since.
R3  Indexes, transaction index, producer state and leader epochs are rebuilt from where a snapshot and an index entry
    agree, at worst from the beginning of the segment that holds the recovery point.
"""

from collections.abc import Callable

from crc32c import crc32c

from ottla.log.epoch_cache import EpochCache
from ottla.log.producer_state import Producers
from ottla.log.replay import aborted_by, apply_batch, load_newest, replay
from ottla.log.segment import RELATIVE_OFFSET_MAX, Header, Segment
from ottla.log.snapshots import Snapshots
from ottla.wire.batch import BATCH_HEADER, BATCH_HEADER_SIZE, LOG_OVERHEAD, MAGIC
from ottla.wire.errors import ProtocolError

_CHUNK_BYTES = 1 << 20
_CRC_FROM = 21
_LENGTH_MIN = BATCH_HEADER_SIZE - LOG_OVERHEAD


class Recovery:
    """Brings the segments of one log, oldest first, back to a state an append could have left."""

    def __init__(
        self,
        segments: list[Segment],
        snapshots: Snapshots,
        epochs: EpochCache,
        *,
        start_offset: int,
        recovery_point: int,
        interval_bytes: int,
        warn: Callable[[str], None],
    ) -> None:
        self._segments = segments
        self._snapshots = snapshots
        self._epochs = epochs
        self._start_offset = start_offset
        self._recovery_point = recovery_point
        self._interval_bytes = interval_bytes
        self._warn = warn
        self.producers = Producers()
        self.end_offset = 0

    def run(self) -> int:
        """Recover, cut `segments` in place, and return the offset behind the last valid batch."""
        segments = self._segments
        first = 0
        for at, segment in enumerate(segments):
            if segment.base_offset <= self._recovery_point:
                first = at
        self._begin(first)
        for at in range(first, len(segments)):
            segment = segments[at]
            if at > first and segment.base_offset < self.end_offset:
                self._remove_from(at)
                break
            if at > first:
                self._restart_indexes(segment)
                self.end_offset = max(self.end_offset, segment.base_offset)
            whole = self._scan(segment, self._resume_at(segment) if at == first else 0)
            segment.retire()
            if not whole:
                self._remove_from(at + 1)
                break
        return self.end_offset

    def _remove_from(self, at: int) -> None:
        for later in self._segments[at:]:
            self._warn(f"removing {later}: it lies behind the cut")
            later.remove()
            self._snapshots.remove(later.base_offset)
        del self._segments[at:]

    def _begin(self, first: int) -> None:
        """Load the producer state to start from, and choose whether the first segment can be resumed in the middle."""
        segment = self._segments[first]
        self.end_offset = segment.base_offset
        middle = self._snapshots.newest(self._recovery_point)
        if self._epochs.latest < 0:
            middle = None  # the file was lost, and the batches tell its content from the beginning on
        if middle is not None and middle > segment.base_offset and self._indexes_hold(segment, middle):
            self._report(load_newest(self.producers, self._snapshots, self._start_offset, middle))
            if self.producers.end_offset == middle:
                return
        self._restart_indexes(segment)
        self._report(load_newest(self.producers, self._snapshots, self._start_offset, segment.base_offset))
        if self.producers.end_offset < segment.base_offset:
            replay(self.producers, self._segments[:first], segment.base_offset)

    def _indexes_hold(self, segment: Segment, offset: int) -> bool:
        """Say whether the index files can be kept below `offset`; what lies above is dropped here."""
        if segment.unindexed:
            return False
        try:
            segment.offset_index.truncate_to(offset)
            if not (segment.offset_index.ascends() and segment.time_index.ascends()):
                return False
            if not segment.offset_index.is_sane(segment.file.size) or not segment.transaction_index.is_sane():
                return False
        except OSError:
            return False
        last_offset, position = segment.offset_index.newest()
        segment.time_index.truncate_to(last_offset + 1 if position else segment.base_offset)
        segment.transaction_index.truncate_to(offset)
        if not position:
            return True
        found = next(segment.headers(position), None)
        return found is not None and found[1][0] + found[1][6] == last_offset

    def _resume_at(self, segment: Segment) -> int:
        return segment.offset_index.newest()[1]

    def _restart_indexes(self, segment: Segment) -> None:
        segment.reset_indexes()
        if segment.transaction_index.count or segment.transaction_index.torn:
            segment.transaction_index.reset(segment.transaction_index.size_bytes)
        segment.max_timestamp = -1

    def _scan(self, segment: Segment, position: int) -> bool:
        """Walk a segment from `position`, cut it at the first bad batch, and say whether none was found."""
        segment.max_timestamp, segment.max_timestamp_offset = segment.time_index.newest()
        segment.bytes_since_index = 0
        file = segment.file
        size = file.size
        chunk = b""
        chunk_at = position
        resumed = position > 0
        while position < size:
            at = position - chunk_at
            if at + BATCH_HEADER_SIZE > len(chunk):
                chunk, chunk_at, at = file.read(position, _CHUNK_BYTES), position, 0
                if len(chunk) < BATCH_HEADER_SIZE:
                    break
            header: Header = BATCH_HEADER.unpack_from(chunk, at)
            batch_size = header[1] + LOG_OVERHEAD
            if not self._is_plausible(segment, header, position + batch_size, size, resumed):
                break
            if at + batch_size > len(chunk):
                chunk, chunk_at, at = file.read(position, max(batch_size, _CHUNK_BYTES)), position, 0
                if len(chunk) < batch_size:
                    break
            last_offset = header[0] + header[6]
            if last_offset >= self._recovery_point:
                body = memoryview(chunk)[at + _CRC_FROM : at + batch_size]
                if crc32c(body) != header[4]:
                    break
            try:
                self._take(segment, header, chunk, at, position, resumed)
            except ProtocolError:
                break
            resumed = False
            self.end_offset = last_offset + 1
            position += batch_size
        if position < size:
            self._warn(
                f"{file.path} is cut from {size} to {position} bytes: no valid batch follows offset {self.end_offset}"
            )
            file.truncate(position)
            return False
        return True

    def _is_plausible(self, segment: Segment, header: Header, end: int, size: int, resumed: bool) -> bool:
        least = segment.base_offset if resumed else self.end_offset
        return (
            header[1] >= _LENGTH_MIN
            and header[3] == MAGIC
            and end <= size
            and header[0] >= least
            and header[6] >= 0
            and header[0] + header[6] - segment.base_offset <= RELATIVE_OFFSET_MAX
        )

    def _take(
        self, segment: Segment, header: Header, chunk: bytes, at: int, position: int, resumed: bool
    ) -> None:
        """Index a valid batch, and remember its leader's epoch and its producer."""
        last_offset = header[0] + header[6]
        if last_offset >= self.producers.end_offset:
            completed = apply_batch(self.producers, header, chunk, at)
            self.producers.end_offset = last_offset + 1
            if completed is not None and completed.aborted:
                segment.transaction_index.append(aborted_by(completed, self.producers))
        if resumed:
            # The batch the scan resumes at has its entry already.
            segment.bytes_since_index = header[1] + LOG_OVERHEAD
        else:
            segment.note_batch(header, position, self._interval_bytes)
        self._epochs.correct(header[2], header[0])

    def _report(self, bad: list[str]) -> None:
        for text in bad:
            self._warn(f"producer snapshot is passed over: {text}")
