"""A deleted topic takes along what coordinators know of it, whether they were loaded when it went or not.

And it goes from here whatever the disk says to that.
"""

import errno
import os
from pathlib import Path

import pytest

from ottla.broker.apis import delete_topics, offset_commit, offset_fetch
from ottla.broker.coordination import Coordination
from ottla.broker.internal_topics import OFFSETS, SHARE_STATE, make
from ottla.broker.share_coordination import ShareCoordination
from ottla.groups.machine import Groups
from ottla.partition.partition import Partition
from ottla.replicated.decision import Decision
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.offset_commit import OffsetCommitRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest
from ottla.world.disk import RealDisk
from tests.unit.broker.test_share_groups import ACCEPT, Member, configure

MANY = 2_500  # more than one step forgets


@pytest.fixture
def offices(make_station):
    """A broker with the topics in which coordinators keep their state, all groups with one of them."""
    station = make_station(**{"offsets.topic.num.partitions": "1"})
    make(station.broker, OFFSETS, lambda code: None)
    make(station.broker, SHARE_STATE, lambda code: None)
    station.settle()
    return station


def commit(station, group, offset=5, *topics, partitions=1):
    kind = OffsetCommitRequest.OffsetCommitRequestTopic
    parts = [
        kind.OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
        for index in range(partitions)
    ]
    request = OffsetCommitRequest(
        group_id=group, topics=[kind(name=name, partitions=parts) for name in topics]
    )
    answer = station.ask(offset_commit.API, request, 9)
    assert not any(part.error_code for topic in answer.topics for part in topic.partitions)


def committed(station, group):
    """What a group committed, by topic and partition, by name as old clients ask."""
    asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)
    answer = station.ask(offset_fetch.API, OffsetFetchRequest(groups=[asked]), 9)
    return {
        (topic.name, part.partition_index): part.committed_offset
        for topic in answer.groups[0].topics
        for part in topic.partitions
        if part.committed_offset >= 0
    }


def delete(station, name):
    topic = DeleteTopicsRequest.DeleteTopicState(name=name)
    answer = station.ask(delete_topics.API, DeleteTopicsRequest(topics=[topic]))
    assert answer.responses[0].error_code == 0


def load_anew(station):
    station.broker.coordination = Coordination(station.broker, station.entropy.uuid)
    station.broker.share = ShareCoordination(station.broker)


def test_offsets_go_with_their_topic(offices):
    offices.create("t")
    offices.create("u")
    for group in ("g", "h"):
        commit(offices, group, 5, "t", "u")
    delete(offices, "t")
    offices.create("t")
    assert committed(offices, "g") == committed(offices, "h") == {("u", 0): 5}
    load_anew(offices)
    assert committed(offices, "g") == {("u", 0): 5}, "it is in the log, too"


def test_a_coordinator_that_was_not_loaded_forgets_before_it_answers(offices):
    offices.create("t")
    offices.create("u")
    commit(offices, "g", 5, "t", "u")
    load_anew(offices)
    delete(offices, "t")
    offices.create("t")
    assert committed(offices, "g") == {("u", 0): 5}


def test_a_coordinator_that_was_not_loaded_keeps_what_is_there(offices):
    offices.create("t", MANY)
    commit(offices, "g", 5, "t", partitions=MANY)
    load_anew(offices)
    assert len(committed(offices, "g")) == MANY


@pytest.mark.parametrize("loaded", [True, False])
def test_more_offsets_go_than_one_batch_holds(make_station, loaded):
    # Two steps of 1,000 tombstones each would not fit together.
    offices = make_station(**{"offsets.topic.num.partitions": "1", "message.max.bytes": "40000"})
    make(offices.broker, OFFSETS, lambda code: None)
    offices.settle()
    offices.create("t", MANY)
    for group in ("a", "b", "c", "d", "e"):
        commit(offices, group, 7, "t", partitions=500)
    if not loaded:
        load_anew(offices)
    delete(offices, "t")
    for group in ("a", "b", "c", "d", "e"):
        assert committed(offices, group) == {}


@pytest.mark.parametrize("loaded", [True, False])
def test_the_state_of_share_groups_goes_with_its_topic(offices, loaded):
    configure(offices, "g", "share.auto.offset.reset", "earliest")
    kept, gone = offices.create("t"), offices.create("u")
    for name in ("t", "u"):
        offices.produce(name, count=3)
        member = Member(offices, f"m-{name}").join(name)
        assert member.take() == [(0, 2, 1)]
        assert member.acknowledge(0, 2, ACCEPT) == 0
    commit(offices, "h", 5, "t", "u")
    if not loaded:
        load_anew(offices)
    delete(offices, "u")
    Member(offices, "m-t").beat("t", epoch=0)
    machines = offices.broker.share.states.machines
    for index in range(50):
        machines.submit(index, lambda machine, now: Decision(None), lambda outcome: None)
    assert {key.topic_id for machine in machines.machines for key in machine.states} == {kept.id}
    (group,) = (
        machine.shelf.groups["g"]
        for machine in offices.broker.coordination.groups.machines
        if "g" in machine.shelf.groups
    )
    assert gone.id not in group.progress.topic_ids
    assert kept.id in group.progress.initialized


def tombstones(station):
    return station.table.by_name(OFFSETS.name, 0).log.end_offset


def test_offsets_go_in_many_turns_of_the_loop_and_others_are_served_between(offices):
    offices.create("t", MANY)
    offices.create("u")
    commit(offices, "g", 5, "t", partitions=MANY)
    before = tombstones(offices)
    offices.broker.coordination.topics_deleted([offices.broker.image.topics.by_name["t"]])
    seen = []
    for _ in range(20):
        ready = [timer for timer in offices.timers.waiting if timer.due <= offices.clock.ms]
        for timer in ready:
            timer.gone = True
            timer.callback()
        seen.append(tombstones(offices) - before)
    assert seen[:4] == [1_000, 2_000, MANY, MANY], "a thousand in a turn"


def test_what_could_not_be_forgotten_is_forgotten_later(offices, monkeypatch):
    offices.create("t", MANY)
    commit(offices, "g", 5, "t", partitions=MANY)
    with monkeypatch.context() as refusing:

        def refuse(self, *arguments, **how):
            raise BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS)

        refusing.setattr(Partition, "append_own", refuse)
        delete(offices, "t")
        offices.settle(900)
    assert len(committed(offices, "g")) == MANY
    offices.settle(200)
    assert committed(offices, "g") == {}


def test_a_coordinator_that_cannot_forget_serves_all_the_same(offices, monkeypatch):
    offices.create("t")
    commit(offices, "g", 5, "t")

    def breaks(self):
        raise RuntimeError("unforeseen")
        yield

    monkeypatch.setattr(Groups, "tidy", breaks)
    load_anew(offices)
    assert committed(offices, "g") == {("t", 0): 5}


# A disk that does not let it go


def fail_renames(monkeypatch, part, number, times=1):
    """Have so many renames of a partition's directory fail."""
    left, rename = [times], RealDisk.rename

    def renamed(self, source, target):
        if source.endswith(part) and left[0]:
            left[0] -= 1
            raise OSError(number, os.strerror(number), source)
        rename(self, source, target)

    monkeypatch.setattr(RealDisk, "rename", renamed)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_directory_that_cannot_be_renamed_keeps_no_other_partition_and_no_other_change(
    make_station, monkeypatch, number
):
    station = make_station(directories=2)
    station.create("a", 4)
    for index in range(4):
        station.produce("a", index)
    parts = [station.table.by_name("a", index) for index in range(4)]
    fail_renames(monkeypatch, "/a-0", number)
    delete(station, "a")
    assert (list(station.broker.image.topics.by_name), station.table.names()) == ([], [])
    assert {part.refusal.code for part in parts} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert [each.offline is None for each in station.directories].count(False) == (number == errno.EIO)
    station.create("b")
    assert station.produce("b").high_watermark == 1


def test_what_could_not_be_removed_goes_later_and_no_topic_of_the_name_finds_it(station, monkeypatch):
    station.table.report = station.reports.append
    station.create("a")
    station.produce("a", count=5)
    fail_renames(monkeypatch, "/a-0", errno.ENOSPC, times=3)
    delete(station, "a")
    assert "/a-0 could not be deleted, which is tried again: " in station.reports[-1]
    station.create("a")  # its files cannot be made where the old ones lie: one failure more
    with pytest.raises(BrokerError) as refused:
        station.produce("a")  # and another
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert station.produce("a", count=2).log.end_offset == 2
    delete(station, "a")
    fail_renames(monkeypatch, "/a-0", errno.ENOSPC, times=0)
    station.table.wake_some(10)
    assert not (Path(station.directories[0].path) / "a-0").exists()


def test_what_could_not_be_removed_is_tried_again_though_nobody_asks(station, monkeypatch):
    station.create("a")
    station.produce("a")
    fail_renames(monkeypatch, "/a-0", errno.ENOSPC, times=2)
    delete(station, "a")
    path = Path(station.directories[0].path) / "a-0"
    station.table.wake_some(10)
    assert path.exists()
    station.table.wake_some(10)
    assert not path.exists()


def test_a_bug_with_one_partition_is_reported_and_keeps_no_other_from_a_change(station, monkeypatch):
    station.table.report = station.reports.append
    station.create("a", 3)
    gone, remove = [], station.table._remove

    def removed(topic, index, is_moved=False):
        if index == 0:
            raise TypeError("a bug")
        gone.append(index)
        remove(topic, index, is_moved)

    monkeypatch.setattr(station.table, "_remove", removed)
    delete(station, "a")
    assert gone == [1, 2]
    assert "TypeError: a bug" in station.reports[-1]
    assert "a" not in station.broker.image.topics.by_name


def test_twins_that_cannot_be_opened_stop_no_change(make_station):
    station = make_station(directories=2)
    station.table.report = station.reports.append
    state = station.create("a").partitions[0]

    class Twin:
        """A log that has to be read to tell its end, and cannot be."""

        topic, partition, topic_id, config = "a", 0, bytes(16), None

        @property
        def end_offset(self):
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR)

    topic = station.broker.image.topics.by_name["a"]
    station.table._forget(("a", 0), topic.id)
    for directory in station.directories:
        directory.logs["a", 0] = Twin()
    station.table._put(topic, 0, state, station.broker.image, None)
    with pytest.raises(BrokerError):
        station.table.by_name("a", 0)
    for directory in station.directories:
        del directory.logs["a", 0]
    assert station.table.by_name("a", 0).is_leader, "each use tries again"
