"""A stage for the coordinator of transactions: a machine in memory, and a broker around it that does as it is asked."""

from ottla.metadata.settings.layers import BrokerValues
from ottla.replicated.decision import Decision
from ottla.replicated.keyed import decode
from ottla.transactions.effects import DrawProducerId, ProducerIdNeeded, SendMarkers
from ottla.transactions.enlisting import Wish
from ottla.transactions.machine import Transactions
from ottla.transactions.records import KINDS, record_of
from ottla.transactions.state import State
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_transactions import ListTransactionsRequest
from tests.unit.replicated.journal import Bench

ID = "tx"
FIRST_PRODUCER_ID = 1000
P0, P1, P2 = ("a", 0), ("a", 1), ("b", 0)
NONE = ErrorCode.NONE


class Stage:
    """One partition's coordinator. Producer ids are drawn when it asks; markers wait in `markers` until `settle`."""

    def __init__(self, version=2, coordinator_epoch=7, **settings):
        self.version = version
        self.values = BrokerValues(
            {"node.id": "1", **{name.replace("_", "."): str(value) for name, value in settings.items()}}
        )
        self.bench = Bench(self.machine_at(coordinator_epoch))
        self.next_producer_id = FIRST_PRODUCER_ID

    def machine_at(self, coordinator_epoch):
        return Transactions(self.values, coordinator_epoch=coordinator_epoch, version=lambda: self.version)

    @property
    def machine(self):
        return self.bench.machine

    @property
    def now(self):
        return self.bench.now

    @property
    def records(self):
        return self.bench.records

    @property
    def markers(self):
        return [effect for effect in self.bench.effects if isinstance(effect, SendMarkers)]

    def draw(self):
        self.next_producer_id += 1
        return self.next_producer_id - 1

    def ask(self, command, *arguments, **how):
        """Give a command, and give it again with a new producer id when it needs one."""
        try:
            return self.bench.ask(command, *arguments, **how)
        except ProducerIdNeeded:
            return self.bench.ask(command, *arguments, producer_id=self.draw(), **how)

    def init(
        self, id=ID, producer_id=-1, epoch=-1, *, timeout_ms=60_000, version=5, two_phase=False, keep=False
    ):
        """InitProducerId: the producer id and epoch, or the code it is refused with."""
        request = InitProducerIdRequest(
            transactional_id=id,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            enable2_pc=two_phase,
            keep_prepared_txn=keep,
        )
        reply = self.ask(self.machine.init_producer_id, request, version)
        if reply.error_code:
            assert (reply.producer_id, reply.producer_epoch) == (-1, -1)
            return ErrorCode(reply.error_code)
        return reply.producer_id, reply.producer_epoch

    def add(self, producer_id, epoch, *partitions, id=ID, version=3, verify=False):
        """AddPartitionsToTxn: the code, which must be the same for all partitions, or a table of them to verify."""
        topics = {}
        for topic, partition in partitions:
            topics.setdefault(topic, []).append(partition)
        wish = Wish(
            transactional_id=id,
            producer_id=producer_id,
            producer_epoch=epoch,
            verify_only=verify,
            topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=numbers)
                for name, numbers in topics.items()
            ],
        )
        result = self.ask(self.machine.add_partitions, wish, version)
        assert result.transactional_id == id
        codes = {
            (topic.name, each.partition_index): ErrorCode(each.partition_error_code)
            for topic in result.topic_results
            for each in topic.results_by_partition
        }
        assert codes.keys() == set(partitions)
        if verify:
            return codes
        (code,) = set(codes.values()) or {NONE}
        return code

    def offsets(self, producer_id, epoch, *, partition=3, id=ID, version=3):
        """AddOffsetsToTxn: the code."""
        request = AddOffsetsToTxnRequest(
            transactional_id=id, producer_id=producer_id, producer_epoch=epoch, group_id="g"
        )
        return ErrorCode(self.ask(self.machine.add_offsets, request, version, partition).error_code)

    def end(self, producer_id, epoch, *, committed=True, id=ID, version=5):
        """EndTxn: the producer id and epoch to go on with (v5), NONE (before), or the code it is refused with."""
        request = EndTxnRequest(
            transactional_id=id, producer_id=producer_id, producer_epoch=epoch, committed=committed
        )
        reply = self.ask(self.machine.end, request, version)
        if reply.error_code or version < 5:
            assert (reply.producer_id, reply.producer_epoch) == (-1, -1)
            return ErrorCode(reply.error_code)
        return reply.producer_id, reply.producer_epoch

    def settle(self):
        """Write the markers that were asked for, and draw the producer ids."""
        while self.bench.effects:
            effect = self.bench.effects.pop(0)
            if isinstance(effect, SendMarkers):
                self.bench.ask(self.machine.markers_written, effect)
            elif isinstance(effect, DrawProducerId):
                self.bench.ask(self.machine.abort_overdue, effect.transactional_id, producer_id=self.draw())

    def reload(self, coordinator_epoch=8):
        """Let another machine take over, from the bytes of the log."""
        fresh = self.replayed(coordinator_epoch)
        self.bench.machine = fresh
        self.bench.effects.clear()
        self.bench.ask(fresh.resume)

    def replayed(self, coordinator_epoch=8):
        fresh = self.machine_at(coordinator_epoch)
        for offset, record in enumerate(self.records):
            fresh.apply(offset, decode(KINDS, *record.encode()))
        return fresh

    def state(self, id=ID):
        """What DescribeTransactions calls the state."""
        return self.bench.ask(self.machine.describe_transaction, id).transaction_state

    def open(self, *partitions, id=ID, version=5):
        """Begin, and add partitions as the clients of transactions v2 (or before) do: the producer id and epoch."""
        producer_id, epoch = self.init(id)
        assert self.add(producer_id, epoch, *partitions, id=id, version=version) is NONE
        return producer_id, epoch

    def exhaust(self, id=ID, state=State.EMPTY, epoch=32766):
        """Go on from a log in which the producer has the last epoch that a client may have: its id, and that epoch."""
        producer_id, _ = self.init(id)
        worn = self.machine.transactions[id]._replace(producer_epoch=epoch, state=state)
        self.bench.ask(lambda: Decision(None, (record_of(id, worn, 1),)))
        return producer_id, epoch

    def listed(self, **filters):
        reply = self.bench.ask(self.machine.list_transactions, ListTransactionsRequest(**filters))
        return {each.transactional_id: each.transaction_state for each in reply.transaction_states}
