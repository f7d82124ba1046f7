"""The coordinator of the transactional ids of one partition of `__transaction_state`.

T1  What is answered was written before: an answer leaves when its records, and all that it could have seen, are
    committed. So no state is pending here, and only the way from Prepare to Complete is: whoever comes meanwhile is
    told CONCURRENT_TRANSACTIONS.
T2  A transaction ends once. The Prepare record decides it; markers are asked for when that is committed, and again by
    `resume` after every reload; the Complete record is written when all of them are.
T3  Each id has one timer at most: the timeout of what is open, or the expiry of what nobody uses. A timer that went off
    is set again, and only the record it asked for takes it away, so an append that fails is tried anew.
T4  New producer ids come in by argument. A command that lacks one raises ProducerIdNeeded, and `expire` asks with
    DrawProducerId; neither changes anything.
T5  What ends a transaction is written however long its record is: it can be longer than the last one that was taken
    from a client, and the topic's limit may be lower by now.

    init_producer_id --> add_partitions, add_offsets --> end --SendMarkers--> markers_written
                                    +-- expire, abort_overdue --SendMarkers--------------------^
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ottla.replicated.decision import Decision, Millis, together
from ottla.replicated.keyed import KeyedRecord, stored_bytes
from ottla.replicated.steps import STEP_BYTES
from ottla.replicated.timers import Timers
from ottla.transactions import ending, enlisting, initialising, listing
from ottla.transactions.effects import DrawProducerId, ProducerIdNeeded, SendMarkers
from ottla.transactions.ledger import Ledger
from ottla.transactions.records import tombstone_of, transaction_of
from ottla.transactions.state import State
from ottla.transactions.transaction import Transaction
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.wire.records.transaction import TransactionLogKey, TransactionLogValue

# How many timers are served at once, if what they write has no more than STEP_BYTES.
_SERVED_MAX = 100


class Transactions:
    """One partition's transactional ids.

    `values` are the broker's settings under Kafka's names, `coordinator_epoch` is the leader epoch of the partition,
    and `version` tells the level of the feature transaction.version that is in force.
    """

    __slots__ = ("_ledger", "_timers")

    def __init__(
        self, values: Mapping[str, Any], *, coordinator_epoch: int, version: Callable[[], int]
    ) -> None:
        self._ledger = Ledger(values, coordinator_epoch, version)
        self._timers: Timers[str] = Timers()

    @property
    def transactions(self) -> Mapping[str, Transaction]:
        """Where every id stands."""
        return MappingProxyType(self._ledger.transactions)

    @property
    def deadline(self) -> Millis | None:
        """When the first transaction runs out of time, or the first id expires."""
        return self._timers.next_deadline

    def apply(self, offset: int, record: KeyedRecord) -> None:
        """Take one record in."""
        assert isinstance(record.key, TransactionLogKey)
        transactional_id, ledger = record.key.transactional_id, self._ledger
        if record.value is None:
            ledger.transactions.pop(transactional_id, None)
            ledger.last_epochs.pop(transactional_id, None)
            ledger.sending.pop(transactional_id, None)
            self._timers.cancel(transactional_id)
            return
        assert isinstance(record.value, TransactionLogValue)
        transaction = ledger.transactions[transactional_id] = transaction_of(record.value)
        if not transaction.state.settling:
            ledger.sending.pop(transactional_id, None)
        deadline_ms = transaction.deadline_ms(ledger.values["transactional.id.expiration.ms"])
        if deadline_ms is None:
            self._timers.cancel(transactional_id)
        else:
            self._timers.set(transactional_id, deadline_ms)

    def clock_jumped(self, by_ms: Millis) -> None:
        """Go on: transactions run out of time by the wall clock's timestamps, which are in the log, as in Kafka."""

    def expire(self, now: Millis) -> Decision[None]:
        """Abort what is open too long, and forget the ids that nobody used for long."""
        served: list[Decision[None]] = []
        size_bytes = 0
        due = iter(self._timers.due(now))
        for transactional_id in due:
            if len(served) >= _SERVED_MAX or size_bytes >= STEP_BYTES:
                self._timers.set(transactional_id, now)
                continue
            try:
                decision = self._serve(transactional_id, now)
            except Exception:
                for other in due:
                    self._timers.set(other, now)
                if served:
                    self._timers.set(transactional_id, now)  # after what is served it breaks alone
                    break
                raise
            served.append(decision)
            size_bytes += stored_bytes(decision.records)
        return together(served) if served else Decision(None)

    def resume(self) -> Decision[None]:
        """Ask for the markers of every transaction whose end is decided; to be called once, after the log was read."""
        return Decision(
            None,
            after=tuple(
                self._ledger.markers(
                    transactional_id, transaction, committed=transaction.state is State.PREPARE_COMMIT
                )
                for transactional_id, transaction in self._ledger.transactions.items()
                if transaction.state.settling
            ),
        )

    def init_producer_id(
        self, request: InitProducerIdRequest, version: int, now: Millis, producer_id: int | None = None
    ) -> Decision[InitProducerIdResponse]:
        """InitProducerId with a transactional id; raises ProducerIdNeeded."""
        return initialising.init_producer_id(self._ledger, request, version, now, producer_id)

    def add_partitions(self, wish: enlisting.Wish, version: int, now: Millis) -> Decision[enlisting.Result]:
        """AddPartitionsToTxn for one transaction, to add or to verify."""
        return enlisting.add_partitions(self._ledger, wish, version, now)

    def add_offsets(
        self, request: AddOffsetsToTxnRequest, version: int, offsets_partition: int, now: Millis
    ) -> Decision[AddOffsetsToTxnResponse]:
        """AddOffsetsToTxn; `offsets_partition` is the partition of `__consumer_offsets` that the group has."""
        return enlisting.add_offsets(self._ledger, request, version, offsets_partition, now)

    def end(
        self, request: EndTxnRequest, version: int, now: Millis, producer_id: int | None = None
    ) -> Decision[EndTxnResponse]:
        """EndTxn; raises ProducerIdNeeded."""
        return ending.end(self._ledger, request, version, now, producer_id)

    def awaits(self, markers: SendMarkers) -> bool:
        """Whether the end that `markers` were asked for is the one in hand."""
        return self._ledger.sending.get(markers.transactional_id) is markers

    def markers_written(self, markers: SendMarkers, now: Millis) -> Decision[None]:
        """Complete the transaction that `markers` were asked for, once all of them are written."""
        return ending.markers_written(self._ledger, markers, now)

    def abort_overdue(
        self, transactional_id: str, now: Millis, producer_id: int | None = None
    ) -> Decision[None]:
        """Abort a transaction that is open too long; what to do with a producer id drawn for DrawProducerId."""
        transaction = self._ledger.transactions.get(transactional_id)
        if transaction is None or transaction.state is not State.ONGOING:
            return Decision(None)
        deadline_ms = transaction.deadline_ms(0)
        if deadline_ms is None or now < deadline_ms:
            return Decision(None)
        try:
            end = ending.fence(self._ledger, transactional_id, transaction, now, producer_id)
        except ProducerIdNeeded:
            return Decision(None, after=(DrawProducerId(transactional_id),))
        return Decision(None, end.records, end.after, any_length=True)

    def list_transactions(
        self, request: ListTransactionsRequest, now: Millis, matches: Callable[[str], bool] | None = None
    ) -> Decision[ListTransactionsResponse]:
        """ListTransactions, as far as this partition goes; `matches` tests ids against the request's pattern."""
        return Decision(listing.list_transactions(self._ledger, request, now, matches))

    def describe_transaction(self, transactional_id: str) -> Decision[listing.Described]:
        """DescribeTransactions, for one id."""
        return Decision(listing.describe_transaction(self._ledger, transactional_id))

    def _serve(self, transactional_id: str, now: Millis) -> Decision[None]:
        values = self._ledger.values
        if self._ledger.transactions[transactional_id].state is State.ONGOING:
            retry_ms = values["transaction.abort.timed.out.transaction.cleanup.interval.ms"]
            self._timers.set(transactional_id, now + retry_ms)
            return self.abort_overdue(transactional_id, now)
        retry_ms = values["transaction.remove.expired.transaction.cleanup.interval.ms"]
        self._timers.set(transactional_id, now + retry_ms)
        return Decision(None, (tombstone_of(transactional_id),), any_length=True)
