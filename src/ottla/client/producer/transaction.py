"""The states of a transactional producer (KIP-98; KIP-890 is version 2).

    UNINITIALIZED --initialize()--> INITIALIZING --ready()--> READY --begin()--> IN_TRANSACTION
                                         ^                      ^                 |
                                         |                      |       commit()  |  abort()
                                         |                      |                 v
                                         +---- ended(bump) -----+-- ended() -- COMMITTING, ABORTING
                                                                                  ^
    IN_TRANSACTION, COMMITTING,                                                   |
    INITIALIZING --must_abort()--> ABORTABLE_ERROR -----abort()-------------------+
    any state --fail_permanently()--> FATAL_ERROR

X1  In version 1 the producer adds a partition at the coordinator before it sends records to it. In version 2 the
    partition's broker does that, and the epoch rises with every transaction.
X2  ABORTABLE_ERROR ends with an abort. FATAL_ERROR never ends.
X3  `started` says whether the coordinator knows of the transaction. If not, there is nothing to end.
"""

import enum

from ottla.client.errors import Aborted, ClientError, Fenced, MustAbort, Refused, WrongState, refused
from ottla.client.producer.partition_queue import PartitionQueue
from ottla.wire.errors import ErrorCode


class TransactionState(enum.Enum):
    """The state of a transactional producer. The value completes a sentence in error messages."""

    UNINITIALIZED = "has not called init_transactions"
    INITIALIZING = "is in init_transactions"
    READY = "is in no transaction"
    IN_TRANSACTION = "is in a transaction"
    COMMITTING = "is committing"
    ABORTING = "is aborting"
    ABORTABLE_ERROR = "has to abort its transaction"
    FATAL_ERROR = "cannot go on"


# After these produce errors the producer can only be closed.
FATAL = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)


class ProducerTransaction:
    """The state of a transactional producer, and the partitions of its transaction."""

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.state = TransactionState.UNINITIALIZED
        self.error: ClientError | None = None
        self.is_v2 = False
        self.started = False
        # Whether the coordinator can bump the epoch on request, and whether that is needed.
        self.can_bump_epoch = False
        self.epoch_bump_required = False
        self.to_add: dict[PartitionQueue, None] = {}
        self.added_partitions: set[PartitionQueue] = set()

    # Calls of the application

    def check(self, call: str, *allowed: TransactionState) -> None:
        """Raise unless the producer is in one of these states."""
        if self.state in allowed:
            return
        self.check_error()
        raise WrongState(f"{call}: the producer {self.state.value}", hint=_HINTS.get(self.state, ""))

    def check_error(self) -> None:
        """Raise the error of the transaction, if there is one."""
        if self.state is TransactionState.FATAL_ERROR:
            assert self.error is not None
            raise repeated_error(self.error)
        if self.state is TransactionState.ABORTABLE_ERROR:
            message = f"the transaction of {self.transactional_id} cannot be committed: {self.error}"
            raise MustAbort(message, hint="call abort_transaction, and begin anew") from self.error

    def begin(self) -> None:
        """Open a transaction."""
        self.check("begin_transaction", TransactionState.READY)
        self.state = TransactionState.IN_TRANSACTION

    def commit(self) -> None:
        """Begin to commit."""
        self.check("commit_transaction", TransactionState.IN_TRANSACTION)
        self.state = TransactionState.COMMITTING

    def abort(self) -> None:
        """Begin to abort."""
        self.check("abort_transaction", TransactionState.IN_TRANSACTION, TransactionState.ABORTABLE_ERROR)
        self.state = TransactionState.ABORTING
        self.error = None
        self.to_add.clear()

    def add_partition(self, queue: PartitionQueue) -> None:
        """Add a partition to the transaction."""
        if self.is_v2:
            self.added_partitions.add(queue)
            self.started = True
        elif queue not in self.added_partitions:
            self.to_add[queue] = None

    # Outcomes

    @property
    def is_completing(self) -> bool:
        """Whether the transaction is being committed or aborted."""
        return self.state is TransactionState.COMMITTING or self.state is TransactionState.ABORTING

    @property
    def is_ongoing(self) -> bool:
        """Whether there is a transaction that has not ended."""
        return (
            self.is_completing
            or self.state is TransactionState.IN_TRANSACTION
            or self.state is TransactionState.ABORTABLE_ERROR
        )

    def may_send(self, queue: PartitionQueue) -> bool:
        """Whether records of a partition may be sent."""
        return queue in self.added_partitions

    def ended(self) -> None:
        """Handle the end of the transaction."""
        self.state = TransactionState.INITIALIZING if self.epoch_bump_required else TransactionState.READY
        self.error = None
        self.started = False
        self.epoch_bump_required = False
        self.to_add.clear()
        self.added_partitions.clear()

    def must_abort(self, error: ClientError) -> None:
        """Handle an error after which the transaction can only be aborted."""
        if self.state is TransactionState.ABORTING or self.state is TransactionState.FATAL_ERROR:
            return
        if self.state in (
            TransactionState.IN_TRANSACTION,
            TransactionState.COMMITTING,
            TransactionState.ABORTABLE_ERROR,
            TransactionState.INITIALIZING,
        ):
            self.state = TransactionState.ABORTABLE_ERROR
            self.error = error

    def must_abort_if_possible(self, error: ClientError) -> None:
        """The same after lost sequence numbers, which need a new epoch. Without one the error is fatal."""
        if not self.can_bump_epoch and not self.is_v2:
            self.fail_permanently(error)
            return
        if not self.is_v2:
            self.epoch_bump_required = True
        self.must_abort(error)

    def fail_permanently(self, error: ClientError) -> None:
        """Handle an error after which the producer can only be closed."""
        if self.state is not TransactionState.FATAL_ERROR:
            self.state = TransactionState.FATAL_ERROR
            self.error = error

    def batch_failed(self, error: ClientError, code: ErrorCode | None) -> None:
        """Handle records of the transaction that were not written."""
        if isinstance(error, Aborted):
            return
        if code in FATAL:
            self.fail_permanently(error)
            return
        if self.can_bump_epoch and not self.is_v2 and not self.is_completing:
            self.epoch_bump_required = True
        self.must_abort(error)


def repeated_error(error: ClientError) -> ClientError:
    """Return a copy of an error, to be raised again."""
    if isinstance(error, Fenced | Refused):
        new: ClientError = refused(error.code, about="the producer cannot go on")
    else:
        new = ClientError(f"the producer cannot go on: {error}")
    new.__cause__ = error
    return new


_HINTS = {
    TransactionState.UNINITIALIZED: "call init_transactions once, before anything else",
    TransactionState.INITIALIZING: "call init_transactions again, and wait for it",
    TransactionState.READY: "call begin_transaction first",
    TransactionState.IN_TRANSACTION: "commit or abort the transaction first",
    TransactionState.COMMITTING: "call commit_transaction again, and wait for it",
    TransactionState.ABORTING: "call abort_transaction again, and wait for it",
}
