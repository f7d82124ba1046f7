"""The UnregisterController API, key 94."""

from ottla.wire.message import Message
from ottla.wire.primitive import Int16, Int32, NullableString


class UnregisterControllerRequest(Message, api=94, versions="0", flexible="0+"):
    """Remove a controller's registration."""

    controller_id: Int32


class UnregisterControllerResponse(Message, api=94, versions="0", flexible="0+"):
    """Whether the controller was removed."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
