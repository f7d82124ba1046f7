"""The BrokerRegistration API, key 62."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int16, Int32, Int64, NullableString, String, UInt16, Uuid


class BrokerRegistrationRequest(Message, api=62, versions="0-4", flexible="0+"):
    """A broker enters the cluster with its listeners, features and directories."""

    class Listener(Struct):
        name: String
        host: String
        port: UInt16
        security_protocol: Int16

    class Feature(Struct):
        name: String
        min_supported_version: Int16
        max_supported_version: Int16

    broker_id: Int32
    cluster_id: String
    incarnation_id: Uuid
    listeners: list[Listener]
    features: list[Feature]
    rack: NullableString
    is_migrating_zk_broker: Bool = since(1)
    log_dirs: list[Uuid] = since(2, ignorable=True)
    previous_broker_epoch: Int64 = since(3, default=-1, ignorable=True)


class BrokerRegistrationResponse(Message, api=62, versions="0-4", flexible="0+"):
    """The broker epoch granted."""

    throttle_time_ms: Int32
    error_code: Int16
    broker_epoch: Int64 = -1
