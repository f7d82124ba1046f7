"""EndTxn (26): commit or abort; from v5 on the answer carries the epoch of the next transaction."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.end_txn import EndTxnRequest, EndTxnResponse


def handle(request: EndTxnRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Ask the coordinator of the transactional id."""

    def finish(outcome: EndTxnResponse | BrokerError) -> EndTxnResponse:
        return EndTxnResponse(error_code=outcome.code) if isinstance(outcome, BrokerError) else outcome

    return broker.transactions.ask(
        request.transactional_id,
        lambda machine, now, producer_id: machine.end(request, version, now, producer_id),
        finish,
    )


API = Api(EndTxnRequest, EndTxnResponse, handle)
