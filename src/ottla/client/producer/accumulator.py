"""From a record to bytes in the batch of its partition.

A1  A record that fits an open batch costs one frame: it is encoded into the batch's buffer on the spot, and nothing
    of it is kept besides.
A2  Everything that may refuse a record, apart from its own shape, is asked when a batch is begun. So whoever
    changes what may be sent (`close`, the end of a transaction, an error) seals all batches: `seal_all`.
A3  Memory is taken for a batch when it is begun and given back when it ends.

Varints are written from a table, and what records of one millisecond have in common is kept. It looks worse than
calls; a record of 100 bytes takes half the time.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from ottla.client.cluster import NO_TOPIC_ID, Leader
from ottla.client.duration import Time, time_ms
from ottla.client.errors import BufferFull, ClientError, RecordTooLarge, SerializationFailed, TopicUnknown
from ottla.client.producer.batch import NARROW_END, WIDE_END, Batch, Filled
from ottla.client.producer.delivery import Delivery
from ottla.client.producer.lane import NO_NODE, Lane, Road
from ottla.client.producer.memory import Memory
from ottla.client.producer.partitioner import Choice
from ottla.client.producer.pending import Pending
from ottla.client.producer.schedule import Schedule
from ottla.client.producer.sequence import NONE_ACKED
from ottla.client.producer.terms import Terms
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
        "_choice",
        "_clock",
        "_known",
        "_terms",
        "_time_ns",
        "admit",
        "dropped",
        "granted",
        "guard",
        "lacking",
        "memory",
        "pending",
        "pressing",
        "roads",
        "schedule",
        "wake",
    )

    def __init__(
        self,
        terms: Terms,
        choice: Choice,
        clock: Callable[[], float],
        time_ns: Callable[[], int],
    ) -> None:
        """`clock` gives monotonic seconds, `time_ns` the time of day."""
        self._terms = terms
        self._choice = choice
        self._clock = clock
        self._time_ns = time_ns
        # Called when there is something to do.
        self.wake: Callable[[], object] = lambda: None
        self.roads: dict[str, Road] = {}
        self._known: dict[str, Road] = {}
        self.memory = Memory(terms.memory_bytes)
        self.pending = Pending(terms.delivery_s)
        self.schedule = Schedule(terms.linger_s, one_at_a_time=terms.in_flight_max == 1)
        # Called before a batch is begun, to raise if none may be; and when it is.
        self.guard: Callable[[], object] | None = None
        self.admit: Callable[[Lane], object] | None = None
        # Bytes set aside for the next batch that is begun, and how many one lacked that could not be.
        self.granted = 0
        self.lacking = 0
        # Records that `fail` has ended.
        self.dropped = 0
        # Whether a full batch waits for the sender to have a turn.
        self.pressing = False

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
        """Take a record; BufferFull, TopicUnknown, RecordTooLarge or what the guard raises says why not."""
        road = self._known.get(topic)
        if road is None:
            raise _unknown_topic(topic)
        if key is not None and key.__class__ is not bytes:
            key = plain(key, "key")
        if partition is None:
            lane = road.sticky if key is None else road.by_key.get(key)
            if lane is None:
                lane = self._choice.route(road, key, value)
        else:
            try:
                if not 0 <= partition < road.count:
                    raise _unknown_partition(topic, partition, road.count)
                lane = road.lanes[partition]
            except TypeError:
                raise SerializationFailed(f"{partition!r:.100} is no number of a partition") from None
        if timestamp is None:
            timestamp = self._time_ns() // 1_000_000
        elif timestamp.__class__ is not int or timestamp < 0:
            timestamp = _timestamp(timestamp)
        if headers or value.__class__ is not bytes:
            front, value, tail = _dress(key, value, headers)
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
        batch = lane.open
        if batch is None or len(batch.buffer) + size > batch.limit:
            sticks = partition is None and self._choice.sticks(key)
            batch = self._room(lane, sticks, timestamp, size)
        place = batch.count
        if timestamp != batch.time or place >= batch.number_end:
            batch.stamp(timestamp)
        size += batch.around
        batch.buffer += b"".join(
            (
                _SIZED[size] if size < _SHORT_END else zigzag(size) + _ZERO,
                batch.time_bytes,
                _SHORT[place] if place < _SHORT_END else zigzag(place),
                front,
                value,
                tail,
            )
        )
        batch.count = place + 1
        return _delivery(Delivery, (batch, place, timestamp))

    def _room(self, lane: Lane, sticks: bool, timestamp: int, size: int) -> Batch:
        """Return a batch with room for a record: of another lane, too, where the record sticks to none."""
        batch = lane.open
        if batch is not None:
            self._full(lane)
            if sticks:
                lane = self._choice.sticky(lane.road)
                batch = lane.open
                if batch is not None and len(batch.buffer) + size <= batch.limit:
                    return batch
                if batch is not None:
                    self._full(lane)
        if self.guard is not None:
            self.guard()
        return self._begin(lane, timestamp, size + BATCH_HEADER_SIZE + OVERHEAD_BYTES_MAX)

    def _full(self, lane: Lane) -> None:
        lane.seal()
        self.schedule.poke(lane, self._clock())
        self.pressing = True
        self.wake()

    def _begin(self, lane: Lane, timestamp: int, size: int) -> Batch:
        terms = self._terms
        if size > terms.request_bytes_max:
            raise _too_large(size, "max.request.size", terms.request_bytes_max)
        if size > terms.memory_bytes:
            raise _too_large(size, "buffer.memory", terms.memory_bytes)
        limit = min(terms.batch_bytes, terms.request_bytes_max)
        if terms.codec:
            # More records than that many bytes, as long as compression is expected to get them down to it.
            limit = int((limit - BATCH_HEADER_SIZE) / (lane.road.ratio * _RATIO_MARGIN)) + BATCH_HEADER_SIZE
        reserved = min(max(limit, size), terms.memory_bytes)
        self._reserve(reserved)
        if self.admit is not None:
            self.admit(lane)
        batch = Batch(lane, limit - OVERHEAD_BYTES_MAX, timestamp, self._clock(), reserved)
        lane.batches.append(batch)
        lane.open = batch
        self.pending.add(batch)
        self.schedule.added(batch)
        self.wake()
        return batch

    def adopt(self, topic: str, partition: int, filled: Filled) -> Batch:
        """Take records that are a batch already, which costs no memory of this side: whoever made it has it anyway."""
        road = self._known.get(topic)
        if road is None:
            raise _unknown_topic(topic)
        if not 0 <= partition < road.count:
            raise _unknown_partition(topic, partition, road.count)
        lane, now = road.lanes[partition], self._clock()
        lane.seal()
        if self.guard is not None:
            self.guard()
        if self.admit is not None:
            self.admit(lane)
        batch = Batch(lane, 0, filled.base_timestamp, now, 0)
        batch.take(filled)
        lane.batches.append(batch)
        self.pending.add(batch)
        self.schedule.poke(lane, now)
        self.wake()
        return batch

    def _reserve(self, size: int) -> None:
        granted, self.granted = self.granted, 0
        if granted >= size:
            self.memory.give(granted - size)
            return
        if granted:
            self.memory.give(granted)
        if not self.memory.take(size):
            self.lacking = size
            message = f"{self.memory.free} of {self.memory.total} bytes are free, and {size} are needed"
            raise BufferFull(message, hint="await send or flush, or raise buffer.memory")

    def give_back(self) -> None:
        """Give back what was set aside for a batch that was not begun."""
        if self.granted:
            granted, self.granted = self.granted, 0
            self.memory.give(granted)

    # Batches

    def end(
        self,
        batch: Batch,
        error: ClientError | None,
        base_offset: int = -1,
        append_time: int = -1,
        errors: dict[int, ClientError] | None = None,
    ) -> None:
        """End a batch that is in no lane any more."""
        root = batch.end(error, base_offset, append_time, errors)
        if root is not None:
            self.pending.remove(root)
            self.memory.give(root.reserved)
        batch.tell()

    def fail(self, error: ClientError, *, numbered: bool = True) -> None:
        """End every batch, or those only that were never sent, and take no more records into them."""
        for batch in self.pending:
            if numbered or not batch.has_sequence:
                self.schedule.drop(batch)
                batch.lane.sequences.remove(batch)
                self.dropped += batch.count
                self.end(batch, error)

    def seal_all(self) -> None:
        """Have the next record of each partition begin a batch, and so ask the guard."""
        now = self._clock()
        for lane in tuple(self.schedule.busy):
            if lane.open is not None:
                lane.seal()
                self.schedule.poke(lane, now)
        self.wake()

    def look_again(self) -> None:
        """Have every lane looked at: something has happened that concerns all."""
        self.schedule.poke_all(self._clock())
        self.wake()

    # Partitions

    def learn(
        self, topic: str, leaders: Mapping[int, Leader], now: float, topic_id: bytes = NO_TOPIC_ID
    ) -> None:
        """Take in who leads the partitions of a topic; nobody knows when there are none."""
        road = self.roads.get(topic)
        if not leaders:
            self._known.pop(topic, None)
            for lane in () if road is None else road.lanes.values():
                self.schedule.lead(lane, NO_NODE, lane.leader_epoch, now)
            return
        if road is None:
            road = self.roads[topic] = Road(topic, self._terms.batch_bytes)
        if road.topic_id != topic_id:
            # It was made anew, and nobody there has heard of this producer.
            road.topic_id = topic_id
            for lane in road.lanes.values():
                lane.sequences.last_acked = NONE_ACKED
        road.resize(len(leaders))
        road.available = [number for number, leader in leaders.items() if leader.node != NO_NODE]
        for partition, leader in leaders.items():
            self.schedule.lead(road.lane(partition), leader.node, leader.epoch, now)
        if road.sticky is not None and road.sticky.leader == NO_NODE:
            road.sticky = None
        self._known[topic] = road

    def forget(self, topic: str) -> None:
        """Take in that a topic is not known any more."""
        self.learn(topic, {}, self._clock())
        road = self.roads.get(topic)
        # A broker does not forget what was numbered, and so this producer does not either.
        if road is not None and not any(lane.batches or lane.is_numbered for lane in road.lanes.values()):
            del self.roads[topic]


def _timestamp(given: Any) -> int:
    """Return the milliseconds of a datetime."""
    if not isinstance(given, datetime) or (timestamp := time_ms(given)) < 0:
        hint = "give milliseconds since 1970, or a datetime"
        raise SerializationFailed(f"{given!r} is not a time", hint=hint)
    return timestamp


def _dress(key: bytes | None, value: Any, headers: RecordHeaders) -> tuple[bytes, bytes, bytes]:
    """Return what stands before the value, the value, and what stands behind it."""
    if value is None:
        length, value = _NULL, b""
    else:
        value = plain(value, "value")
        length = zigzag(len(value))
    front = _NULL + length if key is None else zigzag(len(key)) + key + length
    return front, value, encode_headers(headers) if headers else _ZERO


def plain(data: Any, what: str) -> bytes:
    """Return what has bytes as bytes; SerializationFailed for what has none."""
    if data.__class__ is bytes:
        return data
    try:
        return bytes(memoryview(data))
    except TypeError:
        message = f"the {what} is {type(data).__name__}, not bytes"
        raise SerializationFailed(message, hint=f"encode it, or set {what}_serializer") from None


def encode_headers(headers: RecordHeaders) -> bytes:
    """Return headers in wire form."""
    parts = [zigzag(len(headers))]
    try:
        for name, value in headers:
            encoded = name.encode("utf-8", "surrogateescape")
            parts += (zigzag(len(encoded)), encoded)
            parts += (_NULL,) if value is None else (zigzag(len(value)), plain(value, "value"))
    except (AttributeError, TypeError, ValueError):
        message = f"{headers!r} are no headers"
        raise SerializationFailed(message, hint='give pairs, as in [("name", b"value")]') from None
    return b"".join(parts)


def _unknown_topic(topic: str) -> ClientError:
    if not isinstance(topic, str) or not topic:
        return SerializationFailed(f"{topic!r:.100} is no name of a topic", hint="a name is a text")
    hint = "await send, or partitions_for first; send_nowait does not wait for metadata"
    return TopicUnknown(f"topic {topic} is not known yet", hint=hint)


def _unknown_partition(topic: str, partition: int, count: int) -> TopicUnknown:
    return TopicUnknown(
        f"topic {topic} has {count} partitions, as far as is known, and no partition {partition}"
    )


def _too_large(size: int, name: str, limit: int) -> RecordTooLarge:
    return RecordTooLarge(f"the record takes {size} bytes, and {name} is {limit}", hint=f"raise {name}")
