"""InitProducerId (22): an id for a producer that wants its records once and in order.

Without a transactional id every producer gets a new id at epoch 0, also one that names the id it had (v3 and up), as in
Kafka. With one, its coordinator would decide; there is none yet, so the request is checked and then answered with
COORDINATOR_NOT_AVAILABLE, which clients take as "ask again". v6 brought two-phase commit.
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
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _refused(_transactional(request, broker))
    pending = Pending()

    def done(outcome: int | BrokerError) -> None:
        if isinstance(outcome, BrokerError):
            pending.resolve(_refused(outcome.code))
        else:
            pending.resolve(InitProducerIdResponse(producer_id=outcome))

    broker.producer_ids.take(done)
    return pending


def _transactional(request: InitProducerIdRequest, broker: Broker) -> ErrorCode:
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if request.enable2_pc and not broker.settings["transaction.two.phase.commit.enable"]:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if request.keep_prepared_txn:
        return ErrorCode.UNSUPPORTED_VERSION
    timeout_ms_max = broker.settings["transaction.max.timeout.ms"]
    assert isinstance(timeout_ms_max, int)
    if not request.enable2_pc and not 0 < request.transaction_timeout_ms <= timeout_ms_max:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.COORDINATOR_NOT_AVAILABLE


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=-1)


API = Api(InitProducerIdRequest, InitProducerIdResponse, handle)
