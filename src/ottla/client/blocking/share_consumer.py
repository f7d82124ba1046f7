"""The share consumer without asyncio.

with ShareConsumer("localhost:9092", group_id="workers") as consumer:
    consumer.subscribe(["jobs"])
    for record in consumer:
        work(record)
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from ottla.client.blocking.client import BlockingClient
from ottla.client.consumer.share.acknowledgement import AcknowledgeType
from ottla.client.consumer.share.consumer import ShareConsumer as AsyncShareConsumer
from ottla.client.consumer.share.share_fetcher import AcknowledgementCallback
from ottla.client.deprecation import deprecated, renamed_durations
from ottla.client.duration import Duration
from ottla.client.errors import ClientError
from ottla.client.record import Record, TopicPartition


class ShareConsumer(BlockingClient[AsyncShareConsumer]):
    """Reads records as a member of a share group. Open it with `with`, or with `open` and `close`.

    Each record is delivered to one member, which acknowledges it. Use the consumer from one task at a time.

    Settings are Kafka's: `settings` has them under Kafka's names, keywords have underscores for the dots. Raises
    SettingError for a name that does not exist or a value that is not allowed.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        /,
        **keywords: Any,
    ) -> None:
        super().__init__(lambda: AsyncShareConsumer(bootstrap_servers, settings, **keywords))

    def open(self) -> Self:
        """Connect to a broker; `with` does this too.

        Raises NoBroker if no broker answers within default.api.timeout.ms.
        """
        self._run(self._client.open())
        return self

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    def close(self, *, timeout: Duration = 30.0) -> None:
        """Send acknowledgements, release all other records, leave the group, and disconnect."""
        self._close(self._client.close(timeout=timeout))

    def subscribe(self, topics: Iterable[str]) -> None:
        """Read topics as a member of the share group. Without topics the call unsubscribes."""
        self._run(self._client.subscribe(topics))

    def unsubscribe(self) -> None:
        """Stop reading, and leave the group."""
        self._run(self._client.unsubscribe())

    @property
    def subscription(self) -> frozenset[str]:
        """The subscribed topics."""
        return self._call(lambda: self._client.subscription)

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    def poll(self, *, timeout: Duration | None = 1.0) -> list[Record]:
        """Return records that were acquired for this consumer, up to max.poll.records; none after the timeout.

        If share.acknowledgement.mode is implicit, this call accepts the records of the poll before. If it is explicit
        and one of them was not acknowledged, this call raises WrongState. Raises SerializationFailed for a record that
        it has released, Malformed for a batch that it has rejected, and Refused; records before are returned first.
        """
        return self._run(self._client.poll(timeout=timeout))

    def acknowledge(
        self, record: Record | tuple[str, int, int], kind: AcknowledgeType = AcknowledgeType.ACCEPT
    ) -> None:
        """Acknowledge a record of the last poll. The acknowledgement is sent with the next poll or commit.

        Name a record that `poll` raised an error for by topic, partition and offset. Raises WrongState if
        share.acknowledgement.mode is implicit, and for a record that the last poll did not return.
        """
        self._call(self._client.acknowledge, record, kind)

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    def commit(self, *, timeout: Duration | None = None) -> dict[TopicPartition, ClientError | None]:
        """Send the acknowledgements, wait for the answers, and return for each partition an error, or None."""
        return self._run(self._client.commit(timeout=timeout))

    def commit_nowait(self) -> None:
        """Send the acknowledgements without waiting. The acknowledgement callback is called with the outcome."""
        self._call(self._client.commit_nowait)

    def set_acknowledgement_callback(self, callback: AcknowledgementCallback | None) -> None:
        """Set a function that is called as `callback({partition: offsets}, error)` after each acknowledgement."""
        self._call(self._client.set_acknowledgement_callback, callback)

    @property
    def acquisition_lock_timeout(self) -> float | None:
        """How many seconds a record stays acquired by this consumer. None before the first fetch."""
        return self._call(lambda: self._client.acquisition_lock_timeout)

    @property
    @deprecated(
        "ShareConsumer.acquisition_lock_timeout_ms is deprecated: use acquisition_lock_timeout, in seconds"
    )
    def acquisition_lock_timeout_ms(self) -> int | None:
        """How long a record stays acquired, in milliseconds. Deprecated: use `acquisition_lock_timeout`."""
        limit = self.acquisition_lock_timeout
        return None if limit is None else round(limit * 1000)

    def __iter__(self) -> Iterator[Record]:
        """Iterate over the records, waiting for more until the consumer is closed. Raises the errors of `poll`."""
        while True:
            yield from self.poll(timeout=None)

    def statistics(self) -> dict[str, Any]:
        """Return counts of records, fetches and acknowledgements, and the state of the group."""
        return self._call(self._client.statistics)
