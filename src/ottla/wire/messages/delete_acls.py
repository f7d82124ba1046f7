"""The DeleteAcls API, key 31."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int8, Int16, Int32, NullableString, String


class DeleteAclsRequest(Message, api=31, versions="1-3", flexible="2+"):
    """Remove the access rules that match any of the filters."""

    class DeleteAclsFilter(Struct):
        resource_type_filter: Int8
        resource_name_filter: NullableString
        pattern_type_filter: Int8 = 3
        principal_filter: NullableString
        host_filter: NullableString
        operation: Int8
        permission_type: Int8

    filters: list[DeleteAclsFilter]


class DeleteAclsResponse(Message, api=31, versions="1-3", flexible="2+"):
    """The access rules each filter removed."""

    class DeleteAclsFilterResult(Struct):
        class DeleteAclsMatchingAcl(Struct):
            error_code: Int16
            error_message: NullableString
            resource_type: Int8
            resource_name: String
            pattern_type: Int8 = 3
            principal: String
            host: String
            operation: Int8
            permission_type: Int8

        error_code: Int16
        error_message: NullableString
        matching_acls: list[DeleteAclsMatchingAcl]

    throttle_time_ms: Int32
    filter_results: list[DeleteAclsFilterResult]
