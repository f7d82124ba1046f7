"""AddPartitionsToTxn, AddOffsetsToTxn and verification."""

import pytest

from ottla.transactions.enlisting import OFFSETS_TOPIC, response_of, result_of, wishes_of
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from tests.unit.transactions.stage import FIRST_PRODUCER_ID, NONE, P0, P1, P2, Stage

PID = FIRST_PRODUCER_ID
FENCED = ErrorCode.PRODUCER_FENCED
MAPPING = ErrorCode.INVALID_PRODUCER_ID_MAPPING
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
ABORTABLE = ErrorCode.TRANSACTION_ABORTABLE


def test_the_first_partitions_open_the_transaction_and_more_may_come():
    stage = Stage()
    stage.init()
    assert stage.add(PID, 0, P0) is NONE
    opened = stage.now
    assert stage.state() == "Ongoing"
    stage.bench.pass_time(100)
    assert stage.add(PID, 0, P1, P2) is NONE
    transaction = stage.machine.transactions["tx"]
    assert transaction.partitions == {P0, P1, P2}
    assert (transaction.started_ms, transaction.updated_ms) == (opened, opened + 100)


def test_partitions_that_are_in_already_are_not_written_again():
    stage = Stage()
    stage.open(P0, P1)
    written = len(stage.records)
    assert stage.add(PID, 0, P1) is NONE
    assert len(stage.records) == written
    assert stage.add(PID, 0, P1, P2) is NONE
    assert len(stage.records) == written + 1


def test_offsets_take_part_like_any_partition():
    stage = Stage()
    stage.init()
    assert stage.offsets(PID, 0, partition=17) is NONE
    assert stage.machine.transactions["tx"].partitions == {(OFFSETS_TOPIC, 17)}
    assert stage.end(PID, 0, version=4) is NONE
    assert stage.markers[0].partitions == ((OFFSETS_TOPIC, 17),)


@pytest.mark.parametrize(("version", "client_version"), [(0, 0), (3, 0), (4, 2), (5, 2)])
def test_brokers_add_for_clients_of_transactions_v2(version, client_version):
    stage = Stage()
    stage.open(P0, version=version)
    assert stage.machine.transactions["tx"].client_version == client_version


@pytest.mark.parametrize(
    ("who", "code"),
    [
        (("nobody", PID, 0), MAPPING),
        (("", PID, 0), ErrorCode.INVALID_REQUEST),
        (("tx", PID + 1, 0), MAPPING),
        (("tx", PID + 1, 1), MAPPING),
        (("tx", PID, 0), FENCED),
        (("tx", PID, 2), FENCED),
    ],
)
def test_strangers_are_refused(who, code):
    id, producer_id, epoch = who
    stage = Stage()
    stage.init()
    stage.init()
    assert stage.add(producer_id, epoch, P0, P2, id=id) is code
    assert stage.offsets(producer_id, epoch, id=id) is code
    assert stage.add(producer_id, epoch, P0, P2, id=id, version=5, verify=True) == {P0: code, P2: code}
    assert stage.state() == "Empty"


@pytest.mark.parametrize("version", range(6))
def test_the_fenced_are_told_in_words_of_their_version(version):
    stage = Stage()
    stage.init()
    code = FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert stage.add(PID, 5, P0, version=version) is code
    if version < 5:
        assert stage.offsets(PID, 5, version=version) is code


@pytest.mark.parametrize("committed", [True, False])
def test_nothing_is_added_while_the_end_is_under_way(committed):
    stage = Stage()
    stage.open(P0)
    stage.end(PID, 0, committed=committed)
    assert stage.add(PID, 1, P0) is CONCURRENT
    assert stage.offsets(PID, 1) is CONCURRENT
    # Before anything is said about who asks: it may be the producer id that comes with the end.
    assert stage.add(PID + 7, 0, P0) is CONCURRENT
    stage.settle()
    assert stage.add(PID, 1, P0) is NONE
    assert stage.add(PID, 0, P0) is FENCED
    assert stage.machine.transactions["tx"].partitions == {P0}


def test_to_verify_says_which_partitions_are_in():
    stage = Stage()
    stage.open(P0, P2)
    written = len(stage.records)
    assert stage.add(PID, 0, P0, P1, P2, version=5, verify=True) == {P0: NONE, P1: ABORTABLE, P2: NONE}
    assert len(stage.records) == written


def test_nothing_is_in_a_transaction_that_is_not_open():
    stage = Stage()
    stage.init()
    assert stage.add(PID, 0, P0, version=4, verify=True) == {P0: ABORTABLE}
    stage.add(PID, 0, P0)
    stage.end(PID, 0)
    # To verify looks at the producer first.
    assert stage.add(PID, 0, P0, version=4, verify=True) == {P0: FENCED}
    assert stage.add(PID, 1, P0, version=4, verify=True) == {P0: CONCURRENT}
    stage.settle()
    assert stage.add(PID, 1, P0, version=4, verify=True) == {P0: ABORTABLE}


def test_a_client_asks_for_one_transaction_and_a_broker_for_many():
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="a", partitions=[0, 1])
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="tx",
        v3_and_below_producer_id=4,
        v3_and_below_producer_epoch=5,
        v3_and_below_topics=[topic],
    )
    (wish,) = wishes_of(request, 3)
    assert (wish.transactional_id, wish.producer_id, wish.producer_epoch) == ("tx", 4, 5)
    assert (wish.verify_only, wish.topics) == (False, [topic])
    result = result_of(wish, FENCED)
    assert response_of([result], 3).results_by_topic_v3_and_below == result.topic_results
    batch = AddPartitionsToTxnRequest(transactions=[wish, wish])
    assert wishes_of(batch, 4) == [wish, wish]
    assert response_of([result, result], 4) == AddPartitionsToTxnResponse(
        results_by_transaction=[result, result]
    )
    assert [each.partition_error_code for each in result.topic_results[0].results_by_partition] == [90, 90]
