"""The admin client, and what its calls take and return."""

from ottla.client.admin.acls import Acl, AclFilter, PatternType, Permission, ResourceType
from ottla.client.admin.admin import Admin
from ottla.client.admin.client_metrics import MetricsSubscription
from ottla.client.admin.cluster import (
    Broker,
    ClusterDescription,
    Endpoint,
    Quorum,
    QuorumReplica,
)
from ottla.client.admin.configs import Append, ConfigEntry, Resource, ResourceKind, Subtract
from ottla.client.admin.features import FeatureDescription, Levels, Upgrade
from ottla.client.admin.group import GroupDescription, GroupKind, GroupListing, Member, Task, Tasks
from ottla.client.admin.log_dirs import LogDir, Replica, ReplicaPlace, StoredReplica
from ottla.client.admin.offsets import Isolation, ListedOffset, OffsetSpec
from ottla.client.admin.operation import Operation
from ottla.client.admin.partitions import EVERYTHING, ElectionType, Reassignment
from ottla.client.admin.producers import ProducerState
from ottla.client.admin.quotas import ANY, QuotaEntity, entity
from ottla.client.admin.reset import (
    Move,
    Reset,
    ShiftBy,
    ToCurrent,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToTime,
)
from ottla.client.admin.scram import NewCredential, ScramCredential, ScramMechanism
from ottla.client.admin.share_offsets import ShareOffset
from ottla.client.admin.tokens import DelegationToken, Principal
from ottla.client.admin.topic import (
    CreatedTopic,
    NewPartitions,
    NewTopic,
    PartitionDescription,
    TopicDescription,
    TopicListing,
)
from ottla.client.admin.transactions import FencedProducer, TransactionDescription, TransactionListing

__all__ = [
    "Admin",
    "Acl", "AclFilter", "Operation", "PatternType", "Permission", "ResourceType",
    "MetricsSubscription",
    "Broker", "ClusterDescription", "Endpoint", "Quorum", "QuorumReplica",
    "Append", "ConfigEntry", "Resource", "ResourceKind", "Subtract",
    "FeatureDescription", "Levels", "Upgrade",
    "GroupDescription", "GroupKind", "GroupListing", "Member", "Task", "Tasks",
    "LogDir", "Replica", "ReplicaPlace", "StoredReplica",
    "Isolation", "ListedOffset", "OffsetSpec",
    "EVERYTHING", "ElectionType", "Reassignment",
    "ProducerState",
    "ANY", "QuotaEntity", "entity",
    "Move", "Reset", "ShiftBy", "ToCurrent", "ToEarliest", "ToLatest", "ToOffset", "ToTime",
    "NewCredential", "ScramCredential", "ScramMechanism",
    "ShareOffset",
    "DelegationToken", "Principal",
    "CreatedTopic", "NewPartitions", "NewTopic", "PartitionDescription", "TopicDescription", "TopicListing",
    "FencedProducer", "TransactionDescription", "TransactionListing",
]  # fmt: skip
