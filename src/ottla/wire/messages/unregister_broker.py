"""The UnregisterBroker API, key 64."""

from ottla.wire.message import Message
from ottla.wire.primitive import Int16, Int32, NullableString


class UnregisterBrokerRequest(Message, api=64, versions="0", flexible="0+"):
    """Remove a broker's registration."""

    broker_id: Int32


class UnregisterBrokerResponse(Message, api=64, versions="0", flexible="0+"):
    """Whether the broker was removed."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
