"""Group commit: one sync for all that came meanwhile, nobody hears before it, and no second try after a failure."""

import pytest

from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.log.identity import Identity
from ottla.log.log import Log
from ottla.partition.copy import cut_to
from ottla.partition.flusher import AckFlusher, OsFlusher, storage_error
from ottla.partition.partition import Partition
from ottla.wire.batch import build_batch
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.record import Record
from ottla.world.disk import RealDisk
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
        done(work(), None)


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
def directory(tmp_path):
    directory = LogDirectory(str(tmp_path), RealDisk(), SeededEntropy(1), print)
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
