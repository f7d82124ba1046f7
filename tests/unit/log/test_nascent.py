"""A log that was created and not written to yet."""

import errno
import os

import pytest

from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.wire.errors import BrokerError
from ottla.world.entropy import SeededEntropy
from tests.unit.log.test_directory import open_directory
from tests.unit.log.workbench import NOW, TOPIC_ID, FaultyDisk, batch, put, read_all


def test_a_new_log_takes_no_room_until_it_is_written_to(tmp_path):
    directory = open_directory(tmp_path)
    log = directory.create_log("t", 0, TOPIC_ID, LogConfig(retention_ms=1))
    assert (log.start_offset, log.end_offset, log.recovery_point, log.size_bytes) == (0, 0, 0, 0)
    assert bytes(log.read(0, 100, 0)) == b""
    assert log.offset_for_timestamp(0) is None
    assert log.candidate(0) is None
    assert log.newest_candidate() is None
    assert log.max_timestamp() is None
    assert log.max_timestamp() is None
    assert log.candidate(0) is None
    assert log.newest_candidate() is None
    assert log.aborted_transactions(0, 10) == []
    assert log.delete_old_segments(NOW, 0) == 0
    assert log.unsynced() == []
    assert not log.truncate_to(0)
    log.begin_epoch(3)
    log.settle()
    log.sync()
    directory.checkpoint()
    directory.rest_idle()
    assert log.is_nascent
    assert not (tmp_path / "t-0").exists()
    assert put(log, 1, epoch=3).base_offset == 0
    assert not log.is_nascent
    assert log.end_offset_for_epoch(3) == (3, 1)
    assert sorted(os.listdir(tmp_path / "t-0"))[-1] == "partition.metadata"
    assert read_all(log) == [(0, b"1")]
    directory.close()


def test_a_new_log_is_forgotten_by_a_restart_and_deleted_without_a_trace(tmp_path):
    directory = open_directory(tmp_path)
    directory.create_log("t", 0, TOPIC_ID, LogConfig())
    directory.delete_log(directory.create_log("gone", 0, TOPIC_ID, LogConfig()))
    directory.close()
    assert open_directory(tmp_path).logs == {}
    assert [name for name in os.listdir(tmp_path) if name.startswith(("t", "gone"))] == []


@pytest.mark.parametrize(
    ("first", "end_offset"),
    [
        (lambda log: log.append_as_follower(batch(1)), 1),
        (lambda log: log.roll(), 0),
        (lambda log: log.truncate_fully_and_start_at(7), 7),
        (lambda log: log.move(f"{log.path}0"), 0),
    ],
    ids=["follow", "roll", "truncate", "move"],
)
def test_whatever_needs_files_makes_them(tmp_path, first, end_offset):
    directory = open_directory(tmp_path)
    log = directory.create_log("t", 0, TOPIC_ID, LogConfig())
    first(log)
    assert not log.is_nascent
    assert put(log, 2).base_offset == end_offset
    assert os.path.exists(f"{log.path}/partition.metadata")
    directory.close()


def test_logs_are_made_ahead_when_there_is_time(tmp_path):
    directory = open_directory(tmp_path)
    logs = [directory.create_log("t", n, TOPIC_ID, LogConfig()) for n in range(5)]
    directory.delete_log(logs[0])
    put(logs[1], 1)
    assert directory.make_some(2)
    assert [log.is_nascent for log in logs] == [True, False, False, False, True]
    assert not directory.make_some(2)
    assert sorted(name for name in os.listdir(tmp_path) if name[0] == "t") == ["t-1", "t-2", "t-3", "t-4"]
    directory.close()


def test_a_log_that_cannot_be_made_is_made_another_time(tmp_path):
    disk = FaultyDisk()
    directory = LogDirectory(str(tmp_path), disk, SeededEntropy(1), lambda text: None)
    directory.open()
    log = directory.create_log("t", 0, TOPIC_ID, LogConfig())
    disk.fail("open", ".timeindex", errno.ENOSPC)
    with pytest.raises(BrokerError) as caught:
        put(log, 1)
    assert caught.value.code.name == "KAFKA_STORAGE_ERROR"
    assert directory.make_some(5)
    assert log.is_nascent
    disk.heal()
    assert put(log, 1).base_offset == 0
    assert not directory.make_some(5)
    directory.close()
