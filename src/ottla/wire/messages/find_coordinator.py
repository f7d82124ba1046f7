"""The FindCoordinator API, key 10."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int8, Int16, Int32, NullableString, String


class FindCoordinatorRequest(Message, api=10, versions="0-6", flexible="3+"):
    """Ask which broker coordinates a group, a transactional id or a share partition."""

    key: String = since(0, until=3)
    key_type: Int8 = since(1)
    coordinator_keys: list[String] = since(4)


class FindCoordinatorResponse(Message, api=10, versions="0-6", flexible="3+"):
    """The coordinator of each key asked for."""

    class Coordinator(Struct):
        key: String
        node_id: Int32
        host: String
        port: Int32
        error_code: Int16
        error_message: NullableString

    throttle_time_ms: Int32 = since(1, ignorable=True)
    error_code: Int16 = since(0, until=3)
    error_message: NullableString = since(1, until=3, ignorable=True)
    node_id: Int32 = since(0, until=3)
    host: String = since(0, until=3)
    port: Int32 = since(0, until=3)
    coordinators: list[Coordinator] = since(4)
