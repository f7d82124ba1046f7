"""The consumer without asyncio.

    with Consumer("localhost:9092", group_id="readers") as consumer:
        consumer.subscribe(["greetings"])
        for record in consumer:
            print(record.value)

A rebalance listener is called in the thread that polls, so it may commit and seek.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from ottla.client.blocking.client import BlockingClient
from ottla.client.consumer.commits import CommitCallback
from ottla.client.consumer.consumer import Consumer as AsyncConsumer
from ottla.client.consumer.listener import GroupMetadata, RebalanceListener
from ottla.client.consumer.offset_lookup import OffsetAndTimestamp
from ottla.client.deprecation import renamed_durations, renamed_parameter
from ottla.client.duration import Duration, Time
from ottla.client.record import OffsetAndMetadata, Record, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa


class Consumer(BlockingClient[AsyncConsumer]):
    """Reads records of topics. Open it with `with`, or with `open` and `close`. Use it from one task at a time.

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
        super().__init__(lambda: AsyncConsumer(bootstrap_servers, settings, **keywords))

    def open(self) -> Self:
        """Connect to a broker; `with` does this too.

        Raises NoBroker if no broker answers within default.api.timeout.ms.
        """
        self._run(self._client.open())
        return self

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    def close(self, *, timeout: Duration = 30.0, leave_group: bool | None = None) -> None:
        """Commit what was returned, if enable.auto.commit is on, leave the group, and disconnect.

        A static member (group.instance.id) stays in its group until session.timeout.ms; `leave_group` overrides this.
        An error of a rebalance listener is raised after everything is closed.
        """
        self._close(self._client.close(timeout=timeout, leave_group=leave_group))

    def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Read topics as a member of the group: the named ones, or all whose whole name matches a pattern.

        The broker matches a pattern that is a string, in RE2's syntax, if group.protocol is consumer. This client
        matches every other pattern. Without topics and pattern the call unsubscribes. Raises WrongState without a
        group.id, or if partitions were assigned by hand.
        """
        calling = None if listener is None else _CallingListener(listener, self)
        self._run(self._client.subscribe(topics, pattern=pattern, listener=calling))

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read exactly these partitions, without a group that assigns them. Offsets can still be committed for a group.

        Raises WrongState if the consumer is subscribed to topics.
        """
        self._call(self._client.assign, partitions)

    def unsubscribe(self) -> None:
        """Stop reading, and leave the group. Raises the errors of the rebalance listener."""
        self._run(self._client.unsubscribe())

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are assigned to this consumer now."""
        return self._call(lambda: self._client.assignment)

    @property
    def subscription(self) -> frozenset[str]:
        """The subscribed topics. With a pattern that this client matches, the topics that match."""
        return self._call(lambda: self._client.subscription)

    @renamed_durations("timeout_ms", "max_records", timeout_ms="timeout")
    def poll(self, *, timeout: Duration | None = 1.0, max_records: int | None = None) -> list[Record]:
        """Return the next records as soon as there are any, or an empty list after the timeout.

        `max_records` is max.poll.records unless given. With a timeout of None it waits until there are records.
        Rebalances happen during this call, and it raises the errors of their listeners. Raises NoOffset, Malformed,
        SerializationFailed, Refused or Fenced; records before the failure are returned first.
        """
        return self._run(self._client.poll(timeout=timeout, max_records=max_records))

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    def poll_arrow(
        self, *, timeout: Duration | None = 1.0, max_records: int | None = None, max_bytes: int | None = None
    ) -> "pa.RecordBatch | None":
        """Return the next records as one Arrow record batch, or None after the timeout.

        No Python object is made for a record, and deserializers and interceptors are not applied. `max_bytes` limits
        the compressed size of the batches that are used; it is fetch.max.bytes unless given. Raises the errors of
        `poll`, and ImportError without pyarrow.
        """
        return self._run(
            self._client.poll_arrow(timeout=timeout, max_records=max_records, max_bytes=max_bytes)
        )

    def __iter__(self) -> Iterator[Record]:
        """Iterate over the records, waiting for more until the consumer is closed. Raises the errors of `poll`."""
        client = self._client
        while True:
            pending = client._pending
            for record in pending:
                yield record
                if pending is not client._pending:
                    break  # the application has called seek or assign meanwhile
            else:
                self._run(client._fill())

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        *,
        timeout: Duration | None = None,
    ) -> None:
        """Commit these offsets, or those of all records that were returned, and wait until they are committed.

        An offset is that of the next record to read. Without a timeout, default.api.timeout.ms is the limit. Raises
        CommitFailed if the group was rebalanced without this consumer, Refused with REBALANCE_IN_PROGRESS during a
        rebalance, Fenced if another consumer has the same group.instance.id, and TimedOut.
        """
        self._run(self._client.commit(offsets, timeout=timeout))

    def commit_nowait(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commit these offsets, or those of all records that were returned, without waiting and without retries.

        `callback(offsets, error)` is called with the outcome; the error is None if they were committed.
        """
        self._call(self._client.commit_nowait, offsets, callback)

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    def committed(
        self, partitions: Iterable[TopicPartition | tuple[str, int]], *, timeout: Duration | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the offset that the group has committed for each partition, or None. Raises TimedOut, Refused."""
        return self._run(self._client.committed(partitions, timeout=timeout))

    @property
    def group_metadata(self) -> GroupMetadata:
        """The membership of this consumer, for `send_offsets_to_transaction`. Raises WrongState without a group."""
        return self._call(lambda: self._client.group_metadata)

    def enforce_rebalance(self, reason: str = "") -> None:
        """Start a rebalance of the group with the next poll. It has no effect if group.protocol is consumer."""
        self._call(self._client.enforce_rebalance, reason)

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    def partitions_for(self, topic: str, *, timeout: Duration | None = None) -> list[int]:
        """Return the partitions of a topic. Raises TimedOut, and Refused if the topic does not exist."""
        return self._run(self._client.partitions_for(topic, timeout=timeout))

    def statistics(self) -> dict[str, Any]:
        """Return counts of records and fetches, the position and lag of each partition, and the state of the group."""
        return self._call(self._client.statistics)

    def seek(
        self,
        partition: TopicPartition | tuple[str, int],
        offset: int | OffsetAndMetadata,
        leader_epoch: int | None = None,
    ) -> None:
        """Continue reading a partition at an offset. Raises WrongState if it is not assigned to this consumer."""
        self._call(self._client.seek, partition, offset, leader_epoch)

    def seek_to_beginning(self, partitions: Iterable[TopicPartition | tuple[str, int]] = ()) -> None:
        """Continue reading at the first record of these partitions, or of all assigned ones."""
        self._call(self._client.seek_to_beginning, partitions)

    def seek_to_end(self, partitions: Iterable[TopicPartition | tuple[str, int]] = ()) -> None:
        """Continue reading at the end of these partitions, or of all assigned ones. The end is looked up later."""
        self._call(self._client.seek_to_end, partitions)

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    def position(
        self, partition: TopicPartition | tuple[str, int], *, timeout: Duration | None = None
    ) -> int:
        """Return the offset of the next record to be returned. Raises TimedOut, NoOffset."""
        return self._run(self._client.position(partition, timeout=timeout))

    @renamed_parameter("times_ms", "times")
    @renamed_durations("timeout_ms", timeout_ms="timeout")
    def offsets_for_times(
        self, times: Mapping[TopicPartition, Time], *, timeout: Duration | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first record of each partition that is not older than a time, or None if all are older.

        A time is in milliseconds since 1970, or a datetime. Raises TimedOut, Refused.
        """
        return self._run(self._client.offsets_for_times(times, timeout=timeout))

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    def beginning_offsets(
        self, partitions: Iterable[TopicPartition | tuple[str, int]], *, timeout: Duration | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset of the first record of each partition. Raises TimedOut, Refused."""
        return self._run(self._client.beginning_offsets(partitions, timeout=timeout))

    @renamed_durations("timeout_ms", timeout_ms="timeout")
    def end_offsets(
        self, partitions: Iterable[TopicPartition | tuple[str, int]], *, timeout: Duration | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last record of each partition that can be read. Raises TimedOut, Refused.

        If isolation.level is read_committed, this is the offset of the first open transaction.
        """
        return self._run(self._client.end_offsets(partitions, timeout=timeout))

    def lag(self, partition: TopicPartition | tuple[str, int]) -> int | None:
        """Return the number of offsets not read yet in a partition, as of the last fetch; None before the first."""
        return self._call(self._client.lag, partition)

    def pause(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Return no records of these partitions until they are resumed. They stay assigned."""
        self._call(self._client.pause, partitions)

    def resume(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Continue with partitions that were paused."""
        self._call(self._client.resume, partitions)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The paused partitions."""
        return self._call(lambda: self._client.paused)


class _CallingListener(RebalanceListener):
    """A listener whose methods are called in the thread that waits for the loop."""

    def __init__(self, listener: RebalanceListener, client: BlockingClient[AsyncConsumer]) -> None:
        self._listener = listener
        self._client = client

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """Pass it on."""
        return self._have(self._listener.on_partitions_assigned, partitions)

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """Pass it on."""
        return self._have(self._listener.on_partitions_revoked, partitions)

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """Pass it on."""
        return self._have(self._listener.on_partitions_lost, partitions)

    async def _have(
        self, method: Callable[[Collection[TopicPartition]], Any], partitions: Collection[TopicPartition]
    ) -> None:
        waiting = self._client._waiting
        work = partial(method, partitions)
        result = await waiting[-1].have(work) if waiting else work()
        if inspect.isawaitable(result):
            await result
