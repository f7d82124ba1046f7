"""Asking the coordinator about a partition, and waiting for a transaction that is still being completed."""

from types import SimpleNamespace

import pytest

from ottla.broker.verification import Batch, Doubted, verify
from ottla.log.producer_state import Producers
from ottla.wire.errors import ErrorCode

PLACE = ("t", 0)


def doubted():
    """A batch for a log that knows of no transaction."""
    producers = Producers()
    log = SimpleNamespace(in_transaction=producers.in_transaction, verifications=producers.verifications)
    return Doubted("x", 7, 1, [Batch(SimpleNamespace(topic="t", index=0, log=log), 0)])


class World:
    """A coordinator that says what it is told to, and a clock that goes as far as it is pushed."""

    def __init__(self, *codes):
        self.codes = list(codes)
        self.now = 0.0
        self.later = []
        self.asked = []
        self.done = []
        self.broker = SimpleNamespace(
            settings={
                "add.partitions.to.txn.retry.backoff.ms": 20,
                "add.partitions.to.txn.retry.backoff.max.ms": 100,
                "request.timeout.ms": 30_000,
            },
            clock=SimpleNamespace(monotonic=lambda: self.now, now_ms=lambda: int(self.now * 1000)),
            call_later=lambda seconds, call: self.later.append((self.now + seconds, call)),
            transactions=SimpleNamespace(enlist=self.enlist),
            verifying={},
            call_soon=lambda call: self.later.append((self.now, call)),
            failed=lambda error: None,
        )

    def enlist(self, *who, add, done):
        self.asked.append((round(self.now * 1000), add))
        done({PLACE: self.codes.pop(0) if len(self.codes) > 1 else self.codes[0]})

    def verify(self, version):
        verify(doubted(), version, self.broker, self.done.append)
        while self.later:
            self.now, call = self.later.pop(0)
            call()
        ((refused, _),) = self.done
        return refused[PLACE].code if refused else ErrorCode.NONE


def test_a_transaction_waits_for_the_one_before_it():
    world = World(ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NONE)
    assert world.verify(12) is ErrorCode.NONE
    assert world.asked == [(0, True), (20, True), (40, True)]


def test_it_does_not_wait_for_ever():
    world = World(ErrorCode.CONCURRENT_TRANSACTIONS)
    assert world.verify(12) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert [at for at, _ in world.asked] == [0, 20, 40, 60, 80, 100]


@pytest.mark.parametrize(
    ("code", "version", "told"),
    [
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.PRODUCER_FENCED, 12, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE),
    ],
)
def test_everything_else_is_told_at_once(code, version, told):
    world = World(code)
    assert world.verify(version) is told
    assert world.asked == [(0, version >= 12)]


def test_whatever_becomes_of_a_look_up_the_next_of_the_producer_has_its_turn():
    world = World(ErrorCode.NONE)
    waiting = []
    world.broker.transactions.enlist = lambda *who, add, done: waiting.append(done)
    world.done = []

    def breaks(verified):
        raise RuntimeError("unforeseen")

    verify(doubted(), 9, world.broker, breaks)
    verify(doubted(), 9, world.broker, world.done.append)
    with pytest.raises(RuntimeError):
        waiting[0]({PLACE: ErrorCode.NONE})
    assert not world.done

    def enlist(*who, add, done):
        raise RuntimeError("unforeseen")

    world.broker.transactions.enlist = enlist
    world.later.pop()[1]()
    assert world.done[0].refused[PLACE].code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.broker.verifying == {}
