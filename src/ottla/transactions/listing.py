"""What tools may see of transactions: ListTransactions and DescribeTransactions."""

import re

from ottla.transactions.ledger import Ledger
from ottla.transactions.state import BY_LABEL, State
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.describe_transactions import DescribeTransactionsResponse
from ottla.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

Described = DescribeTransactionsResponse.TransactionState
_Listed = ListTransactionsResponse.TransactionState


def list_transactions(ledger: Ledger, request: ListTransactionsRequest, now: int) -> ListTransactionsResponse:
    """Return the ids that pass every filter of the request; a filter that is empty lets all pass."""
    states = {BY_LABEL[name] for name in request.state_filters if name in BY_LABEL}
    producer_ids = set(request.producer_id_filters)
    duration_ms = request.duration_filter
    matches = _pattern(request.transactional_id_pattern)
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
        and (matches is None or matches.fullmatch(transactional_id))
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


def _pattern(text: str | None) -> re.Pattern[str] | None:
    if not text:
        return None
    try:
        return re.compile(text)
    except re.error as error:
        raise BrokerError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"Transaction ID pattern `{text}` is not a valid regular expression: {error}.",
        ) from None
