"""The DeleteGroups API, key 42."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, NullableString, String


class DeleteGroupsRequest(Message, api=42, versions="0-3", flexible="2+"):
    """Delete groups that have no members."""

    groups_names: list[String]


class DeleteGroupsResponse(Message, api=42, versions="0-3", flexible="2+"):
    """Whether each group was deleted."""

    class DeletableGroupResult(Struct):
        group_id: String
        error_code: Int16
        error_message: NullableString = since(3, default=None, ignorable=True)

    throttle_time_ms: Int32
    results: list[DeletableGroupResult]
