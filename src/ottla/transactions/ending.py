"""How a transaction ends: EndTxn, the fence that a new producer or the clock puts up, and the markers' return.

E1  Under transactions v2 (EndTxn v5) every end raises the epoch. So an EndTxn that comes late carries an old epoch and
    cannot touch the transaction after it (KAFKA-17754); the one retry that must succeed, that of the last end, is told
    apart by its epoch being one behind, or by the producer id of before when the epochs had run out.
E2  A transaction without partitions has no markers to wait for: it is prepared and completed in one step.
E3  Markers that come back for any but the end in hand change nothing.

Under v2, in an idle state (EB: an abort of nothing, which raises the epoch; retry: the epoch is one behind):

                        abort                   commit
                     retry   current         retry   current
    Empty            fenced  EB              fenced  INVALID_TXN_STATE
    CompleteAbort    ok      EB              INVALID_TXN_STATE
    CompleteCommit   *       EB              ok      INVALID_TXN_STATE       * INVALID_TXN_STATE
"""

from typing import NamedTuple

from ottla.replicated.decision import Decision, Effect
from ottla.replicated.keyed import KeyedRecord
from ottla.transactions.effects import ProducerIdNeeded, SendMarkers
from ottla.transactions.ledger import Ledger, spoken
from ottla.transactions.state import State
from ottla.transactions.transaction import (
    EPOCH_MAX,
    EPOCH_RISES,
    NO_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
    exhausted,
)
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

_RISES_SINCE = 5
_FENCED_SINCE = 2


class Ending(NamedTuple):
    """What ends a transaction: records, markers, and the state that they lead to."""

    records: tuple[KeyedRecord, ...]
    after: tuple[Effect, ...]
    completed: Transaction


def end(
    ledger: Ledger, request: EndTxnRequest, version: int, now: int, producer_id: int | None
) -> Decision[EndTxnResponse]:
    """EndTxn."""
    rises = version >= _RISES_SINCE
    try:
        transaction = _find(ledger, request)
        if rises and ledger.record_version == 0:
            # Records of version 0 cannot say that the epoch was raised.
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION)
        ended = _is_retry(transaction, request) if rises else _is_repeated(transaction, request)
    except BrokerError as error:
        return Decision(EndTxnResponse(error_code=spoken(error.code, version, _FENCED_SINCE)))
    if ended:
        return Decision(_granted(transaction) if rises else EndTxnResponse())
    ending = close(
        ledger,
        request.transactional_id,
        transaction,
        committed=request.committed,
        client_version=EPOCH_RISES if rises else 0,
        now=now,
        producer_id=producer_id,
    )
    reply = _granted(ending.completed) if rises else EndTxnResponse()
    return Decision(reply, ending.records, ending.after, any_length=True)


def fence(
    ledger: Ledger, transactional_id: str, transaction: Transaction, now: int, producer_id: int | None
) -> Ending:
    """Abort an open transaction under an epoch that its producer does not have."""
    return close(
        ledger,
        transactional_id,
        transaction,
        committed=False,
        # Nobody's request: the version in force decides.
        client_version=EPOCH_RISES if ledger.version >= EPOCH_RISES else 0,
        fencing=True,
        now=now,
        producer_id=producer_id,
    )


def close(
    ledger: Ledger,
    transactional_id: str,
    transaction: Transaction,
    *,
    committed: bool,
    client_version: int,
    fencing: bool = False,
    now: int,
    producer_id: int | None,
) -> Ending:
    """Decide the end of a transaction; ProducerIdNeeded when its producer has no epochs left and none is given."""
    rises = client_version >= EPOCH_RISES
    next_producer_id = NO_PRODUCER_ID
    if rises and exhausted(transaction.producer_epoch):
        if producer_id is None:
            raise ProducerIdNeeded
        next_producer_id = producer_id
    epoch = transaction.producer_epoch
    if rises or fencing:
        ledger.last_epochs[transactional_id] = epoch if rises else NO_EPOCH
        epoch = min(epoch + 1, EPOCH_MAX)
    prepared = transaction.prepared(
        committed=committed,
        epoch=epoch,
        next_producer_id=next_producer_id,
        client_version=client_version,
        now=now,
    )
    record = ledger.record(transactional_id, prepared)
    completed = prepared.completed(now)
    if prepared.partitions:
        return Ending(
            (record,), (ledger.markers(transactional_id, prepared, committed=committed),), completed
        )
    return Ending((record, ledger.record(transactional_id, completed)), (), completed)


def markers_written(ledger: Ledger, markers: SendMarkers, now: int) -> Decision[None]:
    """Complete the transaction whose markers are all written."""
    transactional_id = markers.transactional_id
    transaction = ledger.transactions.get(transactional_id)
    if (
        transaction is None
        or not transaction.state.settling
        or ledger.sending.get(transactional_id) is not markers
    ):
        return Decision(None)
    completed = transaction.completed(now)
    return Decision(None, (ledger.record(transactional_id, completed),), any_length=True)


def _find(ledger: Ledger, request: EndTxnRequest) -> Transaction:
    if not request.transactional_id:
        raise BrokerError(ErrorCode.INVALID_REQUEST)
    transaction = ledger.transactions.get(request.transactional_id)
    if transaction is None:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    return transaction


def _is_repeated(transaction: Transaction, request: EndTxnRequest) -> bool:
    """Whether this end has happened already; BrokerError when it may not happen. For clients before v2."""
    if transaction.producer_id != request.producer_id:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != request.producer_epoch:
        raise BrokerError(ErrorCode.PRODUCER_FENCED)
    if transaction.state.settling:
        raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if transaction.state is State.ONGOING:
        return False
    if transaction.state is not _outcome(request):
        raise BrokerError(ErrorCode.INVALID_TXN_STATE)
    return True


def _is_retry(transaction: Transaction, request: EndTxnRequest) -> bool:
    """Whether this end has happened already; BrokerError when it may not happen. For transactions v2."""
    # First of all: the producer may be using the id and epoch that only come with the end of what is under way.
    if transaction.state.settling:
        raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS)
    overflowed = (
        transaction.previous_producer_id == request.producer_id
        and request.producer_epoch == EPOCH_MAX - 1
        and transaction.producer_epoch == 0
    )
    if transaction.producer_id != request.producer_id and not overflowed:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    retried = overflowed or transaction.producer_epoch == request.producer_epoch + 1
    completed = transaction.state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
    if transaction.producer_epoch != request.producer_epoch and not (completed and retried):
        raise BrokerError(ErrorCode.PRODUCER_FENCED)
    if transaction.state is State.ONGOING:
        return False
    if retried and transaction.state is _outcome(request):
        return True
    if retried or request.committed or not transaction.state.idle:
        raise BrokerError(ErrorCode.INVALID_TXN_STATE)
    return False


def _outcome(request: EndTxnRequest) -> State:
    return State.COMPLETE_COMMIT if request.committed else State.COMPLETE_ABORT


def _granted(transaction: Transaction) -> EndTxnResponse:
    return EndTxnResponse(producer_id=transaction.producer_id, producer_epoch=transaction.producer_epoch)
