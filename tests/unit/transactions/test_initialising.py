"""InitProducerId with a transactional id."""

import pytest

from ottla.transactions.effects import ProducerIdNeeded
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from tests.unit.transactions.stage import FIRST_PRODUCER_ID, NONE, P0, P1, Stage

PID = FIRST_PRODUCER_ID
FENCED = ErrorCode.PRODUCER_FENCED
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS


def test_a_new_id_begins_at_epoch_0_and_each_asker_raises_it():
    stage = Stage()
    assert stage.init() == (PID, 0)
    assert stage.init() == (PID, 1)
    assert stage.init("other") == (PID + 1, 0)
    assert stage.state() == "Empty"


def test_a_producer_id_is_asked_for_only_when_one_is_handed_out():
    stage = Stage()
    request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1)
    with pytest.raises(ProducerIdNeeded) as raised:
        stage.bench.ask(stage.machine.init_producer_id, request, 5)
    assert raised.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert stage.records == [] and not stage.machine.transactions
    assert stage.bench.ask(stage.machine.init_producer_id, request, 5, producer_id=5).producer_id == 5
    reply = stage.bench.ask(stage.machine.init_producer_id, request, 5, producer_id=6)
    assert (reply.producer_id, reply.producer_epoch) == (5, 1)


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"id": ""}, ErrorCode.INVALID_REQUEST),
        ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"epoch": 5}, ErrorCode.INVALID_REQUEST),
        ({"timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"timeout_ms": -1}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"two_phase": True, "version": 6}, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ({"keep": True, "version": 6}, ErrorCode.UNSUPPORTED_VERSION),
        ({"two_phase": True, "keep": True, "version": 6}, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ({"keep": True, "timeout_ms": 0, "version": 6}, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_what_can_never_be_right_is_refused(how, code):
    stage = Stage()
    assert stage.init(**how) is code
    assert stage.records == []


def test_the_longest_timeout_is_allowed():
    assert Stage().init(timeout_ms=900_000) == (PID, 0)


def test_two_phase_commit_has_no_timeout_where_it_is_enabled():
    stage = Stage(**{"transaction.two.phase.commit.enable": "true"})
    assert stage.init(two_phase=True, timeout_ms=0, version=6) == (PID, 0)
    assert stage.add(PID, 0, P0) is NONE
    assert stage.machine.deadline is None
    assert stage.machine.transactions["tx"].timeout_ms == 2**31 - 1


def test_a_producer_goes_on_after_an_error_with_the_next_epoch():
    stage = Stage()
    stage.init()
    assert stage.init(producer_id=PID, epoch=0) == (PID, 1)
    assert stage.init(producer_id=PID, epoch=1) == (PID, 2)


def test_a_lost_answer_is_given_again():
    stage = Stage()
    stage.init()
    assert stage.init(producer_id=PID, epoch=0) == (PID, 1)
    assert stage.init(producer_id=PID, epoch=0) == (PID, 1)
    # The next epoch makes the one before the last unknown.
    assert stage.init(producer_id=PID, epoch=1) == (PID, 2)
    assert stage.init(producer_id=PID, epoch=0) is FENCED


def test_a_lost_answer_is_not_given_again_to_whom_a_new_producer_has_fenced():
    stage = Stage()
    stage.init()
    stage.init()
    assert stage.init(producer_id=PID, epoch=0) is FENCED
    assert stage.init(producer_id=PID, epoch=1) == (PID, 2)


def test_a_lost_answer_is_not_remembered_over_a_reload():
    stage = Stage()
    stage.init()
    stage.init(producer_id=PID, epoch=0)
    stage.reload()
    assert stage.init(producer_id=PID, epoch=0) is FENCED
    assert stage.init(producer_id=PID, epoch=1) == (PID, 2)


def test_a_lost_answer_of_an_end_is_given_again_as_an_epoch():
    stage = Stage()
    producer_id, epoch = stage.open(P0)
    assert stage.end(producer_id, epoch) == (PID, 1)
    stage.settle()
    assert stage.init(producer_id=PID, epoch=0) == (PID, 1)
    assert stage.state() == "Empty"


@pytest.mark.parametrize(
    ("version", "code"), [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, FENCED), (5, FENCED), (6, FENCED)]
)
def test_the_fenced_are_told_in_words_of_their_version(version, code):
    stage = Stage()
    stage.init()
    stage.init()
    assert stage.init(producer_id=PID, epoch=0, version=version) is code
    assert stage.init(producer_id=PID + 9, epoch=1, version=version) is code


def test_a_producer_whose_id_expired_starts_over():
    stage = Stage()
    assert stage.init(producer_id=77, epoch=12) == (PID, 0)


def test_an_open_transaction_is_aborted_first():
    stage = Stage()
    stage.open(P0, P1)
    assert stage.init() is CONCURRENT
    assert stage.state() == "PrepareAbort"
    (markers,) = stage.markers
    assert (markers.producer_id, markers.producer_epoch, markers.committed) == (PID, 1, False)
    assert markers.partitions == (P0, P1)
    assert stage.init() is CONCURRENT
    stage.settle()
    assert stage.state() == "CompleteAbort"
    assert stage.init() == (PID, 2)


@pytest.mark.parametrize(("in_force", "marker_version"), [(0, 0), (1, 0), (2, 2)])
def test_the_version_in_force_says_how_an_open_transaction_is_aborted(in_force, marker_version):
    stage = Stage(version=in_force)
    stage.open(P0, version=3)
    assert stage.init() is CONCURRENT
    (markers,) = stage.markers
    assert (markers.producer_epoch, markers.transaction_version) == (1, marker_version)
    stage.settle()
    # Whom the fence was put up against may ask for the epoch it raised under transactions v2 only.
    fenced_before = stage.init(producer_id=PID, epoch=0)
    assert fenced_before == ((PID, 1) if in_force == 2 else FENCED)


def test_while_an_end_is_under_way_everyone_waits():
    stage = Stage()
    stage.open(P0)
    stage.end(PID, 0)
    assert stage.init() is CONCURRENT
    # Before anything is said about who asks.
    assert stage.init(producer_id=PID + 5, epoch=3) is CONCURRENT
    stage.settle()
    assert stage.init(producer_id=PID + 5, epoch=3) is FENCED
    assert stage.init() == (PID, 2)


def test_when_the_epochs_run_out_a_new_producer_id_takes_over():
    stage = Stage()
    stage.exhaust()
    assert stage.init() == (PID + 1, 0)
    # Anonymous: whoever had the last epoch before is fenced, and so is whoever had epoch 0 of the id before.
    assert stage.init(producer_id=PID, epoch=32766) is FENCED
    assert stage.init(producer_id=PID, epoch=0) is FENCED


def test_a_producer_with_the_last_epoch_gets_a_new_id_and_may_ask_again():
    stage = Stage()
    stage.exhaust()
    assert stage.init(producer_id=PID, epoch=32766) == (PID + 1, 0)
    assert stage.init(producer_id=PID, epoch=32766) == (PID + 1, 0)
    assert stage.init(producer_id=PID, epoch=32765) is FENCED
    assert stage.init(producer_id=PID + 1, epoch=0) == (PID + 1, 1)
    assert stage.init(producer_id=PID, epoch=32766) is FENCED


def test_a_producer_behind_the_last_epoch_gets_none():
    stage = Stage()
    stage.exhaust()
    assert stage.init(producer_id=PID, epoch=32765) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_an_append_that_fails_grants_nothing():
    stage = Stage()
    stage.init()
    lost = InitProducerIdRequest(
        transactional_id="tx", transaction_timeout_ms=1, producer_id=PID, producer_epoch=0
    )
    stage.machine.init_producer_id(lost, 5, stage.now)  # decided, and never applied
    assert stage.init() == (PID, 1)  # somebody else has the epoch now
    assert stage.init(producer_id=PID, epoch=0) is FENCED
