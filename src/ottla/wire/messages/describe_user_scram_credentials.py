"""The DescribeUserScramCredentials API, key 50."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int8, Int16, Int32, NullableString, String


class DescribeUserScramCredentialsRequest(Message, api=50, versions="0", flexible="0+"):
    """Ask which SCRAM credentials users have."""

    class UserName(Struct):
        name: String

    users: list[UserName] | None


class DescribeUserScramCredentialsResponse(Message, api=50, versions="0", flexible="0+"):
    """The mechanisms and iteration counts of each user, never the secrets."""

    class DescribeUserScramCredentialsResult(Struct):
        class CredentialInfo(Struct):
            mechanism: Int8
            iterations: Int32

        user: String
        error_code: Int16
        error_message: NullableString
        credential_infos: list[CredentialInfo]

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
    results: list[DescribeUserScramCredentialsResult]
