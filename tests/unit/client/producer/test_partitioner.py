"""Which lane a record takes."""

from collections import Counter
from collections.abc import Sequence

import pytest

from ottla.client.cluster import Leader
from ottla.client.producer.murmur2 import partition_of
from ottla.client.producer.partitioner import RoundRobin, draw_by_load, partitioner
from ottla.metadata.settings.error import SettingError
from ottla.world.entropy import SeededEntropy
from tests.unit.client.producer.parts import TOPIC, Bench


def test_keys_decide() -> None:
    bench = Bench(7)
    for number in range(100):
        key = b"key-%d" % number
        assert bench.accumulator.append(TOPIC, b"", key).partition == partition_of(key, 7)
        assert bench.accumulator.append(TOPIC, b"", key).partition == partition_of(key, 7)
    # More partitions, other places: what was remembered is forgotten.
    bench.set_leader({number: Leader(1, 0) for number in range(11)})
    assert bench.accumulator.append(TOPIC, b"", b"key-5").partition == partition_of(b"key-5", 11)


def test_what_is_remembered_of_keys_is_bounded() -> None:
    bench = Bench(3)
    for number in range(20_000):
        bench.topic_queues.remember(b"%d" % number, bench.queue())
    assert len(bench.topic_queues.by_key) <= 16_384


def test_ignored_keys_stick() -> None:
    bench = Bench(7, partitioner_ignore_keys=True)
    assert len({bench.accumulator.append(TOPIC, b"", b"%d" % number).partition for number in range(100)}) == 1


def test_records_stick_until_a_partition_has_had_a_batchs_worth() -> None:
    bench = Bench(5, batch_size=1000)
    runs: list[list[int]] = []
    for _ in range(3000):
        partition = bench.accumulator.append(TOPIC, b"x" * 50).partition
        if not runs or runs[-1][0] != partition:
            runs.append([partition, 0])
        runs[-1][1] += 1
    # Fourteen fit a batch; a batch that was full short of the limit is followed by another.
    assert min(length for _, length in runs[:-1]) >= 14
    assert sorted({partition for partition, _ in runs}) == [0, 1, 2, 3, 4]


def test_partitions_without_a_leader_are_left_out() -> None:
    bench = Bench(3, batch_size=200)
    bench.set_leader({0: Leader(-1, 1), 1: Leader(1, 0), 2: Leader(1, 0)})
    found = {bench.accumulator.append(TOPIC, b"x" * 50).partition for _ in range(200)}
    assert found == {1, 2}
    sticky = bench.topic_queues.sticky_queue
    assert sticky is not None
    other = 3 - sticky.partition
    bench.set_leader({0: Leader(-1, 1), sticky.partition: Leader(-1, 1), other: Leader(1, 0)})
    assert bench.accumulator.append(TOPIC, b"").partition == other
    # With none to choose from, anyone is as good.
    bench.set_leader({number: Leader(-1, 2) for number in range(3)})
    bench.accumulator.append(TOPIC, b"")


def test_short_queues_are_likelier() -> None:
    entropy = SeededEntropy(5)
    found = Counter(draw_by_load([0, 3, 1], [10, 11, 12], entropy) for _ in range(8000))
    assert found.keys() == {10, 11, 12}
    # In proportion of 4, 1 and 3, as in KIP-794.
    assert 3700 < found[10] < 4300 and 800 < found[11] < 1200 and 2700 < found[12] < 3300
    even = Counter(draw_by_load([2, 2], [0, 1], entropy) for _ in range(2000))
    assert min(even.values()) > 850


@pytest.mark.parametrize("adaptive", [True, False])
def test_a_broker_that_falls_behind_gets_less(adaptive: bool) -> None:
    bench = Bench(2, batch_size=300, partitioner_adaptive_partitioning_enable=adaptive)
    bench.set_leader({0: Leader(1, 0), 1: Leader(2, 0)})
    found: Counter[int] = Counter()
    for _ in range(4000):
        found[bench.accumulator.append(TOPIC, b"x" * 60).partition] += 1
        for batch in bench.take(2):
            bench.settle_well(batch)
    assert (found[1] > 5 * found[0]) == adaptive


def test_a_broker_that_keeps_batches_waiting_is_avoided() -> None:
    bench = Bench(2, batch_size=300)
    bench.set_leader({0: Leader(1, 0), 1: Leader(2, 0)})
    bench.selector.is_slow = lambda node: node == 1
    assert {bench.accumulator.append(TOPIC, b"x" * 60).partition for _ in range(500)} == {1}
    bench.selector.is_slow = lambda node: True
    assert {bench.accumulator.append(TOPIC, b"x" * 60).partition for _ in range(500)} == {0, 1}


def test_round_robin_takes_those_that_have_a_leader() -> None:
    turn = RoundRobin()
    assert [turn("a", None, None, 3, [0, 2]) for _ in range(4)] == [0, 2, 0, 2]
    assert [turn("b", None, None, 3, []) for _ in range(4)] == [0, 1, 2, 0]


def test_a_function_of_ones_own() -> None:
    asked: list[object] = []

    def custom(
        topic: str, key: bytes | None, value: bytes | None, count: int, available: Sequence[int]
    ) -> int | None:
        asked.append((topic, key, value, count, list(available)))
        return None if key is None else 2

    bench = Bench(3, custom)
    assert bench.accumulator.append(TOPIC, b"v", b"k").partition == 2
    assert bench.accumulator.append(TOPIC, b"v", b"k", 1).partition == 1
    assert bench.accumulator.append(TOPIC, b"v").partition in (0, 1, 2)
    assert bench.accumulator.append(TOPIC, b"v").partition in (0, 1, 2)
    assert asked == [(TOPIC, b"k", b"v", 3, [0, 1, 2])] + [(TOPIC, None, b"v", 3, [0, 1, 2])] * 2


def test_names() -> None:
    assert partitioner(None) is None
    assert partitioner("default") is None
    for name in ("roundrobin", "round_robin", "org.apache.kafka.clients.producer.RoundRobinPartitioner"):
        assert isinstance(partitioner(name), RoundRobin)
    assert isinstance(partitioner(RoundRobin), RoundRobin)
    for wrong in ("nonsense", 7):
        with pytest.raises(SettingError):
            partitioner(wrong)
