"""The ExpireDelegationToken API, key 40."""

from ottla.wire.message import Message
from ottla.wire.primitive import Bytes, Int16, Int32, Int64


class ExpireDelegationTokenRequest(Message, api=40, versions="1-2", flexible="2+"):
    """Bring forward the expiry of a delegation token, or end it at once."""

    hmac: Bytes
    expiry_time_period_ms: Int64


class ExpireDelegationTokenResponse(Message, api=40, versions="1-2", flexible="2+"):
    """The new expiry of the token."""

    error_code: Int16
    expiry_timestamp_ms: Int64
    throttle_time_ms: Int32
