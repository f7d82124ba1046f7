"""A deleted topic takes along what coordinators know of it, whether they were loaded when it went or not."""

import pytest

from ottla.broker.apis import delete_topics, offset_commit, offset_fetch
from ottla.broker.coordination import Coordination
from ottla.broker.internal_topics import OFFSETS, SHARE_STATE, make
from ottla.broker.share_coordination import ShareCoordination
from ottla.replicated.decision import Decision
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.offset_commit import OffsetCommitRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest
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
