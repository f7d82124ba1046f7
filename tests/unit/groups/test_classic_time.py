"""Sessions, rebalance timeouts, and members that go."""

from ottla.wire.errors import ErrorCode
from tests.unit.groups.test_classic_party import DELAY_MS, REBALANCE_MS, SESSION_MS, Party


def test_heartbeats_keep_a_seat():
    party = Party()
    (one,) = party.settled()
    party.beat(one, times=20)
    assert party.members() == [one]
    assert party.heartbeat(one) == ErrorCode.NONE


def test_one_who_is_silent_for_a_session_is_out():
    party = Party()
    one, two = party.settled(b"one", b"two")
    party.pass_time(SESSION_MS - 1)
    party.heartbeat(one)
    party.pass_time(1)
    assert party.members() == [one]
    assert party.heartbeat(one) == ErrorCode.REBALANCE_IN_PROGRESS
    assert party.heartbeat(two) == ErrorCode.UNKNOWN_MEMBER_ID


def test_when_the_last_goes_the_group_is_empty_and_that_is_recorded():
    party = Party()
    party.settled()
    party.pass_time(SESSION_MS)
    assert party.state() == "Empty"
    value = party.last_value()
    assert (value.generation, value.protocol_type, value.protocol, value.leader, value.members) == (
        2,
        "consumer",
        None,
        None,
        [],
    )
    assert value.current_state_timestamp == party.bench.now
    assert party.describe(party.replayed()).group_state == "Empty"


def test_a_wrong_generation_is_told():
    party = Party()
    (one,) = party.settled()
    assert party.heartbeat(one, 2) == ErrorCode.ILLEGAL_GENERATION
    assert party.code(party.sync(one, 0)) == ErrorCode.ILLEGAL_GENERATION
    assert party.heartbeat("nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    party.group = "other"
    assert party.heartbeat(one) == ErrorCode.UNKNOWN_MEMBER_ID
    assert party.code(party.sync(one)) == ErrorCode.UNKNOWN_MEMBER_ID
    party.group = ""
    assert party.heartbeat(one) == ErrorCode.INVALID_GROUP_ID
    assert party.code(party.sync(one)) == ErrorCode.INVALID_GROUP_ID


def test_a_sync_of_another_protocol_is_told():
    party = Party()
    (one,) = party.settled()
    assert party.code(party.sync(one, protocol_type="connect")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert party.code(party.sync(one, protocol_name="sticky")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert party.code(party.sync(one, protocol_type="consumer", protocol_name="range")) == ErrorCode.NONE


def test_a_sync_during_a_rebalance_is_told():
    party = Party()
    one, two = party.settled(b"one", b"two")
    party.join(one)
    assert party.code(party.sync(two)) == ErrorCode.REBALANCE_IN_PROGRESS


def test_who_waits_in_a_join_needs_no_heartbeat():
    party = Party()
    one, two = party.settled(b"one", b"two")
    token = party.join(one)
    party.beat(two, times=8)
    assert party.answer(token) is None
    assert one in party.members()


def test_who_waits_in_a_sync_needs_no_heartbeat_and_gets_a_session_with_its_share():
    party = Party()
    one, _ = party.enter()
    two, _ = party.enter()
    party.pass_time(DELAY_MS * 2)
    waiting = party.sync(two)
    party.beat(one, times=4)
    party.sync(one, assignments={two: b"b"})
    assert party.answer(waiting).assignment == b"b"
    party.beat(one, ms=SESSION_MS - 1)
    assert two in party.members()
    party.pass_time(1)
    assert two not in party.members()


def test_who_joined_and_never_syncs_is_out():
    party = Party()
    one, _ = party.enter()
    two, _ = party.enter()
    party.pass_time(DELAY_MS * 2)
    party.sync(one, assignments={one: b"a"})
    assert party.state() == "Stable"
    party.beat(one, two, times=REBALANCE_MS // (SESSION_MS // 2) - 1)
    assert party.members() == [one, two]
    party.beat(one, two)
    assert party.members() == [one]
    assert party.state() == "PreparingRebalance"


def test_when_the_leader_never_syncs_the_others_are_called_again():
    party = Party()
    one, _ = party.enter()
    two, _ = party.enter()
    party.pass_time(DELAY_MS * 2)
    waiting = party.sync(two)
    party.beat(one, times=REBALANCE_MS // (SESSION_MS // 2))
    assert party.code(waiting) == ErrorCode.REBALANCE_IN_PROGRESS
    assert party.members() == [two]


def test_a_newcomer_that_waits_too_long_is_told_to_join_anew():
    party = Party()
    how = {"rebalance_timeout_ms": 1_000_000}
    one, two = party.settled(b"one", b"two", **how)
    token = party.enter(**how)[1]
    for _ in range(59):
        party.beat(one, two)
    assert party.answer(token) is None
    party.beat(one, two)
    assert party.code(token) == ErrorCode.UNKNOWN_MEMBER_ID
    assert party.answer(token).member_id == ""
    assert party.members() == [one, two]


def test_members_leave():
    party = Party()
    one, two = party.settled(b"one", b"two")
    assert party.leave((two, None), ("ghost", None)) == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert party.members() == [one]
    assert party.state() == "PreparingRebalance"
    token = party.join(one)
    assert party.answer(token).generation_id == 2


def test_the_last_to_leave_empties_the_group():
    party = Party()
    one, two = party.settled(b"one", b"two")
    party.leave((one, None), (two, None))
    assert party.state() == "Empty"
    assert party.last_value().generation == 2


def test_a_leader_that_leaves_is_followed_by_another():
    party = Party()
    one, two = party.settled(b"one", b"two")
    party.leave((one, None))
    token = party.join(two)
    assert party.answer(token).leader == two


def test_an_old_client_leaves_alone():
    party = Party()
    one, _ = party.settled(b"one", b"two")
    assert party.leave((one, None), version=2) == ErrorCode.NONE
    assert party.leave((one, None), version=0) == ErrorCode.UNKNOWN_MEMBER_ID
    party.group = "none"
    assert party.leave((one, None), version=1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert party.leave((one, None)) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_one_who_is_yet_to_join_may_leave_and_is_waited_for_no_more():
    party = Party()
    (one,) = party.settled()
    pending = party.answer(party.join()).member_id
    token = party.join(one)
    assert party.answer(token) is None
    assert party.leave((pending, None)) == [ErrorCode.NONE]
    assert party.answer(token).generation_id == 2


def test_one_who_leaves_while_it_waits_is_answered():
    party = Party()
    one, two = party.settled(b"one", b"two")
    token = party.join(one)
    party.leave((one, None))
    assert party.code(token) == ErrorCode.UNKNOWN_MEMBER_ID
    again = party.join(two)
    party.leave(("ghost", None))
    waiting = party.sync(two, 2)
    assert party.answer(again).leader == two
    assert party.code(waiting) == ErrorCode.NONE


def test_after_a_replay_members_have_a_whole_session():
    party = Party()
    one, _ = party.settled(b"one", b"two")
    party.pass_time(SESSION_MS - 1)
    party.bench.machine = party.machine = party.replayed()
    party.bench.ask(party.machine.lead)
    party.pass_time(SESSION_MS - 1)
    assert party.heartbeat(one) == ErrorCode.NONE
    party.pass_time(1)
    assert party.members() == [one]


def test_after_a_replay_members_have_their_own_timeouts():
    party = Party()
    one, two = party.settled(b"one", b"two", session_timeout_ms=REBALANCE_MS * 2)
    party.bench.machine = party.machine = party.replayed()
    party.bench.ask(party.machine.lead)
    token = party.join(one)
    party.pass_time(REBALANCE_MS - 1)
    assert party.answer(token) is None
    party.pass_time(1)
    assert party.answer(token).generation_id == 2
    assert two not in party.members()


def test_a_newcomer_has_a_session_once_it_is_told_of_a_generation():
    party = Party()
    one, _ = party.enter()
    two, _ = party.enter()
    party.pass_time(DELAY_MS * 2)
    assert party.state() == "CompletingRebalance"
    party.beat(one, ms=SESSION_MS - 1 - DELAY_MS)
    assert two in party.members()
    party.pass_time(DELAY_MS + 1)
    assert party.members() == [one]


def test_an_id_that_nobody_came_with_disturbs_nobody():
    party = Party()
    (one,) = party.settled()
    party.join()
    party.beat(one, times=4)
    assert party.state() == "Stable"
