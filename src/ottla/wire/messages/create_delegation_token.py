"""The CreateDelegationToken API, key 38."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bytes, Int16, Int32, Int64, NullableString, String


class CreateDelegationTokenRequest(Message, api=38, versions="1-3", flexible="2+"):
    """Obtain a delegation token, for oneself or on behalf of another."""

    class CreatableRenewers(Struct):
        principal_type: String
        principal_name: String

    owner_principal_type: NullableString = since(3)
    owner_principal_name: NullableString = since(3)
    renewers: list[CreatableRenewers]
    max_lifetime_ms: Int64


class CreateDelegationTokenResponse(Message, api=38, versions="1-3", flexible="2+"):
    """The token created, with its secret and lifetime."""

    error_code: Int16
    principal_type: String
    principal_name: String
    token_requester_principal_type: String = since(3)
    token_requester_principal_name: String = since(3)
    issue_timestamp_ms: Int64
    expiry_timestamp_ms: Int64
    max_timestamp_ms: Int64
    token_id: String
    hmac: Bytes
    throttle_time_ms: Int32
