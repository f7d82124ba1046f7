"""The ControllerRegistration API, key 70."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int16, Int32, NullableString, String, UInt16, Uuid


class ControllerRegistrationRequest(Message, api=70, versions="0", flexible="0+"):
    """A controller makes its listeners and features known to the active one."""

    class Listener(Struct):
        name: String
        host: String
        port: UInt16
        security_protocol: Int16

    class Feature(Struct):
        name: String
        min_supported_version: Int16
        max_supported_version: Int16

    controller_id: Int32
    incarnation_id: Uuid
    zk_migration_ready: Bool
    listeners: list[Listener]
    features: list[Feature]


class ControllerRegistrationResponse(Message, api=70, versions="0", flexible="0+"):
    """Whether the controller was registered."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
