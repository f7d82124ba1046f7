"""The admin client without asyncio."""

from ottla.client.blocking.admin.acls import Acls
from ottla.client.blocking.admin.admin import Admin
from ottla.client.blocking.admin.client_metrics import ClientMetrics
from ottla.client.blocking.admin.cluster import ClusterAdmin
from ottla.client.blocking.admin.configs import Configs
from ottla.client.blocking.admin.features import Features
from ottla.client.blocking.admin.groups import Groups
from ottla.client.blocking.admin.log_dirs import LogDirs
from ottla.client.blocking.admin.offsets import Offsets
from ottla.client.blocking.admin.partitions import Partitions
from ottla.client.blocking.admin.producers import Producers
from ottla.client.blocking.admin.quotas import Quotas
from ottla.client.blocking.admin.scram import Scram
from ottla.client.blocking.admin.share_offsets import ShareOffsets
from ottla.client.blocking.admin.tokens import Tokens
from ottla.client.blocking.admin.topics import Topics
from ottla.client.blocking.admin.transactions import Transactions

__all__ = [
    "Admin",
    "Acls",
    "ClientMetrics",
    "ClusterAdmin",
    "Configs",
    "Features",
    "Groups",
    "LogDirs",
    "Offsets",
    "Partitions",
    "Producers",
    "Quotas",
    "Scram",
    "ShareOffsets",
    "Tokens",
    "Topics",
    "Transactions",
]
