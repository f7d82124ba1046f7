"""The admin client, and the types that its calls take and return."""

from ottla.client.admin.acls import Acl, AclFilter, Acls, PatternType, Permission, ResourceType
from ottla.client.admin.admin import Admin
from ottla.client.admin.client_metrics import ClientMetrics, MetricsSubscription
from ottla.client.admin.cluster import (
    Broker,
    ClusterAdmin,
    ClusterDescription,
    Endpoint,
    Quorum,
    QuorumReplica,
)
from ottla.client.admin.configs import (
    Append,
    ConfigEntry,
    Configs,
    ConfigSynonym,
    Resource,
    ResourceKind,
    Subtract,
)
from ottla.client.admin.features import FeatureDescription, Features, Levels, Upgrade
from ottla.client.admin.group import (
    GroupDescription,
    GroupKind,
    GroupListing,
    Member,
    Subtopology,
    Task,
    Tasks,
)
from ottla.client.admin.groups import Groups
from ottla.client.admin.log_dirs import LogDir, LogDirs, Replica, ReplicaPlace, StoredReplica
from ottla.client.admin.offsets import Isolation, ListedOffset, Offsets, OffsetSpec
from ottla.client.admin.operation import Operation
from ottla.client.admin.partitions import EVERYTHING, ElectionType, Partitions, Reassignment
from ottla.client.admin.producers import Producers, ProducerState
from ottla.client.admin.quotas import ANY, AnyName, QuotaEntity, Quotas, entity
from ottla.client.admin.reset import (
    Ends,
    Move,
    Reset,
    ShiftBy,
    ToCurrent,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToTime,
)
from ottla.client.admin.scram import NewCredential, Scram, ScramCredential, ScramMechanism
from ottla.client.admin.share_offsets import ShareOffset, ShareOffsets
from ottla.client.admin.tokens import DelegationToken, Principal, Tokens
from ottla.client.admin.topic import (
    CreatedTopic,
    NewPartitions,
    NewTopic,
    PartitionDescription,
    TopicDescription,
    TopicListing,
)
from ottla.client.admin.topics import Topics
from ottla.client.admin.transactions import (
    FencedProducer,
    TransactionDescription,
    TransactionListing,
    Transactions,
)
from ottla.metadata.settings.definition import Type
from ottla.metadata.settings.layers import Source

__all__ = [
    "Admin",
    "Acls", "ClientMetrics", "ClusterAdmin", "Configs", "Features", "Groups", "LogDirs", "Offsets",
    "Partitions", "Producers", "Quotas", "Scram", "ShareOffsets", "Tokens", "Topics", "Transactions",
    "Acl", "AclFilter", "Operation", "PatternType", "Permission", "ResourceType",
    "MetricsSubscription",
    "Broker", "ClusterDescription", "Endpoint", "Quorum", "QuorumReplica",
    "Append", "ConfigEntry", "ConfigSynonym", "Resource", "ResourceKind", "Source", "Subtract", "Type",
    "FeatureDescription", "Levels", "Upgrade",
    "GroupDescription", "GroupKind", "GroupListing", "Member", "Subtopology", "Task", "Tasks",
    "LogDir", "Replica", "ReplicaPlace", "StoredReplica",
    "Isolation", "ListedOffset", "OffsetSpec",
    "EVERYTHING", "ElectionType", "Reassignment",
    "ProducerState",
    "ANY", "AnyName", "QuotaEntity", "entity",
    "Ends", "Move", "Reset", "ShiftBy", "ToCurrent", "ToEarliest", "ToLatest", "ToOffset", "ToTime",
    "NewCredential", "ScramCredential", "ScramMechanism",
    "ShareOffset",
    "DelegationToken", "Principal",
    "CreatedTopic", "NewPartitions", "NewTopic", "PartitionDescription", "TopicDescription", "TopicListing",
    "FencedProducer", "TransactionDescription", "TransactionListing",
]  # fmt: skip
