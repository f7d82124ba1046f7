"""Calls about offsets of share groups, without asyncio."""

from collections.abc import Iterable, Mapping

from ottla.client.admin.share_offsets import ShareOffset
from ottla.client.admin.share_offsets import ShareOffsets as AsyncShareOffsets
from ottla.client.blocking.part import BlockingPart
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration
from ottla.client.record import TopicPartition


@renamed_timeouts
class ShareOffsets(BlockingPart[AsyncShareOffsets]):
    """Offsets of share groups, as `admin.share_offsets`. Every call raises Refused, TimedOut or SomeFailed."""

    def describe(
        self,
        groups: str | Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        timeout: Duration | None = None,
    ) -> dict[str, dict[TopicPartition, ShareOffset]]:
        """Return the start offsets of groups, for all partitions or for those mapped to each group."""
        return self._run(self._part.describe(groups, timeout=timeout))

    def alter(
        self, group: str, offsets: Mapping[TopicPartition, int], *, timeout: Duration | None = None
    ) -> None:
        """Set the start offsets of a group. It must not have members."""
        self._run(self._part.alter(group, offsets, timeout=timeout))

    def delete(self, group: str, topics: str | Iterable[str], *, timeout: Duration | None = None) -> None:
        """Delete the start offsets of a group for topics. It must not have members."""
        self._run(self._part.delete(group, topics, timeout=timeout))
