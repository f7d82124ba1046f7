"""Bugs that cost others their users' records, replayed here by name."""

from ottla.replicated.host import Host
from ottla.transactions.enlisting import Wish
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from tests.unit.transactions.stage import FIRST_PRODUCER_ID, NONE, P0, P1, Stage

PID = FIRST_PRODUCER_ID
FENCED = ErrorCode.PRODUCER_FENCED


def test_kafka_17754_a_late_end_does_not_hit_a_later_transaction():
    """The first EndTxn is delayed on its way; its retry ends the transaction, and the next is open when it comes."""
    for late_commits in (True, False):
        stage = Stage()
        stage.open(P0)
        assert stage.end(PID, 0, committed=late_commits) == (PID, 1)
        stage.settle()
        assert stage.add(PID, 1, P1, version=5) is NONE
        assert stage.end(PID, 0, committed=late_commits) is FENCED
        assert stage.state() == "Ongoing"
        assert stage.machine.transactions["tx"].partitions == {P1}
        # Nor does it when the later one is being ended, or was, in the other way.
        assert stage.end(PID, 1, committed=not late_commits) == (PID, 2)
        assert stage.end(PID, 0, committed=late_commits) is ErrorCode.CONCURRENT_TRANSACTIONS
        stage.settle()
        assert stage.end(PID, 0, committed=late_commits) is FENCED
        assert stage.end(PID, 1, committed=late_commits) is ErrorCode.INVALID_TXN_STATE
        assert stage.state() == ("CompleteAbort" if late_commits else "CompleteCommit")


def test_kafka_17754_an_end_that_was_overtaken_by_the_timeout_does_not_hit_the_next_transaction():
    stage = Stage()
    stage.open(P0)
    stage.bench.pass_time(60_001)
    stage.settle()
    # The producer recovers, and opens its next transaction.
    assert stage.init(producer_id=PID, epoch=0) == (PID, 1)
    assert stage.add(PID, 1, P1, version=5) is NONE
    assert stage.end(PID, 0, committed=True) is FENCED
    assert stage.state() == "Ongoing"


def test_redpanda_3232_a_delayed_abort_marker_of_an_old_epoch_does_not_end_a_newer_transaction():
    stage = Stage()
    stage.open(P0)
    stage.bench.pass_time(60_001)
    (old,) = stage.markers
    stage.reload()  # the coordinator moves while the markers are on their way
    stage.settle()
    assert stage.init() == (PID, 2)
    assert stage.add(PID, 2, P1, version=5) is NONE
    stage.bench.ask(stage.machine.markers_written, old)
    assert stage.state() == "Ongoing"
    stage.end(PID, 2)
    (new,) = stage.markers
    # What a partition needs to tell them apart: the epoch only rises.
    assert new.producer_epoch > old.producer_epoch
    assert new.coordinator_epoch > old.coordinator_epoch
    stage.bench.ask(stage.machine.markers_written, old)
    assert stage.state() == "PrepareCommit"


class Slow:
    """A journal whose records are committed when the test says so."""

    def __init__(self):
        self.end_offset = self.committed_offset = 0
        self.records = []

    def append(self, records, now, *, any_length=False):
        self.records += records
        self.end_offset += len(records)
        return range(self.end_offset - len(records), self.end_offset)


class Held:
    """A host over a slow journal, and what has left it."""

    def __init__(self):
        self.stage = Stage()
        self.journal = Slow()
        self.left = []
        self.host = Host(self.stage.machine, self.journal, self.left.append)

    def ask(self, decide):
        self.host.submit(decide, self.left.append, self.stage.now)

    def commit(self):
        """Commit all there is, and return what left."""
        self.journal.committed_offset = self.journal.end_offset
        self.host.commit(self.journal.committed_offset)
        left, self.left[:] = list(self.left), []
        return left


INIT = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1_000)
TOPIC = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="a", partitions=[0])
WISH = Wish(transactional_id="tx", producer_id=PID, producer_epoch=0, topics=[TOPIC])
VERIFY = Wish(transactional_id="tx", producer_id=PID, producer_epoch=0, verify_only=True, topics=[TOPIC])
END = EndTxnRequest(transactional_id="tx", producer_id=PID, producer_epoch=0, committed=True)


def test_redpanda_6018_6019_state_is_written_before_it_is_answered():
    held = Held()
    held.ask(lambda machine, now: machine.init_producer_id(INIT, 5, now, PID))
    assert len(held.journal.records) == 1 and held.left == []
    assert held.commit()[0].producer_id == PID

    held.ask(lambda machine, now: machine.add_partitions(WISH, 5, now))
    # A broker that verifies meanwhile learns of the partition only when it is committed.
    held.ask(lambda machine, now: machine.add_partitions(VERIFY, 5, now))
    assert len(held.journal.records) == 2 and held.left == []
    added, verified = held.commit()
    for result in (added, verified):
        assert result.topic_results[0].results_by_partition[0].partition_error_code == 0

    held.ask(lambda machine, now: machine.end(END, 5, now))
    # Neither the answer nor a marker leaves before the decision to commit is durable.
    assert held.left == []
    markers, answer = held.commit()
    assert (answer.error_code, answer.producer_epoch) == (0, 1)
    assert markers.committed


def test_redpanda_6018_6019_what_was_not_committed_is_not_answered_when_leadership_goes():
    held = Held()
    held.ask(lambda machine, now: machine.init_producer_id(INIT, 5, now, PID))
    held.commit()
    held.ask(lambda machine, now: machine.add_partitions(WISH, 5, now))
    held.ask(lambda machine, now: machine.end(END, 5, now))
    held.host.drop(BrokerError(ErrorCode.NOT_COORDINATOR))
    assert [outcome.code for outcome in held.left] == [ErrorCode.NOT_COORDINATOR] * 2


def test_redpanda_9571_a_commit_that_was_applied_but_not_answered_is_a_commit_when_asked_again():
    """The coordinator dies with the answer; the client asks its successor, which has the log and nothing else."""
    for settled_before in (True, False):
        stage = Stage()
        stage.open(P0)
        stage.end(PID, 0, committed=True)
        if settled_before:
            stage.settle()
        stage.reload()
        if not settled_before:
            assert stage.end(PID, 0, committed=True) is ErrorCode.CONCURRENT_TRANSACTIONS
            stage.settle()
        assert stage.end(PID, 0, committed=False) is ErrorCode.INVALID_TXN_STATE
        assert stage.end(PID, 0, committed=True) == (PID, 1)
        assert stage.state() == "CompleteCommit"
