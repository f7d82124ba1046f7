"""Heartbeats of consumer groups: joining, epochs, who gets what and when, and who is turned away."""

import pytest

from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import MemberState
from ottla.groups.epochs import INTERVAL_MS
from ottla.replicated.keyed import Client
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.unit.groups.consumer_stage import CLIENT, GROUP, Stage, durable, pairs, settle

Partitions = ConsumerGroupHeartbeatRequest.TopicPartitions


def names(records):
    return [type(record.key).__name__.removeprefix("ConsumerGroup").removesuffix("Key") for record in records]


def test_the_first_member_gets_everything_at_once():
    stage = Stage(foo=3, bar=2)
    response = stage.beat(member_id="a", subscribed_topic_names=["foo", "bar"])
    assert (response.error_code, response.member_id, response.member_epoch) == (0, "a", 2)
    assert response.heartbeat_interval_ms == 5_000
    ids = stage.topics.find("foo").id, stage.topics.find("bar").id
    assert [(each.topic_id, each.partitions) for each in response.assignment.topic_partitions] == [
        (ids[0], [0, 1, 2]),
        (ids[1], [0, 1]),
    ]
    assert stage.group.state == "Stable"


def test_a_join_is_written_as_kafka_writes_it():
    stage = Stage(foo=2)
    stage.beat(member_id="a", rack_id="r", server_assignor="range")
    assert names(stage.records) == [
        "MemberMetadata", "Metadata", "TargetAssignmentMember", "TargetAssignmentMetadata", "CurrentMemberAssignment",
    ]  # fmt: skip
    member, epoch, target, target_epoch, current = (record.value for record in stage.records)
    assert (member.rack_id, member.client_id, member.client_host) == ("r", "client", "/127.0.0.1")
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == (["foo"], "")
    assert (member.server_assignor, member.rebalance_timeout_ms, member.instance_id) == ("range", 5_000, None)
    assert epoch.epoch == 2 and epoch.metadata_hash != 0
    assert target.topic_partitions[0].partitions == [0, 1]
    assert (target_epoch.assignment_epoch, target_epoch.assignment_timestamp) == (2, stage.now)
    assert (current.member_epoch, current.previous_member_epoch, current.state) == (2, 0, 0)
    assert current.assigned_partitions[0].assignment_epochs == [2, 2]


def test_a_heartbeat_without_news_writes_nothing_and_says_nothing():
    stage = Stage()
    member = stage.consumer("a")
    member.step()
    count = len(stage.records)
    response = stage.beat(member_id="a", member_epoch=2)
    assert response.assignment is None and response.member_epoch == 2
    assert len(stage.records) == count


def test_a_full_request_is_answered_with_the_assignment():
    stage = Stage(foo=2)
    stage.beat(member_id="a")
    response = stage.beat(
        member_id="a",
        member_epoch=2,
        rebalance_timeout_ms=5_000,
        subscribed_topic_names=["foo"],
        topic_partitions=[],
    )
    assert len(pairs(response.assignment.topic_partitions)) == 2


def test_a_partition_is_given_away_only_when_its_owner_has_let_it_go():
    stage = Stage(foo=4)
    a, b = stage.consumer("a"), stage.consumer("b")
    a.step()
    b.step()
    assert (b.epoch, b.granted, stage.group.members["b"].state) == (3, set(), MemberState.UNRELEASED)
    a.beat()
    assert (a.epoch, len(a.granted), stage.group.members["a"].state) == (2, 2, MemberState.UNREVOKED)
    b.step()
    assert b.granted == set(), "a has not given up anything yet"
    a.beat()
    assert a.epoch == 2, "a still owns what it should give up"
    assert stage.beat(member_id="a", member_epoch=2).member_epoch == 2, "a does not say what it owns"
    a.obey()
    a.beat()
    assert (a.epoch, stage.group.members["a"].state) == (3, MemberState.STABLE)
    b.step()
    assert len(b.granted) == 2 and not b.granted & a.owned
    assert stage.group.state == "Stable"


def test_the_states_of_a_group():
    stage = Stage({"group.consumer.assignment.interval.ms": "999"}, foo=2)
    a, b = stage.consumer("a"), stage.consumer("b")
    a.step()
    assert stage.group.state == "Stable"
    b.step()
    assert stage.group.state == "Assigning"
    assert b.epoch == 2
    stage.pass_time(999)
    b.step()
    assert stage.group.state == "Reconciling"
    settle([a, b])
    assert stage.group.state == "Stable"
    for each in (a, b):
        stage.beat(member_id=each.id, member_epoch=-1)
    assert stage.group.state == "Empty"


def test_targets_are_not_computed_more_often_than_the_interval_says():
    stage = Stage({"group.consumer.assignment.interval.ms": "999"}, foo=4)
    stage.beat(member_id="a")
    stage.pass_time(998)
    stage.beat(member_id="b")
    assert (stage.group.epoch, stage.group.assignment_epoch) == (3, 2)
    stage.pass_time(1)
    stage.beat(member_id="a", member_epoch=2)
    assert stage.group.assignment_epoch == 3


@pytest.mark.parametrize(("count", "wait_ms"), [(1, 1), (20, 20), (1_000, 1_000), (1_200, 1_000)])
def test_by_default_a_small_group_waits_less_for_its_targets(count, wait_ms):
    group = ConsumerGroup("g")
    group.members = dict.fromkeys(range(count))
    group.assignment_timestamp = 5_000
    assert not group.may_assign(INTERVAL_MS, 5_000 + wait_ms - 1)
    assert group.may_assign(INTERVAL_MS, 5_000 + wait_ms)


def test_a_lost_answer_does_not_fence():
    stage = Stage(foo=2)
    member = stage.consumer("a")
    member.step()
    member.beat(subscribed_topic_names=["foo", "bar"])
    assert member.epoch == 3
    owned = [Partitions(topic_id=stage.topics.find("foo").id, partitions=[0])]
    assert stage.beat(member_id="a", member_epoch=2, topic_partitions=owned).member_epoch == 3
    foreign = [Partitions(topic_id=bytes(16), partitions=[0])]
    stage.refused(ErrorCode.FENCED_MEMBER_EPOCH, member_id="a", member_epoch=2, topic_partitions=foreign)
    stage.refused(ErrorCode.FENCED_MEMBER_EPOCH, member_id="a", member_epoch=2)
    stage.refused(ErrorCode.FENCED_MEMBER_EPOCH, member_id="a", member_epoch=4)
    stage.refused(ErrorCode.FENCED_MEMBER_EPOCH, member_id="a", member_epoch=1, topic_partitions=owned)


def test_a_fenced_member_may_join_anew():
    stage = Stage(foo=2)
    stage.beat(member_id="a")
    response = stage.beat(member_id="a")
    assert response.member_epoch == 2 and len(pairs(response.assignment.topic_partitions)) == 2


INVALID = {
    "no member id": {"member_id": ""},
    "blank member id": {"member_id": " "},
    "no group id": {"member_id": "a", "group_id": ""},
    "empty instance id": {"member_id": "a", "instance_id": ""},
    "empty rack": {"member_id": "a", "rack_id": ""},
    "no rebalance timeout": {"member_id": "a", "rebalance_timeout_ms": -1},
    "owns at join": {"member_id": "a", "topic_partitions": [Partitions(topic_id=bytes(16), partitions=[0])]},
    "says not what it owns at join": {"member_id": "a", "topic_partitions": None},
    "wants nothing": {"member_id": "a", "subscribed_topic_names": None},
    "epoch -3": {"member_id": "a", "member_epoch": -3},
    "dynamic member leaves for now": {"member_id": "a", "member_epoch": -2},
}


@pytest.mark.parametrize("fields", INVALID.values(), ids=INVALID)
def test_requests_that_make_no_sense(fields):
    stage = Stage()
    assert stage.refused(ErrorCode.INVALID_REQUEST, **fields).error_message
    assert not stage.records


REFUSED = {
    "unknown group": (
        ErrorCode.GROUP_ID_NOT_FOUND,
        {"member_id": "a", "member_epoch": 5, "group_id": "other"},
    ),
    "leaves unknown group": (
        ErrorCode.GROUP_ID_NOT_FOUND,
        {"member_id": "a", "member_epoch": -1, "group_id": "other"},
    ),
    "unknown member": (ErrorCode.UNKNOWN_MEMBER_ID, {"member_id": "b", "member_epoch": 5}),
    "unknown member leaves": (ErrorCode.UNKNOWN_MEMBER_ID, {"member_id": "b", "member_epoch": -1}),
    "unknown instance": (
        ErrorCode.UNKNOWN_MEMBER_ID,
        {"member_id": "a", "member_epoch": 2, "instance_id": "i"},
    ),
    "unknown instance leaves": (
        ErrorCode.UNKNOWN_MEMBER_ID,
        {"member_id": "a", "member_epoch": -2, "instance_id": "i"},
    ),
    "assignor": (ErrorCode.UNSUPPORTED_ASSIGNOR, {"member_id": "a", "server_assignor": "none"}),
    "regex": (ErrorCode.INVALID_REGULAR_EXPRESSION, {"member_id": "a", "subscribed_topic_regex": "["}),
}


@pytest.mark.parametrize(("code", "fields"), REFUSED.values(), ids=REFUSED)
def test_who_is_turned_away(code, fields):
    stage = Stage()
    stage.beat(member_id="a")
    count = len(stage.records)
    stage.refused(code, **fields)
    assert len(stage.records) == count


def test_a_full_group_takes_nobody_in_and_keeps_its_members():
    stage = Stage({"group.consumer.max.size": "1"})
    stage.beat(member_id="a")
    stage.refused(ErrorCode.GROUP_MAX_SIZE_REACHED, member_id="b")
    assert stage.beat(member_id="a", member_epoch=2).error_code == 0


def test_version_0_is_given_a_member_id():
    stage = Stage()
    first = stage.beat(version=0, member_id="")
    assert len(first.member_id) == 22
    assert stage.beat(version=0, member_id=first.member_id, member_epoch=first.member_epoch).error_code == 0


def test_a_member_that_leaves_frees_what_it_had():
    stage = Stage(foo=4)
    a, b = stage.consumer("a"), stage.consumer("b")
    settle([a, b])
    count = len(stage.records)
    response = stage.beat(member_id="a", member_epoch=-1)
    assert (response.member_id, response.member_epoch) == ("a", -1)
    assert names(stage.records[count:]) == [
        "CurrentMemberAssignment", "TargetAssignmentMember", "MemberMetadata", "Metadata",
    ]  # fmt: skip
    b.step()
    assert len(b.owned) == 4


def test_a_silent_member_is_out_after_its_session():
    stage = Stage(foo=4)
    a, b = stage.consumer("a"), stage.consumer("b")
    settle([a, b])
    stage.pass_time(44_000)
    b.step()
    stage.pass_time(1_000)
    b.step()
    assert set(stage.group.members) == {"b"}
    assert len(b.owned) == 4
    a.beat()
    assert a.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_does_not_give_up_in_time_is_out():
    stage = Stage(foo=4)
    a, b = stage.consumer("a", rebalance_timeout_ms=2_000), stage.consumer("b")
    a.step()
    b.step()
    a.beat()
    stage.pass_time(1_999)
    a.beat()
    assert "a" in stage.group.members
    stage.pass_time(1)
    assert "a" not in stage.group.members
    b.step()
    assert len(b.owned) == 4


def test_who_gives_up_in_time_stays():
    stage = Stage(foo=4)
    a, b = stage.consumer("a", rebalance_timeout_ms=2_000), stage.consumer("b")
    settle([a, b])
    stage.pass_time(10_000)
    assert set(stage.group.members) == {"a", "b"}


def test_new_partitions_and_topics_are_noticed():
    stage = Stage(foo=1)
    member = stage.consumer("a", subscribed_topic_names=["foo", "bar"])
    member.step()
    assert len(member.owned) == 1
    stage.topics.put("foo", 3)
    member.step()
    assert (member.epoch, len(member.owned)) == (3, 3)
    stage.topics.put("bar", 2)
    member.step()
    assert (member.epoch, len(member.owned)) == (4, 5)
    stage.topics.put("other", 9)
    count = len(stage.records)
    member.step()
    assert member.epoch == 4 and len(stage.records) == count


def test_what_the_journal_refused_is_tried_again():
    stage = Stage(foo=1)
    member = stage.consumer("a")
    member.step()
    stage.topics.put("foo", 2)
    request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id="a", member_epoch=2)
    refused = stage.machine.consumer.heartbeat(request, 1, CLIENT, stage.now)
    assert refused.records and stage.group.epoch == 2
    member.step()
    assert (member.epoch, len(member.owned)) == (3, 2)


def test_a_deleted_topic_is_given_up():
    stage = Stage(foo=1, bar=1)
    member = stage.consumer("a", subscribed_topic_names=["foo", "bar"])
    member.step()
    stage.topics.delete("bar")
    settle([member], 3)
    assert (member.epoch, len(member.owned)) == (3, 1)


def test_what_is_not_subscribed_to_any_more_is_given_up_at_once():
    stage = Stage({"group.consumer.assignment.interval.ms": "999"}, foo=1, bar=1)
    member = stage.consumer("a", subscribed_topic_names=["foo", "bar"])
    member.step()
    member.beat(subscribed_topic_names=["foo"])
    assert member.granted == {(stage.topics.find("foo").id, 0)}
    assert member.epoch == 2, "the new target is yet to be computed"
    member.obey()
    stage.pass_time(999)
    settle([member], 2)
    assert (member.epoch, stage.group.state) == (3, "Stable")


def test_most_members_choose_the_assignor():
    stage = Stage(foo=3, bar=3)
    subscribed = {"subscribed_topic_names": ["foo", "bar"]}
    members = [stage.consumer(each, server_assignor="range", **subscribed) for each in ("a", "b")]
    members.append(stage.consumer("c", server_assignor="uniform", **subscribed))
    settle(members)
    foo, bar = stage.topics.find("foo").id, stage.topics.find("bar").id
    assert [each.owned for each in members] == [{(foo, index), (bar, index)} for index in range(3)]
    assert stage.describe()[0].assignor_name == "range"


def test_static_members_come_back_to_what_they_had():
    stage = Stage(foo=4)
    a, b = stage.consumer("a", instance_id="i"), stage.consumer("b", instance_id="j")
    settle([a, b])
    held, epoch = a.owned, stage.group.epoch
    stage.refused(ErrorCode.UNRELEASED_INSTANCE_ID, member_id="a2", instance_id="i")
    stage.refused(ErrorCode.FENCED_INSTANCE_ID, member_id="a2", member_epoch=epoch, instance_id="i")
    stage.refused(ErrorCode.FENCED_INSTANCE_ID, member_id="a2", member_epoch=-2, instance_id="i")
    away = stage.beat(member_id="a", member_epoch=-2, instance_id="i")
    assert (away.member_id, away.member_epoch) == ("a", -2)
    (since,) = stage.group.members["a"].assigned.values()
    assert len(since) == 2 and set(since.values()) == {0}, "its successor begins at epoch 0"
    again = stage.consumer("a2", instance_id="i")
    again.step()
    assert again.owned == held
    assert stage.group.epoch == epoch, "nobody else has to notice"
    assert set(stage.group.members) == {"a2", "b"}
    assert durable(stage.fresh()) == durable(stage.machine)


def test_a_static_member_that_comes_back_in_a_new_epoch_keeps_its_share():
    stage = Stage(foo=4)
    a, b = stage.consumer("a", instance_id="i"), stage.consumer("b")
    settle([a, b])
    held = a.owned
    stage.beat(member_id="a", member_epoch=-2, instance_id="i")
    stage.topics.put("foo", 8)
    again = stage.consumer("a2", instance_id="i")
    again.step()
    assert held < again.owned and len(again.owned) == 4


def test_a_static_member_that_does_not_come_back_is_out():
    stage = Stage(foo=4)
    a, b = stage.consumer("a", instance_id="i"), stage.consumer("b")
    settle([a, b])
    stage.beat(member_id="a", member_epoch=-2, instance_id="i")
    for _ in range(9):
        stage.pass_time(5_000)
        b.step()
    assert set(stage.group.members) == {"b"} and not stage.group.statics
    b.step()
    assert len(b.owned) == 4


def test_a_static_member_can_leave_for_good():
    stage = Stage(foo=4)
    stage.consumer("a", instance_id="i").step()
    stage.beat(member_id="a", member_epoch=-1, instance_id="i")
    assert stage.group.state == "Empty" and not stage.group.statics


def test_the_next_coordinator_knows_everything_and_keeps_the_time():
    stage = Stage(foo=5, bar=3)
    members = [
        stage.consumer("a"),
        stage.consumer("b", instance_id="i", subscribed_topic_names=["foo", "bar"]),
        stage.consumer("c", subscribed_topic_regex="b.*"),
    ]
    settle(members, 3)
    stage.pass_time(0)
    settle(members)
    fresh = stage.fresh()
    assert durable(fresh) == durable(stage.machine)
    stage.machine = fresh
    stage.ask(fresh.lead)
    stage.pass_time(44_999)
    assert len(stage.group.members) == 3
    stage.pass_time(1)
    assert not stage.group.members


def test_a_deleted_group_leaves_nothing():
    stage = Stage()
    stage.beat(member_id="a", subscribed_topic_names=[], subscribed_topic_regex="f.*")
    stage.pass_time(0)
    with pytest.raises(Exception, match="NON_EMPTY_GROUP"):
        stage.group.check_delete()
    stage.beat(member_id="a", member_epoch=-1)
    stage.group.check_delete()
    for record in stage.group.tombstones():
        stage.machine.apply(0, record)
    assert GROUP not in stage.machine.shelf.groups


def test_who_may_commit_and_fetch():
    stage = Stage(foo=2)
    member = stage.consumer("a")
    member.step()
    group = stage.group

    def code(check, *arguments, **how):
        try:
            check(*arguments, **how)
        except Exception as error:  # noqa: BLE001
            return error.code
        return None

    for transactional in (False, True):
        how = {"transactional": transactional}
        assert code(group.check_commit, "a", None, 2, 9, **how) is None
        assert code(group.check_commit, "a", None, 3, 9, **how) is ErrorCode.STALE_MEMBER_EPOCH
        assert code(group.check_commit, "a", None, 1, 9, **how) is ErrorCode.STALE_MEMBER_EPOCH
        assert code(group.check_commit, "b", None, 2, 9, **how) is ErrorCode.UNKNOWN_MEMBER_ID
    assert code(group.check_commit, "", None, -1, 9, transactional=False) is ErrorCode.UNKNOWN_MEMBER_ID
    assert code(group.check_commit, "", None, -1, 9, transactional=True) is None
    assert code(group.check_commit, "a", None, 2, 8, transactional=False) is ErrorCode.UNSUPPORTED_VERSION
    assert code(group.check_commit, "a", None, 2, 3, transactional=True) is None
    assert code(group.check_fetch, None, -1) is None
    assert code(group.check_fetch, "a", 2) is None
    assert code(group.check_fetch, "a", 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert code(group.check_fetch, "b", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    stage.beat(member_id="a", member_epoch=-1)
    assert code(group.check_commit, "", None, -1, 9, transactional=False) is None


def test_a_member_that_is_behind_may_commit_what_it_held_all_along():
    stage = Stage(foo=1)
    member = stage.consumer("a")
    member.step()
    stage.topics.put("foo", 2)
    member.step()
    assert member.epoch == 3
    check = stage.group.commit_check("a", None, 2, 9, transactional=False)
    foo = stage.topics.find("foo").id
    check(foo, 0)
    for partition in (1, 2):
        with pytest.raises(Exception, match="STALE_MEMBER_EPOCH"):
            check(foo, partition)


def test_a_new_address_is_written_but_is_no_news():
    stage = Stage()
    stage.beat(member_id="a")
    count = len(stage.records)
    stage.beat(member_id="a", member_epoch=2, client=Client("client", "/10.0.0.1"))
    assert names(stage.records[count:]) == ["MemberMetadata"]
    assert stage.group.epoch == 2


def test_a_member_in_an_unknown_state_must_begin_anew():
    stage = Stage(foo=1)
    stage.beat(member_id="a")
    record = stage.records[-1]
    record.value.state = 77
    stage.machine.apply(0, record)
    stage.refused(ErrorCode.FENCED_MEMBER_EPOCH, member_id="a", member_epoch=2)
    assert stage.beat(member_id="a").member_epoch == 2
    assert stage.group.members["a"].state is MemberState.STABLE


def test_one_whose_answer_to_a_revocation_could_not_be_written_down_is_still_waited_for():
    stage = Stage(foo=4)
    a, b = stage.consumer("a", rebalance_timeout_ms=2_000), stage.consumer("b")
    a.step()
    b.step()
    a.beat()
    a.obey()
    stage.is_full = True
    assert stage.refusal(a.beat) is ErrorCode.NOT_ENOUGH_REPLICAS
    stage.is_full = False
    stage.pass_time(1_999)
    assert "a" in stage.group.members
    stage.pass_time(1)
    assert "a" not in stage.group.members
