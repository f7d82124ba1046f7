"""The pure parts of a producer, put together without loop, clock or socket."""

from typing import Any

from ottla.client.cluster import Leader
from ottla.client.producer.accumulator import Accumulator
from ottla.client.producer.batch import ProducerBatch
from ottla.client.producer.batch_completion import BatchCompletion, BatchResponse
from ottla.client.producer.config import ProducerConfig
from ottla.client.producer.identity import ProducerIdentity
from ottla.client.producer.partition_queue import PartitionQueue, TopicQueues
from ottla.client.producer.partitioner import Partitioner, PartitionSelector
from ottla.client.producer.sequence import ProducerId
from ottla.client.producer.statistics import Statistics
from ottla.client.producer.transaction import ProducerTransaction
from ottla.client.settings import resolve
from ottla.wire.batch import Batch as Header
from ottla.wire.batch import crc_ok, read_records
from ottla.wire.errors import ErrorCode
from ottla.wire.record import Record
from ottla.world.entropy import SeededEntropy

TOPIC = "t"
ME = ProducerId(7, 0)


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def time_ns(self) -> int:
        return int((1_700_000_000 + self.now) * 1_000_000_000)


def config(**settings: Any) -> ProducerConfig:
    return ProducerConfig.of(resolve("producer", "localhost:9092", None, settings))


class Bench:
    """An accumulator with a topic, and what else a test of it needs."""

    def __init__(
        self, partitions: int = 1, custom: Partitioner | None = None, seed: int = 1, **settings: Any
    ) -> None:
        self.clock = Clock()
        self.config = config(**settings)
        self.selector = PartitionSelector(
            custom,
            ignores_keys=self.config.ignores_keys,
            adaptive=self.config.is_adaptive,
            entropy=SeededEntropy(seed),
        )
        self.accumulator = Accumulator(self.config, self.selector, self.clock.monotonic, self.clock.time_ns)
        self.woken = 0
        self.accumulator.wake = self._woken
        self.statistics = Statistics()
        name = self.config.transactional_id
        self.transaction = None if name is None else ProducerTransaction(name)
        self.identity: ProducerIdentity | None = None
        if self.config.is_idempotent:
            self.identity = ProducerIdentity(transactional=name is not None)
            self.identity.producer = ME
        self.completion = BatchCompletion(
            self.config,
            self.accumulator,
            self.identity,
            self.transaction,
            self.statistics,
            lambda attempts: 0.1,
        )
        self.set_leader({number: Leader(1, 0) for number in range(partitions)})

    def _woken(self) -> None:
        self.woken += 1

    def set_leader(self, leaders: dict[int, Leader]) -> None:
        self.accumulator.update_leaders(TOPIC, leaders, self.clock.now)

    @property
    def topic_queues(self) -> TopicQueues:
        return self.accumulator.topics[TOPIC]

    def queue(self, partition: int = 0) -> PartitionQueue:
        return self.topic_queues.queues[partition]

    # The gate, as the sender is one.

    def may_send(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        if self.transaction is not None and not self.transaction.may_send(queue):
            return False
        return self.identity is None or self.identity.may_send(queue, batch)

    def prepare_batch(self, queue: PartitionQueue, batch: ProducerBatch) -> int:
        if self.identity is not None:
            self.identity.assign_sequence(queue, batch)
        batch.encode(self.config.codec, self.config.level, self.transaction is not None)
        return len(batch.buffer)

    def take(self, node: int = 1, size_max: int | None = None) -> list[ProducerBatch]:
        """What a request would carry now."""
        schedule = self.accumulator.schedule
        schedule.advance(self.clock.now)
        return schedule.take(node, size_max or self.config.request_bytes_max, self, self.clock.now)

    def handle_response(self, batch: ProducerBatch, code: ErrorCode = ErrorCode.NONE, **more: Any) -> None:
        """Have a broker answer."""
        self.completion.handle_response(batch, BatchResponse(code, **more), self.clock.now)

    def settle_well(self, *batches: ProducerBatch) -> None:
        """Have a broker take batches."""
        for batch in batches:
            self.handle_response(batch, base_offset=0)

    def flush(self) -> None:
        """Have nothing linger."""
        self.accumulator.schedule.suspend_linger(self.clock.now)


def records_of(batch: ProducerBatch) -> list[Record]:
    """The records of a batch that has left, after its sum was checked."""
    assert crc_ok(batch.buffer, 0, len(batch.buffer))
    assert Header.parse(batch.buffer).size == len(batch.buffer)
    return read_records(batch.buffer)
