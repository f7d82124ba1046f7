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
from ottla.world.disk import RealDisk
from ottla.world.entropy import SeededEntropy
from tests.unit.broker.conftest import AtOnce
from tests.unit.log.workbench import put

MANY = 50


class CountingDisk(RealDisk):
    """A disk that counts the checkpoints it writes, and may refuse them."""

    def __init__(self):
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
    truncations = Truncations(turns)
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
    truncations = Truncations(turns)
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
    truncations = Truncations(turns)
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
    truncations = Truncations(turns)
    truncations.add(partitions[0], 2, pytest.fail)
    truncations.close()
    turns.turn()
    assert disk.written == []
