"""The AlterUserScramCredentials API, key 51."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bytes, Int8, Int16, Int32, NullableString, String


class AlterUserScramCredentialsRequest(Message, api=51, versions="0", flexible="0+"):
    """Add, replace or delete SCRAM credentials."""

    class ScramCredentialDeletion(Struct):
        name: String
        mechanism: Int8

    class ScramCredentialUpsertion(Struct):
        name: String
        mechanism: Int8
        iterations: Int32
        salt: Bytes
        salted_password: Bytes

    deletions: list[ScramCredentialDeletion]
    upsertions: list[ScramCredentialUpsertion]


class AlterUserScramCredentialsResponse(Message, api=51, versions="0", flexible="0+"):
    """Whether each user's credentials were changed."""

    class AlterUserScramCredentialsResult(Struct):
        user: String
        error_code: Int16
        error_message: NullableString

    throttle_time_ms: Int32
    results: list[AlterUserScramCredentialsResult]
