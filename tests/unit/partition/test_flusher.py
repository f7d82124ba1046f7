"""Group commit: one sync for all that came meanwhile, nobody hears before it, and no second try after a failure."""

import errno
import os

import pytest

from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.log.identity import Identity
from ottla.log.log import Log
from ottla.metadata.topics import PartitionState
from ottla.partition.copy import cut_to
from ottla.partition.flusher import AckFlusher, OsFlusher, storage_error
from ottla.partition.leadership import Leadership
from ottla.partition.partition import Partition
from ottla.wire.batch import build_batch
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.record import Record
from ottla.world.disk import RealDisk, RealFile
from ottla.world.entropy import SeededEntropy

NOW = 1_700_000_000_000


class HeldWorker:
    """A worker that works when the test says so."""

    def __init__(self):
        self.jobs = []

    def run(self, work, done):
        self.jobs.append((work, done))

    def finish(self):
        work, done = self.jobs.pop(0)
        try:
            outcome = work()
        except BaseException as error:  # noqa: BLE001  # as a thread hands it over
            done(None, error)
        else:
            done(outcome, None)


class Turn:
    """The end of the loop's turn."""

    def __init__(self):
        self.calls = []

    def __call__(self, callback):
        self.calls.append(callback)

    def end(self):
        calls, self.calls = self.calls, []
        for call in calls:
            call()


@pytest.fixture
def warnings():
    return []


@pytest.fixture
def directory(tmp_path, warnings):
    directory = LogDirectory(str(tmp_path), RealDisk(), SeededEntropy(1), warnings.append)
    directory.format(Identity("c", 1, bytes(15) + b"\1"))
    directory.open()
    directory.load(lambda topic: LogConfig())
    return directory


def batch(count=1):
    return build_batch([Record(n, NOW, None, b"v", ()) for n in range(count)])


def partition_of(directory, flusher, name="t"):
    return Partition(directory.create_log(name, 0, bytes(16), LogConfig()), bytes(16), 0, flusher)


def test_acknowledged_means_synced_and_one_sync_serves_all_that_waited(directory):
    worker, turn, heard = HeldWorker(), Turn(), []
    flusher = AckFlusher([worker], turn, pytest.fail)
    partition = partition_of(directory, flusher)
    for number in range(3):
        appended = partition.append(batch(), NOW)
        partition.when_durable(appended.end_offset, lambda error, n=number: heard.append((n, error)))
    turn.end()
    assert (len(worker.jobs), partition.high_watermark, heard) == (1, 0, [])
    late = partition.append(batch(), NOW)
    partition.when_durable(late.end_offset, lambda error: heard.append((3, error)))
    worker.finish()
    assert partition.high_watermark == 3
    assert heard == [(0, None), (1, None), (2, None)]
    worker.finish()
    assert partition.high_watermark == 4
    assert heard[-1] == (3, None)
    assert (flusher.syncs, worker.jobs, turn.calls) == (2, [], [])


def test_a_failed_sync_is_told_and_never_tried_again(directory, monkeypatch):
    worker, turn, heard, failed = HeldWorker(), Turn(), [], []

    def fail(partition, error):
        failed.append(error)
        partition.fail(storage_error(error))

    flusher = AckFlusher([worker], turn, fail)
    partition = partition_of(directory, flusher)
    syncs = []

    class Broken:
        pins = 0

        def sync(self):
            syncs.append(1)
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(Log, "unsynced", lambda self: [Broken()])
    appended = partition.append(batch(), NOW)
    partition.when_durable(appended.end_offset, heard.append)
    turn.end()
    worker.finish()
    with pytest.raises(BrokerError) as refused:
        partition.append(batch(), NOW)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert [error.code for error in heard] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert (len(syncs), len(failed), partition.high_watermark, worker.jobs) == (1, 1, 0, [])


def no_descriptor(path, *_):
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)


def test_a_sync_under_way_needs_no_further_descriptors(directory, monkeypatch):
    worker, turn, heard = HeldWorker(), Turn(), []
    flusher = AckFlusher([worker], turn, pytest.fail)
    partition = partition_of(directory, flusher)  # new: its names are synced, and its directory's
    partition.when_durable(partition.append(batch(), NOW).end_offset, heard.append)
    turn.end()
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", no_descriptor)
        worker.finish()
    assert heard == [None]


def test_a_sync_for_which_no_descriptor_is_left_is_made_again(directory):
    worker, turn, again, heard = HeldWorker(), Turn(), Turn(), []
    flusher = AckFlusher([worker], turn, pytest.fail, again)
    partition = partition_of(directory, flusher)
    partition.when_durable(partition.append(batch(), NOW).end_offset, heard.append)
    turn.end()
    _, done = worker.jobs.pop()
    done([OSError(errno.ENFILE, os.strerror(errno.ENFILE))], None)
    assert heard == []
    worker.finish()
    assert heard == [None]


def test_os_mode_acknowledges_at_once_and_syncs_when_flush_messages_says_so(directory):
    worker, turn = HeldWorker(), Turn()
    flusher = OsFlusher(AckFlusher([worker], turn, pytest.fail))
    partition = partition_of(directory, flusher)
    partition.append(batch(), NOW)
    assert (partition.high_watermark, turn.calls) == (1, [])
    partition.log.config = LogConfig(flush_messages=3)
    partition.append(batch(), NOW)
    turn.end()
    assert not worker.jobs
    partition.append(batch(), NOW)
    turn.end()
    worker.finish()
    assert partition.log.recovery_point == 3


def test_many_partitions_share_the_workers(directory):
    workers, turn = [HeldWorker(), HeldWorker()], Turn()
    flusher = AckFlusher(workers, turn, pytest.fail)
    partitions = [partition_of(directory, flusher, f"t{n}") for n in range(5)]
    for partition in partitions:
        partition.append(batch(), NOW)
    turn.end()
    for worker in workers:
        worker.finish()
    assert [partition.high_watermark for partition in partitions] == [1] * 5


def test_the_high_watermark_never_falls(directory):
    partition = partition_of(directory, OsFlusher(AckFlusher([HeldWorker()], Turn(), pytest.fail)))
    partition.append(batch(5), NOW)
    partition.advance(2)
    assert partition.high_watermark == 5


def test_a_sync_that_began_before_a_cut_means_nothing(directory):
    worker, turn = HeldWorker(), Turn()
    partition = partition_of(directory, AckFlusher([worker], turn, pytest.fail))
    partition.append(batch(3), NOW)
    turn.end()
    cut_to(partition, 0)
    partition.append(batch(1), NOW)
    worker.finish()
    assert partition.durable_offset == 0
    worker.finish()
    assert partition.durable_offset == 1


def beside(log):
    """What a sync of the log would cover, other than batches; it is put back."""
    found = {file.path for file in log.unsynced() if not file.path.endswith(".log")}
    log.not_synced()
    return found


def descriptors():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="Linux tells of descriptors")
@pytest.mark.parametrize("what", ["cut", "asleep", "moved and cut"])
def test_a_sync_whose_result_does_not_count_is_done_again_for_the_same_files(directory, monkeypatch, what):
    worker, turn = HeldWorker(), Turn()
    partition = partition_of(directory, AckFlusher([worker], turn, pytest.fail))
    log = partition.log
    partition.append(batch(3), NOW)
    partition.append(batch(3), NOW)
    files = beside(log)
    assert files, "new files are to be synced, and their names"
    log.rest()
    before = descriptors()
    turn.end()
    if what == "asleep":
        partition.fail(BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    else:
        cut_to(partition, 3)
    if what == "moved and cut":
        other = directory.create_log("t", 1, bytes(16), LogConfig())
        other.append_as_follower(log.read(0, 1 << 20, 3))
        partition.log = other
    worker.finish()
    assert partition.durable_offset == 0
    synced, real = set(), RealFile.sync
    monkeypatch.setattr(RealFile, "sync", lambda self: (synced.add(self.path), real(self)))
    if what == "asleep":
        assert not worker.jobs
        assert beside(log) == files
    else:
        worker.finish()
        assert partition.durable_offset == 3
    if what == "cut":
        assert synced >= {path for path in files if os.path.isfile(path)}
        assert (log.recovery_point, beside(log)) == (3, set())
    for each in {log, partition.log}:
        each.rest()
    assert descriptors() == before


def test_a_sync_that_fails_for_one_put_to_sleep_takes_its_directory_offline(directory, monkeypatch):
    station = Station(directory)
    station.write("a")
    station.turn.end()
    station.partitions[0].fail(BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    break_syncs_of(monkeypatch, "a", OSError(errno.EIO, "lost"))
    station.worker.finish()
    assert [topic for topic, _ in station.failed] == ["a"], "its log would be synced again by the next partition"


def test_a_descriptor_that_cannot_be_closed_is_a_failed_sync(directory, monkeypatch):
    station = Station(directory)
    station.write("a", "b")
    station.turn.end()
    file = station.partitions[0].log.segments[-1].file
    file.close()  # once the sync is done
    close, descriptor = os.close, file._fd

    def closes(fd):
        close(fd)
        if fd == descriptor:
            raise OSError(errno.EIO, "lost")

    with monkeypatch.context() as broken:
        broken.setattr(os, "close", closes)
        station.worker.finish()
    assert station.heard == [("a", ErrorCode.KAFKA_STORAGE_ERROR), ("b", None)]
    assert [topic for topic, _ in station.failed] == ["a"]
    assert all(file.pins == 0 for partition in station.partitions for file in partition.log.unsynced())


def test_a_sync_in_os_mode_takes_nothing_back_that_came_while_it_ran(directory):
    worker, turn, heard = HeldWorker(), Turn(), []
    flusher = OsFlusher(AckFlusher([worker], turn, pytest.fail))
    partition = partition_of(directory, flusher)
    leadership = Leadership(1, lambda broker, epoch: True, lag_ms_max=30_000, min_isr=2)
    leadership.begin(PartitionState(1, 1, 1, (1, 2), (1, 2), (bytes(16), bytes(16))), 0, NOW)
    partition.lead(1, leadership)
    partition.append(batch(), NOW)
    flusher.flush(partition)  # as flush.ms asks for, or a segment that was rolled
    turn.end()
    end_offset = partition.append(batch(), NOW).end_offset
    partition.when_durable(end_offset, heard.append)
    worker.finish()
    leadership.fetched(2, end_offset, 0, NOW, end_offset, -1)
    partition.raise_watermark(leadership.watermark(partition.durable_offset, end_offset, NOW))
    assert (partition.durable_offset, partition.high_watermark, heard) == (2, 2, [None])


# What nobody expects


class Strange(Exception):
    """A bug."""


class Ended(BaseException):
    """What ends a thread."""


class Station:
    """Two partitions of one flusher, and who waits for them."""

    def __init__(self, directory):
        self.worker, self.turn, self.heard, self.failed = HeldWorker(), Turn(), [], []
        self.flusher = AckFlusher([self.worker], self.turn, self._fail)
        self.partitions = [partition_of(directory, self.flusher, name) for name in "ab"]

    def _fail(self, partition, error):
        self.failed.append((partition.topic, error))
        partition.fail(storage_error(error))

    def write(self, *names):
        for partition in self.partitions:
            if partition.topic in names:
                end_offset = partition.append(batch(), NOW).end_offset
                partition.when_durable(
                    end_offset, lambda error, name=partition.topic: self.heard.append((name, error and error.code))
                )


@pytest.fixture
def station(directory):
    return Station(directory)


def break_syncs_of(monkeypatch, topic, error):
    real = RealFile.sync

    def sync(self):
        if f"/{topic}-0/" in self.path:
            raise error
        real(self)

    monkeypatch.setattr(RealFile, "sync", sync)


def test_a_sync_that_breaks_off_is_reported_and_everybody_is_answered(station, monkeypatch, warnings):
    station.write("a", "b")
    station.turn.end()
    with monkeypatch.context() as patch:
        break_syncs_of(patch, "a", Strange("in the thread"))
        station.worker.finish()
    assert sorted(station.heard) == [("a", ErrorCode.KAFKA_STORAGE_ERROR), ("b", None)]
    ((topic, error),) = station.failed
    assert topic == "a" and isinstance(error, OSError) and "in the thread" in str(error)
    assert any("a bug of Ottla" in text and "in the thread" in text for text in warnings)
    station.write("b")
    station.turn.end()
    station.worker.finish()
    assert station.heard[-1] == ("b", None), "the next ones are synced as ever"


def test_a_thread_that_fails_as_a_whole_leaves_nobody_waiting(station, monkeypatch, warnings):
    station.write("a", "b")
    station.turn.end()
    with monkeypatch.context() as patch:
        break_syncs_of(patch, "a", Ended())
        station.worker.finish()
    assert sorted(station.heard) == [
        ("a", ErrorCode.KAFKA_STORAGE_ERROR),
        ("b", ErrorCode.KAFKA_STORAGE_ERROR),
    ]
    idle = []
    station.flusher.when_idle(lambda: idle.append(1))
    assert idle == [1]


def test_a_sync_that_cannot_be_prepared_leaves_nobody_waiting(station, monkeypatch, warnings):
    real = Log.unsynced

    def unsynced(log):
        if log.topic == "a":
            raise Strange("on the loop")
        return real(log)

    station.write("a", "b")
    with monkeypatch.context() as patch:
        patch.setattr(Log, "unsynced", unsynced)
        station.turn.end()
    station.worker.finish()
    assert sorted(station.heard) == [("a", ErrorCode.KAFKA_STORAGE_ERROR), ("b", None)]
    assert any("on the loop" in text for text in warnings)


def test_what_breaks_after_a_sync_is_reported_and_everybody_is_answered(station, monkeypatch, warnings):
    """The sync was well, and taking its outcome in breaks for one partition."""
    real = Log.synced

    def synced(log, offset):
        if log.topic == "a":
            raise Strange("on the loop, behind the sync")
        real(log, offset)

    station.write("a", "b")
    station.turn.end()
    with monkeypatch.context() as patch:
        patch.setattr(Log, "synced", synced)
        station.worker.finish()
    assert sorted(station.heard) == [("a", ErrorCode.KAFKA_STORAGE_ERROR), ("b", None)]
    assert any("a bug of Ottla" in text and "behind the sync" in text for text in warnings)
    station.write("b")
    station.turn.end()
    station.worker.finish()
    assert station.heard[-1] == ("b", None), "the next ones are synced as ever"


def test_a_sync_for_which_there_are_no_descriptors_is_tried_again(station, monkeypatch):
    station.write("a")
    files = [file.path for file in station.partitions[0].log.unsynced()]
    station.partitions[0].log.not_synced()
    station.partitions[0].log.rest()

    def refuse(*_):
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        station.turn.end()
        assert (station.worker.jobs, station.heard, station.failed) == ([], [], [])
        station.turn.end()
    synced, real = [], RealFile.sync
    monkeypatch.setattr(RealFile, "sync", lambda self: (synced.append(self.path), real(self)))
    station.turn.end()
    station.worker.finish()
    assert (station.heard, station.failed) == ([("a", None)], [])
    assert synced == [path for path in files if not os.path.isdir(path)], "new files too, and all of them"


def test_an_answer_that_breaks_keeps_nobody_else_waiting(station, warnings):
    def broken(error):
        raise Strange("answer")

    class Reader:
        def wake(self, partition):
            raise Strange("reader")

    first, _ = station.partitions
    first.readers[Reader()] = None
    end_offset = first.append(batch(), NOW).end_offset
    first.when_durable(end_offset, broken)
    station.write("a", "b")
    station.turn.end()
    station.worker.finish()
    assert sorted(station.heard) == [("a", None), ("b", None)]
    assert [sum(word in text for text in warnings) for word in ("answer", "reader")] == [1, 1]
    first.when_durable(9, broken)
    first.when_durable(9, lambda error: station.heard.append(("late", error.code)))
    first.fail(storage_error(OSError(5, "gone")))
    assert station.heard[-1] == ("late", ErrorCode.KAFKA_STORAGE_ERROR)
