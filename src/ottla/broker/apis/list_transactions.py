"""ListTransactions (66): the transactional ids this broker coordinates."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.internal_topics import TRANSACTIONS
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse


def handle(
    request: ListTransactionsRequest, version: int, connection: Connection, broker: Broker
) -> ListTransactionsResponse | Pending:
    """Ask every coordinator."""
    topic = broker.image.topics.by_name.get(TRANSACTIONS.name)
    indexes = (
        []
        if topic is None
        else [i for i, state in topic.partitions.items() if state.leader == broker.node_id]
    )
    if not indexes:
        return ListTransactionsResponse()
    pending = Pending()
    response = ListTransactionsResponse()
    left = len(indexes)

    def done(outcome: ListTransactionsResponse | BrokerError) -> None:
        nonlocal left
        if not isinstance(outcome, BrokerError):
            response.transaction_states += outcome.transaction_states
            response.unknown_state_filters = outcome.unknown_state_filters
        elif outcome.code is not ErrorCode.NOT_COORDINATOR:
            response.error_code = outcome.code
        left -= 1
        if left == 0:
            if response.error_code:
                response.transaction_states = []
            pending.resolve(response)

    for index in indexes:
        broker.transactions.machines.submit(
            index, lambda machine, now: machine.list_transactions(request, now), done
        )
    return pending


API = Api(ListTransactionsRequest, ListTransactionsResponse, handle)
