"""What a node does on its own, and how often; the settings of the day say so."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.log.cleaner import Cleaner, CleanerConfig, Cleaning
from ottla.log.directory import LogDirectory
from ottla.partition.partition import Partition
from ottla.partition.upkeep import Chore, for_each
from ottla.wire.errors import BrokerError
from ottla.world.clock import steady_ms

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
        self._steady_ms = steady_ms(node.world.clock)
        self._cleaner = Cleaner(node.world.disk, _cleaner_config(node))
        for directory in node.table.directories:
            directory.on_truncation = self._cleaner.truncate
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

        Coordinators take up what was under way before the start, one after the other. Whatever fails is reported, keeps
        nothing else from its turn, and is tried again.
        """
        busy = False
        table: tuple[tuple[str, Callable[[], bool]], ...] = (
            ("a partition could not be opened", lambda: self._node.table.wake_some(_WAKE_AT_ONCE)),
            ("a coordinator could not be loaded", self._node.broker.load_some),
            ("the files of a new partition could not be made", self._make_some),
        )
        for what, work in table:
            try:
                busy = work() or busy
            except Exception as error:  # noqa: BLE001  # it would end all that is done here for good
                self._node.report(f"{what} yet: {error}")
        delay_ms = _WAKE_EVERY_MS if busy else _LOOK_EVERY_MS
        self._waking = self._node.world.timers.call_later(delay_ms / 1000, self._wake)

    def _make_some(self) -> bool:
        busy = False
        for directory in self._node.table.directories:
            busy = (directory.offline is None and directory.make_some(_MAKE_AT_ONCE)) or busy
        return busy

    def _retention(self) -> None:
        now_ms = self._node.world.clock.now_ms()

        def delete_old(partition: Partition) -> None:
            if not self._cleaner.is_busy(partition.log):
                partition.log.delete_old_segments(now_ms, partition.high_watermark)

        self._each_partition("retention", delete_old)

    def _each_partition(self, name: str, work: Callable[[Partition], object]) -> None:
        """Do something with every partition that is awake; one that fails does not keep the next from its turn."""
        partitions = tuple(self._node.table.partitions.values())
        for_each(partitions, work, lambda each: f"{name} of {each.topic}-{each.index}", self._node.report)

    def _each_directory(self, work: Callable[[LogDirectory], object]) -> None:
        """Do something in every directory; one that fails does not keep the next from its turn."""
        online = [each for each in self._node.table.directories if each.offline is None]
        for_each(online, work, lambda each: f"upkeep of {each.path}", self._node.report)

    def _checkpoint(self) -> None:
        self._each_directory(LogDirectory.checkpoint)

    def _high_watermarks(self) -> None:
        high_watermarks = self._node.table.high_watermarks
        self._each_directory(lambda directory: directory.write_high_watermarks(high_watermarks(directory)))

    def _expire_producers(self) -> None:
        now_ms = self._node.world.clock.now_ms()
        self._each_partition("expiry of producers", lambda partition: partition.log.expire_producers(now_ms))

    def _flush(self) -> None:
        """Honour flush.ms: sync what has waited for so long."""
        now_ms = self._steady_ms()

        def flush(partition: Partition) -> None:
            log, name = partition.log, (partition.topic, partition.index)
            if log.recovery_point >= log.end_offset:
                self._dirty_since.pop(name, None)
            elif now_ms - self._dirty_since.setdefault(name, now_ms) >= log.config.flush_ms:
                self._node.flusher.flush(partition)

        self._each_partition("flush", flush)

    def _remove_doomed(self) -> None:
        now_ms, background = self._steady_ms(), self._node.background
        self._each_directory(lambda directory: directory.remove_doomed(now_ms, background))

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
            try:
                if error is not None:
                    raise error
                goes_on = self._cleaner.install(cleaning, result)
            except Exception as failure:  # noqa: BLE001  # it must not end compaction for good
                self._cleaning = None
                node.report(f"cleaning {cleaning.log.topic}-{cleaning.log.partition} failed: {failure!r}")
                if not isinstance(failure, (OSError, BrokerError)):
                    cleaning.log.report_bug(failure)
                self._cleaner.fail(cleaning, failure)
                return
            if goes_on:
                node.background.run(cleaning.clean, done)  # a slice at a time
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
