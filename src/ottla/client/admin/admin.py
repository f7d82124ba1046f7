"""The admin client: its calls are grouped by what they are about, such as `admin.topics`."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from ottla.client.admin.acls import Acls
from ottla.client.admin.client_metrics import ClientMetrics
from ottla.client.admin.cluster import ClusterAdmin
from ottla.client.admin.configs import Configs
from ottla.client.admin.controllers import Controllers
from ottla.client.admin.features import Features
from ottla.client.admin.groups import Groups
from ottla.client.admin.log_dirs import LogDirs
from ottla.client.admin.offsets import Offsets
from ottla.client.admin.partitions import Partitions
from ottla.client.admin.producers import Producers
from ottla.client.admin.quotas import Quotas
from ottla.client.admin.request_router import RequestRouter
from ottla.client.admin.scram import Scram
from ottla.client.admin.share_offsets import ShareOffsets
from ottla.client.admin.tokens import Tokens
from ottla.client.admin.topics import Topics
from ottla.client.admin.transactions import Transactions
from ottla.client.cluster import Cluster
from ottla.client.connections import ClientConnections
from ottla.client.settings import resolve
from ottla.client.system_interfaces import SystemInterfaces


class Admin:
    """Administers a cluster: `await admin.topics.create("orders", partitions=6)`. Open it with `async with`.

    Settings are Kafka's: `settings` has them under Kafka's names, keywords have underscores for the dots. Raises
    SettingError for a name that does not exist or a value that is not allowed.

    Every call is sent to the broker that can answer it, and retried until its `timeout`, which is
    default.api.timeout.ms unless given. Calls raise Refused with the code of the broker, TimedOut, Unsupported, or
    SomeFailed if a call about several things failed for some of them.
    """

    _interfaces = SystemInterfaces()  # the system's, unless a subclass has others

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        /,
        **keywords: Any,
    ) -> None:
        self.settings = resolve("admin", bootstrap_servers, settings, keywords)
        direct = bool(self.settings["bootstrap.controllers"])
        connections = ClientConnections(self.settings, self._interfaces.network, self._interfaces.entropy)
        self._cluster = (Controllers if direct else Cluster)(self.settings, connections)
        router = RequestRouter(self._cluster, self.settings)
        self.acls = Acls(router)
        self.client_metrics = ClientMetrics(router)
        self.cluster = ClusterAdmin(router)
        self.configs = Configs(router)
        self.features = Features(router)
        self.groups = Groups(router)
        self.log_dirs = LogDirs(router)
        self.offsets = Offsets(router)
        self.partitions = Partitions(router)
        self.producers = Producers(router)
        self.quotas = Quotas(router)
        self.scram = Scram(router)
        self.share_offsets = ShareOffsets(router)
        self.tokens = Tokens(router)
        self.topics = Topics(router)
        self.transactions = Transactions(router)

    async def open(self) -> Self:
        """Connect to a broker; `async with` does this too.

        Raises NoBroker if no broker answers in time.
        """
        await self._cluster.open()
        return self

    async def close(self) -> None:
        """Disconnect. Calls that have not finished raise an error."""
        await self._cluster.close()

    async def __aenter__(self) -> Self:
        try:
            await self.open()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
