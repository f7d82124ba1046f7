"""The cleaner: which compacted log is dirtiest, what of it may be cleaned, and what became of it.

E1  Nothing at or above the last stable offset, in the active segment, or of an age below `min.compaction.lag.ms` goes.
E2  A log is cleaned when its dirty part exceeds `min.cleanable.dirty.ratio`, or `max.compaction.lag.ms` has passed.
E3  A replacement is installed only while every segment it replaces is in the log as it was read; otherwise the work is
    thrown away, so truncation, deletion and moves need not wait for the cleaner.
E4  A log that cannot be cleaned, because what it holds cannot be read, is left alone until the next start. One log that
    cannot even be looked at keeps the cleaner from no other.

    plan() --Cleaning--> clean() --Slice--> install() --True--> clean() ...
                            |                  |
                          error             False: done, or no longer wanted
                            |
                            +--> fail()

`Cleaning.clean` may run in a thread, all else runs on the loop. How often, and how fast, is the caller's business.
"""

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ottla.log.checkpoint import CLEANER_OFFSETS, CheckpointError, PartitionKey, read_offsets, write_offsets
from ottla.log.compaction import Limits, Plan, Slice, Source, compact
from ottla.log.log import Log
from ottla.log.producer_state import ProducerEntry
from ottla.log.segment import Segment
from ottla.log.sieve import LastBatch
from ottla.wire.errors import BrokerError
from ottla.world.disk import Disk


@dataclass(frozen=True, slots=True)
class CleanerConfig:
    """What a cleaner may use; the defaults are Kafka's `log.cleaner.*` for one thread."""

    dedupe_buffer_size: int = 128 << 20
    dedupe_buffer_load_factor: float = 0.9
    io_buffer_size: int = 512 << 10


@dataclass(frozen=True, slots=True)
class Dirt:
    """How a log lies before the cleaner: `[start_offset, end_offset)` is dirty and may be cleaned."""

    start_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    delay_ms: int

    @property
    def ratio(self) -> float:
        """The dirty share of what the cleaner may touch."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


class Cleaning:
    """The cleaning of one log, while it goes on."""

    __slots__ = (
        "_work",
        "aborted",
        "bytes_read",
        "bytes_written",
        "dirt",
        "log",
        "plan",
        "records_kept",
        "records_read",
        "sources",
    )

    def __init__(self, log: Log, dirt: Dirt, plan: Plan) -> None:
        self.log = log
        self.dirt = dirt
        self.plan = plan
        self.aborted = False
        self.bytes_read = 0
        self.bytes_written = 0
        self.records_read = 0
        self.records_kept = 0
        # Those still to be replaced, oldest first.
        self.sources = plan.sources
        self._work = compact(plan)

    def clean(self) -> Slice:
        """Do the next slice; this may run in a thread, one call at a time."""
        return next(self._work)

    def still_stands(self) -> bool:
        """Say whether all segments yet to be replaced are in the log as they were read, and the log where it was."""
        if self.aborted or self.log.path != self.plan.directory:
            return False
        rolled = {id(segment) for segment in self.log.segments[:-1]}
        return all(
            id(source.segment) in rolled and source.segment.size_bytes == source.size_bytes
            for source in self.sources
        )

    def drop(self) -> None:
        """Stop, and remove what was half written; no slice may be under way."""
        self._work.close()


class Cleaner:
    """Chooses logs, and keeps how far each is clean in `cleaner-offset-checkpoint` of its directory."""

    def __init__(self, disk: Disk, config: CleanerConfig | None = None) -> None:
        self.config = config or CleanerConfig()
        self.dirtiest_ratio = 0.0
        self.delay_ms_max = 0
        self.last_run_ms = 0
        self.last: Cleaning | None = None
        self._disk = disk
        self._busy: dict[PartitionKey, Cleaning] = {}
        self._known: dict[PartitionKey, Log] = {}
        self._unclean: dict[PartitionKey, Log] = {}
        self._clean_offsets: dict[str, dict[PartitionKey, int]] = {}

    def plan(self, logs: Iterable[tuple[Log, int]], now_ms: int) -> Cleaning | None:
        """Begin with the dirtiest of all `logs`, which come with their last stable offsets; None when none is due."""
        compacted = [(log, stable_offset) for log, stable_offset in logs if log.config.is_compacted]
        self._recognize(compacted)
        self.last_run_ms = now_ms
        self.dirtiest_ratio = 0.0
        self.delay_ms_max = 0
        chosen: tuple[Log, Dirt] | None = None
        for log, stable_offset in compacted:
            if self.is_busy(log) or self.is_unclean(log):
                continue
            try:
                dirt = survey(log, self.clean_offset(log), stable_offset, now_ms)
            except BrokerError:
                continue
            except OSError as error:
                log.storage_error(error)
                continue
            except Exception as error:  # noqa: BLE001  # E4
                log.report_bug(error)
                self._unclean[_key(log)] = log
                continue
            self.dirtiest_ratio = max(self.dirtiest_ratio, dirt.ratio)
            self.delay_ms_max = max(self.delay_ms_max, dirt.delay_ms)
            overdue = dirt.delay_ms > 0 and dirt.dirty_bytes > 0
            if not overdue and dirt.ratio <= log.config.min_cleanable_dirty_ratio:
                continue
            if chosen is None or dirt.ratio > chosen[1].ratio:
                chosen = log, dirt
        if chosen is None:
            return None
        log, dirt = chosen
        cleaning = Cleaning(log, dirt, self._draw(log, dirt, now_ms))
        self._busy[_key(log)] = cleaning
        return cleaning

    def _recognize(self, logs: list[tuple[Log, int]]) -> None:
        """Forget logs that are gone, so that nothing of theirs is believed of a log made anew under the same name."""
        known = {_key(log): log for log, _ in logs}
        for key, log in self._known.items():
            if known.get(key) is not log:
                self._unclean.pop(key, None)
                for directory, offsets in self._clean_offsets.items():
                    if offsets.pop(key, None) is not None:
                        self._write(directory)
        self._known = known

    def _draw(self, log: Log, dirt: Dirt, now_ms: int) -> Plan:
        config = log.config
        return Plan(
            disk=self._disk,
            directory=log.path,
            sources=tuple(
                Source.of(segment) for segment in log.segments if segment.base_offset < dirt.end_offset
            ),
            start_offset=dirt.start_offset,
            end_offset=dirt.end_offset,
            aborted=tuple(txn for segment in log.segments for txn in segment.transaction_index.entries()),
            producers={entry.producer_id: _last_batch(entry) for entry in log.producers()},
            now_ms=now_ms,
            delete_retention_ms=config.delete_retention_ms,
            limits=Limits(
                dedupe_bytes=int(self.config.dedupe_buffer_size * self.config.dedupe_buffer_load_factor),
                buffer_bytes=self.config.io_buffer_size // 2,
                segment_bytes=config.segment_bytes,
                index_bytes=config.segment_index_bytes,
                index_interval_bytes=config.index_interval_bytes,
            ),
        )

    def install(self, cleaning: Cleaning, done: Slice) -> bool:
        """Take up a slice of work; False when the cleaning has come to its end, good or not."""
        cleaning.bytes_read += done.bytes_read
        cleaning.bytes_written += done.bytes_written
        cleaning.records_read += done.records_read
        cleaning.records_kept += done.records_kept
        if done.replacement is not None:
            new, old = done.replacement
            if not cleaning.still_stands():
                with contextlib.suppress(OSError):  # what is left of it goes with the next start
                    new.remove()
                self._release(cleaning)
                return False
            try:
                cleaning.log.replace_segments([new], list(old))
            except OSError as error:
                # How far the exchange came is for the next start to find out.
                cleaning.log.storage_error(error)
                self._give_up(cleaning)
                return False
            cleaning.sources = cleaning.sources[len(old) :]
        if done.clean_offset is None:
            return True
        self.last = cleaning
        stands = cleaning.still_stands()  # if it was cut meanwhile, what has been written there since is dirty
        self._release(cleaning)
        if stands:
            self._keep(cleaning.log, done.clean_offset)
        return False

    def fail(self, cleaning: Cleaning, error: BaseException) -> None:
        """End a cleaning that raised.

        What the disk refused may be tried again; what cannot be read may not, unless the log was changed under the
        hands of the reader.
        """
        if isinstance(error, OSError) or not cleaning.still_stands():
            self._release(cleaning)
        else:
            self._give_up(cleaning)

    def _give_up(self, cleaning: Cleaning) -> None:
        self._release(cleaning)
        self._unclean[_key(cleaning.log)] = cleaning.log

    def _release(self, cleaning: Cleaning) -> None:
        self._busy.pop(_key(cleaning.log), None)
        with contextlib.suppress(OSError):  # what is left of it goes with the next start
            cleaning.drop()

    def is_busy(self, log: Log) -> bool:
        """Whether a log is being cleaned, so that retention had better come back later."""
        return _key(log) in self._busy

    def is_unclean(self, log: Log) -> bool:
        """Whether a log was given up; a log made anew under the same name was not."""
        return self._unclean.get(_key(log)) is log

    @property
    def unclean_count(self) -> int:
        """How many logs were given up."""
        return len(self._unclean)

    def clean_offset(self, log: Log) -> int | None:
        """Return up to where a log was cleaned, or None when it never was."""
        return self._offsets(_directory(log)).get(_key(log))

    def truncate(self, cuts: Sequence[tuple[Log, int]]) -> None:
        """Take note that logs are cut at these offsets: what is written there now is dirty.

        A cleaning of what is cut is in vain. That must be said here, for a segment may grow to its old size again.
        """
        lowered: dict[str, None] = {}
        for log, offset in cuts:
            cleaning = self._busy.get(_key(log))
            if cleaning is not None and cleaning.log is log and offset < cleaning.dirt.end_offset:
                cleaning.aborted = True
            known = self.clean_offset(log)
            if known is not None and known > offset:
                directory = _directory(log)
                self._offsets(directory)[_key(log)] = offset
                lowered[directory] = None
        for directory in lowered:
            self._write(directory)

    def _keep(self, log: Log, offset: int) -> None:
        directory = _directory(log)
        self._offsets(directory)[_key(log)] = offset
        self._write(directory)

    def _offsets(self, directory: str) -> dict[PartitionKey, int]:
        known = self._clean_offsets.get(directory)
        if known is None:
            try:
                known = read_offsets(self._disk, f"{directory}/{CLEANER_OFFSETS}")
            except CheckpointError:
                known = {}  # all is dirty then, which costs work and loses nothing
            self._clean_offsets[directory] = known
        return known

    def _write(self, directory: str) -> None:
        # An old checkpoint costs work after a restart and loses nothing; a broken disk is noticed by the logs.
        with contextlib.suppress(OSError):
            write_offsets(self._disk, f"{directory}/{CLEANER_OFFSETS}", self._clean_offsets[directory])


def survey(log: Log, clean_offset: int | None, stable_offset: int, now_ms: int) -> Dirt:
    """Measure what of a log is dirty and may be cleaned."""
    segments = log.segments
    start_offset = log.start_offset
    # A checkpoint from before a truncation or a lost tail says nothing about this log.
    if clean_offset is not None and log.start_offset <= clean_offset <= log.end_offset:
        start_offset = clean_offset
    rolled = segments[:-1]
    uncleanable = min(stable_offset, segments[-1].base_offset)
    dirty = [
        segment for place, segment in enumerate(rolled) if segments[place + 1].base_offset > start_offset
    ]
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        young = (segment.base_offset for segment in dirty if segment.largest_timestamp() > now_ms - lag_ms)
        uncleanable = min(uncleanable, next(young, uncleanable))
    # The segment that holds the first uncleanable offset stays whole.
    end_offset = _floor(segments, max(start_offset, uncleanable))
    return Dirt(
        start_offset=start_offset,
        end_offset=end_offset,
        clean_bytes=sum(segment.size_bytes for segment in segments if segment.base_offset < start_offset),
        dirty_bytes=sum(segment.size_bytes for segment in dirty if segment.base_offset < end_offset),
        delay_ms=_delay_ms(dirty, log.config.max_compaction_lag_ms, now_ms),
    )


def _floor(segments: list[Segment], offset: int) -> int:
    """Return the base offset of the segment that `offset` falls into."""
    for segment in reversed(segments):
        if segment.base_offset <= offset:
            return segment.base_offset
    return segments[0].base_offset


def _delay_ms(dirty: list[Segment], lag_ms: int, now_ms: int) -> int:
    """Return for how long the oldest dirty segment has been waiting beyond `lag_ms`."""
    due_ms = now_ms - max(lag_ms, 0)
    if due_ms <= 0:
        return 0  # the default lag is for ever, and the segments need not be asked
    oldest = min((ms for segment in dirty if (ms := segment.load_first_timestamp()) > 0), default=due_ms)
    return max(due_ms - oldest, 0)


def _last_batch(producer: ProducerEntry) -> LastBatch:
    return LastBatch(producer.batches[-1].last_offset if producer.batches else None, producer.epoch)


def _key(log: Log) -> PartitionKey:
    return log.topic, log.partition


def _directory(log: Log) -> str:
    return log.path.rpartition("/")[0]
