"""The admin client without asyncio."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from ottla.client.admin.admin import Admin as AsyncAdmin
from ottla.client.blocking.admin.acls import Acls
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
from ottla.client.blocking.client import BlockingClient


class Admin(BlockingClient[AsyncAdmin]):
    """Administers a cluster: `admin.topics.create("orders", partitions=6)`. Open it with `with`.

    Settings are Kafka's: `settings` has them under Kafka's names, keywords have underscores for the dots. Raises
    SettingError for a name that does not exist or a value that is not allowed.

    Every call is sent to the broker that can answer it, and retried until its `timeout`, which is
    default.api.timeout.ms unless given. Calls raise Refused with the code of the broker, TimedOut, Unsupported, or
    SomeFailed if a call about several things failed for some of them.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        /,
        **keywords: Any,
    ) -> None:
        super().__init__(lambda: AsyncAdmin(bootstrap_servers, settings, **keywords))
        client = self._client
        self.settings = client.settings
        self.acls = Acls(self, client.acls)
        self.client_metrics = ClientMetrics(self, client.client_metrics)
        self.cluster = ClusterAdmin(self, client.cluster)
        self.configs = Configs(self, client.configs)
        self.features = Features(self, client.features)
        self.groups = Groups(self, client.groups)
        self.log_dirs = LogDirs(self, client.log_dirs)
        self.offsets = Offsets(self, client.offsets)
        self.partitions = Partitions(self, client.partitions)
        self.producers = Producers(self, client.producers)
        self.quotas = Quotas(self, client.quotas)
        self.scram = Scram(self, client.scram)
        self.share_offsets = ShareOffsets(self, client.share_offsets)
        self.tokens = Tokens(self, client.tokens)
        self.topics = Topics(self, client.topics)
        self.transactions = Transactions(self, client.transactions)

    def open(self) -> Self:
        """Connect to a broker; `with` does this too.

        Raises NoBroker if no broker answers in time.
        """
        self._run(self._client.open())
        return self

    def close(self) -> None:
        """Disconnect. Calls that have not finished raise an error."""
        self._close(self._client.close())
