"""What tools may see of transactions: ListTransactions and DescribeTransactions."""

from collections.abc import Callable

from ottla.transactions.ledger import Ledger
from ottla.transactions.state import BY_LABEL, State
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_transactions import DescribeTransactionsResponse
from ottla.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

Described = DescribeTransactionsResponse.TransactionState
_Listed = ListTransactionsResponse.TransactionState


def list_transactions(
    ledger: Ledger, request: ListTransactionsRequest, now: int, matches: Callable[[str], bool] | None
) -> ListTransactionsResponse:
    """Return the ids that pass every filter of the request; a filter that is empty lets all pass.

    What the request's pattern says of an id is for the caller to know: `matches`.
    """
    states = {BY_LABEL[name] for name in request.state_filters if name in BY_LABEL}
    producer_ids = frozenset(request.producer_id_filters)
    duration_ms = request.duration_filter
    found = [
        _Listed(
            transactional_id=transactional_id,
            producer_id=transaction.producer_id,
            transaction_state=transaction.state.label,
        )
        for transactional_id, transaction in ledger.transactions.items()
        if transaction.state is not State.DEAD
        and (not producer_ids or transaction.producer_id in producer_ids)
        and (not request.state_filters or transaction.state in states)
        and not (0 <= duration_ms and now - transaction.started_ms <= duration_ms)
        and (matches is None or matches(transactional_id))
    ]
    # Each unknown name once, as it is a set of filters.
    unknown = list(dict.fromkeys(name for name in request.state_filters if name not in BY_LABEL))
    return ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=found)


def describe_transaction(ledger: Ledger, transactional_id: str) -> Described:
    """Return where one id stands, or why that is not known."""
    if not transactional_id:
        return Described(transactional_id=transactional_id, error_code=ErrorCode.INVALID_REQUEST)
    transaction = ledger.transactions.get(transactional_id)
    if transaction is None or transaction.state is State.DEAD:
        return Described(transactional_id=transactional_id, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(partition)
    return Described(
        transactional_id=transactional_id,
        transaction_state=transaction.state.label,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.started_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[
            Described.TopicData(topic=topic, partitions=partitions) for topic, partitions in topics.items()
        ],
    )
