"""One of `log.dirs`: the logs in it, whose it is, and the files that make its next start a quick one.

    CLOSED --open()--> OPEN --load()--> LOADED --close(clean)--> CLOSED       (with `.kafka_cleanshutdown`)
                                          |
                                       fail()--> OFFLINE                     (nothing is written there any more)

V1  The clean-shutdown marker exists only while the directory is closed, and only if every log in it was closed cleanly.
V2  After a clean stop `load` costs one directory listing: each log is a name until somebody asks for it. After an
    unclean one every log is opened and recovered before `load` returns.
V3  A checkpointed recovery point never exceeds what its log has synced. A log that is cut, or made anew, has its
    checkpoints lowered first (`before_truncations`), if they name more.
V4  What recovery kept above the recovery point is synced before the log is of any use: a killed process leaves records
    in the page cache alone, and from here on they count as durable, for retries and followers too.
"""

import json
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence

from ottla.log import names
from ottla.log.checkpoint import (
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    START_OFFSETS,
    CheckpointError,
    PartitionKey,
    read_offsets,
    write_offsets,
)
from ottla.log.config import LogConfig
from ottla.log.deletions import Deletions
from ottla.log.dormant import DormantLog
from ottla.log.files import TRY_AGAIN, LogFiles
from ottla.log.identity import Identity, read_identity, read_topic_id, write_identity
from ottla.log.leftovers import make_room
from ottla.log.log import Log
from ottla.log.nascent import NascentLog
from ottla.log.own_fault import Bugs, is_own_fault
from ottla.log.segment import Segment
from ottla.wire.errors import BrokerError
from ottla.wire.uuid import ZERO_UUID
from ottla.world.disk import Disk, File, Lock
from ottla.world.entropy import Entropy
from ottla.world.worker import Worker

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"

_WARM_SEGMENTS_MAX = 64
_SETTLE_BYTES = 64 << 20
# So many files are synced one by one; above it, one sync of the file system is quicker, whatever else it has to write.
_SYNC_EACH_MAX = 64


class LogDirectory:
    """The logs of one directory."""

    def __init__(
        self,
        path: str,
        disk: Disk,
        entropy: Entropy,
        warn: Callable[[str], None],
        on_offline: Callable[["LogDirectory", OSError], None] | None = None,
    ) -> None:
        self.path = path
        self.disk = disk
        self.logs: dict[PartitionKey, Log] = {}
        # Copies on their way in from another directory, which take the place of the log there once they caught up.
        self.futures: dict[PartitionKey, Log] = {}
        self.identity: Identity | None = None
        self.offline: OSError | None = None
        self.was_clean = False
        self.previous_broker_epoch = -1
        self._entropy = entropy
        self._warn = warn
        self.bugs = Bugs(warn)
        self._on_offline = on_offline
        self._lock: Lock | None = None
        self._recovery_points: dict[PartitionKey, int] = {}
        self._start_offsets: dict[PartitionKey, int] = {}
        # What each checkpoint says on disk, as far as it was read or written.
        self._written: dict[str, dict[PartitionKey, int]] = {}
        self._unsure: set[str] = set()  # checkpoints whose last write failed: old or new may be on the device
        # Told of logs before they are cut; what the cleaner knows of them is then out of date.
        self.on_truncation: Callable[[Sequence[tuple[Log, int]]], None] | None = None
        self._warm: OrderedDict[Segment, None] = OrderedDict()
        self._deletions = Deletions(disk, warn)
        self._last_ends: dict[PartitionKey, int] = {}
        self._nascent: deque[NascentLog] = deque()

    # Opening

    def open(self) -> None:
        """Take the lock and read what the directory says of itself; BlockingIOError when another process has it."""
        self.disk.make_dirs(self.path)
        self._lock = self.disk.lock(f"{self.path}/{LOCK}")
        make_room(self.disk, self.path)
        self.identity = read_identity(self.disk, self.path)
        self._take_marker()
        self._recovery_points = self._read_offsets(RECOVERY_POINTS)
        self._start_offsets = self._read_offsets(START_OFFSETS)

    def format(self, identity: Identity) -> None:
        """Say whose directory it is."""
        self.disk.make_dirs(self.path)
        write_identity(self.disk, self.path, identity)
        self.identity = identity

    def _take_marker(self) -> None:
        """Learn whether the last stop was clean. The marker goes at once: a crash from now on is one."""
        path = f"{self.path}/{CLEAN_SHUTDOWN}"
        try:
            content = self.disk.read_bytes(path)
        except FileNotFoundError:
            return
        self.was_clean = True
        try:
            self.previous_broker_epoch = int(json.loads(content)["brokerEpoch"])
        except (ValueError, KeyError, TypeError):
            self._warn(f"{path} names no broker epoch")
        self.disk.remove(path)
        self.disk.sync_dir(self.path)

    def _read_offsets(self, name: str) -> dict[PartitionKey, int]:
        try:
            offsets = read_offsets(self.disk, f"{self.path}/{name}")
        except CheckpointError as error:
            self._warn(f"{error}; going on without it")
            return {}
        if offsets:  # a file that is not there, or empty, is yet to be written, though it names nothing
            self._written[name] = dict(offsets)
        return offsets

    def load(self, config_of: Callable[[str], LogConfig]) -> None:
        """Learn which logs there are; recover them all unless the last stop was clean."""
        for name in self.disk.list(self.path):
            found = names.parse_partition_dir(name)
            if found is None or found.topic == names.METADATA_TOPIC:
                continue  # the metadata log is the quorum's own
            key = (found.topic, found.partition)
            path = f"{self.path}/{name}"
            if found.mark == names.DELETE_DIR:
                self.doom([path], 0)
                continue
            config = config_of(found.topic)
            try:
                if found.mark == names.FUTURE_DIR:
                    self.futures[key] = self._existing(path, key, config, clean=False, sync=False)
                elif not found.mark and key not in self.logs:
                    self.logs[key] = self._existing(path, key, config, clean=self.was_clean, sync=False)
            except OSError as error:
                self.fail(error)
                return
        try:
            self._sync_logs([log for log in self.logs.values() if not log.is_dormant and log.has_unsynced_tail])
        except OSError as error:
            self.fail(error)

    def _existing(self, path: str, key: PartitionKey, config: LogConfig, *, clean: bool, sync: bool) -> Log:
        checkpoints = self._start_offsets.get(key, 0), self._recovery_points.get(key, 0)
        if clean:
            return DormantLog(self, self.disk, path, key[0], key[1], config, checkpoints)
        log = Log(self, self.disk, path, key[0], key[1], config)
        log.topic_id = read_topic_id(self.disk, path) or ZERO_UUID
        log.open(clean=False, start_offset=checkpoints[0], recovery_point=checkpoints[1], sync=sync)
        log.rest()
        return log

    # Logs

    def create_log(
        self, topic: str, partition: int, topic_id: bytes, config: LogConfig, *, future: bool = False
    ) -> Log:
        """Begin an empty log; with `future`, one that is to take the place of a log in another directory.

        Its files are made when it is first written to. A future log has them at once: they show that a move is on.
        """
        key = (topic, partition)
        name = names.partition_dir(topic, partition)
        if future:
            name = names.marked_dir(topic, partition, self._entropy.uuid(), names.FUTURE_DIR)
        log = NascentLog(self, self.disk, f"{self.path}/{name}", topic, partition, config)
        log.topic_id = topic_id
        log.begin()
        if future:
            log.make()
            self.futures[key] = log
        else:
            self._nascent.append(log)
            self.logs[key] = log
        return log

    def make_some(self, count: int) -> bool:
        """Make the files of up to `count` new logs ahead of their first batch; say whether any are left."""
        while self._nascent and count:
            log = self._nascent.popleft()
            if log.is_nascent and self.logs.get((log.topic, log.partition)) is log:
                try:
                    log.make()
                except BrokerError:
                    self._nascent.append(log)
                    break
                count -= 1
        return bool(self._nascent)

    def open_log(self, topic: str, partition: int, topic_id: bytes, config: LogConfig) -> Log:
        """Return a log, whether it exists or not; usable before `load`."""
        key = (topic, partition)
        log = self.logs.get(key)
        if log is None:
            path = f"{self.path}/{names.partition_dir(topic, partition)}"
            if not self.disk.is_dir(path):
                return self.create_log(topic, partition, topic_id, config)
            log = self.logs[key] = self._existing(path, key, config, clean=self.was_clean, sync=True)
        log.config = config
        return log

    def delete_log(self, log: Log) -> None:
        """Take a log out of service; its files are removed after a while."""
        key = (log.topic, log.partition)
        for table in (self.logs, self.futures):
            if table.get(key) is log:
                del table[key]
        self._recovery_points.pop(key, None)
        self._start_offsets.pop(key, None)
        log.delete()

    def promote_future(self, topic: str, partition: int) -> Log:
        """Put a caught-up copy into service under the partition's own name."""
        log = self.futures.pop((topic, partition))
        log.move(f"{self.path}/{names.partition_dir(topic, partition)}")
        self.logs[topic, partition] = log
        return log

    # What a log asks of its home

    def warn(self, text: str) -> None:
        """Tell the operator."""
        self._warn(text)

    def touch(self, segment: Segment) -> None:
        """Keep an inactive segment at hand, and let the one that was not read for longest rest."""
        warm = self._warm
        if segment in warm:
            warm.move_to_end(segment)
            return
        warm[segment] = None
        if len(warm) > _WARM_SEGMENTS_MAX:
            warm.popitem(last=False)[0].rest()

    def doom(self, paths: list[str], delay_ms: int) -> None:
        """Have files or directories removed, `delay_ms` after the next `remove_doomed`."""
        self._deletions.add(paths, delay_ms)

    def before_truncations(self, cuts: Sequence[tuple[LogFiles, int]]) -> None:
        """Let no checkpoint speak of what lies at these offsets or above, before the logs are cut there.

        A cut of what was written since the last checkpoint costs nothing here, as it is with nearly all of them. Others
        cost a write of each checkpoint, as large as the directory has logs, however many are cut at once.
        """
        for name in (HIGH_WATERMARKS, START_OFFSETS, RECOVERY_POINTS):
            known = self._written.get(name)
            if known is None:
                known = self._read_offsets(name)
            lowered: dict[PartitionKey, int] = {}
            for log, offset in cuts:
                key = (log.topic, log.partition)
                if known.get(key, 0) > offset:
                    lowered[key] = offset
            if lowered or name in self._unsure:
                self._write_offsets(name, known | lowered)
        if self.on_truncation is not None:
            self.on_truncation([(log, offset) for log, offset in cuts if isinstance(log, Log)])

    def fail(self, error: OSError) -> None:
        """Take the directory out of service; only the first failure counts, and no bug of our own."""
        if is_own_fault(error):
            self.bugs.report(error)
        elif self.offline is None:
            self.offline = error
            self._warn(f"{self.path} is offline: {error}")
            if self._on_offline is not None:
                self._on_offline(self, error)

    def bug(self, error: BaseException) -> None:
        """Report an error that is no word about the disk but a fault of ours, and go on."""
        self.bugs.report(error)

    def draw_below(self, bound: int) -> int:
        """Draw a number in [0, bound)."""
        return self._entropy.below(bound)

    def draw_id(self) -> bytes:
        """Draw sixteen random bytes."""
        return self._entropy.uuid()

    # Upkeep

    def checkpoint(self) -> None:
        """Write recovery points and start offsets, if one has moved.

        A log whose own files cannot be written keeps no other's points from the checkpoint; that is told in the end.
        """
        failure = self._settle_logs()
        if self.offline is None:
            self._checkpoint()
        if failure is not None:
            raise failure

    def _settle_logs(self) -> BrokerError | None:
        failure: BrokerError | None = None
        for log in tuple(self.logs.values()):
            if self.offline is None and not log.is_dormant and log.unsettled_bytes > _SETTLE_BYTES:
                try:
                    log.settle()
                except OSError as error:
                    failure = failure or log.storage_error(error)
        return failure

    def _checkpoint(self) -> None:
        recovery_points: dict[PartitionKey, int] = {}
        start_offsets: dict[PartitionKey, int] = {}
        for key, log in self.logs.items():
            if log.is_dormant:
                recovery_points[key] = self._recovery_points.get(key, 0)
                if key in self._start_offsets:
                    start_offsets[key] = self._start_offsets[key]
            else:
                recovery_points[key] = log.recovery_point
                # While a power loss may bring removed segments back, what is in them stays hidden by the checkpoint.
                if log.start_offset > log.first_base_offset or log.has_unsynced_names:
                    start_offsets[key] = log.start_offset
        self._write_offsets(START_OFFSETS, start_offsets)
        self._write_offsets(RECOVERY_POINTS, recovery_points)

    def read_high_watermarks(self) -> dict[PartitionKey, int]:
        """Return the checkpointed high watermarks."""
        return self._read_offsets(HIGH_WATERMARKS)

    def write_high_watermarks(self, offsets: Mapping[PartitionKey, int]) -> None:
        """Checkpoint high watermarks, if one has moved."""
        self._write_offsets(HIGH_WATERMARKS, dict(offsets))

    def _write_offsets(self, name: str, offsets: dict[PartitionKey, int]) -> None:
        if self._written.get(name) == offsets and name not in self._unsure:
            return
        try:
            write_offsets(self.disk, f"{self.path}/{name}", offsets)
        except OSError as error:
            self._written.pop(name, None)  # it is read again
            self._unsure.add(name)
            self.judge(error)
            raise
        self._written[name] = offsets
        self._unsure.discard(name)

    def judge(self, error: OSError) -> None:
        """Take the directory out of service, unless the error is of a kind that passes."""
        if error.errno not in TRY_AGAIN:
            self.fail(error)

    def remove_doomed(self, now_ms: int, worker: Worker) -> None:
        """Have a worker remove what has waited long enough. `now_ms` is of a time that only grows."""
        self._deletions.start(now_ms, worker)

    def rest_idle(self) -> None:
        """Give back the descriptors of logs that have not grown since the last call; they open again when used."""
        ends: dict[PartitionKey, int] = {}
        for key, log in self.logs.items():
            if not log.is_dormant:
                ends[key] = log.end_offset
                if self._last_ends.get(key) == log.end_offset:
                    log.rest()
        self._last_ends = ends

    def abandon(self) -> None:
        """Let go of a directory that was opened but not loaded, as it was found."""
        if self.was_clean:
            self._leave_marker(self.previous_broker_epoch)
        self._release()

    def _leave_marker(self, broker_epoch: int) -> None:
        content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
        self.disk.write_atomic(f"{self.path}/{CLEAN_SHUTDOWN}", content.encode())

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _sync_logs(self, logs: list[Log]) -> None:
        """Make all that these logs hold durable."""
        self._sync([file for log in logs for file in log.unsynced()])
        for log in logs:
            log.synced(log.end_offset)

    def _sync(self, files: list[File]) -> None:
        """Make these files of the directory durable, in whichever way is quicker."""
        if len(files) > _SYNC_EACH_MAX and self.disk.sync_filesystem(self.path):
            return
        for file in files:
            file.sync()
            file.rest()

    def close(self, *, clean: bool = True, broker_epoch: int = -1) -> None:
        """Close every log and leave the marker; an unclean or failed close leaves recovery to the next start."""
        open_logs = [log for log in (*self.logs.values(), *self.futures.values()) if not log.is_dormant]
        clean = clean and self.offline is None
        try:
            if clean:
                for log in open_logs:
                    log.settle(closing=True)
                self._sync_logs(open_logs)
            for log in open_logs:
                log.rest()
            if clean:
                self.checkpoint()
                self._leave_marker(broker_epoch)
        finally:
            self._release()
