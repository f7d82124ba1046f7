"""Reading a log: batches from an offset on, offsets by time, epochs and what transactions hide.

No read depends on how much the log holds (L6): the newest batches are found in the tail, older ones by the index.
"""

from bisect import bisect_right

from ottla.log import lookup
from ottla.log.lookup import Candidate, Found, Pause, UnreadableBatchError
from ottla.log.truncation import TruncatableLog
from ottla.log.verification import Verifications
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.world.disk import Bytes

_UNREADABLE_TOLD_MAX = 100


class ReadableLog(TruncatableLog):
    """The files of a log, read by offset, by time and by epoch."""

    __slots__ = ("_interval_bytes", "_unreadable")

    _interval_bytes: int
    _unreadable: set[int]  # the batches of which the operator has been told

    def read(self, offset: int, size_bytes_max: int, end_offset: int, *, at_least_one: bool = True) -> Bytes:
        """Return whole batches from the one that holds `offset` on, up to `size_bytes_max` bytes, below `end_offset`.

        With `at_least_one` the first batch comes even when it is larger. OFFSET_OUT_OF_RANGE below the start or above
        the end of the log; UNKNOWN_SERVER_ERROR for a negative size where there is something to read, as in Kafka.
        """
        if offset < self.start_offset or offset > self.end_offset:
            raise BrokerError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not within [{self.start_offset}, {self.end_offset}]",
            )
        if offset >= end_offset:
            return b""
        if size_bytes_max < 0:
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{size_bytes_max} is no size to read")
        tail = self._tail
        if offset == tail.newest_offset and end_offset == self.end_offset:
            newest = tail.newest
            if at_least_one or len(newest) <= size_bytes_max:
                return newest
        if offset < tail.start_offset:
            return self._read_older(offset, size_bytes_max, end_offset, at_least_one)
        file = self._active.file
        begin, stop = tail.extent(offset, end_offset, size_bytes_max, file.size, at_least_one)
        return file.read(begin, stop - begin) if stop else b""

    def readable_bytes(self, offset: int, end_offset: int, size_bytes_max: int) -> int:
        """Return how many bytes `read` would find, at most `size_bytes_max`; just that for what is not recent."""
        if offset >= end_offset:
            return 0
        if offset < self._tail.start_offset or offset < self.start_offset:
            return size_bytes_max
        begin, stop = self._tail.extent(offset, end_offset, size_bytes_max, self._active.file.size, True)
        return min(stop - begin, size_bytes_max)

    def newest(self, offset: int) -> bytes | None:
        """Return the last batch if it begins at `offset` and is kept in memory, and no transaction is undecided."""
        producers = self._producers
        if offset != self._tail.newest_offset or producers.ongoing or producers.unreplicated:
            return None
        return self._tail.newest

    def _read_older(self, offset: int, size_bytes_max: int, end_offset: int, at_least_one: bool) -> Bytes:
        """Read where the index has to be asked."""
        segments, bases = self._segments, self._bases
        for at in range(max(bisect_right(bases, offset) - 1, 0), len(segments)):
            segment = segments[at]
            if segment.base_offset >= end_offset:
                break
            stop = segment.file.size
            if end_offset < (bases[at + 1] if at + 1 < len(bases) else self.end_offset):
                found = segment.locate(end_offset)
                if found is not None:
                    stop = found[0]
            data = segment.read(offset, size_bytes_max, stop, at_least_one, self._interval_bytes)
            if segment is not self._active:
                self._home.touch(segment)
            if data is not None:
                return data
        return b""

    def aborted_transactions(
        self, start_offset: int, end_offset: int, data: Bytes | None = None
    ) -> list[tuple[int, int]]:
        """Return producer id and first offset of the aborted transactions that touch `[start_offset, end_offset)`.

        With `data`, which was read from `start_offset` on, those that touch what it holds, as in Kafka.
        """
        return lookup.aborted_transactions(self._segments, self._bases, start_offset, end_offset, data)

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest open transaction begins, or None when none is open."""
        return self._producers.first_ongoing_offset

    def in_transaction(self, producer_id: int, epoch: int) -> bool:
        """Say whether a producer has a transaction of this epoch open here; under v2 the next has another."""
        return self._producers.in_transaction(producer_id, epoch)

    @property
    def verifications(self) -> Verifications:
        """Producers whose transaction is being looked up, to open it here."""
        return self._producers.verifications

    def last_stable_offset(self, high_watermark: int) -> int:
        """Return up to where all transactions are decided, and their markers below the high watermark."""
        producers = self._producers
        if producers.ongoing or producers.unreplicated:
            return producers.last_stable_offset(high_watermark)
        return high_watermark

    def offset_for_timestamp(self, timestamp: int) -> Found | None:
        """Return the first record at or after `start_offset` that is not older than `timestamp`."""
        candidate = self.whole_candidate(timestamp)
        while candidate is not None:
            found = candidate.search()
            if found is not None:
                return found
            candidate = self.whole_candidate(timestamp, candidate.end_offset)
        return None

    def max_timestamp(self) -> Found | None:
        """Return the first record with the greatest timestamp of the log."""
        candidate = self.newest_candidate()
        return None if candidate is None else candidate.search()

    def candidate(
        self, timestamp: int, from_offset: int = 0, pause: Pause | None = None
    ) -> Candidate | Pause | None:
        """Return the first batch from an offset on that may hold a record not older than `timestamp`."""
        return lookup.next_candidate(self._segments, timestamp, self.start_offset, from_offset, pause)

    def whole_candidate(self, timestamp: int, from_offset: int = 0) -> Candidate | None:
        """Return that batch without a pause, however long it takes to find it."""
        found = self.candidate(timestamp, from_offset)
        while isinstance(found, Pause):
            found = self.candidate(timestamp, from_offset, found)
        return found

    def newest_candidate(self) -> Candidate | None:
        """Return the batch that holds the record with the greatest timestamp of the log."""
        return lookup.newest_candidate(self._segments)

    def tell_unreadable(self, error: UnreadableBatchError) -> None:
        """Tell the operator of a batch that cannot be read; once, since whoever asks for it may ask for ever."""
        if error.offset not in self._unreadable and len(self._unreadable) < _UNREADABLE_TOLD_MAX:
            self._unreadable.add(error.offset)
            self._home.warn(f"{self.path}: {error.message}")

    @property
    def latest_epoch(self) -> int | None:
        """The newest leader epoch that has written here."""
        latest = self._epochs.latest
        return None if latest < 0 else latest

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the greatest epoch not above `epoch` and where it ends, or (-1, -1)."""
        return self._epochs.end_offset_for(epoch, self.end_offset)

    def epoch_for_offset(self, offset: int) -> int | None:
        """Return under which leader epoch an offset was written."""
        return self._epochs.epoch_for(offset)
