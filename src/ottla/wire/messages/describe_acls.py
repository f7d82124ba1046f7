"""The DescribeAcls API, key 29."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int8, Int16, Int32, NullableString, String


class DescribeAclsRequest(Message, api=29, versions="1-3", flexible="2+"):
    """Ask for the access rules that match a filter."""

    resource_type_filter: Int8
    resource_name_filter: NullableString
    pattern_type_filter: Int8 = 3
    principal_filter: NullableString
    host_filter: NullableString
    operation: Int8
    permission_type: Int8


class DescribeAclsResponse(Message, api=29, versions="1-3", flexible="2+"):
    """The access rules found, a resource at a time."""

    class DescribeAclsResource(Struct):
        class AclDescription(Struct):
            principal: String
            host: String
            operation: Int8
            permission_type: Int8

        resource_type: Int8
        resource_name: String
        pattern_type: Int8 = 3
        acls: list[AclDescription]

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
    resources: list[DescribeAclsResource]
