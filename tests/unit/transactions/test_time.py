"""Transactions that are open too long, and ids that nobody uses."""

import pytest

from ottla.transactions.effects import DrawProducerId
from ottla.wire.errors import ErrorCode
from tests.unit.transactions.stage import FIRST_PRODUCER_ID, NONE, P0, P1, Stage

PID = FIRST_PRODUCER_ID
FENCED = ErrorCode.PRODUCER_FENCED
STATE = ErrorCode.INVALID_TXN_STATE
WEEK_MS = 604_800_000


def test_an_open_transaction_is_aborted_when_its_time_is_over():
    stage = Stage()
    stage.init(timeout_ms=5_000)
    stage.add(PID, 0, P0, version=5)
    stage.bench.pass_time(3_000)
    # The time runs from the first partition.
    stage.add(PID, 0, P1, version=5)
    stage.bench.pass_time(2_000)
    assert stage.state() == "Ongoing"
    stage.bench.pass_time(1)
    assert stage.state() == "PrepareAbort"
    (markers,) = stage.markers
    assert (markers.producer_epoch, markers.committed, markers.partitions) == (1, False, (P0, P1))
    stage.settle()
    assert stage.state() == "CompleteAbort"


@pytest.mark.parametrize("in_force", [1, 2])
def test_a_producer_that_was_too_slow_is_fenced(in_force):
    stage = Stage(version=in_force)
    stage.open(P0, version=3)
    stage.bench.pass_time(60_001)
    stage.settle()
    assert stage.add(PID, 0, P0) is FENCED
    assert stage.offsets(PID, 0) is FENCED
    assert stage.end(PID, 0, version=4) is FENCED
    assert stage.end(PID, 0, committed=False, version=4) is FENCED


def test_under_v2_an_abort_that_comes_too_late_was_done_and_a_commit_was_not():
    stage = Stage()
    stage.open(P0)
    stage.bench.pass_time(60_001)
    stage.settle()
    assert stage.end(PID, 0, committed=True) is STATE
    assert stage.end(PID, 0, committed=False) == (PID, 1)
    assert stage.add(PID, 1, P0, version=5) is NONE


def test_each_transaction_has_its_own_time():
    stage = Stage()
    for number in range(10):
        producer_id, epoch = stage.init(f"tx{number}", timeout_ms=1_000 * (number + 1))
        stage.add(producer_id, epoch, P0, id=f"tx{number}")
    for number in range(10):
        assert len(stage.markers) == number
        stage.bench.pass_time(1_000 + int(number == 0))


def test_an_end_in_time_stops_the_clock():
    stage = Stage()
    stage.open(P0)
    stage.end(PID, 0)
    assert stage.machine.deadline is None
    stage.bench.pass_time(120_000)
    assert stage.state() == "PrepareCommit"
    stage.settle()
    assert stage.machine.deadline == stage.now + WEEK_MS


def test_an_abort_that_could_not_be_written_is_tried_again():
    stage = Stage()
    stage.open(P0)
    overdue = stage.now + 60_001
    refused = stage.machine.expire(overdue)  # decided, and never applied
    assert len(refused.records) == 1
    assert stage.machine.deadline == overdue + 10_000
    stage.bench.pass_time(60_001 + 10_000)
    assert stage.state() == "PrepareAbort"


def test_many_are_served_a_part_at_a_time():
    stage = Stage()
    for number in range(250):
        producer_id, epoch = stage.init(f"tx{number}")
        stage.add(producer_id, epoch, P0, id=f"tx{number}")
    stage.bench.pass_time(60_000)
    assert not stage.markers
    first = stage.machine.expire(stage.now + 1)
    assert 0 < len(first.records) < 250
    assert stage.machine.deadline == stage.now + 1
    stage.bench.pass_time(20_000)
    assert len({markers.transactional_id for markers in stage.markers}) == 250


def test_a_transaction_that_ran_out_of_time_and_epochs_gets_a_new_producer_id():
    stage = Stage()
    stage.exhaust()
    stage.add(PID, 32766, P0, version=5)
    stage.bench.pass_time(60_001)
    assert stage.state() == "Ongoing"
    (asked,) = stage.bench.effects
    assert isinstance(asked, DrawProducerId) and asked.transactional_id == "tx"
    stage.settle()
    assert stage.state() == "CompleteAbort"
    assert stage.machine.transactions["tx"][:2] == (PID + 1, 0)
    assert stage.end(PID, 32766, committed=False) == (PID + 1, 0)


def test_it_asks_again_when_no_producer_id_came():
    stage = Stage()
    stage.exhaust()
    stage.add(PID, 32766, P0, version=5)
    stage.bench.pass_time(60_001 + 25_000)
    assert [type(each) for each in stage.bench.effects] == [DrawProducerId] * 3
    stage.settle()
    assert stage.machine.transactions["tx"][:2] == (PID + 1, 0)
    assert stage.state() == "CompleteAbort"


def test_what_is_not_overdue_is_not_aborted():
    stage = Stage()
    stage.open(P0)
    stage.bench.ask(stage.machine.abort_overdue, "tx", producer_id=77)
    stage.bench.ask(stage.machine.abort_overdue, "nobody", producer_id=77)
    assert stage.state() == "Ongoing" and not stage.markers


@pytest.mark.parametrize("ending", [None, True, False])
def test_an_id_that_nobody_uses_is_forgotten(ending):
    stage = Stage()
    if ending is None:
        stage.init()
    else:
        stage.open(P0)
        stage.end(PID, 0, committed=ending)
        stage.settle()
    stage.bench.pass_time(WEEK_MS - 1)
    assert "tx" in stage.machine.transactions
    stage.bench.pass_time(1)
    assert stage.machine.transactions == {}
    assert stage.records[-1].value is None
    assert stage.machine.deadline is None
    assert stage.replayed().transactions == {}
    assert stage.add(PID, 0, P0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    # The producer that comes back all the same starts over.
    assert stage.init(producer_id=PID, epoch=0) == (PID + 1, 0)


def test_an_id_in_use_is_not_forgotten():
    stage = Stage(**{"transactional.id.expiration.ms": 1_000, "transaction.max.timeout.ms": 900_000})
    stage.init(timeout_ms=900_000)
    stage.bench.pass_time(999)
    stage.add(PID, 0, P0, version=5)
    stage.bench.pass_time(10_000)
    assert stage.state() == "Ongoing"
    stage.end(PID, 0)
    stage.bench.pass_time(10_000)
    assert stage.state() == "PrepareCommit"
    stage.settle()
    stage.bench.pass_time(1_000)
    assert stage.machine.transactions == {}


def test_a_tombstone_that_could_not_be_written_is_tried_again():
    stage = Stage()
    stage.init()
    expired = stage.now + WEEK_MS
    assert len(stage.machine.expire(expired).records) == 1  # decided, and never applied
    assert stage.machine.deadline == expired + 3_600_000
    stage.bench.pass_time(WEEK_MS + 3_600_000)
    assert stage.machine.transactions == {}


def test_time_that_passed_while_nobody_led_counts():
    stage = Stage()
    stage.open(P0)
    stage.bench.now += 3_600_000
    stage.reload()
    assert stage.state() == "Ongoing"
    stage.bench.pass_time(0)
    assert stage.state() == "PrepareAbort"
