"""Calls about the cluster, without asyncio."""

from ottla.client.admin.cluster import ClusterAdmin as AsyncClusterAdmin
from ottla.client.admin.cluster import ClusterDescription, Endpoint, Quorum
from ottla.client.blocking.part import BlockingPart
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration


@renamed_timeouts
class ClusterAdmin(BlockingPart[AsyncClusterAdmin]):
    """The cluster, as `admin.cluster`. Every call raises Refused or TimedOut."""

    def describe(
        self, *, operations: bool = False, fenced: bool = False, timeout: Duration | None = None
    ) -> ClusterDescription:
        """Return the cluster and its brokers. Fenced brokers are left out unless `fenced` is set.

        A client that is connected to controllers returns those instead.
        """
        return self._run(self._part.describe(operations=operations, fenced=fenced, timeout=timeout))

    def quorum(self, *, timeout: Duration | None = None) -> Quorum:
        """Return the nodes that store the metadata, with the end offset of each."""
        return self._run(self._part.quorum(timeout=timeout))

    def add_voter(
        self,
        node: int,
        directory_id: str,
        endpoints: tuple[Endpoint, ...],
        *,
        cluster_id: str | None = None,
        timeout: Duration | None = None,
    ) -> None:
        """Make a controller a voter of the quorum. Fails if `cluster_id` is given and is not that of the cluster."""
        self._run(self._part.add_voter(node, directory_id, endpoints, cluster_id=cluster_id, timeout=timeout))

    def remove_voter(
        self, node: int, directory_id: str, *, cluster_id: str | None = None, timeout: Duration | None = None
    ) -> None:
        """Remove a controller from the voters of the quorum."""
        self._run(self._part.remove_voter(node, directory_id, cluster_id=cluster_id, timeout=timeout))

    def unregister_broker(self, node: int, *, timeout: Duration | None = None) -> None:
        """Remove the registration of a broker that will not return."""
        self._run(self._part.unregister_broker(node, timeout=timeout))

    def client_instance_id(self, *, timeout: Duration | None = None) -> str:
        """Return a new id under which a client can send its metrics to the cluster."""
        return self._run(self._part.client_instance_id(timeout=timeout))
