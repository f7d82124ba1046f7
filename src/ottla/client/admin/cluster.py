"""The cluster itself: its brokers, its quorum, and who belongs to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ottla.client.admin.controllers import CONTROLLER_ENDPOINT, Controllers
from ottla.client.admin.operation import Operation, operations
from ottla.client.admin.request_router import RequestRouter
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration
from ottla.client.errors import ClientError, refused
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from ottla.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from ottla.wire.uuid import ZERO_UUID, uuid_bytes, uuid_text

_METADATA_TOPIC = "__cluster_metadata"
_BROKER_ENDPOINT = 1


class Endpoint(NamedTuple):
    """The address of a listener."""

    name: str
    host: str
    port: int


class Broker(NamedTuple):
    """A broker, or a controller if the client is connected to controllers. A fenced broker leads no partitions."""

    id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """A cluster. `controller` is None if there is none."""

    id: str
    controller: int | None
    brokers: tuple[Broker, ...]
    operations: frozenset[Operation] | None = None


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """A node with a copy of the metadata. Times are in milliseconds since 1970, or None if they are not known."""

    id: int
    directory_id: str
    log_end_offset: int
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


@dataclass(frozen=True, slots=True)
class Quorum:
    """The nodes that store the metadata of the cluster. `leader` is None if there is none."""

    leader: int | None
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    endpoints: Mapping[int, tuple[Endpoint, ...]]


@renamed_timeouts
class ClusterAdmin:
    """The cluster, as `admin.cluster`. Every call raises Refused or TimedOut."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    async def describe(
        self,
        *,
        operations: bool = False,
        fenced: bool = False,
        timeout: Duration | None = None,
    ) -> ClusterDescription:
        """Return the cluster and its brokers. Fenced brokers are left out unless `fenced` is set.

        A client that is connected to controllers returns those instead.
        """
        kind = CONTROLLER_ENDPOINT if isinstance(self._router.cluster, Controllers) else _BROKER_ENDPOINT
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=operations,
            endpoint_type=kind,
            include_fenced_brokers=fenced,
        )
        answer = await self._router.request_one(request, DescribeClusterResponse, "the cluster", timeout)
        return _described(answer)

    async def quorum(self, *, timeout: Duration | None = None) -> Quorum:
        """Return the nodes that store the metadata, with the end offset of each."""
        kind = DescribeQuorumRequest.TopicData
        request = DescribeQuorumRequest(
            topics=[kind(topic_name=_METADATA_TOPIC, partitions=[kind.PartitionData(partition_index=0)])]
        )
        answer = await self._router.request_one(request, DescribeQuorumResponse, "the quorum", timeout)
        if not answer.topics or not answer.topics[0].partitions:
            raise ClientError("the broker did not describe the quorum")
        part = answer.topics[0].partitions[0]
        if part.error_code:
            raise refused(part.error_code, part.error_message, about="the quorum")
        return Quorum(
            part.leader_id if part.leader_id >= 0 else None,
            part.leader_epoch,
            part.high_watermark,
            tuple(_replica(each) for each in part.current_voters),
            tuple(_replica(each) for each in part.observers),
            {
                node.node_id: tuple(Endpoint(each.name, each.host, each.port) for each in node.listeners)
                for node in answer.nodes
            },
        )

    async def add_voter(
        self,
        node: int,
        directory_id: str,
        endpoints: tuple[Endpoint, ...],
        *,
        cluster_id: str | None = None,
        timeout: Duration | None = None,
    ) -> None:
        """Make a controller a voter of the quorum. Fails if `cluster_id` is given and is not that of the cluster."""
        kind = AddRaftVoterRequest.Listener
        request = AddRaftVoterRequest(
            cluster_id=cluster_id,
            timeout_ms=self._router.broker_timeout_ms(timeout),
            voter_id=node,
            voter_directory_id=uuid_bytes(directory_id),
            listeners=[kind(name=each.name, host=each.host, port=each.port) for each in endpoints],
        )
        await self._router.request_one(request, AddRaftVoterResponse, f"voter {node}", timeout)

    async def remove_voter(
        self,
        node: int,
        directory_id: str,
        *,
        cluster_id: str | None = None,
        timeout: Duration | None = None,
    ) -> None:
        """Remove a controller from the voters of the quorum."""
        request = RemoveRaftVoterRequest(
            cluster_id=cluster_id, voter_id=node, voter_directory_id=uuid_bytes(directory_id)
        )
        await self._router.request_one(request, RemoveRaftVoterResponse, f"voter {node}", timeout)

    async def unregister_broker(self, node: int, *, timeout: Duration | None = None) -> None:
        """Remove the registration of a broker that will not return."""
        request = UnregisterBrokerRequest(broker_id=node)
        await self._router.request_one(request, UnregisterBrokerResponse, f"broker {node}", timeout)

    async def client_instance_id(self, *, timeout: Duration | None = None) -> str:
        """Return a new id under which a client can send its metrics to the cluster."""
        answer = await self._router.request_one(
            GetTelemetrySubscriptionsRequest(client_instance_id=ZERO_UUID),
            GetTelemetrySubscriptionsResponse,
            "the client instance id",
            timeout,
        )
        return uuid_text(answer.client_instance_id)


def _described(answer: DescribeClusterResponse) -> ClusterDescription:
    return ClusterDescription(
        answer.cluster_id,
        answer.controller_id if answer.controller_id >= 0 else None,
        tuple(
            Broker(each.broker_id, each.host, each.port, each.rack, each.is_fenced)
            for each in sorted(answer.brokers, key=lambda broker: broker.broker_id)
        ),
        operations(answer.cluster_authorized_operations),
    )


def _replica(each: DescribeQuorumResponse.ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        each.replica_id,
        uuid_text(each.replica_directory_id),
        each.log_end_offset,
        each.last_fetch_timestamp if each.last_fetch_timestamp >= 0 else None,
        each.last_caught_up_timestamp if each.last_caught_up_timestamp >= 0 else None,
    )
