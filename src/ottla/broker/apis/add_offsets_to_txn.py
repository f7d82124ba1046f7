"""AddOffsetsToTxn (25): have a group's offsets take part in a transaction."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


def handle(request: AddOffsetsToTxnRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Ask the coordinator of the transactional id."""
    offsets_partition = broker.coordination.index(request.group_id)

    def finish(outcome: AddOffsetsToTxnResponse | BrokerError) -> AddOffsetsToTxnResponse:
        if isinstance(outcome, BrokerError):
            return AddOffsetsToTxnResponse(error_code=outcome.code)
        return outcome

    return broker.transactions.ask(
        request.transactional_id,
        lambda machine, now, _: machine.add_offsets(request, version, offsets_partition, now),
        finish,
    )


API = Api(AddOffsetsToTxnRequest, AddOffsetsToTxnResponse, handle)
