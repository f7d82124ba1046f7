"""What is opened and loaded in the background after a start: one that fails keeps no other from its turn."""

import errno
from types import SimpleNamespace

import pytest

from ottla.log.log import Log
from ottla.node.chores import Chores
from ottla.partition.partition import Partition
from ottla.partition.table import PartitionTable, Sleeper
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.records.metadata import PartitionRecord, TopicRecord
from tests.unit.broker.test_replication import Cluster


def asleep(station, *topics):
    """Put partitions to sleep, as they are after a start."""
    for topic in topics:
        partition = station.table.by_name(topic, 0)
        name = (topic, 0)
        station.table._forget(name, partition.topic_id)
        station.table.asleep[name] = Sleeper(
            partition.log, station.directories[0], partition.topic_id, partition.leader_epoch + 1
        )


def test_a_partition_that_cannot_be_woken_is_tried_again_after_the_others(station, monkeypatch):
    for topic in ("a", "b"):
        station.create(topic)
    asleep(station, "a", "b")
    with monkeypatch.context() as broken:
        begin = Log.begin_epoch

        def begin_epoch(self, leader_epoch):
            if self.topic == "a":
                raise OSError(errno.EMFILE, "too many")
            begin(self, leader_epoch)

        broken.setattr(Log, "begin_epoch", begin_epoch)
        assert not station.table.wake_some(1), "it does not hurry while nothing can be woken"
        assert station.table.wake_some(1)
        assert list(station.table.partitions)[-1:] == [("b", 0)]
        assert list(station.table.asleep) == [("a", 0)]
    assert not station.table.wake_some(1)
    assert station.table.by_name("a", 0).topic == "a"


@pytest.mark.parametrize("step", ["opened", "begin_epoch"])
def test_a_bug_in_one_partition_keeps_no_other_from_being_woken(station, monkeypatch, step):
    for topic in ("a", "b"):
        station.create(topic)
    asleep(station, "a", "b")
    station.table._unmade["c", 0] = None, None, None
    with monkeypatch.context() as broken:
        begin, opened = Log.begin_epoch, PartitionTable._opened

        def begin_epoch(self, leader_epoch):
            if self.topic == "a":
                raise RuntimeError("unforeseen")
            begin(self, leader_epoch)

        def open_log(self, name):
            if name == ("a", 0):
                raise RuntimeError("unforeseen")
            return opened(self, name)

        if step == "opened":
            broken.setattr(PartitionTable, "_opened", open_log)
        else:
            broken.setattr(Log, "begin_epoch", begin_epoch)
        assert not station.table.wake_some(1)
        assert list(station.table.asleep) == [("b", 0), ("a", 0)]
        assert station.table.wake_some(1)
        assert list(station.table.asleep) == [("a", 0)]
        assert "unforeseen" in station.reports[-1]
        with pytest.raises(BrokerError) as refused:
            station.table.by_name("a", 0)
        assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert ("c", 0) in station.table._unmade, "it is kept, though it could not be made"
    assert not station.table.wake_some(1)
    assert station.table.by_name("a", 0).topic == "a"


def test_a_bug_as_a_replica_takes_its_role_leaves_it_without_one_until_it_is_woken(tmp_path, monkeypatch):
    """It would go on in its earlier role, and in an epoch that is over."""
    cluster = Cluster(tmp_path)
    node = cluster.nodes[1]
    node.table.report = cluster.reports.append
    with monkeypatch.context() as broken:

        def assume(*arguments):
            raise RuntimeError("unforeseen")

        broken.setattr(node.roles, "assume", assume)
        cluster.elect(2, [1, 2, 3])
        assert list(node.table.asleep) == [("t", 0)]
        assert "unforeseen" in cluster.reports[-1]
        assert not node.table.wake_some(5)
    node.table.wake_some(5)
    assert node.partition.leader_epoch == cluster.nodes[2].partition.leader_epoch
    assert not node.partition.is_leader


def test_whatever_fails_in_the_background_is_reported_and_goes_on():
    def fails():
        raise RuntimeError("unforeseen")

    made, later, reports = [], [], []
    directory = SimpleNamespace(offline=None, make_some=made.append)
    chores = Chores.__new__(Chores)
    chores._node = SimpleNamespace(
        table=SimpleNamespace(wake_some=lambda count: fails(), directories=[directory]),
        broker=SimpleNamespace(load_some=fails),
        report=reports.append,
        world=SimpleNamespace(
            timers=SimpleNamespace(call_later=lambda delay, callback: later.append(callback))
        ),
    )
    chores._wake()
    assert len(made) == 1, "files are made though the rest failed"
    assert len(reports) == 2
    assert later == [chores._wake], "it looks again"


@pytest.mark.parametrize("step", ["create_log", "read_high_watermarks", "begin_epoch", "follow"])
def test_a_replica_that_could_not_be_opened_at_first_takes_its_role_when_it_is(tmp_path, monkeypatch, step):
    """It would lead, though the metadata has another leader, and follow nobody."""
    cluster = Cluster(tmp_path)
    node = cluster.nodes[3]
    other = bytes([9]) * 16
    with monkeypatch.context() as broken:

        def fails(*arguments):
            raise OSError(errno.ENOSPC if step == "create_log" else errno.EMFILE, "not now")

        kind = {"begin_epoch": Log, "follow": Partition}.get(step, type(node.directory))
        if step == "read_high_watermarks":
            node.table._checkpointed.clear()
        broken.setattr(kind, step, fails)
        cluster.tell(
            TopicRecord(name="u", topic_id=other),
            PartitionRecord(
                partition_id=0,
                topic_id=other,
                replicas=[1, 2, 3],
                isr=[1, 2, 3],
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=[bytes(16)] * 3,
            ),
            to=(3,),
        )
        with pytest.raises(BrokerError) as refused:
            node.table.by_name("u", 0)
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert node.directory.offline is None
    for _ in range(2):
        node.table.wake_some(5)
    partition = node.table.partitions["u", 0]
    assert partition.refusal.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not partition.is_leader
    for each in cluster.nodes.values():
        each.directory.close(clean=False)


def test_a_leader_that_could_not_become_a_follower_leads_no_more_and_follows_later(tmp_path, monkeypatch):
    cluster = Cluster(tmp_path)
    node, heard = cluster.nodes[1], []
    before = node.partition
    before.when_durable(5, heard.append)
    with monkeypatch.context() as broken:

        def fails(self, offset):
            raise OSError(errno.EMFILE, "not now")

        broken.setattr(Log, "truncate_to", fails)
        cluster.elect(2, [1, 2, 3], to=(1,))
        assert [error.code for error in heard] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        assert not before.is_leader
        with pytest.raises(BrokerError) as refused:
            _ = node.partition
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    node.table.wake_some(5)
    assert node.partition.refusal.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert node.partition.leader_epoch == before.leader_epoch == 1
    for each in cluster.nodes.values():
        each.directory.close(clean=False)
