"""The states of a transactional producer."""

import pytest

from ottla.client.errors import Aborted, ClientError, Fenced, MustAbort, TimedOut, WrongState, refused
from ottla.client.producer.partition_queue import PartitionQueue, TopicQueues
from ottla.client.producer.transaction import ProducerTransaction, TransactionState
from ottla.wire.errors import ErrorCode

LANE = PartitionQueue(TopicQueues("t", 1), 0)


def opened(*, v2: bool = True, can_bump_epoch: bool = True) -> ProducerTransaction:
    transaction = ProducerTransaction("x")
    transaction.state, transaction.is_v2, transaction.can_bump_epoch = (
        TransactionState.READY,
        v2,
        can_bump_epoch,
    )
    transaction.begin()
    return transaction


def test_one_after_another() -> None:
    transaction = ProducerTransaction("x")
    with pytest.raises(WrongState, match="init_transactions once"):
        transaction.begin()
    transaction.state = TransactionState.READY
    transaction.begin()
    with pytest.raises(WrongState):
        transaction.begin()
    assert transaction.is_ongoing and not transaction.is_completing
    transaction.commit()
    assert transaction.is_completing
    with pytest.raises(WrongState, match="is committing"):
        transaction.abort()
    transaction.ended()
    assert transaction.state is TransactionState.READY and not transaction.is_ongoing


@pytest.mark.parametrize("v2", [True, False])
def test_members(v2: bool) -> None:
    transaction = opened(v2=v2)
    transaction.add_partition(LANE)
    assert (transaction.started, transaction.may_send(LANE), list(transaction.to_add)) == (
        (True, True, []) if v2 else (False, False, [LANE])
    )
    transaction.added_partitions.add(LANE)
    transaction.to_add.clear()
    transaction.add_partition(LANE)
    assert not transaction.to_add
    transaction.commit()
    transaction.ended()
    assert not transaction.added_partitions and not transaction.started


def test_an_error_that_aborting_heals() -> None:
    transaction = opened()
    transaction.batch_failed(TimedOut("late"), None)
    assert transaction.state is TransactionState.ABORTABLE_ERROR
    for call in (
        transaction.begin,
        transaction.commit,
        lambda: transaction.check("send", TransactionState.IN_TRANSACTION),
    ):
        with pytest.raises(MustAbort, match="late") as told:
            call()
        assert isinstance(told.value.__cause__, TimedOut)
    transaction.abort()
    # While it aborts, more of the same changes nothing.
    transaction.batch_failed(TimedOut("later"), None)
    assert transaction.state is TransactionState.ABORTING
    transaction.ended()
    assert transaction.state is TransactionState.READY


def test_version_one_needs_another_epoch_after_a_failure() -> None:
    transaction = opened(v2=False)
    transaction.batch_failed(TimedOut("late"), None)
    assert transaction.epoch_bump_required
    transaction.abort()
    transaction.ended()
    assert transaction.state is TransactionState.INITIALIZING
    assert not opened().epoch_bump_required


def test_without_another_epoch_lost_numbers_are_the_end() -> None:
    transaction = opened(v2=False, can_bump_epoch=False)
    transaction.must_abort_if_possible(ClientError("lost"))
    assert transaction.state is TransactionState.FATAL_ERROR
    transaction = opened(v2=False)
    transaction.must_abort_if_possible(ClientError("lost"))
    assert transaction.state is TransactionState.ABORTABLE_ERROR and transaction.epoch_bump_required


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
    assert transaction.state is TransactionState.FATAL_ERROR


def test_records_that_were_aborted_are_no_failure() -> None:
    transaction = opened()
    transaction.batch_failed(Aborted("aborted"), None)
    assert transaction.state is TransactionState.IN_TRANSACTION
