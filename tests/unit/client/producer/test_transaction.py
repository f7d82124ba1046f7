"""The states of a transactional producer."""

import pytest

from ottla.client.errors import Aborted, ClientError, Fenced, MustAbort, TimedOut, WrongState, refused
from ottla.client.producer.lane import Lane, Road
from ottla.client.producer.transaction import State, Transaction
from ottla.wire.errors import ErrorCode

LANE = Lane(Road("t", 1), 0)


def opened(*, v2: bool = True, can_bump: bool = True) -> Transaction:
    transaction = Transaction("x")
    transaction.state, transaction.is_v2, transaction.can_bump = State.READY, v2, can_bump
    transaction.begin()
    return transaction


def test_one_after_another() -> None:
    transaction = Transaction("x")
    with pytest.raises(WrongState, match="init_transactions once"):
        transaction.begin()
    transaction.state = State.READY
    transaction.begin()
    with pytest.raises(WrongState):
        transaction.begin()
    assert transaction.is_ongoing and not transaction.is_completing
    transaction.commit()
    assert transaction.is_completing
    with pytest.raises(WrongState, match="is committing"):
        transaction.abort()
    transaction.ended()
    assert transaction.state is State.READY and not transaction.is_ongoing


@pytest.mark.parametrize("v2", [True, False])
def test_members(v2: bool) -> None:
    transaction = opened(v2=v2)
    transaction.admit(LANE)
    assert (transaction.started, transaction.may_leave(LANE), list(transaction.new)) == (
        (True, True, []) if v2 else (False, False, [LANE])
    )
    transaction.joined.add(LANE)
    transaction.new.clear()
    transaction.admit(LANE)
    assert not transaction.new
    transaction.commit()
    transaction.ended()
    assert not transaction.joined and not transaction.started


def test_an_error_that_aborting_heals() -> None:
    transaction = opened()
    transaction.batch_failed(TimedOut("late"), None)
    assert transaction.state is State.BROKEN
    for call in (transaction.begin, transaction.commit, lambda: transaction.check("send", State.OPEN)):
        with pytest.raises(MustAbort, match="late") as told:
            call()
        assert isinstance(told.value.__cause__, TimedOut)
    transaction.abort()
    # While it aborts, more of the same changes nothing.
    transaction.batch_failed(TimedOut("later"), None)
    assert transaction.state is State.ABORTING
    transaction.ended()
    assert transaction.state is State.READY


def test_version_one_needs_another_epoch_after_a_failure() -> None:
    transaction = opened(v2=False)
    transaction.batch_failed(TimedOut("late"), None)
    assert transaction.bump_required
    transaction.abort()
    transaction.ended()
    assert transaction.state is State.INITIALIZING
    assert not opened().bump_required


def test_without_another_epoch_lost_numbers_are_the_end() -> None:
    transaction = opened(v2=False, can_bump=False)
    transaction.must_abort_if_possible(ClientError("lost"))
    assert transaction.state is State.DOOMED
    transaction = opened(v2=False)
    transaction.must_abort_if_possible(ClientError("lost"))
    assert transaction.state is State.BROKEN and transaction.bump_required


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
    ],
)
def test_an_error_that_nothing_heals(code: ErrorCode) -> None:
    transaction = opened()
    transaction.batch_failed(refused(code), code)
    for call in (transaction.begin, transaction.commit, transaction.abort):
        with pytest.raises(ClientError) as told:
            call()
        assert isinstance(told.value, Fenced) == (code is ErrorCode.PRODUCER_FENCED)
    transaction.must_abort(TimedOut("more"))
    assert transaction.state is State.DOOMED


def test_records_that_were_aborted_are_no_failure() -> None:
    transaction = opened()
    transaction.batch_failed(Aborted("aborted"), None)
    assert transaction.state is State.OPEN
