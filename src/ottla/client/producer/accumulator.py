"""From a record to bytes in the batch of its partition.

A1  A record that fits an open batch costs one frame: it is encoded into the batch's buffer on the spot, and nothing
    of it is kept besides.
A2  Everything that may refuse a record, apart from its own contents, is checked when a batch is begun. So code that
    changes what may be sent (`close`, the end of a transaction, an error) seals all batches: `seal_all`.
A3  Memory is allocated for a batch when it is begun, and freed when the batch ends.

Varints are read from a table, and what records of one millisecond have in common is cached. This is longer than
calls to functions, but a record of 100 bytes takes half the time.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from ottla.client.cluster import NO_TOPIC_ID, Leader
from ottla.client.duration import Time, time_ms
from ottla.client.errors import BufferFull, ClientError, RecordTooLarge, SerializationFailed, TopicUnknown
from ottla.client.producer.batch import NARROW_END, WIDE_END, EncodedRecords, ProducerBatch
from ottla.client.producer.buffer_pool import BufferPool
from ottla.client.producer.config import ProducerConfig
from ottla.client.producer.delivery import Delivery
from ottla.client.producer.incomplete_batches import IncompleteBatches
from ottla.client.producer.partition_queue import NO_NODE, PartitionQueue, TopicQueues
from ottla.client.producer.partitioner import PartitionSelector
from ottla.client.producer.send_schedule import SendSchedule
from ottla.client.producer.sequence import NONE_ACKED
from ottla.wire.batch import BATCH_HEADER_SIZE
from ottla.wire.record import zigzag

# The most bytes around key, value and headers: size, attributes, time, number, two lengths and a count.
OVERHEAD_BYTES_MAX = 5 + 1 + 10 + 5 + 5 + 5 + 5
# Compression may do worse than it did before.
_RATIO_MARGIN = 1.05
_SHORT_END = WIDE_END
_SHORT = tuple(
    bytes((number << 1,)) if number < NARROW_END else bytes((number << 1 & 0x7F | 0x80, number >> 6))
    for number in range(_SHORT_END)
)
# The size of a record, and its attributes, which mean nothing yet.
_SIZED = tuple(each + b"\0" for each in _SHORT)
_NULL = b"\x01"
_ZERO = b"\x00"
# No key, and the size of the value.
_KEYLESS = tuple(_NULL + each for each in _SHORT)
_delivery = tuple.__new__

RecordHeaders: TypeAlias = Sequence[tuple[str, bytes | None]]
"""The headers of a record: pairs of a name and bytes, or None for a null."""


class Accumulator:
    """The records that wait to be sent."""

    __slots__ = (
        "_clock",
        "_config",
        "_selector",
        "_time_ns",
        "_writable",
        "buffer_pool",
        "check_may_append",
        "dropped",
        "has_full_batch",
        "incomplete",
        "missing_bytes",
        "on_new_batch",
        "reserved_bytes",
        "schedule",
        "topics",
        "wake",
    )

    def __init__(
        self,
        config: ProducerConfig,
        selector: PartitionSelector,
        clock: Callable[[], float],
        time_ns: Callable[[], int],
    ) -> None:
        """`clock` gives monotonic seconds, `time_ns` the time of day."""
        self._config = config
        self._selector = selector
        self._clock = clock
        self._time_ns = time_ns
        # Called when there is something to do.
        self.wake: Callable[[], object] = lambda: None
        self.topics: dict[str, TopicQueues] = {}
        self._writable: dict[str, TopicQueues] = {}
        self.buffer_pool = BufferPool(config.memory_bytes)
        self.incomplete = IncompleteBatches(config.delivery_s)
        self.schedule = SendSchedule(config.linger_s, one_at_a_time=config.in_flight_max == 1)
        # The first is called before a batch is begun, and raises if none may be. The second is called with its queue.
        self.check_may_append: Callable[[], object] | None = None
        self.on_new_batch: Callable[[PartitionQueue], object] | None = None
        # Bytes reserved for the next batch, and how many bytes the last refused batch needed.
        self.reserved_bytes = 0
        self.missing_bytes = 0
        # Records that `fail` has failed.
        self.dropped = 0
        # Whether a full batch waits until the sender runs.
        self.has_full_batch = False

    # Records

    def append(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp: Time | None = None,
        headers: RecordHeaders = (),
    ) -> Delivery:
        """Add a record. Raises BufferFull, TopicUnknown, RecordTooLarge, and the errors of `check_may_append`."""
        topic_queues = self._writable.get(topic)
        if topic_queues is None:
            raise _unknown_topic(topic)
        if key is not None and key.__class__ is not bytes:
            key = as_bytes(key, "key")
        if partition is None:
            queue = topic_queues.sticky_queue if key is None else topic_queues.by_key.get(key)
            if queue is None:
                queue = self._selector.select(topic_queues, key, value)
        else:
            try:
                if not 0 <= partition < topic_queues.count:
                    raise _unknown_partition(topic, partition, topic_queues.count)
                queue = topic_queues.queues[partition]
            except TypeError:
                raise SerializationFailed(f"{partition!r:.100} is not a partition number") from None
        if timestamp is None:
            timestamp = self._time_ns() // 1_000_000
        elif timestamp.__class__ is not int or timestamp < 0:
            timestamp = _timestamp(timestamp)
        if headers or value.__class__ is not bytes:
            front, value, tail = _encode_parts(key, value, headers)
            size = len(front) + len(value) + len(tail)
        else:
            size, tail = len(value), _ZERO
            if key is None:
                front = _KEYLESS[size] if size < _SHORT_END else _NULL + zigzag(size)
            else:
                front = b"".join(
                    (
                        _SHORT[len(key)] if len(key) < _SHORT_END else zigzag(len(key)),
                        key,
                        _SHORT[size] if size < _SHORT_END else zigzag(size),
                    )
                )
            size += len(front) + 1
        batch = queue.open
        if batch is None or len(batch.buffer) + size > batch.limit:
            is_sticky = partition is None and self._selector.is_sticky(key)
            batch = self._batch_with_room(queue, is_sticky, timestamp, size)
        index = batch.count
        if timestamp != batch.time or index >= batch.number_end:
            batch.set_time(timestamp)
        size += batch.overhead_bytes
        batch.buffer += b"".join(
            (
                _SIZED[size] if size < _SHORT_END else zigzag(size) + _ZERO,
                batch.time_bytes,
                _SHORT[index] if index < _SHORT_END else zigzag(index),
                front,
                value,
                tail,
            )
        )
        batch.count = index + 1
        return _delivery(Delivery, (batch, index, timestamp))

    def _batch_with_room(
        self, queue: PartitionQueue, is_sticky: bool, timestamp: int, size: int
    ) -> ProducerBatch:
        """Return a batch with room for a record. A record without a partition may go to another queue."""
        batch = queue.open
        if batch is not None:
            self._seal_full(queue)
            if is_sticky:
                queue = self._selector.sticky_queue(queue.topic_queues)
                batch = queue.open
                if batch is not None and len(batch.buffer) + size <= batch.limit:
                    return batch
                if batch is not None:
                    self._seal_full(queue)
        if self.check_may_append is not None:
            self.check_may_append()
        return self._begin(queue, timestamp, size + BATCH_HEADER_SIZE + OVERHEAD_BYTES_MAX)

    def _seal_full(self, queue: PartitionQueue) -> None:
        queue.seal()
        self.schedule.recheck(queue, self._clock())
        self.has_full_batch = True
        self.wake()

    def _begin(self, queue: PartitionQueue, timestamp: int, size: int) -> ProducerBatch:
        config = self._config
        if size > config.request_bytes_max:
            raise _too_large(size, "max.request.size", config.request_bytes_max)
        if size > config.memory_bytes:
            raise _too_large(size, "buffer.memory", config.memory_bytes)
        limit = min(config.batch_bytes, config.request_bytes_max)
        if config.codec:
            # The records may be larger than the limit, as long as compression is expected to bring them below it.
            limit = (
                int((limit - BATCH_HEADER_SIZE) / (queue.topic_queues.ratio * _RATIO_MARGIN))
                + BATCH_HEADER_SIZE
            )
        reserved = min(max(limit, size), config.memory_bytes)
        self._reserve(reserved)
        if self.on_new_batch is not None:
            self.on_new_batch(queue)
        batch = ProducerBatch(queue, limit - OVERHEAD_BYTES_MAX, timestamp, self._clock(), reserved)
        queue.batches.append(batch)
        queue.open = batch
        self.incomplete.add(batch)
        self.schedule.add_batch(batch)
        self.wake()
        return batch

    def append_encoded(self, topic: str, partition: int, encoded: EncodedRecords) -> ProducerBatch:
        """Add a batch that is already encoded. It takes no memory of the buffer pool: its caller holds it anyway."""
        topic_queues = self._writable.get(topic)
        if topic_queues is None:
            raise _unknown_topic(topic)
        if not 0 <= partition < topic_queues.count:
            raise _unknown_partition(topic, partition, topic_queues.count)
        queue, now = topic_queues.queues[partition], self._clock()
        queue.seal()
        if self.check_may_append is not None:
            self.check_may_append()
        if self.on_new_batch is not None:
            self.on_new_batch(queue)
        batch = ProducerBatch(queue, 0, encoded.base_timestamp, now, 0)
        batch.fill(encoded)
        queue.batches.append(batch)
        self.incomplete.add(batch)
        self.schedule.recheck(queue, now)
        self.wake()
        return batch

    def _reserve(self, size: int) -> None:
        granted, self.reserved_bytes = self.reserved_bytes, 0
        if granted >= size:
            self.buffer_pool.deallocate(granted - size)
            return
        if granted:
            self.buffer_pool.deallocate(granted)
        if not self.buffer_pool.allocate(size):
            self.missing_bytes = size
            message = (
                f"{self.buffer_pool.free} of {self.buffer_pool.total} bytes are free, and {size} are needed"
            )
            raise BufferFull(message, hint="await send or flush, or raise buffer.memory")

    def give_back(self) -> None:
        """Free the bytes that were reserved for a batch that was not begun."""
        if self.reserved_bytes:
            granted, self.reserved_bytes = self.reserved_bytes, 0
            self.buffer_pool.deallocate(granted)

    # Batches

    def end(
        self,
        batch: ProducerBatch,
        error: ClientError | None,
        base_offset: int = -1,
        append_time: int = -1,
        errors: dict[int, ClientError] | None = None,
    ) -> None:
        """End a batch that is no longer in a queue."""
        root = batch.end(error, base_offset, append_time, errors)
        if root is not None:
            self.incomplete.remove(root)
            self.buffer_pool.deallocate(root.reserved)
        batch.notify()

    def fail(self, error: ClientError, *, numbered: bool = True) -> None:
        """Fail every batch, or only those that were never sent."""
        for batch in self.incomplete:
            if numbered or not batch.has_sequence:
                self.schedule.drop(batch)
                batch.queue.sequences.remove(batch)
                self.dropped += batch.count
                self.end(batch, error)

    def seal_all(self) -> None:
        """Seal all open batches, so that the next record of each partition is checked (A2)."""
        now = self._clock()
        for queue in tuple(self.schedule.nonempty):
            if queue.open is not None:
                queue.seal()
                self.schedule.recheck(queue, now)
        self.wake()

    def recheck_all(self) -> None:
        """Check all queues again after a change that concerns all of them."""
        self.schedule.recheck_all(self._clock())
        self.wake()

    # Partitions

    def update_leaders(
        self, topic: str, leaders: Mapping[int, Leader], now: float, topic_id: bytes = NO_TOPIC_ID
    ) -> None:
        """Set the leaders of a topic's partitions. An empty mapping means that they are not known."""
        topic_queues = self.topics.get(topic)
        if not leaders:
            self._writable.pop(topic, None)
            for queue in () if topic_queues is None else topic_queues.queues.values():
                self.schedule.set_leader(queue, NO_NODE, queue.leader_epoch, now)
            return
        if topic_queues is None:
            topic_queues = self.topics[topic] = TopicQueues(topic, self._config.batch_bytes)
        if topic_queues.topic_id != topic_id:
            # The topic was deleted and created again: no broker has a state of this producer for it.
            topic_queues.topic_id = topic_id
            for queue in topic_queues.queues.values():
                queue.sequences.last_acked = NONE_ACKED
        topic_queues.resize(len(leaders))
        topic_queues.available = [number for number, leader in leaders.items() if leader.node != NO_NODE]
        for partition, leader in leaders.items():
            self.schedule.set_leader(topic_queues.queue(partition), leader.node, leader.epoch, now)
        if topic_queues.sticky_queue is not None and topic_queues.sticky_queue.leader == NO_NODE:
            topic_queues.sticky_queue = None
        self._writable[topic] = topic_queues

    def forget(self, topic: str) -> None:
        """Handle that a topic is no longer known."""
        self.update_leaders(topic, {}, self._clock())
        topic_queues = self.topics.get(topic)
        # A broker keeps the sequence numbers, so the producer keeps them too.
        if topic_queues is not None and not any(
            queue.batches or queue.is_numbered for queue in topic_queues.queues.values()
        ):
            del self.topics[topic]


def _timestamp(given: Any) -> int:
    """Return the milliseconds of a datetime."""
    if not isinstance(given, datetime) or (timestamp := time_ms(given)) < 0:
        hint = "give milliseconds since 1970, or a datetime"
        raise SerializationFailed(f"{given!r} is not a time", hint=hint)
    return timestamp


def _encode_parts(key: bytes | None, value: Any, headers: RecordHeaders) -> tuple[bytes, bytes, bytes]:
    """Return the bytes before the value, the value, and the bytes after it."""
    if value is None:
        length, value = _NULL, b""
    else:
        value = as_bytes(value, "value")
        length = zigzag(len(value))
    front = _NULL + length if key is None else zigzag(len(key)) + key + length
    return front, value, encode_headers(headers) if headers else _ZERO


def as_bytes(data: Any, what: str) -> bytes:
    """Return a bytes-like object as bytes. Raises SerializationFailed for anything else."""
    if data.__class__ is bytes:
        return data
    try:
        return bytes(memoryview(data))
    except TypeError:
        message = f"the {what} is {type(data).__name__}, not bytes"
        raise SerializationFailed(message, hint=f"encode it, or set {what}_serializer") from None


def encode_headers(headers: RecordHeaders) -> bytes:
    """Return headers in Kafka's format."""
    parts = [zigzag(len(headers))]
    try:
        for name, value in headers:
            encoded = name.encode("utf-8", "surrogateescape")
            parts += (zigzag(len(encoded)), encoded)
            parts += (_NULL,) if value is None else (zigzag(len(value)), as_bytes(value, "value"))
    except (AttributeError, TypeError, ValueError):
        message = f"{headers!r} are no headers"
        raise SerializationFailed(message, hint='give pairs, as in [("name", b"value")]') from None
    return b"".join(parts)


def _unknown_topic(topic: str) -> ClientError:
    if not isinstance(topic, str) or not topic:
        return SerializationFailed(f"{topic!r:.100} is not a topic name", hint="a name is a str")
    hint = "await send, or partitions_for first; send_nowait does not wait for metadata"
    return TopicUnknown(f"topic {topic} is not known yet", hint=hint)


def _unknown_partition(topic: str, partition: int, count: int) -> TopicUnknown:
    return TopicUnknown(
        f"topic {topic} has {count} partitions, as far as is known, and no partition {partition}"
    )


def _too_large(size: int, name: str, limit: int) -> RecordTooLarge:
    return RecordTooLarge(f"the record takes {size} bytes, and {name} is {limit}", hint=f"raise {name}")
