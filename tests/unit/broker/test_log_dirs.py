"""DescribeLogDirs, AlterReplicaLogDirs, and the moves behind it."""

import errno

import pytest

from ottla.broker.apis.alter_replica_log_dirs import API as ALTER
from ottla.broker.apis.describe_log_dirs import API as DESCRIBE
from ottla.broker.apis.incremental_alter_configs import API as ALTER_CONFIGS
from ottla.broker.directories import record_misplaced
from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.log.synchronizer import DirectoryNames
from ottla.metadata.directory import UNASSIGNED
from ottla.partition import move as module
from ottla.partition.copy import agreed_end, cut_to
from ottla.partition.move import Mover
from ottla.wire.batch import build_batch, scan
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.record import Record
from ottla.world.worker import InlineWorker


@pytest.fixture
def station(make_station):
    return make_station(directories=2)


def describe(station, topics=None, version=5):
    request = DescribeLogDirsRequest(
        topics=None
        if topics is None
        else [
            DescribeLogDirsRequest.DescribableLogDirTopic(topic=name, partitions=indexes)
            for name, indexes in topics
        ]
    )
    return station.ask(DESCRIBE, request, version).results


def contents(results):
    """Where each log lies: topic, partition, directory, and whether it is one of the future."""
    return {
        (topic.name, part.partition_index, number, part.is_future_key)
        for number, result in enumerate(results)
        for topic in result.topics
        for part in topic.partitions
    }


def alter(station, path, topic="t", index=0, version=2):
    kind = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    topics = [kind.AlterReplicaLogDirTopic(name=topic, partitions=[index])]
    request = AlterReplicaLogDirsRequest(dirs=[kind(path=path, topics=topics)])
    (result,) = station.ask(ALTER, request, version).results
    assert (result.topic_name, result.partitions[0].partition_index) == (topic, index)
    return result.partitions[0].error_code


def home(station, topic="t", index=0):
    """The directory where a partition lies, and the other one."""
    partition = station.table.by_name(topic, index)
    source = station.broker.mover.directory_of(partition)
    (target,) = [each for each in station.directories if each is not source]
    return partition, source, target


def offsets(log):
    data = log.read(log.start_offset, 1 << 30, log.end_offset)
    return [(batch.base_offset, batch.last_offset) for _, batch in scan(data)]


# Describing


@pytest.mark.parametrize("version", DESCRIBE.versions)
def test_directories_and_their_logs_are_described(station, version):
    station.create("t", 2)
    station.produce("t", 0, count=5, size=100)
    results = describe(station, version=version)
    assert [result.log_dir for result in results] == [each.path for each in station.directories]
    assert {(topic, index) for topic, index, _, _ in contents(results)} == {("t", 0), ("t", 1)}
    sizes = {
        part.partition_index: (part.partition_size, part.offset_lag)
        for result in results
        for topic in result.topics
        for part in topic.partitions
    }
    assert sizes == {0: (station.table.by_name("t", 0).log.size_bytes, 0), 1: (0, 0)}
    if version >= 4:
        assert all(0 < result.usable_bytes <= result.total_bytes for result in results)


def test_only_what_was_asked_for_is_shown(station):
    station.create("t", 2)
    station.create("u")
    results = describe(station, [("t", [1, 9]), ("nowhere", [0])])
    assert {(topic, index) for topic, index, _, _ in contents(results)} == {("t", 1)}
    assert contents(describe(station, [])) == set()


def test_the_metadata_log_is_not_shown(station):
    station.directories[0].create_log("__cluster_metadata", 1, bytes(16), LogConfig())
    assert contents(describe(station)) == set()


def test_a_directory_that_failed_is_named_with_its_error(station):
    station.create("t", 4)
    station.directories[1].fail(OSError("disk on fire"))
    working, failed = describe(station)
    assert working.error_code == 0
    assert (failed.error_code, failed.topics) == (ErrorCode.KAFKA_STORAGE_ERROR, [])
    assert (failed.total_bytes, failed.usable_bytes) == (-1, -1)


def test_cordoned_directories_say_so_and_take_nothing_in(station):
    station.create("t")
    _, source, target = home(station)
    kind = IncrementalAlterConfigsRequest.AlterConfigsResource
    changed = kind.AlterableConfig(name="cordoned.log.dirs", value=target.path)
    resource = kind(resource_type=4, resource_name="1", configs=[changed])
    assert (
        station.ask(ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources=[resource]))
        .responses[0]
        .error_code
        == 0
    )
    assert {result.log_dir: result.is_cordoned for result in describe(station)} == {
        source.path: False,
        target.path: True,
    }
    assert alter(station, target.path) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


# Moving


@pytest.mark.parametrize("version", ALTER.versions)
def test_a_partition_moves_with_all_its_records(station, version):
    station.create("t", segment_bytes="1048576")
    for _ in range(40):
        station.produce("t", count=10, size=10_000)
    partition, source, target = home(station)
    before = offsets(partition.log)
    old = partition.log
    assert len(old.segments) > 2
    assert alter(station, target.path, version=version) == 0
    station.settle()
    assert partition.log is target.logs["t", 0]
    assert partition.log is not old
    assert offsets(partition.log) == before
    assert ("t", 0) not in source.logs
    assert station.reports == []
    assert (partition.high_watermark, partition.log.recovery_point) == (400, 400)
    assert not station.disk.exists(f"{source.path}/t-0")
    assert station.disk.is_dir(f"{target.path}/t-0")


def test_the_cluster_learns_where_the_replica_lies(station):
    station.create("t")
    _, _, target = home(station)
    alter(station, target.path)
    station.settle()
    assert station.broker.image.partition("t", 0).directories == (target.identity.directory_id,)


def test_telling_the_controller_is_tried_until_it_has_heard(station):
    station.create("t")
    _, _, target = home(station)
    submit, refused = station.broker.submit, []

    def refuse_twice(decide, done):
        if len(refused) < 2:
            refused.append(1)
            done(BrokerError(ErrorCode.NOT_CONTROLLER))
        else:
            submit(decide, done)

    station.broker.submit = refuse_twice
    alter(station, target.path)
    for _ in range(3):
        station.settle(1000)
    assert station.broker.image.partition("t", 0).directories == (target.identity.directory_id,)


def test_writing_goes_on_before_during_and_after(station, monkeypatch):
    monkeypatch.setattr(module, "PIECE_BYTES", 3000)
    station.create("t")
    partition, _, target = home(station)
    for _ in range(20):
        station.produce("t", size=1000)
    station.broker.mover.start(partition, target)
    while station.broker.mover.moves:
        station.produce("t", size=100)  # one batch for each piece copied
        timer = min(station.timers.waiting, key=lambda timer: (timer.due, timer.number))
        timer.gone = True
        timer.callback()
    station.produce("t", count=2)
    assert partition.log is target.logs["t", 0]
    found = offsets(partition.log)
    assert [base for base, _ in found] == list(range(partition.log.end_offset - 1))
    assert partition.high_watermark == partition.log.end_offset > 22


def test_what_comes_during_the_sync_is_on_the_device_before_the_swap(station):
    class Meanwhile(InlineWorker):
        def run(self, work, done):
            work()
            station.produce("t", count=2)
            done(None, None)

    station.create("t")
    station.produce("t", count=3)
    partition, _, target = home(station)
    mover = Mover(station.table, Meanwhile(), station.timers, lambda *_: None, station.reports.append)
    mover.start(partition, target)
    station.settle()
    assert partition.log is target.logs["t", 0]
    assert (partition.log.end_offset, partition.log.recovery_point) == (5, 5)


def test_a_log_that_begins_in_the_middle_of_a_batch(station):
    station.create("t")
    station.produce("t", count=10)
    partition, _, target = home(station)
    station.produce("t", count=10)
    partition.log.raise_start_offset(13)
    alter(station, target.path)
    station.settle()
    assert partition.log is target.logs["t", 0]
    assert (partition.log.start_offset, partition.log.end_offset) == (13, 20)
    assert offsets(partition.log) == [(10, 19)]


def test_a_log_without_records_keeps_its_offsets(station):
    station.create("t")
    station.produce("t", count=10)
    partition, _, target = home(station)
    partition.log.truncate_fully_and_start_at(10)
    alter(station, target.path)
    station.settle()
    assert (partition.log.start_offset, partition.log.end_offset) == (10, 10)
    station.produce("t")
    assert partition.log.end_offset == 11


def test_producers_are_still_known_after_a_move(station):
    station.create("t")
    station.produce("t", producer_id=5, producer_epoch=0, base_sequence=0)
    partition, _, target = home(station)
    alter(station, target.path)
    station.settle()
    station.produce("t", producer_id=5, producer_epoch=0, base_sequence=0)
    assert partition.log.end_offset == 1  # a duplicate
    station.produce("t", producer_id=5, producer_epoch=0, base_sequence=1)
    assert partition.log.end_offset == 2


def test_retention_may_pass_a_move_by(station, monkeypatch):
    monkeypatch.setattr(module, "PIECE_BYTES", 300)
    station.create("t")
    partition, source, target = home(station)
    for _ in range(5):
        station.produce("t", count=5, size=100)
    future = target.create_log("t", 0, partition.topic_id, partition.log.config, future=True)
    moving = module.Move(partition, source, target, future)
    moving.copy()
    assert future.end_offset == 5
    partition.log.raise_start_offset(15)
    while moving.copy():
        pass
    assert (future.start_offset, future.end_offset) == (15, 25)


def test_a_log_that_is_cut_and_grows_again_during_a_move_is_copied_as_it_is(station):
    """A follower's log may lose its end to another leader, and be longer than ever by the next piece."""
    station.create("t")
    station.produce("t", count=3)
    partition, source, target = home(station)
    for n in range(3, 10):
        partition.log.append(build_batch([Record(0, 0, None, b"old%d" % n)]), 4, station.clock.now_ms())
    future = target.create_log("t", 0, partition.topic_id, partition.log.config, future=True)
    moving = module.Move(partition, source, target, future)
    while moving.copy():
        pass
    assert future.end_offset == 10
    cut_to(partition, 5)
    for n in range(5, 20):
        partition.log.append(build_batch([Record(0, 0, None, b"new%d" % n)]), 6, station.clock.now_ms())
    while moving.copy():
        pass
    size = partition.log.size_bytes
    assert bytes(future.read(0, size, 20)) == bytes(partition.log.read(0, size, 20))
    assert future.epochs == partition.log.epochs


def test_a_move_of_a_log_that_was_cut_copies_what_agrees_no_second_time(station):
    station.create("t")
    station.produce("t", count=3)
    partition, source, target = home(station)
    future = target.create_log("t", 0, partition.topic_id, partition.log.config, future=True)
    moving = module.Move(partition, source, target, future)
    for epoch in (2, 5):
        for _ in range(4):
            partition.log.append(build_batch([Record(0, 0, None, b"old")]), epoch, station.clock.now_ms())
    while moving.copy():
        pass
    cut_to(partition, 7)  # all of epoch 5
    assert agreed_end(future, partition.log) == 7
    partition.log.append(build_batch([Record(0, 0, None, b"new")]), 6, station.clock.now_ms())
    assert moving.copy() < 100
    assert future.end_offset == 8


def test_the_move_is_shown_while_it_goes_on(station):
    station.create("t")
    station.produce("t", count=10)
    partition, source, target = home(station)
    station.broker.mover.start(partition, target)
    at = {each: station.directories.index(each) for each in station.directories}
    assert contents(describe(station)) == {("t", 0, at[source], False), ("t", 0, at[target], True)}
    parts = [part for result in describe(station) for topic in result.topics for part in topic.partitions]
    (future,) = [part for part in parts if part.is_future_key]
    assert future.offset_lag == 10


def test_naming_the_present_directory_stops_a_move(station):
    station.create("t")
    station.produce("t")
    partition, source, target = home(station)
    station.broker.mover.start(partition, target)
    assert alter(station, source.path) == 0
    station.settle()
    assert home(station)[1] is source
    assert target.futures == {}
    assert [name for name in station.disk.list(target.path) if name.endswith("-future")] == []


def test_asking_twice_moves_once(station):
    station.create("t")
    partition, _, target = home(station)
    station.broker.mover.start(partition, target)
    future = target.futures["t", 0]
    assert alter(station, target.path) == 0
    station.settle()
    assert partition.log is future
    assert alter(station, target.path) == 0


def test_a_topic_deleted_meanwhile_takes_its_copy_along(station):
    topic = station.create("t")
    partition, _, target = home(station)
    station.broker.mover.start(partition, target)
    station.table._remove(topic, 0)
    station.settle()
    assert (target.futures, station.broker.mover.moves) == ({}, {})
    assert ("t", 0) not in target.logs


def test_a_target_that_fails_ends_the_move_and_the_log_stays(station):
    station.create("t")
    station.produce("t", count=3)
    partition, source, target = home(station)
    station.broker.mover.start(partition, target)
    target.fail(OSError("disk on fire"))
    station.settle()
    assert home(station)[1] is source
    assert station.broker.mover.moves == {}
    station.produce("t")
    assert partition.log.end_offset == 4


def test_a_sync_that_fails_ends_the_move(station):
    class Failing:
        def run(self, work, done):
            done(None, OSError("disk on fire"))

    station.create("t")
    station.produce("t")
    partition, source, target = home(station)
    mover = Mover(station.table, Failing(), station.timers, lambda *_: None, station.reports.append)
    mover.start(partition, target)
    station.settle()
    assert home(station)[1] is source
    assert target.offline is not None
    assert "has failed" in station.reports[-1]


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EMFILE])
@pytest.mark.parametrize("step", ["files", "names"])
def test_a_sync_that_fails_within_the_swap_takes_its_directory_offline(station, monkeypatch, step, number):
    station.create("t")
    station.produce("t", count=3)
    partition, source, target = home(station)
    failed, sync_dir = [], DirectoryNames.sync

    def fail(*_):
        failed.append(1)
        raise OSError(number, "the sync has failed")

    if step == "files":
        monkeypatch.setattr(Log, "sync", fail)
    else:

        def sync_names(self):
            return fail() if self.path == target.path and ("t", 0) in target.logs else sync_dir(self)

        monkeypatch.setattr(DirectoryNames, "sync", sync_names)
    station.broker.mover.start(partition, target)
    station.timers.run()
    assert len(failed) == 1, "it is not tried again"
    assert (target.offline is not None) == (number != errno.EMFILE), "without descriptors it could not begin"
    assert home(station)[1] is source
    assert not station.broker.mover.moves
    monkeypatch.undo()
    station.produce("t")
    assert partition.log.end_offset == 4


def test_a_sync_that_fails_is_heard_though_the_mover_was_stopped(station):
    class Later:
        def run(self, work, done):
            self.done = done

    station.create("t")
    station.produce("t")
    partition, _, target = home(station)
    worker = Later()
    mover = Mover(station.table, worker, station.timers, lambda *_: None, station.reports.append)
    mover.start(partition, target)
    station.timers.run()
    mover.stop()
    worker.done(None, OSError(errno.EIO, "disk on fire"))
    assert target.offline is not None, "or a clean stop would vouch for what it has"


def test_a_log_that_cannot_be_read_ends_the_move_and_not_the_mover(station, monkeypatch):
    station.create("t", 2)
    station.produce("t", 0)
    station.produce("t", 1)
    first, source, target = home(station, "t", 0)
    copy = module.Move.copy

    def broken(move):
        if move.partition is first:
            raise OSError("bad sector")
        return copy(move)

    monkeypatch.setattr(module.Move, "copy", broken)
    second, _, elsewhere = home(station, "t", 1)
    station.broker.mover.start(first, target)
    station.broker.mover.start(second, elsewhere)
    station.settle()
    assert first.log is source.logs["t", 0]
    assert second.log is elsewhere.logs["t", 1]
    assert "bad sector" in station.reports[-1]


@pytest.mark.parametrize("where", ["copy", "thread"])
def test_a_move_that_breaks_for_a_reason_nobody_expects_ends_no_other(station, monkeypatch, where):
    class Breaking(InlineWorker):
        broken = False

        def run(self, work, done):
            if where == "thread" and not self.broken:
                self.broken = True
                done(None, RuntimeError("nobody expects this"))
            else:
                super().run(work, done)

    station.create("t", 2)
    mover = Mover(station.table, Breaking(), station.timers, lambda *_: None, station.reports.append)
    targets = []
    for index in range(2):
        station.produce("t", index, count=3)
        partition, _, target = home(station, index=index)
        targets.append((partition, target))
        mover.start(partition, target)
    real, struck = module.Move.copy, []

    def copy(self):
        if where == "copy" and self.partition is targets[0][0] and not struck:
            struck.append(1)
            raise RuntimeError("nobody expects this")
        return real(self)

    monkeypatch.setattr(module.Move, "copy", copy)
    station.timers.run()
    assert not mover.moves
    assert any("nobody expects this" in text for text in station.reports)
    homes = [mover.directory_of(partition) is target for partition, target in targets]
    assert homes == [False, True], "the other has moved"
    mover.start(*targets[0])
    station.timers.run()
    assert mover.directory_of(targets[0][0]) is targets[0][1], "and so does this one when it is asked again"


def test_a_move_whose_old_log_cannot_be_removed_is_done_and_its_directory_offline(station, monkeypatch):
    station.create("t")
    station.produce("t", count=3)
    partition, source, target = home(station)

    def refuse(log):
        raise OSError(errno.EIO, "the old disk is broken")

    monkeypatch.setattr(source, "delete_log", refuse)
    station.broker.mover.start(partition, target)
    station.timers.run()
    assert not station.broker.mover.moves
    assert target.logs["t", 0] is partition.log
    assert source.offline is not None
    station.produce("t")
    assert partition.log.end_offset == 4


def test_an_interrupted_move_goes_on_after_the_next_start(station):
    station.create("t")
    station.produce("t", count=5)
    partition, _, target = home(station)
    future = target.create_log("t", 0, partition.topic_id, LogConfig(), future=True)
    future.append_as_follower(partition.log.read(0, 1 << 20, 5))
    station.produce("t", count=5)
    target.create_log("gone", 0, bytes(16), LogConfig(), future=True)
    station.broker.mover.resume()
    station.settle()
    assert partition.log is future
    assert partition.log.end_offset == 10
    assert target.futures == {}


def test_a_swap_that_a_crash_cut_in_two_is_finished(station):
    station.create("t")
    station.produce("t", count=5)
    partition, source, target = home(station)
    twin = target.create_log("t", 0, partition.topic_id, LogConfig())
    twin.append_as_follower(partition.log.read(0, 1 << 20, 5))
    station.broker.mover.resume()
    assert ("t", 0) not in target.logs
    assert source.logs["t", 0] is partition.log
    assert not station.disk.exists(f"{target.path}/t-0")


def test_the_controller_hears_where_new_partitions_lie(station):
    station.create("t", 3)
    names = [("t", index) for index in range(3)]
    assert station.broker.image.partition("t", 0).directories == (UNASSIGNED,)
    record_misplaced(station.broker, [*names, ("nowhere", 0)])
    station.settle()
    for index in range(3):
        _, source, _ = home(station, "t", index)
        assert station.broker.image.partition("t", index).directories == (source.identity.directory_id,)
    end_offset = station.quorum.end_offset
    record_misplaced(station.broker, names)
    station.settle()
    assert station.quorum.end_offset == end_offset  # all is known


def test_a_mover_that_was_stopped_moves_nothing(station):
    station.create("t")
    partition, source, target = home(station)
    station.broker.mover.start(partition, target)
    station.broker.mover.stop()
    station.settle()
    assert home(station)[1] is source
    assert ("t", 0) in target.futures


def test_a_move_keeps_to_its_rate(station, monkeypatch):
    monkeypatch.setattr(module, "PIECE_BYTES", 1000)
    station.create("t")
    for _ in range(10):
        station.produce("t", size=1000)
    partition, _, target = home(station)
    rate = partition.log.size_bytes // 10  # ten seconds for all
    mover = Mover(station.table, InlineWorker(), station.timers, lambda *_: None, print, lambda: rate)
    mover.start(partition, target)
    for _ in range(9):
        station.settle(900)
    assert mover.moves
    for _ in range(5):
        station.settle(1000)
    assert not mover.moves


# Refusals


def test_moves_that_cannot_be_made(station):
    station.create("t")
    _, _, target = home(station)
    assert alter(station, "/nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
    assert alter(station, target.path, "u") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert alter(station, target.path, "t", 1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert alter(station, target.path, "x" * 230) == ErrorCode.INVALID_TOPIC_EXCEPTION
    station.table._forget(("t", 0), station.broker.image.topics.by_name["t"].id)
    assert alter(station, target.path) == ErrorCode.REPLICA_NOT_AVAILABLE


def test_an_offline_directory_neither_takes_nor_gives(station):
    station.create("t")
    _, _, target = home(station)
    target.fail(OSError("disk on fire"))
    assert alter(station, target.path) == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_partition_that_failed_does_not_move(station):
    station.create("t")
    _, source, target = home(station)
    station.table.take_offline(source, BrokerError(ErrorCode.KAFKA_STORAGE_ERROR))
    assert alter(station, target.path) == ErrorCode.KAFKA_STORAGE_ERROR
