"""Members of groups as machines: seats and generations, epochs and shares, and the clocks of both."""

import pytest

from ottla.client.backoff import Backoff
from ottla.client.consumer.group.heartbeat import Heartbeat
from ottla.client.consumer.group.machine import NO_SHARE, Membership, MemberState, Share
from ottla.client.consumer.group.seat import NOBODY, Generation, Seat, SeatState
from ottla.world.entropy import SeededEntropy

T1, T2 = b"1" * 16, b"2" * 16


# The classic protocol's seat


def seated():
    seat = Seat()
    seat.begin()
    seat.joined(Generation(3, "m", "range"))
    seat.synced()
    return seat


def test_a_seat_is_taken_step_by_step():
    seat = Seat()
    assert seat.must_join
    assert seat.is_lost
    seat.begin()
    assert seat.is_moving
    assert not seat.is_taken
    seat.joined(Generation(3, "m", "range"))
    assert seat.is_moving
    assert seat.is_taken
    seat.synced()
    assert not seat.must_join
    assert not seat.is_moving
    assert seat.state is SeatState.STABLE


def test_a_seat_that_is_lost_has_to_be_given_up_for():
    seat = seated()
    seat.must_prepare = False
    seat.reset("because")
    assert seat.must_join
    assert seat.must_prepare
    assert seat.is_lost
    assert seat.generation == NOBODY
    assert seat.reason == "because"


def test_a_name_may_outlive_its_generation():
    seat = seated()
    seat.reset("because", keep_name=True)
    assert seat.generation == Generation(-1, "m", None)
    assert seat.is_lost


def test_a_name_given_by_the_coordinator_is_joined_with():
    seat = Seat()
    seat.begin()
    seat.named("m-1")
    assert seat.generation.member_id == "m-1"
    assert seat.must_join


def test_the_first_reason_to_join_counts():
    seat = seated()
    seat.ask_for("one")
    seat.ask_for("two")
    assert seat.reason == "one"
    seat.reset("x" * 1000)
    assert len(seat.reason) == 255


# Membership by epochs


def joined(assignment=None):
    member = Membership("m")
    member.join()
    member.heard(1, {} if assignment is None else assignment)
    return member


def test_joining_is_urgent_and_an_empty_assignment_has_to_be_taken_over_too():
    member = Membership("m")
    assert member.is_outside
    member.join()
    assert member.is_urgent
    assert member.epoch == 0
    member.heard(1, {})
    assert member.must_reconcile
    assert member.is_member


def test_an_assignment_is_reconciled_acknowledged_and_then_stable():
    member = joined({T1: frozenset({0, 1})})
    assert member.must_reconcile
    assert not member.is_urgent
    member.reconciled(member.target)
    assert member.state is MemberState.ACKNOWLEDGING
    assert member.is_urgent
    member.sent()
    assert member.state is MemberState.STABLE
    member.heard(2, None)
    assert (member.state, member.epoch) == (MemberState.STABLE, 2)


def test_what_could_not_be_resolved_is_left_for_later():
    member = joined({T1: frozenset({0}), T2: frozenset({0})})
    member.reconciled(Share(member.target.number, {T1: frozenset({0})}))
    member.sent()
    assert member.state is MemberState.RECONCILING
    assert member.must_reconcile


def test_the_same_assignment_again_is_nothing_new_but_another_one_is():
    member = joined({T1: frozenset({0})})
    member.reconciled(member.target)
    member.sent()
    member.heard(2, {T1: frozenset({0})})
    assert member.state is MemberState.STABLE
    member.heard(3, {T1: frozenset({1})})
    assert member.must_reconcile
    member.heard(4, {T1: frozenset({0})})
    # Back to what it has, but numbered anew, so that it is said again.
    assert member.must_reconcile
    assert member.target.number == member.current.number + 2


def test_an_assignment_that_comes_while_acknowledging_is_reconciled_next():
    member = joined({T1: frozenset({0})})
    member.reconciled(member.target)
    member.heard(2, {T1: frozenset({0, 1})})
    assert member.state is MemberState.RECONCILING
    member.sent()
    assert member.state is MemberState.RECONCILING


def test_a_fenced_member_releases_and_joins_again():
    member = joined({T1: frozenset({0})})
    member.reconciled(member.target)
    member.fenced()
    assert member.must_release
    assert member.is_outside
    assert not member.is_member
    member.heard(9, {T1: frozenset({0})})
    assert member.epoch == 0, "an answer that was under way changes nothing"
    member.released()
    assert member.state is MemberState.JOINING
    assert member.current == NO_SHARE


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
    member = Membership("m", static=static)
    member.join()
    member.heard(1, {})
    assert member.leave(force=force) is tells
    assert member.epoch == epoch
    if tells:
        assert member.state is MemberState.LEAVING
        member.sent()
    assert member.state is MemberState.UNSUBSCRIBED
    assert not member.leave()


def test_who_does_not_poll_leaves_and_is_stale_until_released():
    member = joined({T1: frozenset({0})})
    assert member.expire()
    assert not member.expire()
    assert (member.state, member.epoch) == (MemberState.LEAVING, -1)
    member.sent()
    assert member.state is MemberState.STALE
    assert member.must_release
    member.released()
    assert member.state is MemberState.JOINING


def test_being_fenced_while_leaving_is_having_left():
    member = joined()
    member.leave()
    member.fenced()
    assert member.state is MemberState.UNSUBSCRIBED


def test_nothing_follows_a_fatal_error():
    member = joined()
    member.failed()
    assert member.is_outside
    assert member.must_release
    member.released()
    member.join()
    assert member.state is MemberState.FATAL
    assert not member.leave()


def test_answers_to_a_member_that_left_change_nothing():
    member = joined()
    member.leave()
    member.heard(5, {T1: frozenset({0})})
    assert (member.state, member.epoch) == (MemberState.LEAVING, -1)
    member.sent()
    member.heard(5, {T1: frozenset({0})})
    assert member.state is MemberState.UNSUBSCRIBED


# Clocks


def heart():
    made = Heartbeat(3.0, 45.0, 300.0, Backoff(100, 1000, SeededEntropy(1)))
    made.begin(1000.0)
    return made


def test_heartbeats_are_due_after_their_interval():
    beat = heart()
    assert not beat.is_due(1002.9)
    assert beat.is_due(1003.0)
    beat.sent(1003.0)
    assert not beat.is_due(1005.9)
    assert beat.wait_s(1004.0, polling=False) == 2.0


def test_a_failed_heartbeat_is_sent_again_after_a_growing_pause():
    beat = heart()

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
    beat = heart()
    beat.sent(1044.0)
    assert not beat.session_over(1044.9)
    assert beat.session_over(1045.0)
    beat.answered(1045.0)
    assert not beat.session_over(1089.0)


def test_patience_ends_without_polls():
    beat = heart()
    beat.polled(1100.0)
    assert not beat.poll_overdue(1399.0)
    assert beat.poll_overdue(1400.0)
    beat.answered(1399.0)
    beat.sent(1399.0)
    assert beat.wait_s(1399.5, polling=False) == 0.5
    assert beat.wait_s(1399.5, polling=True) == 2.5
