"""What a node does on its own, and how often; the settings of the day say so."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.log.cleaner import Cleaner, CleanerConfig, Cleaning
from ottla.log.directory import LogDirectory
from ottla.partition.upkeep import Chore

if TYPE_CHECKING:
    from ottla.node.node import Node

_WAKE_EVERY_MS = 20
_WAKE_AT_ONCE = 25
_MAKE_AT_ONCE = 2
_LOOK_EVERY_MS = 500
_TICK_MS = 1000
_DOOMED_EVERY_MS = 5000
_REST_EVERY_MS = 60_000


class Chores:
    """All chores of one node."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._cleaner = Cleaner(node.world.disk, _cleaner_config(node))
        self._cleaning: Cleaning | None = None
        self._dirty_since: dict[tuple[str, int], int] = {}

        def every(name: str) -> Any:
            return lambda: max(1, self._node.values[name])

        def fixed(interval_ms: int) -> Any:
            return lambda: interval_ms

        table = (
            ("retention", every("log.retention.check.interval.ms"), self._retention),
            ("checkpoint", every("log.flush.offset.checkpoint.interval.ms"), self._checkpoint),
            ("start offsets", every("log.flush.start.offset.checkpoint.interval.ms"), self._checkpoint),
            (
                "high watermarks",
                every("replica.high.watermark.checkpoint.interval.ms"),
                self._high_watermarks,
            ),
            (
                "expiry of producers",
                every("producer.id.expiration.check.interval.ms"),
                self._expire_producers,
            ),
            ("flush", every("log.flush.scheduler.interval.ms"), self._flush),
            ("cleaning", every("log.cleaner.backoff.ms"), self._clean),
            ("removal of files", fixed(_DOOMED_EVERY_MS), self._remove_doomed),
            ("rest of files", fixed(_REST_EVERY_MS), self._rest),
            ("controller", fixed(_TICK_MS), node.quorum.tick),
            ("replicas in sync", self._isr_ms, node.roles.shrink),
            ("replicas refused", fixed(_TICK_MS), node.roles.try_again),
            ("idle connections", self._idle_tick_ms, self._close_idle),
        )
        self._chores = [
            Chore(name, interval, work, node.world.timers, node.report) for name, interval, work in table
        ]
        self._waking: Any = node.world.timers.call_later(_WAKE_EVERY_MS / 1000, self._wake)

    def _isr_ms(self) -> int:
        """Twice in the time that followers are given, as Kafka has it."""
        lag_ms: int = self._node.values["replica.lag.time.max.ms"]
        return max(1, lag_ms // 2)

    def stop(self) -> None:
        """Do nothing more."""
        self._waking.cancel()
        for chore in self._chores:
            chore.stop()

    def _wake(self) -> None:
        """Open sleeping partitions a few at a time, and make the files of new ones, so that first requests need not.

        Coordinators take up what was under way before the start, one after the other.
        """
        busy = self._node.table.wake_some(_WAKE_AT_ONCE)
        busy = self._node.broker.load_some() or busy
        try:
            for directory in self._node.table.directories:
                busy = (directory.offline is None and directory.make_some(_MAKE_AT_ONCE)) or busy
        except OSError as error:
            self._node.report(f"the files of a new partition could not be made yet: {error}")
        delay_ms = _WAKE_EVERY_MS if busy else _LOOK_EVERY_MS
        self._waking = self._node.world.timers.call_later(delay_ms / 1000, self._wake)

    def _retention(self) -> None:
        now_ms = self._node.world.clock.now_ms()
        for partition in tuple(self._node.table.partitions.values()):
            if not self._cleaner.is_busy(partition.log):
                partition.log.delete_old_segments(now_ms, partition.high_watermark)

    def _each_directory(self, work: Callable[[LogDirectory], object]) -> None:
        """Do something in every directory; one that fails does not keep the next from its turn."""
        for directory in self._node.table.directories:
            if directory.offline is None:
                try:
                    work(directory)
                except OSError as error:
                    self._node.report(f"upkeep of {directory.path} failed and is tried again later: {error}")

    def _checkpoint(self) -> None:
        self._each_directory(LogDirectory.checkpoint)

    def _high_watermarks(self) -> None:
        high_watermarks = self._node.table.high_watermarks
        self._each_directory(lambda directory: directory.write_high_watermarks(high_watermarks(directory)))

    def _expire_producers(self) -> None:
        now_ms = self._node.world.clock.now_ms()
        for log in self._node.table.logs():
            log.expire_producers(now_ms)

    def _flush(self) -> None:
        """Honour flush.ms: sync what has waited for so long."""
        now_ms = self._node.world.clock.now_ms()
        for name, partition in self._node.table.partitions.items():
            log = partition.log
            if log.recovery_point >= log.end_offset:
                self._dirty_since.pop(name, None)
            elif now_ms - self._dirty_since.setdefault(name, now_ms) >= log.config.flush_ms:
                self._node.flusher.flush(partition)

    def _remove_doomed(self) -> None:
        now_ms = self._node.world.clock.now_ms()
        self._each_directory(lambda directory: directory.remove_doomed(now_ms))

    def _rest(self) -> None:
        self._each_directory(LogDirectory.rest_idle)

    def _idle_tick_ms(self) -> int:
        idle_ms: int = self._node.values["connections.max.idle.ms"]
        return max(1000, idle_ms // 10)

    def _close_idle(self) -> None:
        self._node.connections.close_idle(10)

    def _clean(self) -> None:
        """Start one compaction, if one is due and none is under way."""
        node = self._node
        if self._cleaning is not None or not node.values["log.cleaner.enable"]:
            return
        logs = [(partition.log, partition.last_stable_offset) for partition in node.table.partitions.values()]
        cleaning = self._cleaner.plan(logs, node.world.clock.now_ms())
        if cleaning is None:
            return
        self._cleaning = cleaning

        def done(result: Any, error: BaseException | None) -> None:
            if error is not None:
                self._cleaning = None
                self._cleaner.fail(cleaning, error)
                node.report(f"cleaning {cleaning.log.topic}-{cleaning.log.partition} failed: {error!r}")
            elif self._cleaner.install(cleaning, result):
                node.background.run(cleaning.clean, done)  # it goes on, a slice at a time
            else:
                self._cleaning = None
                self._clean()  # perhaps another log is due

        node.background.run(cleaning.clean, done)


def _cleaner_config(node: "Node") -> CleanerConfig:
    return CleanerConfig(
        dedupe_buffer_size=node.values["log.cleaner.dedupe.buffer.size"],
        dedupe_buffer_load_factor=node.values["log.cleaner.io.buffer.load.factor"],
        io_buffer_size=node.values["log.cleaner.io.buffer.size"],
    )
