"""Moving a partition from one log directory of this node to another, while it is written to and read.

A copy, the future log, is fed from the log in small pieces between requests, like a follower; when it has caught up it
is synced and takes the log's place in one step of the loop, so no reader or writer sees anything in between.

    start() --> COPYING --caught up--> SYNCING --still close--> swapped
                  ^  |                    |
                  |  +-- cancel(), failed, partition gone --> dropped      (the future log is removed)
                  +------ grew by more than a little --+

V1  Until the swap the log is untouched and goes on serving; a crash leaves it as it was. After a clean stop the future
    log is fed on from where it was; after any other it begins anew, for a power loss may have taken bytes from the
    middle of what was not synced yet, and a gap between segments looks like the work of compaction.
V2  At the swap the future log holds the same batches up to the same end, and all of it is on the device.
V3  For an instant both directories hold a log of the partition's name, both complete. Whoever starts after a crash in
    that instant may take either, and removes the other. The instant ends before the loop goes on.
V4  A sync of the future log that fails takes its directory offline, even within the swap: it is never tried again.
    One that could not begin for want of descriptors has lost nothing, and ends the move alone. From the first name on
    that the swap changes it needs no more descriptors.
"""

from collections.abc import Callable
from typing import Any, Protocol

from ottla.log.directory import LogDirectory
from ottla.log.log import Log
from ottla.log.synchronizer import DirectoryNames
from ottla.partition.copy import agreed_end
from ottla.partition.partition import Partition
from ottla.partition.table import PartitionTable
from ottla.wire.batch import BATCH_HEADER
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.world.disk import NO_DESCRIPTORS, File, pin_all, unpin_all
from ottla.world.worker import Worker

PIECE_BYTES = 256 << 10
_PIECES_AT_SWAP = 4  # that may have come while the copy was synced; with more, the copy goes on
_UNLIMITED = 1 << 50

Name = tuple[str, int]
Moved = Callable[[Partition, LogDirectory], None]


class Timers(Protocol):
    """The loop, as far as a move needs it."""

    def call_later(self, delay: float, callback: Callable[[], object]) -> Any:
        """Call back after `delay` seconds."""
        ...


class Move:
    """One partition on its way."""

    __slots__ = ("cuts", "future", "partition", "source", "syncing", "target")

    def __init__(self, partition: Partition, source: LogDirectory, target: LogDirectory, future: Log) -> None:
        self.partition = partition
        self.source = source
        self.target = target
        self.future = future
        self.cuts = -1  # of the log, when the future log last agreed with it
        self.syncing = False

    def copy(self) -> int:
        """Copy one piece and return its size; 0 when the future log has caught up."""
        log, future = self.partition.log, self.future
        if self.cuts != self.partition.cuts:
            # The log was cut, or may have been before the start, and may be longer than ever by now (V2).
            end_offset = agreed_end(future, log)
            if end_offset < future.end_offset:
                future.truncate_to(end_offset)
            self.cuts = self.partition.cuts
        if future.end_offset > log.end_offset:
            future.truncate_to(log.end_offset)
        if future.end_offset < log.start_offset:
            # Retention has passed us by, or this is the beginning.
            future.truncate_fully_and_start_at(log.start_offset)
        if future.end_offset == log.end_offset:
            return 0
        size_max = min(PIECE_BYTES, log.config.segment_bytes)
        piece = log.read(future.end_offset, size_max, log.end_offset)
        base_offset: int = BATCH_HEADER.unpack_from(piece)[0]
        if base_offset < future.end_offset and future.end_offset == log.start_offset:
            # The log starts in the middle of a batch, which is copied whole; what the copy held before it is dead.
            future.truncate_fully_and_start_at(base_offset)
        future.append_as_follower(piece)
        return len(piece)


class Mover:
    """All moves of this node, a piece of one after a piece of the next.

    `bytes_per_second_max` is read at each piece; `moved(partition, directory)` is called after a swap.
    """

    def __init__(
        self,
        table: PartitionTable,
        worker: Worker,
        timers: Timers,
        moved: Moved,
        report: Callable[[str], None],
        bytes_per_second_max: Callable[[], int] = lambda: _UNLIMITED,
    ) -> None:
        self.moves: dict[Name, Move] = {}
        self._table = table
        self._worker = worker
        self._timers = timers
        self._moved = moved
        self._report = report
        self._bytes_per_second_max = bytes_per_second_max
        self._running = False
        self._stopped = False

    def stop(self) -> None:
        """Do nothing more; `resume` of the next start goes on."""
        self._stopped = True

    def start(self, partition: Partition, target: LogDirectory) -> None:
        """Begin a move, unless the partition is there or on its way; a move to elsewhere is dropped first."""
        name = (partition.topic, partition.index)
        under_way = self.moves.get(name)
        if under_way is not None:
            if under_way.target is target:
                return
            self._drop(under_way)
        source = self.directory_of(partition)
        if source is target:
            return
        log = partition.log
        future = target.create_log(log.topic, log.partition, log.topic_id, log.config, future=True)
        self._add(Move(partition, source, target, future))

    def resume(self) -> None:
        """Go on with the moves that the last stop interrupted; twins and the future logs of nobody are removed."""
        self._remove_twins()
        for target in self._table.directories:
            for (topic, index), future in tuple(target.futures.items()):
                partition = self._table.find((topic, index), by_id=False)
                source = None
                if partition is not None and partition.topic_id == future.topic_id:
                    source = self.directory_of(partition)
                if partition is None or source is None or source is target or (topic, index) in self.moves:
                    target.delete_log(future)
                else:
                    if not target.was_clean:
                        future.truncate_fully_and_start_at(partition.log.start_offset)
                    self._add(Move(partition, source, target, future))

    def _remove_twins(self) -> None:
        """Finish swaps that a crash cut in two (V3): the log that the table chose stays."""
        homes: dict[Name, list[LogDirectory]] = {}
        for directory in self._table.directories:
            for name in directory.logs:
                homes.setdefault(name, []).append(directory)
        for name, directories in homes.items():
            partition = self._table.find(name, by_id=False) if len(directories) > 1 else None
            if partition is not None:
                for directory in directories:
                    if directory.logs[name] is not partition.log:
                        directory.delete_log(directory.logs[name])

    def directory_of(self, partition: Partition) -> LogDirectory:
        """Return where a partition lives."""
        name = (partition.topic, partition.index)
        for directory in self._table.directories:
            if directory.logs.get(name) is partition.log:
                return directory
        raise BrokerError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"no directory holds {partition.topic}-{partition.index}"
        )

    def _add(self, move: Move) -> None:
        self.moves[move.partition.topic, move.partition.index] = move
        if not self._running:
            self._running = True
            self._timers.call_later(0, self._turn)

    def _turn(self) -> None:
        """Do a piece of the move that has waited longest."""
        move = next((move for move in self.moves.values() if not move.syncing), None)
        if move is None or self._stopped:
            self._running = False
            return
        size = 0
        try:
            if self._wanted(move):
                size = self._step(move)
        except Exception as error:  # noqa: BLE001  # it must not end all moves for good
            self._fail(move, error)
        if self.moves.get(_key(move)) is move:
            self.moves[_key(move)] = self.moves.pop(_key(move))  # to the back of the line
        self._timers.call_later(size / max(1, self._bytes_per_second_max()), self._turn)

    def _wanted(self, move: Move) -> bool:
        """Say whether a move still makes sense, and drop it otherwise."""
        if self._table.find(_key(move), by_id=False) is move.partition and not move.target.offline:
            return True
        self._drop(move)
        return False

    def _step(self, move: Move) -> int:
        size = move.copy()
        if not size or move.partition.log.end_offset == move.future.end_offset:
            self._sync(move)
        return size

    def _sync(self, move: Move) -> None:
        """Sync most of the copy elsewhere, so that the sync within the swap is a short one."""
        future, end_offset = move.future, move.future.end_offset
        files = future.unsynced()
        try:
            pin_all(files)
        except BaseException:
            future.not_synced()
            raise
        move.syncing = True

        def done(_: object, error: BaseException | None) -> None:
            try:
                unpin_all(files)
            except OSError as failure:
                error = error or failure
            move.syncing = False
            if error is not None:
                future.not_synced()
            else:
                future.synced(end_offset)
            is_there = move.target.futures.get(_key(move)) is future
            if isinstance(error, OSError) and error.errno not in NO_DESCRIPTORS and is_there:
                move.target.fail(error)  # V4, and not the name of a log that was dropped
            if self._stopped or self.moves.get(_key(move)) is not move:
                return
            try:
                self._synced(move, error)
            except Exception as failure:  # noqa: BLE001  # as above
                self._fail(move, failure)
            if not self._running and self.moves:
                self._running = True
                self._timers.call_later(0, self._turn)

        self._worker.run(lambda: _sync_all(files), done)

    def _synced(self, move: Move, error: BaseException | None) -> None:
        if error is not None:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        if not self._wanted(move):
            return
        for _ in range(_PIECES_AT_SWAP):
            if not move.copy():
                self._swap(move)
                return

    def _swap(self, move: Move) -> None:
        names = [DirectoryNames(each.disk, each.path) for each in (move.target, move.source)]
        pin_all(names)
        try:
            self._exchange(move, *names)
        finally:
            unpin_all(names)

    def _exchange(self, move: Move, target_names: DirectoryNames, source_names: DirectoryNames) -> None:
        partition, future, target = move.partition, move.future, move.target
        old = partition.log
        future.raise_start_offset(old.start_offset)
        _sync_now(target, future.sync)
        future.config = old.config
        try:
            target.promote_future(old.topic, old.partition)
        except OSError as error:
            target.judge(error)
            raise
        _sync_now(target, target_names.sync)
        partition.log = future
        del self.moves[_key(move)]
        try:
            move.source.delete_log(old)
            # Before anything more is acknowledged: the old name must not come back with the old log after a power loss.
            source_names.sync()
        except OSError as error:
            move.source.fail(error)
        self._moved(partition, target)

    def _fail(self, move: Move, error: Exception) -> None:
        partition = move.partition
        self._report(f"moving {partition.topic}-{partition.index} to {move.target.path} has failed: {error}")
        if not isinstance(error, (BrokerError, OSError)):
            partition.log.report_bug(error)
        self._drop(move)

    def _drop(self, move: Move) -> None:
        self.moves.pop(_key(move), None)  # a swap that failed in its last steps has done so
        if move.target.offline or move.partition.log is move.future:
            return
        try:
            move.target.delete_log(move.future)
        except OSError as error:
            move.target.judge(error)


def _sync_now(directory: LogDirectory, sync: Callable[[], None]) -> None:
    """Sync something of a directory here and now (V4)."""
    try:
        sync()
    except OSError as error:
        if error.errno not in NO_DESCRIPTORS:
            directory.fail(error)
        raise


def _sync_all(files: list[File]) -> None:
    for file in files:
        file.sync()


def _key(move: Move) -> Name:
    return (move.partition.topic, move.partition.index)
