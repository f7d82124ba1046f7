"""From appended to durable: what an acknowledgement waits for.

`AckFlusher` is group commit: whatever was appended while one sync was under way is covered by the next. `OsFlusher`
trusts the page cache, as Kafka does. The first failed sync takes the directory offline; it is never tried again, since
the kernel may have marked the lost pages clean (Rebello et al., ATC 2020).

F1  Whatever fails, whoever waits is answered, and the next sync begins: what goes wrong with one partition is of no
    concern to the others of its sync.
F2  An error that is none of the disk's (a bug of ours) is reported with the way it came. It leaves open what is on the
    disk, so it counts as a failed sync.
F3  A sync that could not begin for want of descriptors has lost nothing, and is tried again, wherever it was noticed.
F4  The log is told what became of every sync. One whose result does not count (its partition was cut, or put to sleep)
    is as good as not begun: the next one covers the same files. One that failed takes its directory offline, whatever
    has become of the partition, as long as the log is in use.
"""

import errno
from collections.abc import Callable
from typing import NamedTuple

from ottla.log.files import TRY_AGAIN
from ottla.log.log import Log
from ottla.partition.partition import Partition
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.world.disk import NO_DESCRIPTORS, File, pin_all, unpin_all
from ottla.world.worker import Worker


class _Job(NamedTuple):
    """What of one partition is being synced."""

    partition: Partition
    log: Log
    end_offset: int
    files: list[File]
    cuts: int


class AckFlusher:
    """Durable means on the device.

    `later` runs a callback at the end of the loop's turn, so that all requests read in that turn share one sync.
    `on_failure(partition, error)` takes the directory offline. `again` runs a callback after a pause (F3).
    """

    __slots__ = ("_again", "_dirty", "_later", "_on_failure", "_on_idle", "_syncing", "_workers", "syncs")

    def __init__(
        self,
        workers: list[Worker],
        later: Callable[[Callable[[], None]], object],
        on_failure: Callable[[Partition, OSError], None],
        again: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        self._workers = workers
        self._later = later
        self._again = again or later
        self._on_failure = on_failure
        self._dirty: dict[Partition, None] = {}
        self._syncing = 0
        self._on_idle: Callable[[], object] | None = None
        self.syncs = 0

    def appended(self, partition: Partition) -> None:
        """Remember the partition for the next sync."""
        dirty = self._dirty
        if not dirty and not self._syncing:
            self._later(self._start)
        dirty[partition] = None

    flush = appended

    def _start(self) -> None:
        if self._syncing or not self._dirty:
            return
        dirty, self._dirty = self._dirty, {}
        jobs = []
        for partition in dirty:
            if partition.error is not None:
                continue  # its directory failed: what is there is not synced again
            try:
                jobs.append(_begin(partition))
            except Exception as error:  # noqa: BLE001  # F1
                self._not_begun(partition, error)
        share = -(-len(jobs) // len(self._workers))
        for number, worker in enumerate(self._workers):
            if part := jobs[number * share : (number + 1) * share]:
                self._syncing += 1
                self.syncs += 1
                self._dispatch(worker, part)
        if self._dirty and not self._syncing:
            self._again(self._start)

    def _dispatch(self, worker: Worker, jobs: list[_Job]) -> None:
        def work() -> list[BaseException | None]:
            return [_sync(job.files) for job in jobs]

        def done(outcome: list[BaseException | None] | None, error: BaseException | None) -> None:
            self._syncing -= 1
            for job, failure in zip(jobs, outcome or [error] * len(jobs), strict=True):
                try:
                    self._finish(job, failure)
                except Exception as bug:  # noqa: BLE001  # F1
                    job.log.report_bug(bug)
                    if job.partition.error is None:
                        job.partition.fail(storage_error(_broken_off(bug, job.log)))
            self._start()
            if not self._syncing and not self._dirty and self._on_idle is not None:
                on_idle, self._on_idle = self._on_idle, None
                on_idle()

        worker.run(work, done)

    def _finish(self, job: _Job, failure: BaseException | None) -> None:
        partition, log, end_offset, files, cuts = job
        try:
            unpin_all(files)
        except OSError as error:
            failure = failure or error
        # Moved to another directory meanwhile: the swap has synced it there, and here its name is gone.
        is_moved = partition.log is not log
        if failure is not None and not is_moved:
            log.not_synced()
            if isinstance(failure, OSError) and failure.errno in NO_DESCRIPTORS:
                self._dirty[partition] = None  # F3
            else:
                self._fail(partition, failure)
        elif partition.error is not None:
            log.not_synced()  # it may be woken, with all that it had
        elif partition.cuts != cuts:
            log.not_synced()
            self._dirty[partition] = None  # what lies there now may have come after the sync
        else:
            log.synced(end_offset)
            partition.advance(end_offset)

    def _not_begun(self, partition: Partition, error: Exception) -> None:
        if isinstance(error, OSError) and error.errno in TRY_AGAIN:
            self._dirty[partition] = None  # F3
        else:
            self._fail(partition, error)

    def _fail(self, partition: Partition, failure: BaseException) -> None:
        if not isinstance(failure, OSError):  # F2
            partition.log.report_bug(failure)
            failure = _broken_off(failure, partition.log)
        self._on_failure(partition, failure)

    def when_idle(self, callback: Callable[[], object]) -> None:
        """Call back once nothing waits for a sync."""
        if self._dirty or self._syncing:
            self._on_idle = callback
        else:
            callback()


class OsFlusher:
    """Durable means handed to the operating system; `flush.messages` and `flush.ms` ask for a sync all the same."""

    __slots__ = ("_behind",)

    def __init__(self, behind: AckFlusher) -> None:
        self._behind = behind

    def appended(self, partition: Partition) -> None:
        """Raise the high watermark at once."""
        log = partition.log
        partition.advance(log.end_offset)
        if log.is_sync_due:
            self._behind.appended(partition)  # a segment that was rolled is synced, as Kafka does

    def flush(self, partition: Partition) -> None:
        """Sync a partition without anybody waiting for it."""
        self._behind.appended(partition)

    def when_idle(self, callback: Callable[[], object]) -> None:
        """Call back once nothing is being synced."""
        self._behind.when_idle(callback)


def _begin(partition: Partition) -> _Job:
    log = partition.log
    files = log.unsynced()
    try:
        pin_all(files)
    except BaseException:
        log.not_synced()
        raise
    return _Job(partition, log, log.end_offset, files, partition.cuts)


def _sync(files: list[File]) -> Exception | None:
    try:
        for file in files:
            file.sync()
    except Exception as error:  # noqa: BLE001  # F1
        return error
    return None


def _broken_off(bug: BaseException, log: Log) -> OSError:
    return OSError(errno.EIO, f"a sync broke off, {bug!r}", log.path)


def storage_error(error: OSError) -> BrokerError:
    """Say a disk's failure in Kafka's words."""
    return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"The log directory failed: {error}")
