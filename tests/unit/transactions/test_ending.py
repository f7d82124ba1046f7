"""EndTxn of both kinds, and the markers' return."""

import pytest

from ottla.transactions.state import State
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.end_txn import EndTxnRequest
from tests.unit.transactions.stage import FIRST_PRODUCER_ID, NONE, P0, P1, P2, Stage

PID = FIRST_PRODUCER_ID
FENCED = ErrorCode.PRODUCER_FENCED
MAPPING = ErrorCode.INVALID_PRODUCER_ID_MAPPING
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
STATE = ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(("committed", "word"), [(True, "Commit"), (False, "Abort")])
@pytest.mark.parametrize("version", range(6))
def test_an_end_is_prepared_marked_and_completed(version, committed, word):
    stage = Stage()
    stage.open(P2, P1, P0, version=5 if version == 5 else 3)
    raised = int(version == 5)
    assert stage.end(PID, 0, committed=committed, version=version) == ((PID, 1) if raised else NONE)
    assert stage.state() == f"Prepare{word}"
    (markers,) = stage.markers
    assert (markers.transactional_id, markers.producer_id, markers.producer_epoch) == ("tx", PID, raised)
    assert (markers.coordinator_epoch, markers.committed) == (7, committed)
    assert markers.partitions == (P0, P1, P2)
    assert markers.transaction_version == 2 * raised
    stage.settle()
    assert stage.state() == f"Complete{word}"
    transaction = stage.machine.transactions["tx"]
    assert (transaction.producer_epoch, transaction.partitions) == (raised, frozenset())


def test_markers_are_asked_for_with_the_record_that_decides():
    stage = Stage()
    stage.open(P0)
    written = len(stage.records)
    stage.end(PID, 0)
    assert [record.value.transaction_status for record in stage.records[written:]] == [State.PREPARE_COMMIT]
    assert len(stage.markers) == 1


@pytest.mark.parametrize(
    ("who", "code"),
    [
        (("nobody", PID, 0), MAPPING),
        (("", PID, 0), ErrorCode.INVALID_REQUEST),
        (("tx", PID + 1, 0), MAPPING),
        (("tx", PID, 1), FENCED),
        (("tx", PID, 3), FENCED),
    ],
)
@pytest.mark.parametrize("version", [2, 4, 5])
def test_strangers_end_nothing(version, who, code):
    id, producer_id, epoch = who
    stage = Stage()
    stage.init()
    stage.init()
    stage.init()
    assert stage.add(PID, 2, P0) is NONE
    for committed in (True, False):
        assert stage.end(producer_id, epoch, committed=committed, id=id, version=version) is code
    assert stage.state() == "Ongoing"


@pytest.mark.parametrize("version", range(6))
def test_the_fenced_are_told_in_words_of_their_version(version):
    stage = Stage()
    stage.open(P0)
    code = FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert stage.end(PID, 4, version=version) is code


@pytest.mark.parametrize("version", [0, 4])
@pytest.mark.parametrize("committed", [True, False])
def test_before_v2_the_same_end_may_be_asked_for_again(version, committed):
    stage = Stage()
    stage.open(P0, version=3)
    assert stage.end(PID, 0, committed=committed, version=version) is NONE
    assert stage.end(PID, 0, committed=committed, version=version) is CONCURRENT
    stage.settle()
    written = len(stage.records)
    assert stage.end(PID, 0, committed=committed, version=version) is NONE
    assert stage.end(PID, 0, committed=not committed, version=version) is STATE
    assert len(stage.records) == written


@pytest.mark.parametrize("committed", [True, False])
def test_before_v2_nothing_cannot_be_ended(committed):
    stage = Stage()
    stage.init()
    assert stage.end(PID, 0, committed=committed, version=4) is STATE


OK_AS_BEFORE, RAISED = "ok, with the epoch it had", "ok, with the next epoch"


@pytest.mark.parametrize(
    ("state", "committed", "behind", "answer"),
    [
        ("Empty", False, 1, FENCED),
        ("Empty", False, 0, RAISED),
        ("Empty", True, 1, FENCED),
        ("Empty", True, 0, STATE),
        ("CompleteAbort", False, 1, OK_AS_BEFORE),
        ("CompleteAbort", False, 0, RAISED),
        ("CompleteAbort", True, 1, STATE),
        ("CompleteAbort", True, 0, STATE),
        ("CompleteCommit", False, 1, STATE),
        ("CompleteCommit", False, 0, RAISED),
        ("CompleteCommit", True, 1, OK_AS_BEFORE),
        ("CompleteCommit", True, 0, STATE),
        ("CompleteCommit", True, 2, FENCED),
        ("CompleteAbort", False, 2, FENCED),
        ("CompleteCommit", True, -1, FENCED),
        ("PrepareCommit", True, 1, CONCURRENT),
        ("PrepareAbort", False, 1, CONCURRENT),
        ("PrepareCommit", True, 0, CONCURRENT),
        ("PrepareCommit", False, 5, CONCURRENT),
    ],
)
def test_under_v2_the_epoch_tells_a_retry_from_the_next_end(state, committed, behind, answer):
    stage = Stage()
    for _ in range(5):
        stage.init()
    epoch = 4
    if state != "Empty":
        stage.add(PID, epoch, P0, version=5)
        _, epoch = stage.end(PID, epoch, committed=state.endswith("Commit"))
    if state.startswith("Complete"):
        stage.settle()
    assert stage.state() == state
    written = len(stage.records)
    found = stage.end(PID, epoch - behind, committed=committed)
    if answer is RAISED:
        assert found == (PID, epoch + 1)
        assert stage.state() == "CompleteAbort"
        assert not stage.markers  # there is nothing to mark
        assert [each.value.transaction_status for each in stage.records[written:]] == [
            State.PREPARE_ABORT,
            State.COMPLETE_ABORT,
        ]
    else:
        assert found == ((PID, epoch) if answer is OK_AS_BEFORE else answer)
        assert len(stage.records) == written


def test_a_transaction_without_partitions_is_complete_at_once():
    stage = Stage()
    stage.init()
    stage.add(PID, 0, version=5)
    assert stage.state() == "Ongoing"
    assert stage.end(PID, 0) == (PID, 1)
    assert stage.state() == "CompleteCommit"
    assert not stage.markers
    assert stage.add(PID, 1, P0) is NONE


def test_when_the_epochs_run_out_the_end_hands_out_a_new_producer_id():
    stage = Stage()
    stage.exhaust()
    assert stage.add(PID, 32766, P0, version=5) is NONE
    assert stage.end(PID, 32766) == (PID + 1, 0)
    (markers,) = stage.markers
    assert (markers.producer_id, markers.producer_epoch) == (PID, 32767)
    # The new id is not in force before the markers are written.
    assert stage.add(PID + 1, 0, P0, version=5) is CONCURRENT
    assert stage.end(PID, 32766) is CONCURRENT
    stage.settle()
    # The answer was lost: it is given again, also by a coordinator that has only read the log.
    assert stage.end(PID, 32766) == (PID + 1, 0)
    assert stage.end(PID, 32766, committed=False) is STATE
    stage.reload()
    assert stage.end(PID, 32766) == (PID + 1, 0)
    assert stage.end(PID, 32765) is MAPPING
    assert stage.add(PID + 1, 0, P0, version=5) is NONE
    assert stage.end(PID, 32766) is MAPPING
    assert stage.end(PID + 1, 0) == (PID + 1, 1)


def test_a_producer_whose_epochs_ran_out_at_an_end_may_ask_for_the_new_id():
    stage = Stage()
    stage.exhaust()
    stage.add(PID, 32766, P0, version=5)
    stage.end(PID, 32766)
    stage.settle()
    assert stage.init(producer_id=PID, epoch=32766) == (PID + 1, 0)


def test_before_v2_the_last_epoch_is_kept():
    stage = Stage()
    stage.exhaust()
    stage.add(PID, 32766, P0)
    assert stage.end(PID, 32766, version=4) is NONE
    stage.settle()
    assert stage.machine.transactions["tx"][:2] == (PID, 32766)


def test_an_epoch_beyond_the_last_can_still_be_aborted():
    stage = Stage()
    stage.exhaust(epoch=32767)
    stage.add(PID, 32767, P0, version=5)
    assert stage.init() is CONCURRENT
    assert stage.markers[0].producer_epoch == 32767
    stage.settle()
    assert stage.init() == (PID + 1, 1)


def test_clients_of_v2_and_before_may_take_turns():
    stage = Stage()
    stage.open(P0, version=3)
    assert stage.end(PID, 0, version=4) is NONE
    stage.settle()
    assert stage.add(PID, 0, P0, version=5) is NONE
    assert stage.end(PID, 0) == (PID, 1)
    stage.settle()
    assert stage.add(PID, 1, P0, version=3) is NONE
    assert stage.end(PID, 1, version=4) is NONE
    stage.settle()
    assert stage.state() == "CompleteCommit"


def test_records_of_version_0_do_not_know_transactions_v2():
    stage = Stage(version=0)
    stage.open(P0, version=3)
    assert stage.end(PID, 0) is ErrorCode.UNSUPPORTED_VERSION
    assert stage.end(PID, 0, version=4) is NONE


def test_markers_come_back_once():
    stage = Stage()
    stage.open(P0)
    stage.end(PID, 0)
    (markers,) = stage.markers
    stage.settle()
    written = len(stage.records)
    stage.bench.ask(stage.machine.markers_written, markers)
    assert len(stage.records) == written


def test_markers_of_the_last_end_are_not_taken_for_those_of_this_one():
    # Before v2 both have the same producer id and epoch.
    stage = Stage()
    stage.open(P0, version=3)
    stage.end(PID, 0, version=4)
    (first,) = stage.markers
    stage.settle()
    stage.add(PID, 0, P1)
    stage.end(PID, 0, version=4)
    stage.bench.ask(stage.machine.markers_written, first)
    assert stage.state() == "PrepareCommit"
    stage.settle()
    assert stage.state() == "CompleteCommit"


def test_markers_of_a_coordinator_before_this_one_complete_nothing():
    stage = Stage()
    stage.open(P0)
    stage.end(PID, 0)
    (lost,) = stage.markers
    stage.reload()
    stage.bench.ask(stage.machine.markers_written, lost)
    assert stage.state() == "PrepareCommit"
    stage.settle()
    assert stage.state() == "CompleteCommit"


def test_markers_whose_completion_was_not_appended_may_come_again():
    stage = Stage()
    stage.open(P0)
    stage.end(PID, 0)
    (markers,) = stage.markers
    stage.machine.markers_written(markers, stage.now)  # decided, and never applied
    stage.settle()
    assert stage.state() == "CompleteCommit"


def test_markers_of_an_end_that_never_reached_the_log_complete_nothing():
    stage = Stage()
    stage.open(P0)
    request = EndTxnRequest(transactional_id="tx", producer_id=PID, producer_epoch=0, committed=True)
    lost = stage.machine.end(request, 5, stage.now)  # decided, and never applied
    stage.bench.ask(stage.machine.markers_written, lost.after[0])
    assert stage.state() == "Ongoing"
