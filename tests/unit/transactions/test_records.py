"""What is written to `__transaction_state`, byte for byte, and what is read back."""

import pytest

from ottla.replicated.keyed import decode
from ottla.transactions.records import KINDS, record_of, tombstone_of, transaction_of
from ottla.transactions.state import State
from ottla.transactions.transaction import Transaction
from ottla.wire.errors import ProtocolError
from ottla.wire.records.transaction import TransactionLogValue
from tests.unit.transactions.stage import FIRST_PRODUCER_ID, P0, P1, P2, Stage

PID = FIRST_PRODUCER_ID

OPEN = Transaction(
    producer_id=0x0102,
    producer_epoch=3,
    timeout_ms=60_000,
    state=State.ONGOING,
    partitions=frozenset({("b", 0), ("a", 1), ("a", 0)}),
    started_ms=0x1111,
    updated_ms=0x2222,
    previous_producer_id=0x0102,
    next_producer_id=-1,
    client_version=2,
)


def test_the_key():
    assert tombstone_of("tx").encode() == (bytes.fromhex("0000 0002 7478"), None)


def test_an_open_transaction_at_version_1():
    _, value = record_of("tx", OPEN, 1).encode()
    assert value == bytes.fromhex(
        "0001"  # version
        "0000000000000102 0003 0000ea60 01"  # producer, epoch, timeout, Ongoing
        "03 0261 03 00000000 00000001 00 0262 02 00000000 00"  # partitions
        "0000000000002222 0000000000001111"  # updated, started
        "02 00 08 0000000000000102 02 02 0002"  # tags: previous producer id, client's version
    )


def test_a_decided_one_names_the_producer_id_to_come():
    _, value = record_of(
        "tx", OPEN._replace(state=State.PREPARE_ABORT, next_producer_id=0x0999, partitions=frozenset()), 1
    ).encode()
    assert value == bytes.fromhex(
        "0001 0000000000000102 0003 0000ea60 03 01 0000000000002222 0000000000001111"
        "03 00 08 0000000000000102 01 08 0000000000000999 02 02 0002"
    )


def test_an_open_transaction_at_version_0():
    _, value = record_of("tx", OPEN, 0).encode()
    assert value == bytes.fromhex(
        "0000 0000000000000102 0003 0000ea60 01"
        "00000002 0001 61 00000002 00000000 00000001 0001 62 00000001 00000000"
        "0000000000002222 0000000000001111"
    )


def test_a_new_one_has_no_list_of_partitions():
    stage = Stage()
    stage.init()
    _, value = stage.records[-1].encode()
    now = stage.now.to_bytes(8, "big").hex()
    pid = PID.to_bytes(8, "big").hex()
    assert value == bytes.fromhex(f"0001 {pid} 0000 0000ea60 00 00 {now} ffffffffffffffff 01 00 08 {pid}")
    old = Stage(version=0)
    old.init()
    assert old.records[-1].encode()[1] == bytes.fromhex(
        f"0000 {pid} 0000 0000ea60 00 ffffffff {now} ffffffffffffffff"
    )


@pytest.mark.parametrize(("in_force", "version"), [(0, 0), (1, 1), (2, 1)])
def test_the_version_in_force_says_how_it_is_written(in_force, version):
    stage = Stage(version=in_force)
    stage.open(P0, version=3)
    stage.end(PID, 0, version=4)
    stage.settle()
    assert {record.version for record in stage.records} == {version}


def test_a_version_that_falls_is_followed():
    stage = Stage()
    stage.open(P0)
    stage.end(PID, 0)
    stage.settle()
    stage.version = 0
    assert stage.init() == (PID, 2)
    assert stage.records[-1].version == 0
    assert stage.replayed().transactions == stage.machine.transactions


def test_what_was_written_is_read_back():
    for state in State:
        there = OPEN._replace(
            state=state, partitions=frozenset() if state is State.EMPTY else OPEN.partitions
        )
        record = decode(KINDS, *record_of("tx", there, 1).encode())
        assert record.key.transactional_id == "tx"
        assert transaction_of(record.value) == there


def test_a_state_that_is_none_is_refused():
    with pytest.raises(ProtocolError):
        transaction_of(TransactionLogValue(transaction_status=8))


@pytest.mark.parametrize("in_force", [0, 1, 2])
def test_a_log_read_again_gives_the_same_state(in_force):
    stage = Stage(version=in_force)
    v2 = in_force == 2
    for number in range(6):
        id = f"tx{number}"
        producer_id, epoch = stage.open(P0, P1, id=id, version=5 if v2 else 3)
        stage.add(producer_id, epoch, P2, id=id, version=5 if v2 else 3)
        stage.bench.pass_time(7)
        if number % 3:
            stage.end(producer_id, epoch, committed=number % 2 == 0, id=id, version=5 if v2 else 4)
        if number % 3 == 2:
            stage.settle()
    stage.bench.pass_time(60_000)
    fresh = stage.replayed()
    assert fresh.transactions == stage.machine.transactions
    assert len(fresh.transactions) == 6
    assert fresh.deadline == stage.machine.deadline


def test_after_a_reload_the_markers_of_every_decided_end_are_asked_for_again():
    stage = Stage()
    for id, committed in (("kept", True), ("dropped", False)):
        producer_id, epoch = stage.open(P0, id=id)
        stage.end(producer_id, epoch, committed=committed, id=id)
    stage.open(P1, id="open")
    stage.init("idle")
    before = {each.transactional_id: each for each in stage.markers}
    stage.reload(coordinator_epoch=8)
    again = {each.transactional_id: each for each in stage.markers}
    assert again.keys() == before.keys() == {"kept", "dropped"}
    for id, markers in again.items():
        assert markers.coordinator_epoch == 8
        for name in ("producer_id", "producer_epoch", "committed", "partitions", "transaction_version"):
            assert getattr(markers, name) == getattr(before[id], name)
    stage.settle()
    assert (stage.state("kept"), stage.state("dropped")) == ("CompleteCommit", "CompleteAbort")


def test_a_decided_end_without_partitions_found_in_a_log_is_completed_too():
    stage = Stage()
    stage.exhaust(state=State.PREPARE_ABORT, epoch=4)
    stage.reload()
    (markers,) = stage.markers
    assert markers.partitions == ()
    stage.settle()
    assert stage.state() == "CompleteAbort"
