"""The files of a log: its segments and what stands beside them, and how they come and go.

L7  All below `recovery_point` is on the device, and so are the files beside it that recovery will not rebuild.
L8  The segment list is never empty; the last segment is the active one, and the log ends in it.

Indexes, epochs and producer snapshots stay in memory until a roll, `settle` or `close`; recovery rebuilds what a
crash takes.
"""

import contextlib
import errno
from bisect import bisect_right
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from ottla.log import names, retention, swap
from ottla.log.config import LogConfig
from ottla.log.epoch_cache import EpochCache
from ottla.log.home import Home
from ottla.log.loading import Loaded, load
from ottla.log.own_fault import is_own_fault
from ottla.log.producer_state import Producers
from ottla.log.replay import aborted_in, is_short, load_newest, replay
from ottla.log.segment import RELATIVE_OFFSET_MAX, UNREAD, Segment
from ottla.log.snapshots import Snapshots
from ottla.log.synchronizer import Synchronizer
from ottla.log.tail import Tail
from ottla.log.transaction_index import AbortedTransaction
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.world.disk import Disk, File

if TYPE_CHECKING:
    from ottla.log.rewind import Rewind

TRY_AGAIN = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)


class LogFiles:
    """Segments, snapshots, epochs and producers of one partition, their first and last offset, and what is synced."""

    __slots__ = (
        "_active",
        "_bases",
        "_config",
        "_disk",
        "_epochs",
        "_home",
        "_producers",
        "_roll_after",
        "_segments",
        "_snapshots",
        "_sync",
        "_tail",
        "end_offset",
        "partition",
        "path",
        "recovery_point",
        "rewound",
        "start_offset",
        "topic",
        "topic_id",
    )

    _active: Segment
    _bases: list[int]
    _epochs: EpochCache
    _producers: Producers
    _roll_after: int  # the timestamp up to which an append need not ask for the age of the active segment
    _segments: list[Segment]
    _snapshots: Snapshots
    _sync: Synchronizer
    _tail: Tail
    end_offset: int
    recovery_point: int
    start_offset: int
    topic_id: bytes

    def __init__(
        self, home: Home, disk: Disk, path: str, topic: str, partition: int, config: LogConfig
    ) -> None:
        self._home, self._config, self._disk, self.path = home, config, disk, path
        self.topic, self.partition = topic, partition
        self.rewound: Rewind | None = None  # what a thread has read for a truncation that is about to be made

    # Coming into service

    def create(self, beside: list[str]) -> None:
        """Begin a new log in an empty directory; the files in `beside` are synced with its first records."""
        self.begin()
        self._make_files(beside)

    def begin(self) -> None:
        """Be an empty log, in memory."""
        segment = Segment.blank(self._disk, self.path, 0)
        snapshots = Snapshots(self._disk, self.path)
        epochs = EpochCache(self._disk, self.path)
        self._install(Loaded([segment], snapshots, epochs, Producers(), 0, 0, 0, clean=True))

    def _make_files(self, beside: list[str]) -> None:
        made = Segment.create(self._disk, self.path, 0).paths()
        self._sync.created([*made[1:], self._epochs.create(), *beside])

    def open(self, *, clean: bool, start_offset: int = 0, recovery_point: int = 0, sync: bool = True) -> None:
        """Read what the directory holds, recover it after an unclean stop, and sync what of it was not.

        Without `sync` the caller does that, for many logs at once: before anybody is told of it.
        """
        loaded = load(
            self._disk,
            self.path,
            self._config,
            clean=clean,
            start_offset=start_offset,
            recovery_point=recovery_point,
            warn=self._home.warn,
        )
        self._install(loaded)
        if self.end_offset < recovery_point:
            # The end is lost. What is written in its place must not be vouched for by the checkpoint.
            self._home.before_truncations([(self, self.end_offset)])
        if sync and self.has_unsynced_tail:
            self.sync()

    def _install(self, loaded: Loaded) -> None:
        self._segments = loaded.segments
        self._bases = [segment.base_offset for segment in loaded.segments]
        self._snapshots = loaded.snapshots
        self._epochs = loaded.epochs
        self._producers = loaded.producers
        self.start_offset = loaded.start_offset
        self.end_offset = loaded.end_offset
        self.recovery_point = loaded.recovery_point
        self._sync = Synchronizer(self._disk, self.path, loaded.end_offset if loaded.clean else -1)
        if not loaded.clean:
            self._nothing_is_synced()
        for segment in loaded.segments:
            if segment.transaction_index.count or segment.transaction_index.torn:
                segment.transaction_index.mend = partial(self._aborted_again, segment)
        self._activate(loaded.segments[-1])

    def _nothing_is_synced(self) -> None:
        """Have all files from the recovery point on synced next time, and their names, even the directory's own."""
        point, snapshots = self.recovery_point, self._snapshots
        for segment in self._segments[max(bisect_right(self._bases, point) - 1, 0) :]:
            self._sync.written(segment.paths()[1:])
        self._sync.written(snapshots.path(offset) for offset in snapshots.offsets if offset > point)
        self._epochs.flush()
        self._sync.created([self._epochs.path, f"{self.path}/{names.PARTITION_METADATA}"])

    def _aborted_again(self, segment: Segment) -> list[AbortedTransaction]:
        """Tell from the batches which transactions were aborted in a segment whose index cannot be right."""
        self._home.warn(f"{segment.transaction_index.path} makes no sense; it is rebuilt from the batches")
        base_offset = segment.base_offset
        producers = Producers()
        self._report(load_newest(producers, self._snapshots, self.start_offset, base_offset))
        if producers.end_offset < base_offset:
            earlier = [known for known in self._segments if known.base_offset < base_offset]
            replay(producers, earlier, base_offset)
        return aborted_in(segment, producers)

    def _activate(self, segment: Segment) -> None:
        self._active = segment
        self._tail = Tail(self.end_offset)
        self._roll_after = UNREAD

    # Growing

    def _make_room(
        self, size: int, offset: int, last_offset: int, max_timestamp: int, now_ms: int
    ) -> Segment:
        """Return the segment to append to: a new one if the active one is full, too old, or cannot count that far.

        The age of a segment is the time from its first batch's timestamp to this one's; without timestamps it is the
        time since its creation. Also works out up to which timestamp the next appends need not ask again.
        """
        segment, config = self._active, self._config
        overflows = last_offset - segment.base_offset > RELATIVE_OFFSET_MAX
        if segment.file.size:
            if segment.created_ms == UNREAD:
                segment.created_ms = now_ms
            if (
                overflows
                or segment.file.size + size > config.segment_bytes
                or self._age_ms(segment, max_timestamp, now_ms) > config.segment_ms - segment.jitter_ms
                or self._index_is_full(segment)
            ):
                self.roll(offset)
        elif overflows:
            self.roll(offset)
        segment = self._active
        if not segment.file.size:
            segment.first_timestamp = max_timestamp
            segment.created_ms = now_ms
            if config.segment_jitter_ms and not segment.jitter_ms:
                segment.jitter_ms = self._home.draw_below(min(config.segment_jitter_ms, config.segment_ms))
        first = segment.first_timestamp
        self._roll_after = first + config.segment_ms - segment.jitter_ms if first >= 0 else UNREAD
        return segment

    def _age_ms(self, segment: Segment, max_timestamp: int, now_ms: int) -> int:
        try:
            first = segment.load_first_timestamp()
        except OSError as error:
            raise self.storage_error(error) from error
        if first >= 0:
            return max_timestamp - first
        return now_ms - segment.created_ms if now_ms != UNREAD else 0

    def _index_is_full(self, segment: Segment) -> bool:
        limit = self._config.segment_index_bytes
        # The last slot of the time index is for the entry that closes it.
        return (
            segment.offset_index.count >= limit // segment.offset_index.entry.size
            or segment.time_index.count >= limit // segment.time_index.entry.size - 1
        )

    def roll(self, base_offset: int = 0) -> None:
        """Begin a new segment at the end of the log; an empty active segment already is one."""
        base_offset = max(base_offset, self.end_offset)
        active = self._active
        if active.base_offset == base_offset and not active.file.size:
            return
        try:
            active.retire()
            # Each at once: should the rest fail, they are not written another time, and still have to be synced.
            self._sync.written([self._snapshots.take(base_offset, self._producers.snapshot())])
            self._sync.written([self._epochs.flush(), *active.paths()[1:]])
            segment = Segment.create(self._disk, self.path, base_offset)
        except OSError as error:
            raise self.storage_error(error) from error
        self._segments.append(segment)
        self._bases.append(base_offset)
        self._activate(segment)

    def storage_error(self, error: OSError) -> BrokerError:
        """Say a failed read or write in Kafka's words.

        A full disk may be tried again, and what we asked for wrongly is a bug (`own_fault`); all else takes the
        directory offline.
        """
        if is_own_fault(error):
            self._home.bug(error)
            return BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{self.path}: {error.strerror}")
        if error.errno not in TRY_AGAIN:
            self._home.fail(error)
        return BrokerError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"the disk under {self.path} failed: {error.strerror}"
        )

    def report_bug(self, error: BaseException) -> None:
        """Have an error reported that is no word about the disk, with the way it came."""
        self._home.bug(error)

    # Measures

    @property
    def size_bytes(self) -> int:
        """The bytes of all segments."""
        return sum(segment.file.size for segment in self._segments)

    @property
    def first_base_offset(self) -> int:
        """Where the oldest segment begins, which may lie before the start offset."""
        return self._bases[0]

    @property
    def segments(self) -> list[Segment]:
        """The segments, oldest first; the last one is being written."""
        return list(self._segments)

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """Every leader epoch that wrote here, with its first offset."""
        return [(entry.epoch, entry.start_offset) for entry in self._epochs.entries]

    # Forgetting

    def _report(self, bad_snapshots: list[str]) -> None:
        for text in bad_snapshots:
            self._home.warn(f"producer snapshot is passed over: {text}")

    def raise_start_offset(self, offset: int) -> bool:
        """Hide everything below `offset`; say whether that is news. The segments go with the next retention run."""
        if offset > self.end_offset:
            raise BrokerError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is above the log's end {self.end_offset}"
            )
        if offset <= self.start_offset:
            return False
        self.start_offset = offset
        self._epochs.truncate_from_start(offset)
        return True

    def delete_old_segments(self, now_ms: int, high_watermark: int) -> int:
        """Remove the oldest segments as the retention settings ask; return how many went."""
        count = retention.breached(
            self._segments, self._config, now_ms, high_watermark, self.start_offset, self.end_offset
        )
        if not count:
            return 0
        failure: BrokerError | None = None
        if count == len(self._segments):
            try:
                self.roll()
            except BrokerError as error:
                cause = error.__cause__
                if count == 1 or not isinstance(cause, OSError) or cause.errno not in TRY_AGAIN:
                    raise
                failure, count = error, count - 1  # on a full disk the others go all the same, and make room
        self.raise_start_offset(self._bases[count])
        gone = self._segments[:count]
        del self._segments[:count]
        del self._bases[:count]
        paths: list[str] = []
        self._sync.names_changed()
        for segment in gone:
            try:
                segment.rename(names.DELETED)
            except OSError as error:
                failure = self._remove_now(segment, error)
            else:
                paths += segment.paths()
        self._home.doom(paths, self._config.file_delete_delay_ms)
        failure = self._remove_snapshots(segment.base_offset for segment in gone) or failure
        if failure is not None:
            raise failure
        return count

    def _remove_now(self, segment: Segment, error: OSError) -> BrokerError:
        """Remove a segment that could not be renamed: it cannot wait under its name, which may become another's."""
        with contextlib.suppress(OSError):
            segment.remove()
        return self.storage_error(error)

    def replace_segments(self, new: list[Segment], old: list[Segment]) -> None:
        """Put cleaned segments in the place of those they were made from; a crash leaves one or the other."""
        doomed = swap.replace(self._disk, self.path, self._segments, new, old)
        self._bases = [segment.base_offset for segment in self._segments]
        fresh = {segment.base_offset for segment in new}
        paths = [path for segment in doomed for path in segment.paths()]
        self._home.doom(paths, self._config.file_delete_delay_ms)
        self._remove_snapshots(each.base_offset for each in doomed if each.base_offset not in fresh)

    def _remove_snapshots(self, offsets: Iterable[int]) -> BrokerError | None:
        """Remove snapshots of segments that have gone; what stays goes with the next `settle`."""
        try:
            self._snapshots.remove_all(offsets)
        except OSError as error:
            return self.storage_error(error)
        return None

    # Durability

    def unsynced(self) -> list[File]:
        """Return what must be synced for all appended so far to be durable; any thread may sync them.

        Pin the files meanwhile, and call `synced` with the end offset of now when all have succeeded.
        """
        return self._sync.pending(self._segments, self._active, self.recovery_point, self.end_offset)

    def synced(self, end_offset: int) -> None:
        """Take note that everything `unsynced` named when the log ended at `end_offset` is on the device."""
        point = min(self._sync.finished(end_offset, self._active.base_offset), self.end_offset)
        self.recovery_point = max(self.recovery_point, point)

    def not_synced(self) -> None:
        """Take note that the sync of what `unsynced` named could not begin, or does not count: all is still to be."""
        self._sync.not_begun()

    @property
    def has_unsynced_tail(self) -> bool:
        """Whether there are batches that a power loss might take."""
        return self.recovery_point < self.end_offset

    def sync(self) -> None:
        """Make all appended so far durable, here and now."""
        try:
            for file in self.unsynced():
                file.sync()
        except BaseException:
            self.not_synced()
            raise
        self.synced(self.end_offset)

    @property
    def is_sync_due(self) -> bool:
        """Whether a segment was rolled since the last sync, which recovery would have to read, or `flush.messages`."""
        synced = self.recovery_point
        return synced < self._active.base_offset or self.end_offset - synced >= self._config.flush_messages

    def settle(self, *, closing: bool = False) -> None:
        """Write the files beside the batches up to the end of the log, so that recovery can resume here.

        They are synced with the next `unsynced`. At a clean stop a short log without producers gets no snapshot, since
        reading the log itself is as quick.
        """
        if self._sync.settled_offset != self.end_offset:
            active = self._active
            active.retire()
            self._sync.written([*active.paths()[1:], self._epochs.flush()])
            if (
                not closing
                or self._snapshots.offsets
                or self._producers.entries  # Apache Kafka would not look for them in the log
                or self.start_offset > self._bases[0]
                or not is_short(self._segments)
            ):
                self._sync.written([self._snapshots.take(self.end_offset, self._producers.snapshot())])
            self._snapshots.remove_strays([*self._bases, self.end_offset])
            self._sync.settled(active, self.end_offset)
        elif self._epochs.dirty:
            self._sync.written([self._epochs.flush()])

    @property
    def unsettled_bytes(self) -> int:
        """How many bytes recovery would have to read in the active segment, at most."""
        return self._active.file.size - self._sync.settled_position(self._active)

    # Going out of service

    def close(self, clean: bool = True) -> None:
        """Settle and sync everything, then give all descriptors back; an unclean close only does the latter."""
        if clean:
            self.settle()
            self.sync()
        self.rest()

    def rest(self) -> None:
        """Give descriptors back until the next use."""
        self._tail.newest_offset, self._tail.newest = -1, b""
        for segment in self._segments:
            segment.rest()

    def delete(self) -> None:
        """Give the directory a name that says it is deleted, and have it removed after a while."""
        self.rest()
        name = names.marked_dir(self.topic, self.partition, self._home.draw_id(), names.DELETE_DIR)
        target = f"{self.path.rpartition('/')[0]}/{name}"
        self.move(target)
        self._home.doom([target], self._config.file_delete_delay_ms)

    def move(self, path: str) -> None:
        """Rename the directory."""
        self._disk.rename(self.path, path)
        self.path = path
        for segment in self._segments:
            segment.rename("", path)
        for beside in (self._epochs, self._snapshots, self._sync):
            beside.move(path)
