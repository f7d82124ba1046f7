"""Transactions with so many partitions that their records are nearly, or together, too long for a batch."""

import pytest

from ottla.replicated.host import Host
from ottla.replicated.keyed import stored_bytes
from ottla.replicated.steps import STEP_BYTES
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from tests.unit.replicated.journal import Limited, run_out
from tests.unit.transactions.stage import Stage

WISH = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction


def test_transactions_that_are_overdue_are_aborted_however_long_their_records_are_together():
    stage = Stage()
    places = [("big", number) for number in range(10_000)]
    for number in range(30):
        producer_id, epoch = stage.init(f"tx{number}")
        stage.add(producer_id, epoch, *(places if number else [("small", 0)]), id=f"tx{number}")
    machine = stage.replayed()
    journal = Limited()
    run_out(Host(machine, journal), stage.now + 60_001)
    assert {each.state.label for each in machine.transactions.values()} == {"PrepareAbort"}
    assert min(journal.lengths) > 0, "nothing was refused"
    assert max(journal.lengths) < STEP_BYTES + 50_000


def nearly_full():
    """A transaction whose record just fits into a batch; the host over it, and the stage it was made on."""
    stage = Stage()
    producer_id, epoch = stage.init()
    stage.add(producer_id, epoch, *[("big", number) for number in range(2_000)], version=3)
    host = Host(stage.machine, Limited(stored_bytes([stage.records[-1]])), stage.bench.effects.append)
    return stage, host, producer_id, epoch


def submitted(host, decide, now):
    replies = []
    host.submit(decide, replies.append, now)
    (reply,) = replies
    return reply


@pytest.mark.parametrize("how", ["EndTxn v5", "EndTxn v4", "InitProducerId", "time"])
def test_a_transaction_whose_record_just_fits_is_ended(how):
    """That of its end is longer: it says that the epoch rises, and may name the next producer id."""
    stage, host, producer_id, epoch = nearly_full()
    host.machine.apply(0, stage.records[-1])
    if how == "time":
        run_out(host, stage.now + 60_001)
    elif how == "InitProducerId":
        request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
        submitted(host, lambda machine, now: machine.init_producer_id(request, 5, now), stage.now)
    else:
        request = EndTxnRequest(transactional_id="tx", producer_id=producer_id, producer_epoch=epoch)
        version = int(how[-1])
        reply = submitted(host, lambda machine, now: machine.end(request, version, now), stage.now)
        assert reply.error_code == 0
    assert stage.state() == "PrepareAbort"
    host._journal.length_max = 1  # as after a change of max.message.bytes
    (markers,) = stage.markers
    submitted(host, lambda machine, now: machine.markers_written(markers, now), stage.now)
    assert stage.state() == "CompleteAbort"


def test_nobody_adds_partitions_beyond_the_limit():
    stage, host, producer_id, epoch = nearly_full()
    wish = WISH(
        transactional_id="tx",
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="more", partitions=[0])],
    )
    refused = submitted(host, lambda machine, now: machine.add_partitions(wish, 3, now), stage.now)
    assert isinstance(refused, BrokerError) and refused.code is ErrorCode.MESSAGE_TOO_LARGE
    assert stage.state() == "Ongoing"
