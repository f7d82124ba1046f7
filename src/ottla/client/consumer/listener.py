"""What an application can do when partitions are assigned to it, or taken away."""

from collections.abc import Awaitable, Collection
from typing import Any, NamedTuple

from ottla.client.deprecation import deprecated, rename_overridden
from ottla.client.record import TopicPartition


class RebalanceListener:
    """Called during `poll` when partitions are assigned to this consumer or taken away from it.

    Override the methods you need; each may be plain or `async def`. If a method raises, `poll` raises its error after
    the rebalance, which takes place nevertheless.
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        rename_overridden(
            cls,
            on_assigned="on_partitions_assigned",
            on_revoked="on_partitions_revoked",
            on_lost="on_partitions_lost",
        )

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """Partitions were assigned. None of their records was returned yet, so a method can seek here."""
        return None

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """Partitions will be assigned to another consumer. Their offsets can still be committed here."""
        return None

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """Partitions were taken away, so their offsets cannot be committed. Calls `on_partitions_revoked`."""
        return self.on_partitions_revoked(partitions)

    @deprecated("RebalanceListener.on_assigned is deprecated: use on_partitions_assigned")
    def on_assigned(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """Call `on_partitions_assigned`, which replaces this method."""
        return self.on_partitions_assigned(partitions)

    @deprecated("RebalanceListener.on_revoked is deprecated: use on_partitions_revoked")
    def on_revoked(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """Call `on_partitions_revoked`, which replaces this method."""
        return self.on_partitions_revoked(partitions)

    @deprecated("RebalanceListener.on_lost is deprecated: use on_partitions_lost")
    def on_lost(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """Call `on_partitions_lost`, which replaces this method."""
        return self.on_partitions_lost(partitions)


class GroupMetadata(NamedTuple):
    """The membership of a consumer in its group, for the producer that commits its offsets in a transaction."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
