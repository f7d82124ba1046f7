"""Records of the metadata log, `__cluster_metadata`."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import (
    Bool,
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    UInt16,
    Uuid,
)


class RegisterBrokerRecord(Message, api=0, versions="0-4", flexible="0+"):
    """A broker registered, with its epoch, listeners, features and directories."""

    class BrokerEndpoint(Struct):
        name: String
        host: String
        port: UInt16
        security_protocol: Int16

    class BrokerFeature(Struct):
        name: String
        min_supported_version: Int16
        max_supported_version: Int16

    broker_id: Int32
    is_migrating_zk_broker: Bool = since(2)
    incarnation_id: Uuid
    broker_epoch: Int64
    end_points: list[BrokerEndpoint]
    features: list[BrokerFeature]
    rack: NullableString
    fenced: Bool = True
    in_controlled_shutdown: Bool = since(1)
    log_dirs: list[Uuid] = since(3, tag=0)
    cordoned_log_dirs: list[Uuid] | None = since(4, default=None, tag=1)


class UnregisterBrokerRecord(Message, api=1, versions="0", flexible="0+"):
    """A broker's registration was removed."""

    broker_id: Int32
    broker_epoch: Int64


class TopicRecord(Message, api=2, versions="0", flexible="0+"):
    """A topic was created, with its name and id."""

    name: String
    topic_id: Uuid


class PartitionRecord(Message, api=3, versions="0-2", flexible="0+"):
    """A partition's whole state, as it was created."""

    partition_id: Int32 = -1
    topic_id: Uuid
    replicas: list[Int32]
    isr: list[Int32]
    removing_replicas: list[Int32]
    adding_replicas: list[Int32]
    leader: Int32 = -1
    leader_recovery_state: Int8 = since(0, tag=0)
    leader_epoch: Int32 = -1
    partition_epoch: Int32 = -1
    directories: list[Uuid] = since(1)
    eligible_leader_replicas: list[Int32] | None = since(2, default=None, tag=1)
    last_known_elr: list[Int32] | None = since(2, default=None, tag=2)


class ConfigRecord(Message, api=4, versions="0", flexible="0+"):
    """A setting of a resource was set, or removed when its value is null."""

    resource_type: Int8
    resource_name: String
    name: String
    value: NullableString


class PartitionChangeRecord(Message, api=5, versions="0-2", flexible="0+"):
    """Some of a partition's state changed; what is null or left at its default stays as it was."""

    partition_id: Int32 = -1
    topic_id: Uuid
    isr: list[Int32] | None = since(0, default=None, tag=0)
    leader: Int32 = since(0, default=-2, tag=1)
    replicas: list[Int32] | None = since(0, default=None, tag=2)
    removing_replicas: list[Int32] | None = since(0, default=None, tag=3)
    adding_replicas: list[Int32] | None = since(0, default=None, tag=4)
    leader_recovery_state: Int8 = since(0, default=-1, tag=5)
    directories: list[Uuid] | None = since(1, default=None, tag=8)
    eligible_leader_replicas: list[Int32] | None = since(2, default=None, tag=6)
    last_known_elr: list[Int32] | None = since(2, default=None, tag=7)


class FenceBrokerRecord(Message, api=7, versions="0", flexible="0+"):
    """A broker was fenced; superseded by BrokerRegistrationChangeRecord."""

    id: Int32
    epoch: Int64


class UnfenceBrokerRecord(Message, api=8, versions="0", flexible="0+"):
    """A broker was unfenced; superseded by BrokerRegistrationChangeRecord."""

    id: Int32
    epoch: Int64


class RemoveTopicRecord(Message, api=9, versions="0", flexible="0+"):
    """A topic was deleted."""

    topic_id: Uuid


class DelegationTokenRecord(Message, api=10, versions="0", flexible="0+"):
    """A delegation token was created or renewed."""

    owner: String
    requester: String
    renewers: list[String]
    issue_timestamp: Int64
    max_timestamp: Int64
    expiration_timestamp: Int64
    token_id: String


class UserScramCredentialRecord(Message, api=11, versions="0", flexible="0+"):
    """A user's SCRAM credential was set."""

    name: String
    mechanism: Int8
    salt: Bytes
    stored_key: Bytes
    server_key: Bytes
    iterations: Int32


class FeatureLevelRecord(Message, api=12, versions="0", flexible="0+"):
    """A feature's finalized level was set; level 0 removes it."""

    name: String
    feature_level: Int16


class ClientQuotaRecord(Message, api=14, versions="0", flexible="0+"):
    """A quota of an entity was set or removed."""

    class EntityData(Struct):
        entity_type: String
        entity_name: NullableString

    entity: list[EntityData]
    key: String
    value: Float64
    remove: Bool


class ProducerIdsRecord(Message, api=15, versions="0", flexible="0+"):
    """A block of producer ids was handed to a broker."""

    broker_id: Int32
    broker_epoch: Int64 = -1
    next_producer_id: Int64


class BrokerRegistrationChangeRecord(Message, api=17, versions="0-3", flexible="0+"):
    """A broker was fenced, unfenced, began its shutdown, or its directories changed."""

    broker_id: Int32
    broker_epoch: Int64
    fenced: Int8 = since(0, tag=0)
    in_controlled_shutdown: Int8 = since(1, tag=1)
    log_dirs: list[Uuid] = since(2, tag=2)
    cordoned_log_dirs: list[Uuid] | None = since(3, default=None, tag=3)


class AccessControlEntryRecord(Message, api=18, versions="0", flexible="0+"):
    """An access rule was added."""

    id: Uuid
    resource_type: Int8
    resource_name: String
    pattern_type: Int8
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class RemoveAccessControlEntryRecord(Message, api=19, versions="0", flexible="0+"):
    """An access rule was removed."""

    id: Uuid


class NoOpRecord(Message, api=20, versions="0", flexible="0+"):
    """Nothing changed; written to move the log on."""


class ZkMigrationStateRecord(Message, api=21, versions="0", flexible="0+"):
    """How far the migration from ZooKeeper had come."""

    zk_migration_state: Int8


class RemoveUserScramCredentialRecord(Message, api=22, versions="0", flexible="0+"):
    """A user's SCRAM credential was removed."""

    name: String
    mechanism: Int8


class BeginTransactionRecord(Message, api=23, versions="0", flexible="0+"):
    """A metadata transaction began."""

    name: NullableString = since(0, default=None, tag=0)


class EndTransactionRecord(Message, api=24, versions="0", flexible="0+"):
    """A metadata transaction ended: what it wrote is valid."""


class AbortTransactionRecord(Message, api=25, versions="0", flexible="0+"):
    """A metadata transaction was given up: what it wrote is void."""

    reason: NullableString = since(0, default=None, tag=0)


class RemoveDelegationTokenRecord(Message, api=26, versions="0", flexible="0+"):
    """A delegation token was removed."""

    token_id: String


class RegisterControllerRecord(Message, api=27, versions="0", flexible="0+"):
    """A controller registered, with its listeners and features."""

    class ControllerEndpoint(Struct):
        name: String
        host: String
        port: UInt16
        security_protocol: Int16

    class ControllerFeature(Struct):
        name: String
        min_supported_version: Int16
        max_supported_version: Int16

    controller_id: Int32
    incarnation_id: Uuid
    zk_migration_ready: Bool
    end_points: list[ControllerEndpoint]
    features: list[ControllerFeature]


class ClearElrRecord(Message, api=28, versions="0", flexible="0+"):
    """The eligible leader replicas of one topic, or of all when it has no name, were cleared."""

    topic_name: String
