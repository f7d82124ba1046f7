"""Members of groups as machines: seats and generations, epochs and shares, and the clocks of both."""

import pytest

from ottla.client.backoff import Backoff
from ottla.client.consumer.group.classic_membership import (
    NO_GENERATION,
    ClassicMembership,
    ClassicMemberState,
    Generation,
)
from ottla.client.consumer.group.epoch_membership import (
    NO_ASSIGNMENT,
    EpochMembership,
    EpochMemberState,
    LocalAssignment,
)
from ottla.client.consumer.group.heartbeat_timers import HeartbeatTimers
from ottla.world.entropy import SeededEntropy

T1, T2 = b"1" * 16, b"2" * 16


# Membership by the classic protocol


def joined_classic():
    membership = ClassicMembership()
    membership.begin()
    membership.joined(Generation(3, "m", "range"))
    membership.synced()
    return membership


def test_a_seat_is_taken_step_by_step():
    membership = ClassicMembership()
    assert membership.must_join
    assert membership.is_lost
    membership.begin()
    assert membership.is_rebalancing
    assert not membership.is_joined
    membership.joined(Generation(3, "m", "range"))
    assert membership.is_rebalancing
    assert membership.is_joined
    membership.synced()
    assert not membership.must_join
    assert not membership.is_rebalancing
    assert membership.state is ClassicMemberState.STABLE


def test_a_seat_that_is_lost_has_to_be_given_up_for():
    membership = joined_classic()
    membership.must_prepare = False
    membership.reset("because")
    assert membership.must_join
    assert membership.must_prepare
    assert membership.is_lost
    assert membership.generation == NO_GENERATION
    assert membership.reason == "because"


def test_a_name_may_outlive_its_generation():
    membership = joined_classic()
    membership.reset("because", keep_member_id=True)
    assert membership.generation == Generation(-1, "m", None)
    assert membership.is_lost


def test_a_name_given_by_the_coordinator_is_joined_with():
    membership = ClassicMembership()
    membership.begin()
    membership.set_member_id("m-1")
    assert membership.generation.member_id == "m-1"
    assert membership.must_join


def test_the_first_reason_to_join_counts():
    membership = joined_classic()
    membership.request_rejoin("one")
    membership.request_rejoin("two")
    assert membership.reason == "one"
    membership.reset("x" * 1000)
    assert len(membership.reason) == 255


# Membership by epochs


def joined(assignment=None):
    member = EpochMembership("m")
    member.join()
    member.handle_response(1, {} if assignment is None else assignment)
    return member


def test_joining_is_urgent_and_an_empty_assignment_has_to_be_taken_over_too():
    member = EpochMembership("m")
    assert member.is_outside
    member.join()
    assert member.is_urgent
    assert member.epoch == 0
    member.handle_response(1, {})
    assert member.must_reconcile
    assert member.is_member


def test_an_assignment_is_reconciled_acknowledged_and_then_stable():
    member = joined({T1: frozenset({0, 1})})
    assert member.must_reconcile
    assert not member.is_urgent
    member.reconciled(member.target)
    assert member.state is EpochMemberState.ACKNOWLEDGING
    assert member.is_urgent
    member.sent()
    assert member.state is EpochMemberState.STABLE
    member.handle_response(2, None)
    assert (member.state, member.epoch) == (EpochMemberState.STABLE, 2)


def test_what_could_not_be_resolved_is_left_for_later():
    member = joined({T1: frozenset({0}), T2: frozenset({0})})
    member.reconciled(LocalAssignment(member.target.number, {T1: frozenset({0})}))
    member.sent()
    assert member.state is EpochMemberState.RECONCILING
    assert member.must_reconcile


def test_the_same_assignment_again_is_nothing_new_but_another_one_is():
    member = joined({T1: frozenset({0})})
    member.reconciled(member.target)
    member.sent()
    member.handle_response(2, {T1: frozenset({0})})
    assert member.state is EpochMemberState.STABLE
    member.handle_response(3, {T1: frozenset({1})})
    assert member.must_reconcile
    member.handle_response(4, {T1: frozenset({0})})
    # Back to what it has, but numbered anew, so that it is said again.
    assert member.must_reconcile
    assert member.target.number == member.current.number + 2


def test_an_assignment_that_comes_while_acknowledging_is_reconciled_next():
    member = joined({T1: frozenset({0})})
    member.reconciled(member.target)
    member.handle_response(2, {T1: frozenset({0, 1})})
    assert member.state is EpochMemberState.RECONCILING
    member.sent()
    assert member.state is EpochMemberState.RECONCILING


def test_a_fenced_member_releases_and_joins_again():
    member = joined({T1: frozenset({0})})
    member.reconciled(member.target)
    member.fenced()
    assert member.must_release
    assert member.is_outside
    assert not member.is_member
    member.handle_response(9, {T1: frozenset({0})})
    assert member.epoch == 0, "an answer that was under way changes nothing"
    member.released()
    assert member.state is EpochMemberState.JOINING
    assert member.current == NO_ASSIGNMENT


@pytest.mark.parametrize(
    ("static", "force", "epoch", "tells"),
    [
        (False, None, -1, True),
        (True, None, -2, True),
        (True, True, -1, True),
        (False, False, 0, False),
        (True, False, -2, True),
    ],
)
def test_leaving(static, force, epoch, tells):
    member = EpochMembership("m", static=static)
    member.join()
    member.handle_response(1, {})
    assert member.leave(force=force) is tells
    assert member.epoch == epoch
    if tells:
        assert member.state is EpochMemberState.LEAVING
        member.sent()
    assert member.state is EpochMemberState.UNSUBSCRIBED
    assert not member.leave()


def test_who_does_not_poll_leaves_and_is_stale_until_released():
    member = joined({T1: frozenset({0})})
    assert member.expire()
    assert not member.expire()
    assert (member.state, member.epoch) == (EpochMemberState.LEAVING, -1)
    member.sent()
    assert member.state is EpochMemberState.STALE
    assert member.must_release
    member.released()
    assert member.state is EpochMemberState.JOINING


def test_being_fenced_while_leaving_is_having_left():
    member = joined()
    member.leave()
    member.fenced()
    assert member.state is EpochMemberState.UNSUBSCRIBED


def test_nothing_follows_a_fatal_error():
    member = joined()
    member.failed()
    assert member.is_outside
    assert member.must_release
    member.released()
    member.join()
    assert member.state is EpochMemberState.FATAL
    assert not member.leave()


def test_answers_to_a_member_that_left_change_nothing():
    member = joined()
    member.leave()
    member.handle_response(5, {T1: frozenset({0})})
    assert (member.state, member.epoch) == (EpochMemberState.LEAVING, -1)
    member.sent()
    member.handle_response(5, {T1: frozenset({0})})
    assert member.state is EpochMemberState.UNSUBSCRIBED


# Clocks


def timers():
    made = HeartbeatTimers(3.0, 45.0, 300.0, Backoff(100, 1000, SeededEntropy(1)))
    made.begin(1000.0)
    return made


def test_heartbeats_are_due_after_their_interval():
    beat = timers()
    assert not beat.is_due(1002.9)
    assert beat.is_due(1003.0)
    beat.sent(1003.0)
    assert not beat.is_due(1005.9)
    assert beat.wait_s(1004.0, polling=False) == 2.0


def test_a_failed_heartbeat_is_sent_again_after_a_growing_pause():
    beat = timers()

    def pause_ms():
        beat.failed(1010.0)
        return next(n for n in range(3_000) if beat.is_due(1010.0 + n / 1000))

    first, second, third = pause_ms(), pause_ms(), pause_ms()
    assert 80 <= first <= 121
    assert 160 <= second <= 241
    assert 320 <= third <= 481
    beat.answered(1011.0)
    assert pause_ms() <= 121


def test_a_session_ends_without_answers():
    beat = timers()
    beat.sent(1044.0)
    assert not beat.session_over(1044.9)
    assert beat.session_over(1045.0)
    beat.answered(1045.0)
    assert not beat.session_over(1089.0)


def test_patience_ends_without_polls():
    beat = timers()
    beat.polled(1100.0)
    assert not beat.poll_overdue(1399.0)
    assert beat.poll_overdue(1400.0)
    beat.answered(1399.0)
    beat.sent(1399.0)
    assert beat.wait_s(1399.5, polling=False) == 0.5
    assert beat.wait_s(1399.5, polling=True) == 2.5
