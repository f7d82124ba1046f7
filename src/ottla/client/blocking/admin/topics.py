"""Calls about topics, without asyncio."""

from collections.abc import Iterable, Mapping

from ottla.client.admin.topic import CreatedTopic, NewPartitions, NewTopic, TopicDescription, TopicListing
from ottla.client.admin.topics import Topics as AsyncTopics
from ottla.client.blocking.part import BlockingPart
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration


@renamed_timeouts
class Topics(BlockingPart[AsyncTopics]):
    """Topics, as `admin.topics`. Every call raises Refused, TimedOut or, for several topics, SomeFailed."""

    def create(
        self,
        topics: str | NewTopic | Iterable[str | NewTopic],
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, object] | None = None,
        validate_only: bool = False,
        timeout: Duration | None = None,
    ) -> dict[str, CreatedTopic]:
        """Create topics, and return them by name.

        `partitions`, `replication_factor` and `configs` are those of the topics given by name only; -1 means the
        broker's default. With `validate_only` the topics are checked and not created.
        """
        return self._run(
            self._part.create(
                topics,
                partitions=partitions,
                replication_factor=replication_factor,
                configs=configs,
                validate_only=validate_only,
                timeout=timeout,
            )
        )

    def delete(
        self,
        topics: str | Iterable[str] = (),
        *,
        ids: str | Iterable[str] = (),
        timeout: Duration | None = None,
    ) -> None:
        """Delete topics by name or by id, with all their records."""
        self._run(self._part.delete(topics, ids=ids, timeout=timeout))

    def list(self, *, internal: bool = False, timeout: Duration | None = None) -> dict[str, TopicListing]:
        """Return all topics by name. Internal topics are left out unless `internal` is set."""
        return self._run(self._part.list(internal=internal, timeout=timeout))

    def describe(
        self,
        topics: str | Iterable[str] = (),
        *,
        ids: str | Iterable[str] = (),
        operations: bool = False,
        page: int = 2000,
        timeout: Duration | None = None,
    ) -> dict[str, TopicDescription]:
        """Return topics with their partitions. `page` is the most partitions that a broker returns in one answer.

        With `operations`, the operations that this client may perform on each topic are returned, too.
        """
        return self._run(
            self._part.describe(topics, ids=ids, operations=operations, page=page, timeout=timeout)
        )

    def add_partitions(
        self,
        counts: Mapping[str, int | NewPartitions],
        *,
        validate_only: bool = False,
        timeout: Duration | None = None,
    ) -> None:
        """Add partitions to topics. `counts` has the new total number of partitions of each topic."""
        self._run(self._part.add_partitions(counts, validate_only=validate_only, timeout=timeout))
