"""Calls about offsets, without asyncio."""

from collections.abc import Iterable, Mapping

from ottla.client.admin.offsets import Isolation, ListedOffset
from ottla.client.admin.offsets import Offsets as AsyncOffsets
from ottla.client.admin.reset import Move, Reset
from ottla.client.blocking.part import BlockingPart
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration, Time
from ottla.client.record import OffsetAndMetadata, TopicPartition


@renamed_timeouts
class Offsets(BlockingPart[AsyncOffsets]):
    """Offsets, as `admin.offsets`. Every call raises Refused, TimedOut or, for several keys, SomeFailed."""

    def committed(
        self,
        group: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout: Duration | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of a group, for all partitions or for these. Those without one are left out."""
        return self._run(
            self._part.committed(group, partitions, require_stable=require_stable, timeout=timeout)
        )

    def committed_by(
        self,
        groups: str | Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        timeout: Duration | None = None,
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        """Return the committed offsets of several groups, for all partitions or for those mapped to each group."""
        return self._run(self._part.committed_by(groups, require_stable=require_stable, timeout=timeout))

    def alter(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout: Duration | None = None,
    ) -> None:
        """Commit offsets for a group. It must not have members."""
        self._run(self._part.alter(group, offsets, timeout=timeout))

    def delete(
        self, group: str, partitions: Iterable[TopicPartition], *, timeout: Duration | None = None
    ) -> None:
        """Delete committed offsets of a group. Its members must not be subscribed to the topics."""
        self._run(self._part.delete(group, partitions, timeout=timeout))

    def list(
        self,
        specs: Mapping[TopicPartition, Time],
        *,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        timeout: Duration | None = None,
    ) -> dict[TopicPartition, ListedOffset]:
        """Return the offset at an OffsetSpec, or of the first record at or after a time, for each partition."""
        return self._run(self._part.list(specs, isolation=isolation, timeout=timeout))

    def plan_reset(
        self,
        group: str,
        to: Reset,
        of: Iterable[str | TopicPartition] | None = None,
        *,
        timeout: Duration | None = None,
    ) -> dict[TopicPartition, Move]:
        """Return the moves that `reset` would make, and change nothing.

        `of` has the topics and partitions to reset; without it, all partitions with a committed offset are reset.
        """
        return self._run(self._part.plan_reset(group, to, of, timeout=timeout))

    def reset(
        self,
        group: str,
        to: Reset,
        of: Iterable[str | TopicPartition] | None = None,
        *,
        timeout: Duration | None = None,
    ) -> dict[TopicPartition, Move]:
        """Reset the offsets of a group as `plan_reset` shows, and return the moves. The group must not have members."""
        return self._run(self._part.reset(group, to, of, timeout=timeout))
