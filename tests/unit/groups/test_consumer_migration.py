"""Classic groups become consumer groups and back, while their members are at work."""

import struct

import pytest

from ottla.groups.group import Kind
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest
from ottla.wire.messages.sync_group import SyncGroupRequest
from tests.unit.groups.consumer_stage import CLIENT, GROUP, Stage, durable, settle

Protocol = JoinGroupRequest.JoinGroupRequestProtocol
Given = SyncGroupRequest.SyncGroupRequestAssignment
VERSION = struct.pack(">h", 3)


def read(assignment):
    if not assignment:
        return set()
    message = ConsumerProtocolAssignment.decode(assignment[2:], struct.unpack(">h", assignment[:2])[0])
    return {(topic.topic, each) for topic in message.assigned_partitions for each in topic.partitions}


def written(partitions, user_data=None):
    topics = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    made = ConsumerProtocolAssignment.TopicPartition
    listed = [made(topic=topic, partitions=each) for topic, each in topics.items()]
    return VERSION + ConsumerProtocolAssignment(assigned_partitions=listed, user_data=user_data).encode(3)


class Elder:
    """A consumer that speaks the classic protocol, cooperatively."""

    tokens = 0

    def __init__(self, stage, instance_id=None, topics=("foo",)):
        self.stage = stage
        self.instance_id = instance_id
        self.topics = list(topics)
        self.id = ""
        self.generation = -1
        self.owned = set()
        self.token = None

    def join(self):
        made = ConsumerProtocolSubscription.TopicPartition
        owned = {}
        for topic, partition in sorted(self.owned):
            owned.setdefault(topic, []).append(partition)
        subscription = ConsumerProtocolSubscription(
            topics=self.topics,
            owned_partitions=[made(topic=name, partitions=each) for name, each in owned.items()],
        )
        request = JoinGroupRequest(
            group_id=GROUP, session_timeout_ms=10_000, rebalance_timeout_ms=20_000, member_id=self.id,
            group_instance_id=self.instance_id, protocol_type="consumer",
            protocols=[Protocol(name="range", metadata=VERSION + subscription.encode(3))],
        )  # fmt: skip
        Elder.tokens += 1
        self.token = Elder.tokens
        self.stage.ask(self.stage.machine.join, request, 9, CLIENT, self.token)
        return self.answer()

    def answer(self):
        response = self.stage.answers.get(self.token)
        if response is not None and response.member_id:
            self.id = response.member_id
            if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                return self.join()
            if response.error_code == 0:
                self.generation = response.generation_id
        return response

    def sync(self, *given):
        Elder.tokens += 1
        request = SyncGroupRequest(
            group_id=GROUP, generation_id=self.generation, member_id=self.id, group_instance_id=self.instance_id,
            protocol_type="consumer", protocol_name="range", assignments=list(given),
        )  # fmt: skip
        self.stage.ask(self.stage.machine.sync, request, 5, Elder.tokens)
        response = self.stage.answers[Elder.tokens]
        if response.error_code == 0:
            self.owned = read(response.assignment)
        return ErrorCode(response.error_code)

    def heartbeat(self):
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance_id,
        )
        return ErrorCode(self.stage.ask(self.stage.machine.heartbeat, request).error_code)

    def step(self):
        """Do what a consumer does: beat, and join and sync when it is told to."""
        if self.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS:
            self.join()
            self.sync()

    def leave(self):
        made = LeaveGroupRequest.MemberIdentity
        request = LeaveGroupRequest(
            group_id=GROUP, members=[made(member_id=self.id, group_instance_id=self.instance_id)]
        )
        response = self.stage.ask(self.stage.machine.leave, request, 5)
        return ErrorCode(response.members[0].error_code)


def classic_group(stage, count=1, given=None, **fields):
    """Return members of a stable classic group, the first of whom has everything, or all of whom what is given."""
    members = [Elder(stage, **fields) for _ in range(count)]
    for each in members:
        each.join()
    stage.pass_time(3_000 * count)  # who joins meanwhile makes it longer
    for each in members:
        each.answer()
    everything = {("foo", partition) for partition in range(stage.topics.find("foo").partitions)}
    members[0].sync(
        *(
            Given(member_id=each.id, assignment=given or written(everything if each is members[0] else ()))
            for each in members
        )
    )
    for each in members[1:]:
        each.sync()
    return members


def test_a_classic_group_is_upgraded_by_the_first_new_member():
    stage = Stage(foo=4)
    (elder,) = classic_group(stage)
    assert len(elder.owned) == 4
    generation = elder.generation
    newcomer = stage.consumer("new")
    newcomer.step()
    assert stage.group.kind is Kind.CONSUMER
    assert (newcomer.epoch, newcomer.owned) == (generation + 1, set())
    assert stage.group.members[elder.id].classic is not None
    assert durable(stage.fresh()) == durable(stage.machine)
    for _ in range(4):
        elder.step()
        newcomer.step()
    assert len(elder.owned) == len(newcomer.owned) == 2
    assert not elder.owned & {("foo", partition) for _, partition in newcomer.owned}
    assert stage.group.state == "Stable"
    assert [each.member_type for each in stage.describe()[0].members] == [0, 1]


def test_those_who_wait_are_told_that_the_group_is_called_together():
    stage = Stage(foo=4)
    (elder,) = classic_group(stage)
    other = Elder(stage)
    other.join()
    assert other.token not in stage.answers, "it waits for the elder"
    stage.beat(member_id="new")
    assert stage.answers[other.token].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert elder.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_an_empty_classic_group_makes_way():
    stage = Stage(foo=4)
    (elder,) = classic_group(stage)
    elder.leave()
    assert stage.group.state == "Empty"
    assert stage.beat(member_id="new").member_epoch == 2
    assert stage.group.kind is Kind.CONSUMER
    assert durable(stage.fresh()) == durable(stage.machine)


def test_an_empty_consumer_group_makes_way():
    stage = Stage(foo=4)
    stage.beat(member_id="new")
    stage.beat(member_id="new", member_epoch=-1)
    (elder,) = classic_group(stage)
    assert stage.group.kind is Kind.CLASSIC and len(elder.owned) == 4


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_an_upgrade_can_be_forbidden(policy):
    stage = Stage({"group.consumer.migration.policy": policy}, foo=4)
    classic_group(stage)
    stage.refused(ErrorCode.GROUP_ID_NOT_FOUND, member_id="new")
    assert stage.group.kind is Kind.CLASSIC


def test_too_large_a_group_is_not_upgraded():
    stage = Stage({"group.consumer.max.size": "1"}, foo=4)
    classic_group(stage, 2)
    stage.refused(ErrorCode.GROUP_ID_NOT_FOUND, member_id="new")


def test_what_a_custom_assignor_added_would_be_lost():
    stage = Stage(foo=4)
    elder = Elder(stage)
    elder.join()
    stage.pass_time(3_000)
    elder.answer()
    elder.sync(Given(member_id=elder.id, assignment=written({("foo", 0)}, user_data=b"more")))
    response = stage.refused(ErrorCode.GROUP_ID_NOT_FOUND, member_id="new")
    assert "custom assignor" in response.error_message


@pytest.mark.parametrize("topics", [("foo",), ("foo", "bar")])
def test_partitions_that_do_not_exist_or_are_assigned_twice_are_left_out(topics):
    """What a classic leader assigns is a client's word; the assignors index by it."""
    stage = Stage(foo=4, bar=2)
    wrong = written({("foo", partition) for partition in (-1, 0, 1, 2, 3, 4, 2**31 - 1)} | {("absent", 0)})
    elders = classic_group(stage, 2, given=wrong)
    assert len(elders[0].owned) == 8
    newcomer = stage.consumer("new", subscribed_topic_names=list(topics))
    newcomer.step()
    assert stage.group.kind is Kind.CONSUMER
    assert durable(stage.fresh()) == durable(stage.machine)
    shared = [
        (topic, partition)
        for target in stage.group.targets.values()
        for topic, partitions in target.items()
        for partition in partitions
    ]
    found = [stage.topics.find(name) for name in topics]
    assert sorted(shared) == sorted((facts.id, each) for facts in found for each in range(facts.partitions))


def test_a_classic_member_joins_a_consumer_group():
    stage = Stage(foo=4)
    newcomer, elder = stage.consumer("new"), Elder(stage)
    newcomer.step()
    response = elder.join()
    assert (response.error_code, response.protocol_type, response.protocol_name) == (0, "consumer", "range")
    assert elder.generation == 3 and response.leader == "" and not response.members
    assert elder.sync() is ErrorCode.NONE and elder.owned == set()
    assert elder.heartbeat() is ErrorCode.NONE, "the other has yet to give something up"
    settle([newcomer], 3)
    assert elder.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    elder.join()
    elder.sync()
    assert len(elder.owned) == 2
    assert durable(stage.fresh()) == durable(stage.machine)


def test_a_classic_member_is_held_to_its_generation_and_its_protocol():
    stage = Stage(foo=4)
    newcomer, elder = stage.consumer("new"), Elder(stage)
    newcomer.step()
    elder.join()
    elder.generation += 1
    assert elder.heartbeat() is ErrorCode.ILLEGAL_GENERATION
    assert elder.sync() is ErrorCode.ILLEGAL_GENERATION
    elder.id = "new"
    elder.generation = newcomer.epoch
    assert elder.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID, "that one speaks the new protocol"
    elder.id = "nobody"
    assert elder.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert elder.leave() is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_administrator_removes_members_by_their_instance():
    stage = Stage(foo=4)
    a, b = stage.consumer("a", instance_id="i"), stage.consumer("b")
    settle([a, b])
    made = LeaveGroupRequest.MemberIdentity
    leaving = [("", "i"), ("", "unknown"), ("other", "i"), ("nobody", None)]
    request = LeaveGroupRequest(
        group_id=GROUP,
        members=[made(member_id=each, group_instance_id=instance) for each, instance in leaving],
    )
    response = stage.ask(stage.machine.leave, request, 5)
    assert [ErrorCode(each.error_code) for each in response.members] == [
        ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNKNOWN_MEMBER_ID,
    ]  # fmt: skip
    assert set(stage.group.members) == {"b"}
    request = LeaveGroupRequest(group_id=GROUP, member_id="b")
    assert stage.ask(stage.machine.leave, request, 2).error_code == 0
    assert stage.group.state == "Empty"


def test_the_classic_protocol_can_be_forbidden():
    stage = Stage({"group.consumer.migration.policy": "disabled"}, foo=4)
    stage.beat(member_id="new")
    assert Elder(stage).join().error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_classic_member_that_does_not_sync_is_out():
    stage = Stage(foo=4)
    newcomer, elder = stage.consumer("new"), Elder(stage)
    newcomer.step()
    elder.join()
    for _ in range(5):
        stage.pass_time(4_000)
        newcomer.step()
        elder.heartbeat()
    assert set(stage.group.members) == {"new"}


def test_one_whose_join_could_not_be_written_down_is_still_waited_for():
    """It is told to join within 20 s. The journal refuses it once, and it comes back no more, though it beats."""
    stage, elder = _told_to_join()
    _live(stage, elder, 12_000)
    stage.is_full = True
    assert stage.refusal(elder.join) is ErrorCode.NOT_ENOUGH_REPLICAS
    stage.is_full = False
    _live(stage, elder, 7_999)
    assert elder.id in stage.group.members
    stage.pass_time(1)
    assert elder.id not in stage.group.members


def test_one_whose_join_was_written_down_is_waited_for_no_more():
    stage, elder = _told_to_join()
    assert elder.join().error_code == 0
    assert elder.sync() is ErrorCode.NONE
    _live(stage, elder, 40_000)
    assert elder.id in stage.group.members


def _live(stage, elder, ms):
    """Let time pass while a classic member is heard of, and does nothing that it is told to."""
    end = stage.now + ms
    while stage.now < end:
        elder.heartbeat()
        stage.pass_time(min(4_000, end - stage.now))


def _told_to_join():
    """A group of both kinds, whose classic member has just heard that it shall join again."""
    stage = Stage({"group.consumer.migration.policy": "bidirectional"}, foo=4)
    new = stage.consumer("new", rebalance_timeout_ms=60_000)
    new.step()
    elder = Elder(stage)
    elder.join()
    elder.sync()
    for _ in range(4):
        new.step()
        elder.step()
    stage.topics.put("foo", 6)
    stage.pass_time(1)
    new.beat()
    assert elder.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    return stage, elder


def test_the_group_is_classic_again_when_the_last_new_member_leaves():
    stage = Stage(foo=4)
    (elder,) = classic_group(stage)
    newcomer = stage.consumer("new")
    for _ in range(4):
        newcomer.step()
        elder.step()
    epoch = stage.group.epoch
    stage.beat(member_id="new", member_epoch=-1)
    assert (stage.group.kind, stage.group.generation) == (Kind.CLASSIC, epoch)
    assert set(stage.group.members) == {elder.id}
    assert read(stage.group.members[elder.id].assignment) == elder.owned
    stage.pass_time(0)
    assert stage.group.state == "PreparingRebalance"
    assert elder.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    elder.join()
    everything = written({("foo", partition) for partition in range(4)})
    assert elder.sync(Given(member_id=elder.id, assignment=everything)) is ErrorCode.NONE
    assert len(elder.owned) == 4 and stage.group.state == "Stable"


def test_the_group_is_classic_again_when_the_last_new_member_is_silent():
    stage = Stage(foo=4)
    (elder,) = classic_group(stage)
    stage.consumer("new").step()
    for _ in range(12):
        stage.pass_time(4_000)
        elder.step()
    assert stage.group.kind is Kind.CLASSIC
    fresh = stage.fresh().shelf.groups[GROUP]
    assert (fresh.kind, set(fresh.members)) == (Kind.CLASSIC, {elder.id})


@pytest.mark.parametrize("policy", ["upgrade"])
def test_a_downgrade_can_be_forbidden(policy):
    stage = Stage({"group.consumer.migration.policy": policy}, foo=4)
    classic_group(stage)
    stage.beat(member_id="new")
    stage.beat(member_id="new", member_epoch=-1)
    assert stage.group.kind is Kind.CONSUMER


def test_a_static_member_goes_to_the_new_protocol_and_back():
    stage = Stage(foo=4)
    (elder,) = classic_group(stage, instance_id="i")
    held = elder.owned
    newcomer = stage.consumer("new", instance_id="i")
    newcomer.step()
    assert {("foo", partition) for _, partition in newcomer.owned} == held
    assert set(stage.group.members) == {"new"}
    again = Elder(stage, instance_id="i")
    again.join()
    assert stage.group.kind is Kind.CLASSIC
    assert set(stage.group.members) == {again.id}
    assert read(stage.group.members[again.id].assignment) == held
