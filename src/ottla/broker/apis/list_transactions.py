"""ListTransactions (66): the transactional ids this broker coordinates."""

import copy

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.expression import COST, match
from ottla.broker.gathering import Gathering
from ottla.broker.internal_topics import TRANSACTIONS
from ottla.channel.connection import Connection
from ottla.transactions.state import BY_LABEL
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse


def handle(
    request: ListTransactionsRequest, version: int, connection: Connection, broker: Broker
) -> ListTransactionsResponse | Pending:
    """Ask every coordinator. There are many, and each filter is looked at once, before."""
    known, unknown = _states(request.state_filters)
    wish = copy.copy(request)
    wish.state_filters = [*known, *unknown[:1]]  # one nobody knows still keeps others out
    wish.producer_id_filters = frozenset(request.producer_id_filters)  # type: ignore[assignment]
    try:
        pattern = request.transactional_id_pattern
        matches = None
        if pattern:
            connection.connections.turn_cost += COST  # whoever asks for many takes turns
            matches = match(pattern)
    except ValueError:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    topic = broker.image.topics.by_name.get(TRANSACTIONS.name)
    indexes = (
        []
        if topic is None
        else [i for i, state in topic.partitions.items() if state.leader == broker.node_id]
    )
    response = ListTransactionsResponse()

    def finish(found: list[ListTransactionsResponse.TransactionState]) -> ListTransactionsResponse:
        response.transaction_states = [] if response.error_code else found
        return response

    gathering = Gathering(len(indexes), finish)

    def done(outcome: ListTransactionsResponse | BrokerError) -> None:
        if not isinstance(outcome, BrokerError):
            response.unknown_state_filters = unknown
            gathering.add(outcome.transaction_states)
            return
        if outcome.code is not ErrorCode.NOT_COORDINATOR:
            response.error_code = outcome.code
        gathering.add([])

    for index in indexes:
        broker.transactions.machines.submit(
            index, lambda machine, now: machine.list_transactions(wish, now, matches), done, ()
        )
    gathering.check()
    return gathering.pending


def _states(names: list[str]) -> tuple[list[str], list[str]]:
    """Return the names of states that there are, and the others; each once."""
    distinct = dict.fromkeys(names)
    return [name for name in distinct if name in BY_LABEL], [name for name in distinct if name not in BY_LABEL]


API = Api(ListTransactionsRequest, ListTransactionsResponse, handle)
