"""The Envelope API, key 58."""

from ottla.wire.message import Message
from ottla.wire.primitive import Bytes, Int16, NullableBytes


class EnvelopeRequest(Message, api=58, versions="0", flexible="0+"):
    """Forward a client's request to the controller, with the client's principal."""

    request_data: Bytes
    request_principal: NullableBytes
    client_host_address: Bytes


class EnvelopeResponse(Message, api=58, versions="0", flexible="0+"):
    """The controller's answer to a forwarded request."""

    response_data: NullableBytes = None
    error_code: Int16
