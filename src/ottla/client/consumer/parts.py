"""Puts the parts of a consumer together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from ottla.client.cluster import Cluster
from ottla.client.connections import ClientConnections
from ottla.client.consumer.autocommit import AutoCommit
from ottla.client.consumer.commits import OffsetCommits, Offsets
from ottla.client.consumer.fetcher import Fetcher
from ottla.client.consumer.group.classic_member import ClassicMember
from ottla.client.consumer.group.consumer_member import ConsumerMember
from ottla.client.consumer.group_coordinator import GroupCoordinator
from ottla.client.consumer.interceptor import ConsumerInterceptors
from ottla.client.consumer.offset_lookup import OffsetLookup
from ottla.client.consumer.position_resolver import PositionResolver
from ottla.client.consumer.subscription import Subscription
from ottla.client.consumer.wake_event import WakeEvent
from ottla.client.system_interfaces import SystemInterfaces
from ottla.world.clock import RealClock
from ottla.world.entropy import RealEntropy


@dataclass(slots=True)
class ConsumerParts:
    """The parts of a consumer. The last four are None without a group, the last one also without auto-commit."""

    cluster: Cluster
    wake_event: WakeEvent
    subscription: Subscription
    connections: ClientConnections
    fetcher: Fetcher
    offset_lookup: OffsetLookup
    position_resolver: PositionResolver
    interceptors: ConsumerInterceptors
    coordinator: GroupCoordinator | None = None
    member: ClassicMember | ConsumerMember | None = None
    commits: OffsetCommits | None = None
    auto_commit: AutoCommit | None = None

    @classmethod
    def of(
        cls,
        settings: Mapping[str, Any],
        consumed: Callable[[], Offsets],
        interfaces: SystemInterfaces,
    ) -> Self:
        """Make the parts. Nothing is started. `consumed` returns the offsets for auto-commit."""
        network, entropy, clock = (
            interfaces.network,
            interfaces.entropy or RealEntropy(),
            interfaces.clock or RealClock(),
        )
        cluster = Cluster(settings, ClientConnections(settings, network, entropy))
        wake_event, subscription = WakeEvent(), Subscription()
        connections = ClientConnections(settings, network, entropy)
        fetcher = Fetcher(settings, cluster, connections, subscription, wake_event)
        offset_lookup = OffsetLookup(settings, cluster)
        interceptors = ConsumerInterceptors(settings["interceptor.classes"])
        coordinator = member = commits = auto_commit = None
        if settings["group.id"] is not None:
            group_connections = ClientConnections(settings, network, entropy)
            coordinator = GroupCoordinator(settings, cluster, group_connections)
            parts = (settings, cluster, coordinator, subscription, wake_event, group_connections)
            member = (
                ClassicMember(*parts)
                if settings["group.protocol"] == "classic"
                else ConsumerMember(*parts, entropy)
            )
            commits = OffsetCommits(cluster, coordinator, member, interceptors)
            if settings["enable.auto.commit"]:
                auto_commit = member.auto_commit = AutoCommit(settings, commits, consumed)
        position_resolver = PositionResolver(
            settings, cluster, subscription, offset_lookup, commits, wake_event, clock
        )
        return cls(
            cluster,
            wake_event,
            subscription,
            connections,
            fetcher,
            offset_lookup,
            position_resolver,
            interceptors,
            coordinator,
            member,
            commits,
            auto_commit,
        )
