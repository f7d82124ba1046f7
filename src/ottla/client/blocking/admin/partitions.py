"""Calls about partitions, without asyncio."""

from collections.abc import Iterable, Mapping, Sequence

from ottla.client.admin.partitions import ElectionType, Reassignment
from ottla.client.admin.partitions import Partitions as AsyncPartitions
from ottla.client.blocking.part import BlockingPart
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration
from ottla.client.record import TopicPartition


@renamed_timeouts
class Partitions(BlockingPart[AsyncPartitions]):
    """Partitions, as `admin.partitions`. Every call raises Refused, TimedOut or, for several, SomeFailed."""

    def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout: Duration | None = None
    ) -> dict[TopicPartition, int]:
        """Delete the records before an offset, or EVERYTHING; return the new first offset of each partition."""
        return self._run(self._part.delete_records(before, timeout=timeout))

    def elect(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        kind: ElectionType = ElectionType.PREFERRED,
        *,
        timeout: Duration | None = None,
    ) -> dict[TopicPartition, bool]:
        """Elect leaders of partitions, or of all; return for each whether it has a new leader."""
        return self._run(self._part.elect(partitions, kind, timeout=timeout))

    def reassign(
        self,
        replicas: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout: Duration | None = None,
    ) -> None:
        """Begin to move partitions to brokers, the preferred leader first. None cancels a move."""
        self._run(
            self._part.reassign(
                replicas, allow_replication_factor_change=allow_replication_factor_change, timeout=timeout
            )
        )

    def reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout: Duration | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """Return the partitions that are being moved: all, or those among `partitions`."""
        return self._run(self._part.reassignments(partitions, timeout=timeout))
