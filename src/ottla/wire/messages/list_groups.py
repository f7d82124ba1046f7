"""The ListGroups API, key 16."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, String


class ListGroupsRequest(Message, api=16, versions="0-5", flexible="3+"):
    """Ask which groups this broker coordinates, by state and type if wished."""

    states_filter: list[String] = since(4)
    types_filter: list[String] = since(5)


class ListGroupsResponse(Message, api=16, versions="0-5", flexible="3+"):
    """The groups found, with their type and state."""

    class ListedGroup(Struct):
        group_id: String
        protocol_type: String
        group_state: String = since(4, ignorable=True)
        group_type: String = since(5, ignorable=True)

    throttle_time_ms: Int32 = since(1, ignorable=True)
    error_code: Int16
    groups: list[ListedGroup]
