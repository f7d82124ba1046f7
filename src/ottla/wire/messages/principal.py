"""A principal inside an Envelope."""

from ottla.wire.message import Message
from ottla.wire.primitive import Bool, String


class DefaultPrincipalData(Message, versions="0", flexible="0+"):
    """A principal as it travels in a forwarded request."""

    type: String
    name: String
    token_authenticated: Bool
