"""The SaslHandshake API, key 17."""

from ottla.wire.message import Message
from ottla.wire.primitive import Int16, String


class SaslHandshakeRequest(Message, api=17, versions="0-1"):
    """Name the SASL mechanism a client wants to use."""

    mechanism: String


class SaslHandshakeResponse(Message, api=17, versions="0-1"):
    """Whether the mechanism is enabled, and which ones are."""

    error_code: Int16
    mechanisms: list[String]
