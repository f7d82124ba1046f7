"""Calls about log directories, without asyncio."""

from collections.abc import Iterable, Mapping

from ottla.client.admin.log_dirs import LogDir, Replica, ReplicaPlace
from ottla.client.admin.log_dirs import LogDirs as AsyncLogDirs
from ottla.client.blocking.part import BlockingPart
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration
from ottla.client.record import TopicPartition


@renamed_timeouts
class LogDirs(BlockingPart[AsyncLogDirs]):
    """Log directories, as `admin.log_dirs`. Every call raises Refused, TimedOut or, for several keys, SomeFailed."""

    def describe(
        self,
        brokers: Iterable[int] | None = None,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout: Duration | None = None,
    ) -> dict[int, dict[str, LogDir]]:
        """Return the log directories of brokers by path, with their replicas. Without brokers, those of all."""
        return self._run(self._part.describe(brokers, partitions, timeout=timeout))

    def find(
        self, replicas: Iterable[Replica], *, timeout: Duration | None = None
    ) -> dict[Replica, ReplicaPlace]:
        """Return the directories of replicas."""
        return self._run(self._part.find(replicas, timeout=timeout))

    def move(self, directories: Mapping[Replica, str], *, timeout: Duration | None = None) -> None:
        """Move replicas to other directories of their broker. The call returns when the moves have begun."""
        self._run(self._part.move(directories, timeout=timeout))
