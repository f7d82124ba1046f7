"""Envelope (58): a request that a broker passes on for one of its clients, to the controller that may decide it.

Inside is the whole request with its header, and in the answer the whole response. UNSUPPORTED_VERSION stands for what
this controller does not serve, NOT_CONTROLLER for a controller that is not the active one.
"""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.wire.errors import ErrorCode, ProtocolError
from ottla.wire.header import ResponseHeader, read_request_header
from ottla.wire.message import Message
from ottla.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse


def handle(
    request: EnvelopeRequest, version: int, connection: Connection, broker: Broker
) -> EnvelopeResponse | Pending:
    """Serve what is inside, and put its answer into another envelope."""
    if not broker.quorum.is_active:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    data = request.request_data
    try:
        key, inner, correlation_id, _, position = read_request_header(data, 0, len(data))
        api = broker.forwardable.get(key)
        if api is None or inner not in api.versions:
            return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        message, _ = api.request.decoder(inner)(data, position, len(data))
    except ProtocolError:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    head = ResponseHeader(correlation_id=correlation_id).encode(api.facts.response_header_version(inner))

    def sealed(answer: Message) -> EnvelopeResponse:
        return EnvelopeResponse(response_data=head + answer.encode(inner))

    reply = api.handle(message, inner, connection, broker)
    if not isinstance(reply, Pending):
        assert reply is not None, "no request to a controller goes unanswered"
        return sealed(reply)
    pending = Pending()
    reply.then(lambda answer: pending.resolve(sealed(answer)))
    return pending


API = Api(EnvelopeRequest, EnvelopeResponse, handle)
