"""InitProducerId with a transactional id: whoever asks last owns the id, and everyone before is fenced.

I1  An answer without error has an epoch that nobody else was given: the next one, or the first of a new producer id.
    The one exception is a producer that asks again after a lost answer, known by the epoch it had (KIP-360).
I2  An open transaction is aborted first. The asker is told to come back, and gets its epoch once the markers are there.
"""

from ottla.replicated.decision import Decision
from ottla.transactions.effects import ProducerIdNeeded
from ottla.transactions.ending import fence
from ottla.transactions.ledger import Ledger, spoken
from ottla.transactions.state import State
from ottla.transactions.transaction import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMEOUT_MS,
    Transaction,
    exhausted,
)
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_FENCED_SINCE = 4


def init_producer_id(
    ledger: Ledger, request: InitProducerIdRequest, version: int, now: int, producer_id: int | None
) -> Decision[InitProducerIdResponse]:
    """InitProducerId; ProducerIdNeeded when `producer_id` is None and a new one is to be handed out."""
    try:
        _check(ledger, request)
        return _decide(ledger, request, now, producer_id)
    except ProducerIdNeeded:
        raise
    except BrokerError as error:
        return Decision(_refused(spoken(error.code, version, _FENCED_SINCE)))


def _check(ledger: Ledger, request: InitProducerIdRequest) -> None:
    """Raise BrokerError for what no state could make right, in Kafka's order."""
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_EPOCH):
        raise BrokerError(ErrorCode.INVALID_REQUEST)
    if not request.transactional_id:
        raise BrokerError(ErrorCode.INVALID_REQUEST)
    if request.enable2_pc and not ledger.values["transaction.two.phase.commit.enable"]:
        raise BrokerError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.keep_prepared_txn:
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION)
    timeout_ms_max = ledger.values["transaction.max.timeout.ms"]
    if not request.enable2_pc and not 0 < request.transaction_timeout_ms <= timeout_ms_max:
        raise BrokerError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)


def _decide(
    ledger: Ledger, request: InitProducerIdRequest, now: int, producer_id: int | None
) -> Decision[InitProducerIdResponse]:
    transactional_id = request.transactional_id
    assert transactional_id is not None, "an empty one was refused"
    transaction = ledger.transactions.get(transactional_id)
    if transaction is None:
        transaction = Transaction(_drawn(producer_id), NO_EPOCH, 0)
    if transaction.state.settling:
        raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if not _is_known(transaction, request):
        raise BrokerError(ErrorCode.PRODUCER_FENCED)
    if transaction.state is State.ONGOING:
        ending = fence(ledger, transactional_id, transaction, now, producer_id)
        refused = _refused(ErrorCode.CONCURRENT_TRANSACTIONS)
        return Decision(refused, ending.records, ending.after, any_length=True)
    if not transaction.state.idle:
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{transaction.state.label} is not to be recorded")
    step, last_epoch = _next(ledger, transactional_id, transaction, request, now, producer_id)
    ledger.last_epochs[transactional_id] = last_epoch
    reply = InitProducerIdResponse(producer_id=step.producer_id, producer_epoch=step.producer_epoch)
    return Decision(reply, (ledger.record(transactional_id, step),))


def _is_known(transaction: Transaction, request: InitProducerIdRequest) -> bool:
    """Whether the id a producer says it has may be its own; its epoch is looked at when it is raised."""
    return (
        request.producer_id == NO_PRODUCER_ID
        # The transactional id had expired: the producer starts over.
        or transaction.producer_epoch == NO_EPOCH
        or request.producer_id == transaction.producer_id
        # The epochs had run out, and the answer with the new id was lost.
        or (request.producer_id == transaction.previous_producer_id and exhausted(request.producer_epoch))
    )


def _next(
    ledger: Ledger,
    transactional_id: str,
    transaction: Transaction,
    request: InitProducerIdRequest,
    now: int,
    producer_id: int | None,
) -> tuple[Transaction, int]:
    """Return the step to the epoch handed out, and the epoch whose holder may ask for it again."""
    timeout_ms = NO_TIMEOUT_MS if request.enable2_pc else request.transaction_timeout_ms
    epoch = transaction.producer_epoch
    anonymous = request.producer_id == NO_PRODUCER_ID
    if exhausted(epoch):
        if not anonymous and request.producer_epoch != epoch:
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "no epochs are left")
        step = transaction.initialised(_drawn(producer_id), 0, timeout_ms, now)
        return step, NO_EPOCH if anonymous else epoch
    if anonymous:
        last_epoch, epoch = NO_EPOCH, epoch + 1
    elif epoch in (NO_EPOCH, request.producer_epoch):
        last_epoch, epoch = epoch, epoch + 1
    elif request.producer_epoch == ledger.last_epochs.get(transactional_id, NO_EPOCH):
        last_epoch = request.producer_epoch
    else:
        raise BrokerError(ErrorCode.PRODUCER_FENCED)
    return transaction.initialised(transaction.producer_id, epoch, timeout_ms, now), last_epoch


def _drawn(producer_id: int | None) -> int:
    if producer_id is None:
        raise ProducerIdNeeded
    return producer_id


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=NO_EPOCH)
