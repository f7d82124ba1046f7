"""The pure parts of a producer, put together without loop, clock or socket."""

from typing import Any

from ottla.client.cluster import Leader
from ottla.client.producer.accumulator import Accumulator
from ottla.client.producer.batch import Batch
from ottla.client.producer.identity import Identity
from ottla.client.producer.lane import Lane, Road
from ottla.client.producer.partitioner import Choice, Partitioner
from ottla.client.producer.sequence import ProducerId
from ottla.client.producer.settlement import Answer, Settlement
from ottla.client.producer.tally import Statistics
from ottla.client.producer.terms import Terms
from ottla.client.producer.transaction import Transaction
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


def terms(**settings: Any) -> Terms:
    return Terms.of(resolve("producer", "localhost:9092", None, settings))


class Bench:
    """An accumulator with a topic, and what else a test of it needs."""

    def __init__(
        self, partitions: int = 1, own: Partitioner | None = None, seed: int = 1, **settings: Any
    ) -> None:
        self.clock = Clock()
        self.terms = terms(**settings)
        self.choice = Choice(
            own,
            ignores_keys=self.terms.ignores_keys,
            adaptive=self.terms.is_adaptive,
            chance=SeededEntropy(seed),
        )
        self.accumulator = Accumulator(self.terms, self.choice, self.clock.monotonic, self.clock.time_ns)
        self.woken = 0
        self.accumulator.wake = self._woken
        self.statistics = Statistics()
        name = self.terms.transactional_id
        self.transaction = None if name is None else Transaction(name)
        self.identity: Identity | None = None
        if self.terms.is_idempotent:
            self.identity = Identity(transactional=name is not None)
            self.identity.producer = ME
        self.settlement = Settlement(
            self.terms,
            self.accumulator,
            self.identity,
            self.transaction,
            self.statistics,
            lambda attempts: 0.1,
        )
        self.lead({number: Leader(1, 0) for number in range(partitions)})

    def _woken(self) -> None:
        self.woken += 1

    def lead(self, leaders: dict[int, Leader]) -> None:
        self.accumulator.learn(TOPIC, leaders, self.clock.now)

    @property
    def road(self) -> Road:
        return self.accumulator.roads[TOPIC]

    def lane(self, partition: int = 0) -> Lane:
        return self.road.lanes[partition]

    # The gate, as the sender is one.

    def may_leave(self, lane: Lane, batch: Batch) -> bool:
        if self.transaction is not None and not self.transaction.may_leave(lane):
            return False
        return self.identity is None or self.identity.may_leave(lane, batch)

    def leave(self, lane: Lane, batch: Batch) -> int:
        if self.identity is not None:
            self.identity.leave(lane, batch)
        batch.encode(self.terms.codec, self.terms.level, self.transaction is not None)
        return len(batch.buffer)

    def take(self, node: int = 1, size_max: int | None = None) -> list[Batch]:
        """What a request would carry now."""
        schedule = self.accumulator.schedule
        schedule.advance(self.clock.now)
        return schedule.take(node, size_max or self.terms.request_bytes_max, self, self.clock.now)

    def settle(self, batch: Batch, code: ErrorCode = ErrorCode.NONE, **more: Any) -> None:
        """Have a broker answer."""
        self.settlement.settle(batch, Answer(code, **more), self.clock.now)

    def settle_well(self, *batches: Batch) -> None:
        """Have a broker take batches."""
        for batch in batches:
            self.settle(batch, base_offset=0)

    def flush(self) -> None:
        """Have nothing linger."""
        self.accumulator.schedule.hurry(self.clock.now)


def records_of(batch: Batch) -> list[Record]:
    """The records of a batch that has left, after its sum was checked."""
    assert crc_ok(batch.buffer, 0, len(batch.buffer))
    assert Header.parse(batch.buffer).size == len(batch.buffer)
    return read_records(batch.buffer)
