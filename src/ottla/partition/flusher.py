"""From appended to durable: what an acknowledgement waits for.

`AckFlusher` is group commit: whatever was appended while one sync was under way is covered by the next. `OsFlusher`
trusts the page cache, as Kafka does. The first failed sync takes the directory offline; it is never tried again, since
the kernel may have marked the lost pages clean (Rebello et al., ATC 2020).
"""

from collections.abc import Callable

from ottla.log.log import Log
from ottla.partition.partition import Partition
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.world.disk import File
from ottla.world.worker import Worker


class AckFlusher:
    """Durable means on the device.

    `later` runs a callback at the end of the loop's turn, so that all requests read in that turn share one sync.
    `on_failure(partition, error)` takes the directory offline.
    """

    __slots__ = ("_dirty", "_later", "_on_failure", "_on_idle", "_syncing", "_workers", "syncs")

    def __init__(
        self,
        workers: list[Worker],
        later: Callable[[Callable[[], None]], object],
        on_failure: Callable[[Partition, OSError], None],
    ) -> None:
        self._workers = workers
        self._later = later
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
        jobs = []
        for partition in self._dirty:
            if partition.error is not None:
                continue  # its directory failed: what is there is not synced again
            log = partition.log
            files = log.unsynced()
            for file in files:
                file.pins += 1
            jobs.append((partition, log, log.end_offset, files, partition.cuts))
        self._dirty = {}
        share = -(-len(jobs) // len(self._workers))
        for number, worker in enumerate(self._workers):
            if part := jobs[number * share : (number + 1) * share]:
                self._syncing += 1
                self.syncs += 1
                self._dispatch(worker, part)

    def _dispatch(self, worker: Worker, jobs: list[tuple[Partition, Log, int, list[File], int]]) -> None:
        def work() -> list[OSError | None]:
            return [_sync(files) for _, _, _, files, _ in jobs]

        def done(outcome: list[OSError | None], error: BaseException | None) -> None:
            if error is not None:
                raise error
            self._syncing -= 1
            for (partition, log, end_offset, files, cuts), failure in zip(jobs, outcome, strict=True):
                for file in files:
                    file.pins -= 1
                if partition.error is not None:
                    continue
                if failure is None and partition.cuts != cuts:
                    self._dirty[partition] = None  # what lies there now may have come after the sync
                    continue
                if failure is None or partition.log is not log:
                    # Moved to another directory meanwhile: the swap has synced it there, and here its name is gone.
                    log.synced(end_offset)
                    partition.advance(end_offset)
                else:
                    self._on_failure(partition, failure)
            self._start()
            if not self._syncing and self._on_idle is not None:
                self._on_idle()
                self._on_idle = None

        worker.run(work, done)

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


def _sync(files: list[File]) -> OSError | None:
    try:
        for file in files:
            file.sync()
    except OSError as error:
        return error
    return None


def storage_error(error: OSError) -> BrokerError:
    """Say a disk's failure in Kafka's words."""
    return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"The log directory failed: {error}")
