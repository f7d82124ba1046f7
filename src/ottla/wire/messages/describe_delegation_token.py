"""The DescribeDelegationToken API, key 41."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bytes, Int16, Int32, Int64, String


class DescribeDelegationTokenRequest(Message, api=41, versions="1-3", flexible="2+"):
    """Ask for the delegation tokens of some owners."""

    class DescribeDelegationTokenOwner(Struct):
        principal_type: String
        principal_name: String

    owners: list[DescribeDelegationTokenOwner] | None


class DescribeDelegationTokenResponse(Message, api=41, versions="1-3", flexible="2+"):
    """The tokens the asker may see."""

    class DescribedDelegationToken(Struct):
        class DescribedDelegationTokenRenewer(Struct):
            principal_type: String
            principal_name: String

        principal_type: String
        principal_name: String
        token_requester_principal_type: String = since(3)
        token_requester_principal_name: String = since(3)
        issue_timestamp: Int64
        expiry_timestamp: Int64
        max_timestamp: Int64
        token_id: String
        hmac: Bytes
        renewers: list[DescribedDelegationTokenRenewer]

    error_code: Int16
    tokens: list[DescribedDelegationToken]
    throttle_time_ms: Int32
