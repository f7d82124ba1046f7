"""Random faults, and in the end every record is there once, and in order.

The producer's pure parts talk to a partition that checks numbers as a broker does, over lines that lose requests
and answers, while the leader moves. Nothing here waits: time is a number.
"""

import random
from collections import deque
from dataclasses import dataclass, field

import pytest

from ottla.client.cluster import Leader
from ottla.client.producer.batch import ProducerBatch
from ottla.client.producer.batch_completion import BatchResponse
from ottla.client.producer.delivery import Delivery
from ottla.wire.batch import Batch as Header
from ottla.wire.batch import read_records
from ottla.wire.errors import ErrorCode
from tests.unit.client.producer.parts import TOPIC, Bench

NODES = (1, 2)
IN_FLIGHT_MAX = 5


@dataclass
class Log:
    """A partition, with what a broker remembers of producers: the last five batches of each."""

    values: list[bytes | None] = field(default_factory=list)
    remembered: dict[int, deque[tuple[int, int, int, int]]] = field(default_factory=dict)

    def append(self, data: bytes) -> tuple[ErrorCode, int]:
        header = Header.parse(data)
        known = self.remembered.get(header.producer_id)
        if known:
            epoch, _, last, _ = known[-1]
            if header.producer_epoch < epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH, -1
            if header.producer_epoch > epoch:
                if header.base_sequence != 0:
                    return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
                known.clear()
            else:
                for _, first, end, offset in known:
                    if (first, end) == (header.base_sequence, header.last_sequence):
                        return ErrorCode.NONE, offset
                if header.base_sequence != last + 1:
                    return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        offset = len(self.values)
        self.values += [record.value for record in read_records(data)]
        row = header.producer_epoch, header.base_sequence, header.last_sequence, offset
        self.remembered.setdefault(header.producer_id, deque(maxlen=5)).append(row)
        return ErrorCode.NONE, offset


class World:
    """A producer, two brokers and the lines between them."""

    def __init__(
        self, seed: int, partitions: int, *, large: bool = False, timeout_ms: int = 2_000_000_000
    ) -> None:
        self.entropy = random.Random(seed)
        self.bench = Bench(
            partitions, batch_size=300, linger_ms=1, request_timeout_ms=1, delivery_timeout_ms=timeout_ms
        )
        self.deliveries: list[list[Delivery]] = [[] for _ in range(partitions)]
        self.logs = [Log() for _ in range(partitions)]
        self.leaders = [Leader(1, 0) for _ in range(partitions)]
        self.lines: dict[int, deque[tuple[list[ProducerBatch], list[bytes], list[BatchResponse] | None]]] = {
            node: deque() for node in NODES
        }
        self.sent: list[list[bytes]] = [[] for _ in range(partitions)]
        self.large = large
        self.notify()

    def notify(self) -> None:
        self.bench.set_leader(dict(enumerate(self.leaders)))

    def write(self) -> None:
        partition = self.entropy.randrange(len(self.logs))
        value = b"%d" % len(self.sent[partition]) + b" " * self.entropy.randrange(80)
        self.deliveries[partition].append(self.bench.accumulator.append(TOPIC, value, partition=partition))
        self.sent[partition].append(value)

    def send(self, node: int) -> None:
        identity = self.bench.identity
        assert identity is not None
        self.bench.completion.expire(self.bench.clock.now)
        for queue in identity.resolve():
            self.bench.accumulator.schedule.recheck(queue, self.bench.clock.now)
        if identity.bump():
            self.bench.accumulator.recheck_all()
        if len(self.lines[node]) < IN_FLIGHT_MAX:
            batches = self.bench.take(node)
            if batches:
                self.lines[node].append((batches, [bytes(each.buffer) for each in batches], None))

    def arrive(self, node: int) -> None:
        """Have the broker take the oldest request that it has not."""
        for index, (batches, data, answers) in enumerate(self.lines[node]):
            if answers is None:
                answered = [self.judge(node, *each) for each in zip(batches, data, strict=True)]
                self.lines[node][index] = batches, data, answered
                return

    def judge(self, node: int, batch: ProducerBatch, data: bytes) -> BatchResponse:
        partition = batch.queue.partition
        if self.leaders[partition].node != node:
            return BatchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self.entropy.random() < 0.03:
            return BatchResponse(
                self.entropy.choice([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR])
            )
        if self.large and len(data) > 230 and Header.parse(data).record_count > 1:
            return BatchResponse(ErrorCode.MESSAGE_TOO_LARGE)
        code, offset = self.logs[partition].append(data)
        return BatchResponse(code, base_offset=offset, log_start_offset=0)

    def answer(self, node: int) -> None:
        line = self.lines[node]
        if line and line[0][2] is not None:
            batches, _, answers = line.popleft()
            assert answers is not None
            for batch, answer in zip(batches, answers, strict=True):
                self.bench.completion.handle_response(batch, answer, self.bench.clock.now)

    def cut(self, node: int) -> None:
        """Lose a line: some of what was on it has arrived, and nothing is answered."""
        for _ in range(self.entropy.randrange(len(self.lines[node]) + 1)):
            self.arrive(node)
        lost, self.lines[node] = self.lines[node], deque()
        for batches, _, _ in lost:
            for batch in batches:
                answer = BatchResponse(ErrorCode.NETWORK_EXCEPTION)
                self.bench.completion.handle_response(batch, answer, self.bench.clock.now)

    def move(self) -> None:
        partition = self.entropy.randrange(len(self.leaders))
        before = self.leaders[partition]
        self.leaders[partition] = Leader(3 - before.node, before.epoch + 1)

    def step(self) -> None:
        node = self.entropy.choice(NODES)
        dice = self.entropy.random()
        self.bench.clock.now += self.entropy.random() * 0.01
        if dice < 0.35:
            self.write()
        elif dice < 0.6:
            self.send(node)
        elif dice < 0.78:
            self.arrive(node)
        elif dice < 0.95:
            self.answer(node)
        elif dice < 0.97:
            self.cut(node)
        elif dice < 0.98:
            self.move()
        else:
            self.notify()

    def finish(self) -> None:
        self.notify()
        self.bench.flush()
        for _ in range(100_000):
            if not len(self.bench.accumulator.incomplete):
                return
            self.bench.clock.now += 0.05
            for node in NODES:
                self.send(node)
                self.arrive(node)
                self.answer(node)
        raise AssertionError("records are left that nobody sends")


@pytest.mark.parametrize("large", [False, True], ids=["", "split"])
@pytest.mark.parametrize("first_seed", range(0, 60, 20))
def test_once_and_in_order(first_seed: int, large: bool) -> None:
    for seed in range(first_seed, first_seed + 20):
        world = World(seed, partitions=1 + seed % 3, large=large)
        for _ in range(1500):
            world.step()
        world.finish()
        for sent, log in zip(world.sent, world.logs, strict=True):
            assert log.values == sent, f"seed {seed}"
        assert world.bench.accumulator.buffer_pool.free == world.bench.accumulator.buffer_pool.total, (
            f"seed {seed}"
        )
        assert not world.bench.accumulator.schedule.nonempty, f"seed {seed}"
        assert all(queue.in_flight == 0 for queue in world.bench.topic_queues.queues.values()), f"seed {seed}"


@pytest.mark.parametrize("first_seed", range(0, 60, 20))
def test_what_is_given_up_does_no_harm(first_seed: int) -> None:
    """With little time for each record some fail; they may be there all the same, but once, and in their place."""
    failed = 0
    for seed in range(first_seed, first_seed + 20):
        world = World(seed, partitions=1 + seed % 3, timeout_ms=400)
        for _ in range(1500):
            world.step()
        world.finish()
        for sent, deliveries, log in zip(world.sent, world.deliveries, world.logs, strict=True):
            numbers = [int((value or b"").split()[0]) for value in log.values]
            assert numbers == sorted(set(numbers)), f"seed {seed}"
            for value, delivery in zip(sent, deliveries, strict=True):
                if delivery.exception() is None:
                    assert log.values[delivery.result().offset] == value, f"seed {seed}"
                else:
                    failed += 1
        assert world.bench.accumulator.buffer_pool.free == world.bench.accumulator.buffer_pool.total, (
            f"seed {seed}"
        )
    assert failed
