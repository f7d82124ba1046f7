"""InitProducerId (22): an id for a producer that wants its records once and in order.

Without a transactional id every producer gets a new id at epoch 0, also one that names the id it had (v3 and up), as in
Kafka. With one, its coordinator decides: the epoch rises, and whoever used the id before is fenced. v6 brought
two-phase commit.
"""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def handle(
    request: InitProducerIdRequest, version: int, connection: Connection, broker: Broker
) -> InitProducerIdResponse | Pending:
    """Hand out an id."""
    if (request.producer_id == -1) != (request.producer_epoch == -1) or request.transactional_id == "":
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _transactional(request, version, broker)
    pending = Pending()

    def done(outcome: int | BrokerError) -> None:
        if isinstance(outcome, BrokerError):
            pending.resolve(_refused(outcome.code))
        else:
            pending.resolve(InitProducerIdResponse(producer_id=outcome))

    broker.producer_ids.take(done)
    return pending


def _transactional(request: InitProducerIdRequest, version: int, broker: Broker) -> Pending:
    def finish(outcome: InitProducerIdResponse | BrokerError) -> InitProducerIdResponse:
        return _refused(outcome.code) if isinstance(outcome, BrokerError) else outcome

    return broker.transactions.ask(
        request.transactional_id or "",
        lambda machine, now, producer_id: machine.init_producer_id(request, version, now, producer_id),
        finish,
    )


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=-1)


API = Api(InitProducerIdRequest, InitProducerIdResponse, handle)
