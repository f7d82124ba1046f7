"""DescribeTransactions (65): state, producer and partitions of transactional ids."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)

Described = DescribeTransactionsResponse.TransactionState


def handle(
    request: DescribeTransactionsRequest, version: int, connection: Connection, broker: Broker
) -> DescribeTransactionsResponse | Pending:
    """Ask the coordinator of each id."""
    ids = list(dict.fromkeys(request.transactional_ids))
    if not ids:
        return DescribeTransactionsResponse()
    pending = Pending()
    found: dict[str, Described] = {}

    def done(transactional_id: str, outcome: Described | BrokerError) -> None:
        if isinstance(outcome, BrokerError):
            outcome = Described(transactional_id=transactional_id, error_code=outcome.code)
        found[transactional_id] = outcome
        if len(found) == len(ids):
            pending.resolve(DescribeTransactionsResponse(transaction_states=[found[each] for each in ids]))

    for each in ids:
        broker.transactions.submit(
            each,
            lambda machine, now, _, each=each: machine.describe_transaction(each),  # type: ignore[misc]
            lambda outcome, each=each: done(each, outcome),  # type: ignore[misc]
        )
    return pending


API = Api(
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    handle,
    long=in_slices(Cut("transactional_ids", "transaction_states", ("",))),
)
