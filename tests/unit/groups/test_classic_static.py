"""Static members: an instance keeps its seat over restarts, and two of the same do not share it."""

import pytest

from ottla.wire.errors import ErrorCode
from tests.unit.groups.test_classic_party import DELAY_MS, REBALANCE_MS, Party


def stable(party, *instances, **how):
    """Make a stable group of static members; return their ids, the leader first."""
    tokens = [party.join(instance=each, **how) for each in instances]
    party.pass_time(DELAY_MS * 2)
    ids = [party.answer(token).member_id for token in tokens]
    for member_id, instance in list(zip(ids, instances, strict=True))[1:]:
        party.sync(member_id, instance=instance)
    party.sync(ids[0], instance=instances[0], assignments={id: id.encode() for id in ids})
    assert party.state() == "Stable"
    return ids


def test_a_static_member_joins_at_once():
    party = Party()
    token = party.join(instance="i")
    party.pass_time(DELAY_MS)
    assert party.answer(token).member_id.startswith("i-")
    assert party.code(token) == ErrorCode.NONE


@pytest.mark.parametrize("version", [8, 9])
def test_a_static_leader_that_is_back_takes_its_seat_and_disturbs_nobody(version):
    party = Party()
    one, two = stable(party, "a", "b")
    answer = party.answer(party.join(instance="a", version=version))
    assert answer.error_code == ErrorCode.NONE
    assert answer.generation_id == 1
    assert answer.member_id not in (one, two)
    assert party.state() == "Stable"
    value = party.last_value()
    assert value.leader == answer.member_id, "recorded at once"
    assert {member.member_id: member.assignment for member in value.members} == {
        answer.member_id: one.encode(),
        two: two.encode(),
    }
    assert party.answer(party.sync(answer.member_id, instance="a")).assignment == one.encode()
    if version >= 9:
        assert answer.skip_assignment
        assert answer.leader == answer.member_id
        assert len(answer.members) == 2
    else:
        assert answer.leader == one, "so that it does not take itself for the leader"
        assert answer.members == []


def test_a_static_follower_that_is_back_does_not_skip():
    party = Party()
    one, _ = stable(party, "a", "b")
    answer = party.answer(party.join(instance="b"))
    assert not answer.skip_assignment
    assert answer.leader == one
    assert answer.members == []


def test_the_earlier_self_is_fenced():
    party = Party()
    one, _ = stable(party, "a", "b")
    party.join(instance="a")
    assert party.heartbeat(one, instance="a") == ErrorCode.FENCED_INSTANCE_ID
    assert party.code(party.sync(one, instance="a")) == ErrorCode.FENCED_INSTANCE_ID
    assert party.code(party.join(one, instance="a")) == ErrorCode.FENCED_INSTANCE_ID
    assert party.leave((one, "a")) == [ErrorCode.FENCED_INSTANCE_ID]
    assert party.heartbeat(one) == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_instance_nobody_knows_is_unknown():
    party = Party()
    one, _ = stable(party, "a", "b")
    assert party.heartbeat(one, instance="c") == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_earlier_self_that_still_waits_is_told():
    party = Party()
    first = party.join(instance="a")
    second = party.join(instance="a")
    assert party.code(first) == ErrorCode.FENCED_INSTANCE_ID
    party.pass_time(DELAY_MS)
    assert party.code(second) == ErrorCode.NONE
    assert party.members() == [party.answer(second).member_id]


def test_an_earlier_self_that_waits_for_its_share_is_told_and_all_join_again():
    party = Party()
    tokens = [party.join(instance=each) for each in ("a", "b")]
    party.pass_time(DELAY_MS * 2)
    _, two = (party.answer(token).member_id for token in tokens)
    waiting = party.sync(two, instance="b")
    token = party.join(instance="b")
    assert party.code(waiting) == ErrorCode.FENCED_INSTANCE_ID
    assert party.answer(token) is None
    assert party.state() == "PreparingRebalance"


def test_a_static_member_that_is_back_with_another_protocol_calls_everyone_together():
    party = Party()
    both = (("range", b"r"), ("sticky", b"s"))
    stable(party, "a", "b", protocols=both)
    token = party.join(instance="b", protocols=both[1:])
    assert party.answer(token) is None
    assert party.state() == "PreparingRebalance"


def test_static_members_are_waited_for_until_their_session_is_over():
    party = Party()
    one, two = stable(party, "a", "b", session_timeout_ms=3 * REBALANCE_MS)
    token = party.join(one, instance="a")
    party.pass_time(REBALANCE_MS)
    assert party.code(token) == ErrorCode.NONE, "the rebalance ends without it"
    assert [each.member_id for each in party.answer(token).members] == [one, two], "but it is still in"


def test_when_no_static_member_joins_the_rebalance_goes_on():
    party = Party()
    one, two = stable(party, "a", "b", session_timeout_ms=3 * REBALANCE_MS)
    dynamic, _ = party.enter()
    party.leave((dynamic, None))
    assert party.state() == "PreparingRebalance"
    party.pass_time(REBALANCE_MS)
    assert party.state() == "PreparingRebalance"
    tokens = [party.join(one, instance="a"), party.join(two, instance="b")]
    assert [party.answer(token).generation_id for token in tokens] == [2, 2]


def test_an_administrator_removes_instances():
    party = Party()
    one, two = stable(party, "a", "b")
    assert party.leave(("", "b"), ("", "c"), ("", None)) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert party.heartbeat(two, instance="b") == ErrorCode.UNKNOWN_MEMBER_ID
    assert party.heartbeat(one, instance="a") == ErrorCode.REBALANCE_IN_PROGRESS


def test_instances_are_known_after_a_replay():
    party = Party()
    one, _ = stable(party, "a", "b")
    party.bench.machine = party.machine = party.replayed()
    assert party.heartbeat("other", instance="a") == ErrorCode.FENCED_INSTANCE_ID
    assert party.heartbeat(one, instance="a") == ErrorCode.NONE
