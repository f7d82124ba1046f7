"""The CreateAcls API, key 30."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int8, Int16, Int32, NullableString, String


class CreateAclsRequest(Message, api=30, versions="1-3", flexible="2+"):
    """Add access rules."""

    class AclCreation(Struct):
        resource_type: Int8
        resource_name: String
        resource_pattern_type: Int8 = 3
        principal: String
        host: String
        operation: Int8
        permission_type: Int8

    creations: list[AclCreation]


class CreateAclsResponse(Message, api=30, versions="1-3", flexible="2+"):
    """Whether each access rule was added."""

    class AclCreationResult(Struct):
        error_code: Int16
        error_message: NullableString

    throttle_time_ms: Int32
    results: list[AclCreationResult]
