"""The RenewDelegationToken API, key 39."""

from ottla.wire.message import Message
from ottla.wire.primitive import Bytes, Int16, Int32, Int64


class RenewDelegationTokenRequest(Message, api=39, versions="1-2", flexible="2+"):
    """Extend the expiry of a delegation token."""

    hmac: Bytes
    renew_period_ms: Int64


class RenewDelegationTokenResponse(Message, api=39, versions="1-2", flexible="2+"):
    """The new expiry of the token."""

    error_code: Int16
    expiry_timestamp_ms: Int64
    throttle_time_ms: Int32
