"""Lanes: what is bound for one partition; and the lanes of a topic, with the one that records without a key take.

N1  `batches` are in the order in which they are to leave; those that were numbered come before those that were not.
N2  `open` is the last of `batches` while it takes records, else None.
N3  Records without a key stay with one lane until it has had `batch.size` bytes, and then move on (KIP-794).
"""

from collections import deque

from ottla.client.cluster import NO_TOPIC_ID
from ottla.client.producer.batch import Batch
from ottla.client.producer.sequence import Sequences
from ottla.client.record import TopicPartition

NO_NODE = -1
# How many keys' partitions are remembered; working one out takes longer than looking it up.
_KEYS_MAX = 16_384


class Lane:
    """What is bound for one partition."""

    __slots__ = (
        "batches",
        "in_flight",
        "leader",
        "leader_epoch",
        "open",
        "partition",
        "road",
        "sequences",
        "topic",
    )

    def __init__(self, road: "Road", partition: int) -> None:
        self.road = road
        self.topic = road.topic
        self.partition = partition
        self.batches: deque[Batch] = deque()
        self.open: Batch | None = None
        self.in_flight = 0
        self.leader = NO_NODE
        self.leader_epoch = -1
        self.sequences = Sequences()

    @property
    def place(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def is_numbered(self) -> bool:
        """Whether anything of it bears numbers."""
        return self.sequences.producer.is_known or self.in_flight > 0

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    def seal(self) -> None:
        """Have the open batch take no more records."""
        batch, self.open = self.open, None
        road = self.road
        if batch is not None and road.sticky is self:
            road.sticky_bytes += int(len(batch.buffer) * road.ratio)
            if road.sticky_bytes >= road.sticky_bytes_max:
                road.sticky = None

    def put_back(self, batch: Batch) -> None:
        """Queue a batch that has to be sent again before whatever was to leave after it."""
        order = self.sequences.in_flight
        if batch not in order:
            self.batches.appendleft(batch)
            return
        earlier = set(map(id, order[: order.index(batch)]))
        place = 0
        for other in self.batches:
            if id(other) not in earlier:
                break
            place += 1
        self.batches.insert(place, batch)


class Road:
    """The lanes of one topic."""

    __slots__ = (
        "available",
        "by_key",
        "count",
        "lanes",
        "ratio",
        "sticky",
        "sticky_bytes",
        "sticky_bytes_max",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, sticky_bytes_max: int) -> None:
        self.topic = topic
        self.topic_id = NO_TOPIC_ID
        self.sticky_bytes_max = sticky_bytes_max
        self.lanes: dict[int, Lane] = {}
        self.count = 0
        self.available: list[int] = []
        self.by_key: dict[bytes, Lane] = {}
        self.sticky: Lane | None = None
        self.sticky_bytes = 0
        # What compression is expected to leave of a record.
        self.ratio = 1.0

    def lane(self, partition: int) -> Lane:
        """Return the lane of a partition, made if need be."""
        lane = self.lanes.get(partition)
        if lane is None:
            lane = self.lanes[partition] = Lane(self, partition)
        return lane

    def remember(self, key: bytes, lane: Lane) -> None:
        """Keep the lane of a key at hand."""
        if len(self.by_key) >= _KEYS_MAX:
            self.by_key.clear()
        self.by_key[key] = lane

    def resize(self, count: int) -> None:
        """Take in how many partitions the topic has."""
        if count != self.count:
            self.count = count
            self.by_key.clear()
            for partition in range(count):
                self.lane(partition)

    def observe(self, ratio: float) -> None:
        """Take in what compression has left of a batch: bad news is believed at once, good news bit by bit."""
        if ratio > self.ratio:
            self.ratio = max(self.ratio + 0.05, ratio)
        else:
            self.ratio = max(self.ratio - 0.005, ratio)
