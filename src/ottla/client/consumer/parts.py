"""Puts the parts of a consumer together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from ottla.client.cluster import Cluster
from ottla.client.consumer.autocommit import AutoCommit
from ottla.client.consumer.bell import Bell
from ottla.client.consumer.commits import Commits, Offsets
from ottla.client.consumer.coordinator import Coordinator
from ottla.client.consumer.fetcher import Fetcher
from ottla.client.consumer.finder import Finder
from ottla.client.consumer.group.classic import ClassicMember
from ottla.client.consumer.group.consumer import ConsumerMember
from ottla.client.consumer.interceptor import Interceptors
from ottla.client.consumer.positions import Positions
from ottla.client.consumer.subscription import Subscription
from ottla.client.doors import Doors
from ottla.client.links import Links
from ottla.world.clock import RealClock
from ottla.world.entropy import RealEntropy


@dataclass(slots=True)
class Parts:
    """What a consumer is made of. The last four are None without a group, and the very last without auto-commit."""

    cluster: Cluster
    bell: Bell
    subscription: Subscription
    links: Links
    fetcher: Fetcher
    finder: Finder
    positions: Positions
    interceptors: Interceptors
    coordinator: Coordinator | None = None
    member: ClassicMember | ConsumerMember | None = None
    commits: Commits | None = None
    auto: AutoCommit | None = None

    @classmethod
    def of(
        cls,
        settings: Mapping[str, Any],
        consumed: Callable[[], Offsets],
        doors: Doors,
    ) -> Self:
        """Make the parts; nothing is started. `consumed` tells what was handed out, for auto-commit."""
        network, chance, clock = doors.network, doors.entropy or RealEntropy(), doors.clock or RealClock()
        cluster = Cluster(settings, Links(settings, network, chance))
        bell, subscription = Bell(), Subscription()
        links = Links(settings, network, chance)
        fetcher = Fetcher(settings, cluster, links, subscription, bell)
        finder = Finder(settings, cluster)
        interceptors = Interceptors(settings["interceptor.classes"])
        coordinator = member = commits = auto = None
        if settings["group.id"] is not None:
            group_links = Links(settings, network, chance)
            coordinator = Coordinator(settings, cluster, group_links)
            parts = (settings, cluster, coordinator, subscription, bell, group_links)
            member = (
                ClassicMember(*parts)
                if settings["group.protocol"] == "classic"
                else ConsumerMember(*parts, chance)
            )
            commits = Commits(cluster, coordinator, member, interceptors)
            if settings["enable.auto.commit"]:
                auto = member.auto = AutoCommit(settings, commits, consumed)
        positions = Positions(settings, cluster, subscription, finder, commits, bell, clock)
        return cls(
            cluster,
            bell,
            subscription,
            links,
            fetcher,
            finder,
            positions,
            interceptors,
            coordinator,
            member,
            commits,
            auto,
        )
