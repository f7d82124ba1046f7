"""Calls about producers, without asyncio."""

from collections.abc import Iterable

from ottla.client.admin.producers import Producers as AsyncProducers
from ottla.client.admin.producers import ProducerState
from ottla.client.blocking.part import BlockingPart
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration
from ottla.client.record import TopicPartition


@renamed_timeouts
class Producers(BlockingPart[AsyncProducers]):
    """Producers, as `admin.producers`."""

    def describe(
        self,
        partitions: Iterable[TopicPartition],
        *,
        broker: int | None = None,
        timeout: Duration | None = None,
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        """Return the active producers of partitions, as their leaders know them, or as `broker` does.

        Raises Refused, TimedOut or, for several partitions, SomeFailed.
        """
        return self._run(self._part.describe(partitions, broker=broker, timeout=timeout))
