"""What the commands of one partition of `__transaction_state` share.

D1  `transactions` is a fold of the log, and changes where records are applied.
D2  `last_epochs` is not in the log, as in Kafka: after which epoch a producer got the one it has. So it may ask again
    when the answer was lost. Whoever raises an epoch sets it anew. If the record then does not reach the log, it
    names the epoch still in force, and grants nothing. After a reload it is unknown, and such a retry is fenced.
D3  `sending` is not in the log either: the markers asked for last. Those of an earlier end cannot be taken for them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ottla.replicated.keyed import KeyedRecord
from ottla.transactions.effects import SendMarkers
from ottla.transactions.records import record_of
from ottla.transactions.transaction import Transaction
from ottla.wire.errors import ErrorCode


class Ledger:
    """The transactions of one partition, and the rules they are under."""

    __slots__ = ("_version", "coordinator_epoch", "last_epochs", "sending", "transactions", "values")

    def __init__(self, values: Mapping[str, Any], coordinator_epoch: int, version: Callable[[], int]) -> None:
        self.values = values
        self.coordinator_epoch = coordinator_epoch
        self._version = version
        self.transactions: dict[str, Transaction] = {}
        self.last_epochs: dict[str, int] = {}
        self.sending: dict[str, SendMarkers] = {}

    @property
    def version(self) -> int:
        """The transaction version in force in the cluster."""
        return self._version()

    @property
    def record_version(self) -> int:
        """The version that values are written at."""
        return 1 if self._version() >= 1 else 0

    def record(self, transactional_id: str, transaction: Transaction) -> KeyedRecord:
        """Return the record that says where an id stands."""
        return record_of(transactional_id, transaction, self.record_version)

    def markers(self, transactional_id: str, prepared: Transaction, *, committed: bool) -> SendMarkers:
        """Return the markers that a prepared end asks for, and wait for these and no others."""
        markers = self.sending[transactional_id] = SendMarkers(
            transactional_id,
            prepared.producer_id,
            prepared.producer_epoch,
            self.coordinator_epoch,
            committed,
            tuple(sorted(prepared.partitions)),
            prepared.client_version,
        )
        return markers


def spoken(code: ErrorCode, version: int, fenced_since: int) -> ErrorCode:
    """Return an error as a request's version knows it: PRODUCER_FENCED came late, INVALID_PRODUCER_EPOCH was before."""
    if code is ErrorCode.PRODUCER_FENCED and version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
