"""The fetchers of this broker, one a leader."""

from collections.abc import Callable, Mapping
from typing import Any

from ottla.broker.broker import Timers
from ottla.broker.fetcher import Fetcher
from ottla.channel.peers import Peer
from ottla.partition.partition import Partition
from ottla.partition.throttle import Throttle
from ottla.world.worker import Worker


class Fetchers:
    """Who is followed, by leader. `peer` makes the connection to a broker."""

    def __init__(
        self,
        node_id: int,
        broker_epoch: Callable[[], int],
        peer: Callable[[int], Peer],
        timers: Timers,
        values: Callable[[], Mapping[str, Any]],
        report: Callable[[str], None],
        throttle: Throttle,
        worker: Worker | None = None,
    ) -> None:
        def make(leader: int) -> Fetcher:
            return Fetcher(node_id, broker_epoch, peer(leader), timers, values, report, throttle, worker)

        self._make = make
        self._fetchers: dict[int, Fetcher] = {}
        self._leaders: dict[Partition, int] = {}

    def follow(self, partition: Partition, leader: int) -> None:
        """Fetch a partition from its leader, from its own end on, in its present epoch."""
        if self._leaders.get(partition, leader) != leader:
            self.leave(partition)
        self._leaders[partition] = leader
        fetcher = self._fetchers.get(leader)
        if fetcher is None:
            fetcher = self._fetchers[leader] = self._make(leader)
        fetcher.follow(partition)

    def leave(self, partition: Partition) -> None:
        """Fetch a partition no more."""
        leader = self._leaders.pop(partition, None)
        if leader is not None:
            fetcher = self._fetchers[leader]
            fetcher.leave(partition)
            if not len(fetcher):
                del self._fetchers[leader]
                fetcher.close()

    def is_lost(self, leader: int) -> bool:
        """Whether a leader has hung up on us, and not been reached since, of late."""
        fetcher = self._fetchers.get(leader)
        return fetcher is not None and fetcher.is_lost

    def close(self) -> None:
        """Stop following anybody."""
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._fetchers.clear()
        self._leaders.clear()
