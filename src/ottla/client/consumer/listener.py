"""What an application may want to do when partitions come and go."""

from collections.abc import Awaitable, Collection
from typing import NamedTuple

from ottla.client.record import TopicPartition


class RebalanceListener:
    """Told of partitions that this consumer gets or gives up, within `poll` and before it returns records of them.

    Override what is needed; each method may be plain or `async def`. An error that one of them raises comes out of
    `poll` once the rebalance is through; the partitions have changed hands all the same.
    """

    def on_assigned(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """Partitions were added. Nothing of them was read yet, so this is the place to seek."""
        return None

    def on_revoked(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """Partitions are about to go to somebody else. They are still ours: offsets may be committed."""
        return None

    def on_lost(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """Partitions are gone, and may be somebody else's already, so nothing can be committed. Calls `on_revoked`."""
        return self.on_revoked(partitions)


class GroupMetadata(NamedTuple):
    """Who a consumer is within its group, for the producer that commits its offsets in a transaction."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
