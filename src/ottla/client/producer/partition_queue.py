"""The queue of batches of one partition, and the queues of one topic.

N1  `batches` are in the order in which they are sent. Numbered batches come before those without numbers.
N2  `open` is the last of `batches` while it takes records, else None.
N3  Records without a key go to one queue until it has had `batch.size` bytes, and then to another (KIP-794).
"""

from collections import deque

from ottla.client.cluster import NO_TOPIC_ID
from ottla.client.producer.batch import ProducerBatch
from ottla.client.producer.sequence import PartitionSequences
from ottla.client.record import TopicPartition

NO_NODE = -1
# How many keys are cached with their partition: a look-up is faster than the hash.
_KEYS_MAX = 16_384


class PartitionQueue:
    """The batches that wait to be sent to one partition, and its sequence numbers."""

    __slots__ = (
        "batches",
        "in_flight",
        "leader",
        "leader_epoch",
        "open",
        "partition",
        "sequences",
        "topic",
        "topic_queues",
    )

    def __init__(self, topic_queues: "TopicQueues", partition: int) -> None:
        self.topic_queues = topic_queues
        self.topic = topic_queues.topic
        self.partition = partition
        self.batches: deque[ProducerBatch] = deque()
        self.open: ProducerBatch | None = None
        self.in_flight = 0
        self.leader = NO_NODE
        self.leader_epoch = -1
        self.sequences = PartitionSequences()

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def is_numbered(self) -> bool:
        """Whether any of its batches has sequence numbers."""
        return self.sequences.producer.is_known or self.in_flight > 0

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    def seal(self) -> None:
        """Close the open batch: it takes no more records."""
        batch, self.open = self.open, None
        topic_queues = self.topic_queues
        if batch is not None and topic_queues.sticky_queue is self:
            topic_queues.sticky_bytes += int(len(batch.buffer) * topic_queues.ratio)
            if topic_queues.sticky_bytes >= topic_queues.sticky_bytes_max:
                topic_queues.sticky_queue = None

    def put_back(self, batch: ProducerBatch) -> None:
        """Put a batch that is retried back in front of the batches that follow it."""
        order = self.sequences.in_flight
        if batch not in order:
            self.batches.appendleft(batch)
            return
        earlier = set(map(id, order[: order.index(batch)]))
        index = 0
        for other in self.batches:
            if id(other) not in earlier:
                break
            index += 1
        self.batches.insert(index, batch)


class TopicQueues:
    """The queues of one topic, and the one for records without a key."""

    __slots__ = (
        "available",
        "by_key",
        "count",
        "queues",
        "ratio",
        "sticky_bytes",
        "sticky_bytes_max",
        "sticky_queue",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, sticky_bytes_max: int) -> None:
        self.topic = topic
        self.topic_id = NO_TOPIC_ID
        self.sticky_bytes_max = sticky_bytes_max
        self.queues: dict[int, PartitionQueue] = {}
        self.count = 0
        self.available: list[int] = []
        self.by_key: dict[bytes, PartitionQueue] = {}
        self.sticky_queue: PartitionQueue | None = None
        self.sticky_bytes = 0
        # The expected compression ratio.
        self.ratio = 1.0

    def queue(self, partition: int) -> PartitionQueue:
        """Return the queue of a partition. Makes it if it does not exist."""
        queue = self.queues.get(partition)
        if queue is None:
            queue = self.queues[partition] = PartitionQueue(self, partition)
        return queue

    def remember(self, key: bytes, queue: PartitionQueue) -> None:
        """Cache the queue of a key."""
        if len(self.by_key) >= _KEYS_MAX:
            self.by_key.clear()
        self.by_key[key] = queue

    def resize(self, count: int) -> None:
        """Set the number of partitions."""
        if count != self.count:
            self.count = count
            self.by_key.clear()
            for partition in range(count):
                self.queue(partition)

    def observe(self, ratio: float) -> None:
        """Update the expected compression ratio: fast if it gets worse, slowly if it gets better."""
        if ratio > self.ratio:
            self.ratio = max(self.ratio + 0.05, ratio)
        else:
            self.ratio = max(self.ratio - 0.005, ratio)
