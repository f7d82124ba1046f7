"""The SaslAuthenticate API, key 36."""

from ottla.wire.field import since
from ottla.wire.message import Message
from ottla.wire.primitive import Bytes, Int16, Int64, NullableString


class SaslAuthenticateRequest(Message, api=36, versions="0-2", flexible="2+"):
    """Carry one message of a SASL exchange from the client."""

    auth_bytes: Bytes


class SaslAuthenticateResponse(Message, api=36, versions="0-2", flexible="2+"):
    """Carry one message of a SASL exchange from the server, and the session's lifetime."""

    error_code: Int16
    error_message: NullableString
    auth_bytes: Bytes
    session_lifetime_ms: Int64 = since(1, ignorable=True)
