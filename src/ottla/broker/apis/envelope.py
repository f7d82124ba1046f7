"""Envelope (58): a request that a broker passes on for one of its clients, to the controller that may decide it.

Inside is the whole request with its header, and in the answer the whole response. UNSUPPORTED_VERSION stands for what
this controller does not serve, NOT_CONTROLLER for a controller that is not the active one.
"""

from collections.abc import Generator
from typing import NamedTuple

from ottla.broker.api import Api, Handler, Pending
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
    opened = _open(request, broker)
    if isinstance(opened, EnvelopeResponse):
        return opened
    return opened.sealed(opened.api.handle(opened.message, opened.version, connection, broker))


def serve_long(
    handle: Handler, request: EnvelopeRequest, version: int, connection: Connection, broker: Broker
) -> Generator[None, None, EnvelopeResponse | Pending]:
    """The same in steps, where what is inside is served in steps."""
    opened = _open(request, broker)
    if isinstance(opened, EnvelopeResponse):
        return opened
    yield
    api = opened.api
    if api.long is None:
        return opened.sealed(api.handle(opened.message, opened.version, connection, broker))
    reply = yield from api.long(api.handle, opened.message, opened.version, connection, broker)
    return opened.sealed(reply)


class _Opened(NamedTuple):
    """What is inside an envelope."""

    api: Api
    version: int
    message: Message
    head: bytes

    def sealed(self, reply: Message | Pending | None) -> EnvelopeResponse | Pending:
        """Put the answer into an envelope."""
        if not isinstance(reply, Pending):
            assert reply is not None, "no request to a controller goes unanswered"
            return self._seal(reply)
        pending = Pending()
        reply.then(lambda answer: pending.resolve(self._seal(answer)), pending.fail)
        return pending

    def _seal(self, answer: Message) -> EnvelopeResponse:
        return EnvelopeResponse(response_data=self.head + answer.encode(self.version))


def _open(request: EnvelopeRequest, broker: Broker) -> EnvelopeResponse | _Opened:
    """Return what is inside, or what to say of it."""
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
    return _Opened(api, inner, message, head)


API = Api(EnvelopeRequest, EnvelopeResponse, handle, long=serve_long)
