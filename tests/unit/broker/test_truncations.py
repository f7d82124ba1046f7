"""Many logs that are to be cut at once: one write a checkpoint for all of them, and a few cuts a turn."""

import errno
import os
from types import SimpleNamespace

import pytest

from ottla.broker.fetcher import Fetcher
from ottla.broker.truncations import Truncations
from ottla.log.checkpoint import HIGH_WATERMARKS, RECOVERY_POINTS, read_offsets
from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.log.identity import Identity
from ottla.partition.copy import cut_to
from ottla.partition.partition import Partition
from ottla.wire.errors import BrokerError
from ottla.wire.messages.fetch import FetchResponse
from ottla.world.disk import RealDisk, RealFile
from ottla.world.entropy import SeededEntropy
from ottla.world.worker import InlineWorker
from tests.unit.broker.conftest import AtOnce
from tests.unit.log.workbench import end_transaction, put, put_from

MANY = 50


class CountingDisk(RealDisk):
    """A disk that counts the checkpoints it writes, and may refuse them."""

    def __init__(self):
        super().__init__()
        self.written, self.refuses = [], None

    def write_atomic(self, path, data):
        self.written.append(path.rpartition("/")[2])
        if self.refuses is not None:
            raise OSError(self.refuses, os.strerror(self.refuses), path)
        super().write_atomic(path, data)


class Turns:
    """A loop whose turns the test takes one by one."""

    def __init__(self):
        self.calls = []

    def call_soon(self, callback):
        self.calls.append(callback)

    def turn(self):
        calls, self.calls = self.calls, []
        for call in calls:
            call()


@pytest.fixture
def disk():
    return CountingDisk()


@pytest.fixture
def partitions(tmp_path, disk):
    directory = LogDirectory(str(tmp_path), disk, SeededEntropy(1), lambda _: None)
    directory.format(Identity("c", 1, bytes(15) + b"\1"))
    directory.open()
    directory.load(lambda _: LogConfig())
    made = []
    for index in range(MANY):
        log = directory.create_log("t", index, bytes(16), LogConfig())
        for value in range(4):
            put(log, value)
        log.sync()
        made.append(Partition(log, bytes(16), 0, AtOnce()))
    directory.checkpoint()
    directory.write_high_watermarks({("t", index): 3 for index in range(MANY)})
    disk.written.clear()
    return made


def test_checkpoints_are_written_once_for_all_and_logs_cut_a_few_a_turn(tmp_path, disk, partitions):
    turns = Turns()
    truncations = Truncations(turns, InlineWorker())
    for partition in partitions:
        truncations.add(partition, 2, lambda _, it=partition: cut_to(it, 2))
    assert disk.written == []
    cut = []
    while turns.calls:
        before = sum(partition.log.end_offset == 2 for partition in partitions)
        turns.turn()
        cut.append(sum(partition.log.end_offset == 2 for partition in partitions) - before)
    assert len(disk.written) == 2, "recovery points and high watermarks; nothing of start offsets"
    assert sum(cut) == MANY
    assert max(cut) < MANY / 2
    assert set(read_offsets(disk, f"{tmp_path}/{RECOVERY_POINTS}").values()) == {2}


def test_checkpoints_that_are_written_between_two_turns_are_lowered_again(tmp_path, disk, partitions):
    turns = Turns()
    truncations = Truncations(turns, InlineWorker())
    directory = partitions[0].log._home
    for partition in partitions:
        truncations.add(partition, 2, lambda _, it=partition: cut_to(it, 2))
    turns.turn()
    directory.checkpoint()
    disk.written.clear()
    turns.turn()
    assert disk.written == [RECOVERY_POINTS]
    assert set(read_offsets(disk, f"{tmp_path}/{RECOVERY_POINTS}").values()) == {2}


def test_checkpoints_that_cannot_be_written_are_tried_once_and_each_hears(disk, partitions):
    turns, heard = Turns(), []
    truncations = Truncations(turns, InlineWorker())
    for partition in partitions:
        truncations.add(partition, 2, heard.append)
    disk.refuses = errno.ENOSPC
    turns.turn()
    assert len(disk.written) == 1
    assert len(heard) == MANY
    assert all(isinstance(error, BrokerError) for error in heard)
    assert [partition.log.end_offset for partition in partitions] == [4] * MANY
    assert turns.calls == []


def test_an_answer_by_which_all_branch_off_costs_a_write_a_checkpoint(disk, partitions):
    turns, asked = Turns(), []
    timers = SimpleNamespace(call_soon=turns.call_soon, call_later=lambda *_: None)
    peer = SimpleNamespace(ask=lambda request, _, answered: asked.append((request, answered)))
    values = {
        "replica.fetch.max.bytes": 1 << 20,
        "replica.fetch.wait.max.ms": 500,
        "replica.fetch.min.bytes": 1,
        "replica.fetch.response.max.bytes": 10 << 20,
        "replica.fetch.backoff.ms": 1000,
    }
    throttle = SimpleNamespace(named={})
    fetcher = Fetcher(3, lambda: 1, peer, timers, lambda: values, lambda _: None, throttle)
    for partition in partitions:
        partition.follow(5)
        partition.high_watermark = 0
        fetcher.follow(partition)
    turns.turn()
    topic = FetchResponse.FetchableTopicResponse
    branch = topic.PartitionData.EpochEndOffset(epoch=0, end_offset=2)
    parts = [
        topic.PartitionData(partition_index=each.index, high_watermark=2, diverging_epoch=branch)
        for each in partitions
    ]
    _, answered = asked.pop()
    answered(FetchResponse(session_id=9, responses=[topic(topic_id=bytes(16), partitions=parts)]))
    while turns.calls:
        turns.turn()
    assert [partition.log.end_offset for partition in partitions] == [2] * MANY
    assert sorted(disk.written) == sorted([RECOVERY_POINTS, HIGH_WATERMARKS])
    named = {part.partition: part.fetch_offset for request, _ in asked for t in request.topics for part in t.partitions}
    assert named
    assert set(named.values()) == {2}


def test_nothing_is_cut_after_the_end(disk, partitions):
    turns = Turns()
    truncations = Truncations(turns, InlineWorker())
    truncations.add(partitions[0], 2, pytest.fail)
    truncations.close()
    turns.turn()
    assert disk.written == []


class Thread:
    """A worker that works when told."""

    def __init__(self):
        self.jobs = []

    def run(self, work, done):
        self.jobs.append((work, done))


@pytest.fixture
def long_log(partitions):
    """One whose segment is full of an idempotent producer's batches, with markers between them."""
    log = partitions[0].log
    for sequence in range(300):
        put_from(log, 7, sequence, bytes(2000))
    put(log, 0, producer_id=8, producer_epoch=3, base_sequence=0, transactional=True)
    end_transaction(log, 8, commit=False, producer_epoch=3)
    put_from(log, 7, 300, b"last")
    return log


def known(log):
    entries = sorted(log.producers(), key=lambda entry: entry.producer_id)
    return [(each.producer_id, each.epoch, each.next_sequence, list(each.batches)) for each in entries]


def read_on_the_loop(monkeypatch):
    """Count the bytes that are read from here on, outside of threads."""
    sizes, read = [], RealFile.read

    def counted(self, position, size):
        data = read(self, position, size)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(RealFile, "read", counted)
    return sizes


@pytest.mark.parametrize("back", [1, 2, 3, 100])
def test_what_producers_a_long_log_will_have_is_read_in_a_thread(partitions, long_log, monkeypatch, back):
    turns, thread, heard = Turns(), Thread(), []
    offset = long_log.end_offset - back
    expected = long_log._producers_at(long_log.start_offset, offset)

    def cut(error):
        heard.append(error)
        cut_to(partitions[0], offset)

    Truncations(turns, thread).add(partitions[0], offset, cut)
    sizes = read_on_the_loop(monkeypatch)
    turns.turn()
    assert heard == []
    begun = sum(sizes)
    work, done = thread.jobs.pop()
    work()
    before = sum(sizes)
    done(None, None)
    assert heard == [None]
    assert begun + sum(sizes) - before < 100_000
    assert long_log.end_offset == offset
    assert known(long_log) == known(SimpleNamespace(producers=lambda: list(expected.entries.values())))
    assert long_log._producers.ongoing == expected.ongoing
    assert long_log.rewound is None


def test_a_log_that_grew_meanwhile_is_read_again(partitions, long_log):
    turns, thread = Turns(), Thread()
    offset = long_log.end_offset - 1
    Truncations(turns, thread).add(partitions[0], offset, lambda _: cut_to(partitions[0], offset))
    turns.turn()
    work, done = thread.jobs.pop()
    put_from(long_log, 9, 0, b"more")
    work()
    done(None, None)
    assert long_log.end_offset == offset
    assert [entry.producer_id for entry in long_log.producers()] == [7, 8]


@pytest.mark.parametrize("error", [OSError(errno.EMFILE, "Too many open files"), RuntimeError("a bug")])
def test_a_thread_that_fails_leaves_the_log_as_it_was(partitions, long_log, error):
    turns, thread, heard = Turns(), Thread(), []
    end_offset = long_log.end_offset
    Truncations(turns, thread).add(partitions[0], end_offset - 1, heard.append)
    turns.turn()
    _, done = thread.jobs.pop()
    done(None, error)
    assert isinstance(heard[0], BrokerError)
    assert long_log.end_offset == end_offset


def test_a_thread_makes_no_file_anew_that_retention_has_taken(partitions, long_log):
    turns, thread = Turns(), Thread()
    Truncations(turns, thread).add(partitions[0], long_log.end_offset - 1, pytest.fail)
    turns.turn()
    work, _ = thread.jobs.pop()
    path = long_log.segments[0].file.path
    os.rename(path, path + ".deleted")
    with pytest.raises(FileNotFoundError):
        work()
    assert not os.path.exists(path)
