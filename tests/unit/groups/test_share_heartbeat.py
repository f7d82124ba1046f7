"""Members of share groups join, read, and leave."""

from ottla.groups.share.group import ShareGroup
from ottla.groups.share.progress import Progress, Topic
from ottla.groups.share.records import KINDS
from ottla.replicated.keyed import Client, decode
from ottla.wire.errors import ErrorCode
from ottla.wire.records.share_group import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataValue,
)
from tests.unit.groups.share_stage import CLIENT, GROUP, Stage, assigned, topic_id


def durable(machine):
    return {
        group.id: (
            group.epoch, group.metadata_hash, group.assignment_epoch, group.assignment_timestamp, group.members,
            group.targets, group.progress, group.counts,
        )
        for group in machine.shelf.groups.values()
    }  # fmt: skip


def test_a_member_reads_once_there_is_state() -> None:
    stage = Stage(a=2)
    reply = stage.beat("m1", 0, ["a"], rack="r1")
    assert (reply.error_code, reply.member_id, reply.member_epoch) == (0, "m1", 2)
    assert reply.heartbeat_interval_ms == 5000
    assert assigned(reply) == {}
    kinds = [type(record.value) for record in stage.records]
    assert kinds == [
        ShareGroupMemberMetadataValue, ShareGroupMetadataValue, ShareGroupTargetAssignmentMemberValue,
        ShareGroupTargetAssignmentMetadataValue, ShareGroupCurrentMemberAssignmentValue,
        ShareGroupStatePartitionMetadataValue,
    ]  # fmt: skip
    (request,) = stage.coordinate()
    (topic,) = request.topics
    assert (request.group_id, topic.topic_id) == (GROUP, topic_id("a"))
    assert [(each.partition, each.state_epoch, each.start_offset) for each in topic.partitions] == [
        (0, 2, -1),
        (1, 2, -1),
    ]
    stage.pass_time(1000)
    reply = stage.beat("m1", 2)
    assert (reply.member_epoch, assigned(reply)) == (3, {"a": [0, 1]})
    count = len(stage.records)
    reply = stage.beat("m1", 3)
    assert (reply.member_epoch, reply.assignment) == (3, None)
    assert len(stage.records) == count
    for record in stage.records:
        assert decode(KINDS, *record.encode()) == record
    assert durable(stage.fresh()) == durable(stage.machine)


def test_members_share_partitions_when_there_are_few() -> None:
    stage = Stage(a=1)
    stage.settle("m1", ["a"])
    stage.pass_time(1000)
    assert assigned(stage.beat("m2", 0, ["a"])) == {"a": [0]}
    assert assigned(stage.beat("m1", 3)) is None
    stage.pass_time(1000)
    assert stage.beat("m1", 3).member_epoch == 4


def test_assignments_are_not_made_too_often() -> None:
    stage = Stage(a=2)
    stage.settle("m1", ["a"])
    assert stage.group.epoch == stage.group.assignment_epoch == 3
    stage.beat("m2", 0, ["a"])
    reply = stage.beat("m2", 0, ["a"])
    assert (stage.group.epoch, stage.group.assignment_epoch, reply.member_epoch) == (4, 3, 3)
    stage.pass_time(1000)
    reply = stage.beat("m2", 3)
    assert (reply.member_epoch, len(assigned(reply)["a"])) == (4, 1)


def test_epochs_fence() -> None:
    stage = Stage(a=1)
    reply = stage.settle("m1", ["a"])
    assert reply.member_epoch == 3
    assert stage.beat("m1", 2).member_epoch == 3
    refusal = lambda *what, **how: stage.refusal(stage.beat, *what, **how)  # noqa: E731
    assert refusal("m1", 4) is ErrorCode.FENCED_MEMBER_EPOCH
    assert refusal("m1", 1) is ErrorCode.FENCED_MEMBER_EPOCH
    assert refusal("m2", 3) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal("m1", 3, group="other") is ErrorCode.GROUP_ID_NOT_FOUND
    assert refusal("m1", -1, group="other") is ErrorCode.GROUP_ID_NOT_FOUND
    assert refusal("m2", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    # A member that joins anew is who it was.
    assert assigned(stage.beat("m1", 0, ["a"])) == {"a": [0]}


def test_requests_that_make_no_sense() -> None:
    stage = Stage(a=1)
    refusal = lambda *what, **how: stage.refusal(stage.beat, *what, **how)  # noqa: E731
    for bad in (("", 0, ["a"]), ("m", 0, []), ("m", 0, None), ("m", -2, ["a"])):
        assert refusal(*bad) is ErrorCode.INVALID_REQUEST
    assert refusal("m", 0, ["a"], rack=" ") is ErrorCode.INVALID_REQUEST
    assert refusal("m", 0, ["a"], group="") is ErrorCode.INVALID_REQUEST


def test_a_group_has_only_so_many_members() -> None:
    stage = Stage({"group.share.max.size": "2"}, a=1)
    stage.beat("m1", 0, ["a"])
    stage.beat("m2", 0, ["a"])
    assert stage.refusal(stage.beat, "m3", 0, ["a"]) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert stage.beat("m2", 0, ["a"]).error_code == 0


def test_leaving_makes_room_for_others() -> None:
    stage = Stage(a=2)
    stage.settle("m1", ["a"])
    stage.pass_time(1000)
    stage.beat("m2", 0, ["a"])
    reply = stage.beat("m2", -1)
    assert (reply.member_id, reply.member_epoch) == ("m2", -1)
    assert stage.records[-1].key == ShareGroupMetadataKey(group_id=GROUP)
    assert list(stage.group.members) == ["m1"]
    stage.pass_time(1000)
    assert assigned(stage.beat("m1", 3)) is None
    assert stage.group.members["m1"].assigned == {topic_id("a"): {0, 1}}
    stage.beat("m1", -1)
    assert (stage.group.state, stage.group.targets) == ("Empty", {})
    assert stage.machine.deadline is None
    assert durable(stage.fresh()) == durable(stage.machine)


def test_silence_is_leaving() -> None:
    stage = Stage(a=1)
    stage.beat("m1", 0, ["a"])
    stage.pass_time(44_999)
    assert stage.group.members
    stage.beat("m1", 2)
    stage.pass_time(44_999)
    assert stage.group.members
    stage.pass_time(1)
    assert not stage.group.members
    # Whoever leads next gives everyone a whole session.
    stage.beat("m1", 0, ["a"])
    machine = stage.fresh()
    assert machine.deadline is None
    machine.shares.loaded(stage.now)
    assert machine.deadline == stage.now + 45_000


def test_a_changed_subscription_is_a_new_epoch() -> None:
    stage = Stage(a=1, b=1)
    stage.settle("m1", ["a"])
    stage.pass_time(1000)
    reply = stage.beat("m1", 3, ["b"])
    # What it no longer wants it no longer has, and what it wants has no state yet.
    assert (reply.member_epoch, assigned(reply)) == (4, {})
    stage.coordinate()
    stage.pass_time(1000)
    assert assigned(stage.beat("m1", 4)) == {"b": [0]}


def test_another_client_is_noted_without_a_new_epoch() -> None:
    stage = Stage(a=1)
    stage.settle("m1", ["a"])
    count = len(stage.records)
    stage.beat("m1", 3, client=Client("client", "/10.0.0.1"))
    (record,) = stage.records[count:]
    assert isinstance(record.value, ShareGroupMemberMetadataValue)
    assert record.value.client_host == "/10.0.0.1"


def test_new_partitions_and_topics_come_in() -> None:
    stage = Stage(a=1)
    stage.settle("m1", ["a", "b"])
    stage.topics.create("a", 3)
    reply = stage.beat("m1", 3)
    (request,) = stage.coordinate()
    assert [each.partition for each in request.topics[0].partitions] == [1, 2]
    stage.topics.create("b", 1)
    stage.pass_time(1000)
    reply = stage.beat("m1", reply.member_epoch)
    assert assigned(reply) == {"a": [0, 1, 2]}
    stage.coordinate()
    stage.pass_time(1000)
    assert assigned(stage.beat("m1", reply.member_epoch)) == {"a": [0, 1, 2], "b": [0]}


def test_state_is_asked_for_again_after_a_while() -> None:
    stage = Stage(a=1)
    stage.beat("m1", 0, ["a"])
    stage.effects.clear()
    stage.pass_time(29_999)
    stage.beat("m1", 2)
    assert stage.effects == []
    stage.pass_time(1)
    stage.beat("m1", 2)
    assert len(stage.coordinate(ErrorCode.COORDINATOR_NOT_AVAILABLE)) == 1
    assert stage.group.progress.initializing == {}
    stage.beat("m1", 2)
    assert len(stage.coordinate()) == 1
    assert stage.group.progress.initialized[topic_id("a")].partitions == {0}


def test_deleted_topics_are_forgotten() -> None:
    stage = Stage(a=1, b=1)
    stage.settle("m1", ["a", "b"])
    gone = stage.topics.delete("a")
    stage.take_steps(stage.shares.topics_deleted({gone}))
    assert set(stage.group.progress.initialized) == {topic_id("b")}
    count = len(stage.records)
    stage.take_steps(stage.shares.topics_deleted({gone}))
    assert len(stage.records) == count
    stage.pass_time(1000)
    assert assigned(stage.beat("m1", 3)) == {"b": [0]}


def test_a_group_is_described() -> None:
    stage = Stage(a=2)
    stage.settle("m1", ["a"])
    found, none, empty = stage.shares.describe([GROUP, "none", ""])
    assert (found.group_state, found.group_epoch, found.assignment_epoch) == ("Stable", 3, 3)
    assert found.assignor_name == "simple"
    (member,) = found.members
    assert (member.member_id, member.member_epoch, member.client_id) == ("m1", 3, CLIENT.client_id)
    (topic,) = member.assignment.topic_partitions
    assert (topic.topic_name, topic.partitions, member.subscribed_topic_names) == ("a", [0, 1], ["a"])
    assert none.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert empty.error_code == ErrorCode.INVALID_GROUP_ID


def test_members_with_different_wishes() -> None:
    stage = Stage(a=2, b=2)
    stage.settle("m1", ["a", "b"])
    stage.pass_time(1000)
    reply = stage.beat("m2", 0, ["b"])
    assert assigned(reply) in ({"b": [0]}, {"b": [1]})
    stage.pass_time(1000)
    one = assigned(stage.beat("m1", 3, ["a", "b"]))
    assert one["a"] == [0, 1]
    assert sorted(one["b"] + assigned(reply)["b"]) == [0, 1]


def test_what_is_being_asked_for_is_not_asked_for_again() -> None:
    stage = Stage(a=1)
    stage.settle("m1", ["a"])
    stage.topics.create("a", 2)
    stage.beat("m1", 3)
    assert len(stage.effects) == 1
    stage.beat("m1", 3)
    assert len(stage.effects) == 1


def test_what_a_member_no_longer_wants_it_loses_at_once() -> None:
    stage = Stage(a=1, b=1)
    stage.settle("m1", ["a", "b"])
    reply = stage.beat("m1", 3, ["b"])
    # The target is not computed anew yet.
    assert (reply.member_epoch, assigned(reply)) == (3, {"b": [0]})
    assert topic_id("a") in stage.group.targets["m1"]


def test_a_member_whose_leave_could_not_be_written_down_goes_when_its_session_is_over() -> None:
    stage = Stage(a=2)
    stage.settle("m1", ["a"])
    stage.is_full = True
    assert stage.refusal(stage.beat, "m1", -1) is ErrorCode.NOT_ENOUGH_REPLICAS
    stage.is_full = False
    assert "m1" in stage.group.members
    stage.pass_time(45_000)
    assert not stage.group.members
    assert not len(stage.machine.shelf.timers)


def test_a_member_that_left_has_no_timer() -> None:
    stage = Stage(a=2)
    stage.settle("m1", ["a"])
    assert len(stage.machine.shelf.timers) == 1
    stage.beat("m1", -1)
    assert not len(stage.machine.shelf.timers)


def test_deleted_topics_are_forgotten_in_short_steps_that_look_at_each_group_once(monkeypatch) -> None:
    stage = Stage()
    progress = Progress(initialized={b"%016d" % each: Topic("t", frozenset({0})) for each in range(300)})
    for number in range(100):
        group = stage.machine.shelf.groups[f"g{number}"] = ShareGroup(f"g{number}")
        group.progress = progress
    looked = []
    real = Progress.spoken_of
    monkeypatch.setattr(
        Progress, "spoken_of", lambda self, topic_ids: (looked.append(1), real(self, topic_ids))[1]
    )
    gone = frozenset({b"%016d" % 7})
    steps = stage.shares.topics_deleted(gone)
    assert stage.take_steps(steps) > 20
    assert len(looked) == 100
    assert len(stage.records) == 100
    assert all(not group.progress.spoken_of(gone) for group in stage.machine.shelf.groups.values())
    unknown = frozenset(b"%016d" % each for each in range(1_000, 3_000))
    assert stage.take_steps(stage.shares.topics_deleted(unknown)) == 1, "to look takes its time as well"
    assert len(stage.records) == 100
