"""The coordinators of transactions on this broker: from a request to the machine, and from its wishes to markers.

N1  A command that lacks a producer id is given again with a fresh one; nobody notices but for the time it takes.
N2  Markers that could not be written are written again, later each time, until they are or their partition is gone; and
    so is the record that says that they are. A coordinator of another epoch sends its own, so those of before end.
N3  A batch of a transaction is appended to a partition only after the coordinator has that partition in the
    transaction (KIP-890): it is looked up for old clients, and added on the way for those that count on it.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from ottla.broker.api import Pending
from ottla.broker.broker import Broker
from ottla.broker.coordinator_seat import Around, Kept
from ottla.broker.coordinators import Coordinators, partition_of
from ottla.broker.internal_topics import TRANSACTIONS, partitions
from ottla.broker.markers import Listener, Marker, Markers
from ottla.replicated.decision import Decision, Effect
from ottla.replicated.host import nobody
from ottla.replicated.keyed import KeyedRecord
from ottla.replicated.steps import Steps
from ottla.transactions.effects import DrawProducerId, ProducerIdNeeded, SendMarkers
from ottla.transactions.enlisting import Result, Wish
from ottla.transactions.machine import Transactions
from ottla.transactions.records import KINDS, transaction_of
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from ottla.wire.records.transaction import TransactionLogKey, TransactionLogValue

R = TypeVar("R")
Place = tuple[str, int]
# Gives a command to the machine, with a fresh producer id when it has asked for one.
Command = Callable[[Transactions, int, int | None], Decision[R]]

_FEATURE = "transaction.version"
_RETRY_S = 0.1
_RETRY_S_MAX = 5.0
_ADD_VERSION = 5  # of AddPartitionsToTxn, as brokers speak it among themselves


class HostedTransactions(Transactions):
    """The machine, as a host of coordinators runs it. Its own log knows no transactions."""

    __slots__ = ()

    def lead(self, now: int) -> Decision[None]:
        """Take up again what was under way."""
        return self.resume()

    def tidy(self) -> Steps:
        """Forget nothing: markers pass over partitions that are gone."""
        return iter(())

    def apply_pending(self, producer_id: int, offset: int, record: KeyedRecord) -> None:
        """Take in a record as any other."""
        self.apply(offset, record)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """Nothing ends here."""


class TransactionCoordination:
    """Transactions, for the partitions of `__transaction_state` that this broker leads."""

    def __init__(
        self,
        broker: Broker,
        listeners: dict[str, Listener],
        report: Callable[[str], object] = nobody,
    ) -> None:
        self._broker = broker
        self._report = report
        # Markers that could not be written, and wait to be tried again.
        self.unsent = 0
        # Transactions whose markers are all written, of which that could not be recorded yet.
        self.unrecorded = 0
        self.markers = Markers(
            broker.table,
            broker.clock.now_ms,
            listeners,
            broker.other_leader,
            lambda topic, index: broker.image.partition(topic, index) is not None,
            report,
            broker.call_soon,
        )
        kept = Kept(
            TRANSACTIONS.name, KINDS, self._make, _name_of, self._write_timeout_ms, check=_check
        )
        around = Around(broker.table, broker.clock, broker, self._perform, report)
        self.machines: Coordinators[HostedTransactions] = Coordinators(kept, around)

    def _make(self, index: int) -> HostedTransactions:
        broker = self._broker
        return HostedTransactions(
            broker.settings,
            coordinator_epoch=broker.table.by_name(TRANSACTIONS.name, index).leader_epoch,
            version=lambda: self.version,
        )

    def _write_timeout_ms(self) -> int:
        """Kafka waits as long as the transaction may take, which is longer than any client or broker waits for it.

        We answer before those give up, and with it the connection on which all else is asked.
        """
        return int(self._broker.settings["request.timeout.ms"]) * 2 // 3

    @property
    def version(self) -> int:
        """The level of transaction.version that is in force."""
        return self._broker.image.features.all().get(_FEATURE, 0)

    def index(self, transactional_id: str) -> int:
        """Return the partition of `__transaction_state` that a transactional id belongs to."""
        return partition_of(transactional_id, partitions(self._broker, TRANSACTIONS))

    # Commands

    def ask(
        self,
        transactional_id: str,
        command: Command[R],
        finish: Callable[[R | BrokerError], Message],
    ) -> Pending:
        """Ask the coordinator of a transactional id; `finish` turns its answer, or its refusal, into the response."""
        pending = Pending()
        self.submit(transactional_id, command, lambda outcome: pending.resolve(finish(outcome)))
        return pending

    def submit(
        self,
        transactional_id: str,
        command: Command[R],
        done: Callable[[R | BrokerError], None],
        producer_id: int | None = None,
    ) -> None:
        """Give a command to the coordinator of a transactional id."""

        def decided(outcome: R | BrokerError) -> None:
            if isinstance(outcome, ProducerIdNeeded) and producer_id is None:
                self._broker.producer_ids.take(drawn)
            else:
                done(outcome)

        def drawn(outcome: int | BrokerError) -> None:
            if isinstance(outcome, BrokerError):
                done(outcome)
            else:
                self.submit(transactional_id, command, done, outcome)

        self.machines.submit(
            self.index(transactional_id),
            lambda machine, now: command(machine, now, producer_id),
            decided,
            (transactional_id,),
        )

    def enlist(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        places: Sequence[Place],
        *,
        add: bool,
        done: Callable[[dict[Place, ErrorCode]], None],
    ) -> None:
        """Have partitions in a transaction, or see whether they are; `done` hears a code for each."""
        topics: dict[str, list[int]] = {}
        for topic, index in places:
            topics.setdefault(topic, []).append(index)
        wish = Wish(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            verify_only=not add,
            topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=indexes)
                for name, indexes in topics.items()
            ],
        )

        def decided(outcome: Result | BrokerError) -> None:
            if isinstance(outcome, BrokerError):
                done(dict.fromkeys(places, outcome.code))
                return
            said = {
                (topic.name, part.partition_index): ErrorCode(part.partition_error_code)
                for topic in outcome.topic_results
                for part in topic.results_by_partition
            }
            # What nothing was said of is not in the transaction.
            done({place: said.get(place, ErrorCode.UNKNOWN_SERVER_ERROR) for place in places})

        def answered(answer: AddPartitionsToTxnResponse | Exception) -> None:
            if isinstance(answer, Exception):
                decided(BrokerError(ErrorCode.NETWORK_EXCEPTION, str(answer)))
            elif answer.error_code or not answer.results_by_transaction:
                decided(BrokerError(ErrorCode(answer.error_code or ErrorCode.UNKNOWN_SERVER_ERROR)))
            else:
                decided(answer.results_by_transaction[0])

        elsewhere = self._broker.other_leader(TRANSACTIONS.name, self.index(transactional_id))
        if elsewhere is not None:
            elsewhere.ask(
                AddPartitionsToTxnRequest(transactions=[wish]), AddPartitionsToTxnResponse, answered
            )
            return
        self.submit(
            transactional_id, lambda machine, now, _: machine.add_partitions(wish, _ADD_VERSION, now), decided
        )

    # What the machines want

    def _perform(self, effect: Effect) -> None:
        if isinstance(effect, SendMarkers):
            self._send(effect, effect.partitions, _RETRY_S)
        elif isinstance(effect, DrawProducerId):
            transactional_id = effect.transactional_id
            self._broker.producer_ids.take(lambda drawn: self._abort(transactional_id, drawn))

    def _abort(self, transactional_id: str, drawn: int | BrokerError) -> None:
        if not isinstance(drawn, BrokerError):
            self.machines.submit(
                self.index(transactional_id),
                lambda machine, now: machine.abort_overdue(transactional_id, now, drawn),
                nobody,
                (transactional_id,),
            )

    def _send(self, markers: SendMarkers, places: Sequence[Place], retry_s: float) -> None:
        marker = Marker(
            markers.producer_id,
            markers.producer_epoch,
            markers.coordinator_epoch,
            markers.committed,
            markers.transaction_version,
        )

        def finished(unwritten: tuple[Place, ...]) -> None:
            if not unwritten:
                self._complete(markers, _RETRY_S)
                return

            def again() -> None:
                self.unsent -= len(unwritten)
                if self._is_current(markers):
                    self._send(markers, unwritten, min(2 * retry_s, _RETRY_S_MAX))

            self.unsent += len(unwritten)
            self._broker.call_later(retry_s, again)

        self.markers.write_all(places, marker, finished)

    def _is_current(self, markers: SendMarkers) -> bool:
        """Whether the machine that asked for markers is still the one in force."""
        machine = self.machines.machine(self.index(markers.transactional_id))
        return machine is not None and machine.awaits(markers)

    def _complete(self, markers: SendMarkers, retry_s: float) -> None:
        """Have it written down that all markers are there; whatever keeps it from being written, try again."""

        def done(outcome: BrokerError | None) -> None:
            if isinstance(outcome, BrokerError) and self._is_current(markers):
                self.unrecorded += 1
                self._broker.call_later(retry_s, again)

        def again() -> None:
            self.unrecorded -= 1
            self._complete(markers, min(2 * retry_s, _RETRY_S_MAX))

        try:
            self.machines.submit(
                self.index(markers.transactional_id),
                lambda machine, now: machine.markers_written(markers, now),
                done,
                (markers.transactional_id,),
            )
        except Exception as error:  # noqa: BLE001  # or the transaction would stay open
            self._report(
                f"the end of the transaction of {markers.transactional_id} could not be recorded, "
                f"which is tried again: {error!r}"
            )
            done(BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR))


def _name_of(record: KeyedRecord) -> str:
    key = record.key
    assert isinstance(key, TransactionLogKey)
    return key.transactional_id


def _check(record: KeyedRecord) -> None:
    """Raise ProtocolError for a value that no machine could take in."""
    if record.value is not None:
        assert isinstance(record.value, TransactionLogValue)
        transaction_of(record.value)
