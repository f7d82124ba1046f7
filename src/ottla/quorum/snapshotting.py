"""When a snapshot is due, writing it without holding anybody up, and forgetting what it makes superfluous.

A snapshot is idle, then `begin()` makes it a file that grows by a batch a turn, which the worker syncs, and which then
gets its name.
"""

import contextlib
from collections.abc import Callable

from ottla.log.log import Log
from ottla.metadata.image import Image
from ottla.quorum.snapshots import Snapshots, SnapshotWriter
from ottla.quorum.surroundings import QuorumSettings, Surroundings
from ottla.raft.event import Snapshotted, Trimmed
from ottla.raft.voters import Voters
from ottla.world.clock import steady_ms


class Snapshotting:
    """Takes snapshots of one log."""

    __slots__ = (
        "_log",
        "_now_ms",
        "_settings",
        "_since_ms",
        "_snapshots",
        "_tell",
        "_world",
        "_writer",
        "bytes_since",
        "taken",
    )

    def __init__(
        self,
        world: Surroundings,
        settings: QuorumSettings,
        log: Log,
        snapshots: Snapshots,
        tell: Callable[[Snapshotted | Trimmed], None],
    ) -> None:
        """`tell` is given what has become of the log."""
        self._tell = tell
        self._world = world
        self._settings = settings
        self._log = log
        self._snapshots = snapshots
        self._now_ms = steady_ms(world.clock)
        self._since_ms = self._now_ms()
        self._writer: SnapshotWriter | None = None
        self.bytes_since = 0  # of the log, folded since the last snapshot
        self.taken = 0

    def is_due(self) -> bool:
        """True when enough was written, or enough time has passed with something written."""
        if self._writer is not None or not self.bytes_since:
            return False
        age_ms = self._now_ms() - self._since_ms
        interval_ms = self._settings.snapshot_interval_ms
        return self.bytes_since >= self._settings.snapshot_bytes or 0 < interval_ms <= age_ms

    def begin(self, image: Image, kraft_version: int, voters: Voters | None) -> None:
        """Start a snapshot of a committed image; it is finished in later turns."""
        if self._writer is not None or image.offset < 0:
            return
        self._since_ms = self._now_ms()
        self.bytes_since = 0
        try:
            self._writer = self._snapshots.begin(
                image, kraft_version=kraft_version, voters=voters, now_ms=self._world.clock.now_ms()
            )
        except OSError as error:
            self._give_up(error)
            return
        self._step()

    def finish(self) -> None:
        """Complete the snapshot that is being written, here and now."""
        writer = self._writer
        if writer is None:
            return
        try:
            while writer.step():
                pass
            writer.file.sync()
        except OSError as error:
            self._synced(None, error)
        else:
            self._synced(None, None)

    def _step(self) -> None:
        writer, later = self._writer, self._world.later
        if writer is None:
            return
        try:
            while writer.step():
                if later is not None:
                    later(self._step)
                    return
            writer.file.pins += 1
        except Exception as error:  # noqa: BLE001  # else no other would ever be taken
            self._give_up(error)
            return

        def done(result: object, failure: BaseException | None) -> None:
            writer.file.pins -= 1
            if self._writer is writer:
                self._synced(result, failure)

        self._world.worker.run(writer.file.sync, done)

    def _synced(self, _: object, error: BaseException | None) -> None:
        writer = self._writer
        if writer is None:
            return
        try:
            if error is not None:
                raise error
            self._snapshots.finish(writer)
        except Exception as failure:  # noqa: BLE001  # else no other would ever be taken
            self._give_up(failure)
            return
        self._writer = None
        self.taken += 1
        self._tell(Snapshotted(writer.id))
        self.clean()

    def _give_up(self, error: Exception) -> None:
        # The log still has everything, so a snapshot that cannot be written is only tried again later.
        self._world.warn(f"a snapshot of the metadata could not be written: {error!r}")
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.file.close()
            with contextlib.suppress(OSError):
                self._world.disk.remove(writer.file.path)
        self.bytes_since = max(self.bytes_since, 1)

    def clean(self) -> None:
        """Remove snapshots beyond the retention, and the log below the oldest that is left."""
        now_ms = self._world.clock.now_ms()
        snapshots, log = self._snapshots, self._log
        while len(snapshots.ids) > 1:
            size_bytes = log.size_bytes + sum(snapshots.size_bytes(id) for id in snapshots.ids)
            too_large = 0 <= self._settings.retention_bytes < size_bytes
            too_old = 0 <= self._settings.retention_ms < now_ms - snapshots.modified_ms(snapshots.ids[0])
            if not too_large and not too_old:
                return
            kept = snapshots.ids[1]
            if kept.offset > log.end_offset:
                return
            log.raise_start_offset(kept.offset)
            log.delete_old_segments(now_ms, log.end_offset)
            snapshots.remove_oldest()
            self._tell(Trimmed(kept))
