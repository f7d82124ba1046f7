"""ListTransactions and DescribeTransactions."""

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.messages.list_transactions import ListTransactionsRequest
from tests.unit.transactions.stage import FIRST_PRODUCER_ID, P0, P1, P2, Stage

PID = FIRST_PRODUCER_ID


def crowd():
    stage = Stage()
    stage.init("idle")
    stage.open(P0, id="early")
    stage.bench.pass_time(1_000)
    stage.open(P0, id="late")
    producer_id, epoch = stage.open(P1, id="ending")
    stage.end(producer_id, epoch, id="ending")
    return stage


def test_every_id_is_listed_with_its_state():
    assert crowd().listed() == {
        "idle": "Empty",
        "early": "Ongoing",
        "late": "Ongoing",
        "ending": "PrepareCommit",
    }


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"state_filters": ["Ongoing"]}, {"early", "late"}),
        ({"state_filters": ["Ongoing", "Empty"]}, {"early", "late", "idle"}),
        ({"state_filters": ["Nonsense"]}, set()),
        ({"state_filters": ["Dead", "PrepareEpochFence"]}, set()),
        ({"producer_id_filters": [PID, PID + 1, 7]}, {"idle", "early"}),
        ({"producer_id_filters": [PID + 1], "state_filters": ["Empty"]}, set()),
        ({"duration_filter": 0}, {"idle", "early"}),  # what never began is as old as time
        ({"duration_filter": 999}, {"idle", "early"}),
        ({"duration_filter": 1_000}, {"idle"}),
        ({"duration_filter": -1}, {"idle", "early", "late", "ending"}),
    ],
)
def test_filters(filters, found):
    assert crowd().listed(**filters).keys() == found


def test_unknown_states_are_named():
    stage = crowd()
    request = ListTransactionsRequest(state_filters=["Ongoing", "ongoing", "Lost", "Lost", "Dead"])
    reply = stage.bench.ask(stage.machine.list_transactions, request)
    assert reply.unknown_state_filters == ["ongoing", "Lost"]
    assert len(reply.transaction_states) == 2


def test_ids_are_tested_by_who_knows_the_pattern():
    stage = crowd()
    request = ListTransactionsRequest(transactional_id_pattern="whatever")
    reply = stage.bench.ask(stage.machine.list_transactions, request, matches=lambda name: "l" in name)
    assert {each.transactional_id for each in reply.transaction_states} == {"idle", "early", "late"}


def test_a_transaction_is_described():
    stage = Stage()
    stage.open(P2, P1, P0)
    described = stage.bench.ask(stage.machine.describe_transaction, "tx")
    assert described.error_code == 0
    assert (described.transactional_id, described.transaction_state) == ("tx", "Ongoing")
    assert (described.producer_id, described.producer_epoch) == (PID, 0)
    assert (described.transaction_timeout_ms, described.transaction_start_time_ms) == (60_000, stage.now)
    assert {each.topic: each.partitions for each in described.topics} == {"a": [0, 1], "b": [0]}


@pytest.mark.parametrize(
    ("id", "code"), [("nobody", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND), ("", ErrorCode.INVALID_REQUEST)]
)
def test_what_is_unknown_is_not_described(id, code):
    stage = Stage()
    stage.init()
    described = stage.bench.ask(stage.machine.describe_transaction, id)
    assert (described.transactional_id, described.error_code) == (id, code)
