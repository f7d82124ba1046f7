"""What may leave when, and to whom."""

from ottla.client.cluster import Leader
from ottla.client.producer.batch import ProducerBatch
from ottla.client.producer.send_schedule import NEVER
from ottla.wire.errors import ErrorCode
from tests.unit.client.producer.parts import TOPIC, Bench


def test_times() -> None:
    bench = Bench(2, linger_ms=50)
    schedule = bench.accumulator.schedule
    assert schedule.next_time() == NEVER
    bench.accumulator.append(TOPIC, b"", partition=0)
    bench.clock.now += 0.01
    bench.accumulator.append(TOPIC, b"", partition=1)
    assert schedule.next_time() == 100.05
    bench.clock.now = 100.051
    assert [batch.queue.partition for batch in bench.take()] == [0]
    assert schedule.next_time() == 100.06
    bench.clock.now = 100.061
    assert [batch.queue.partition for batch in bench.take()] == [1]
    assert schedule.next_time() == NEVER
    assert not schedule.nonempty


def test_urgency_ends_lingering() -> None:
    bench = Bench(linger_ms=50)
    bench.accumulator.append(TOPIC, b"1")
    assert bench.take() == []
    bench.flush()
    assert len(bench.take()) == 1
    bench.accumulator.append(TOPIC, b"2")
    bench.settle_well(*bench.queue().sequences.in_flight)
    assert len(bench.take()) == 1


def test_a_full_batch_does_not_linger_nor_does_what_is_before_it() -> None:
    bench = Bench(linger_ms=1000, batch_size=300)
    for _ in range(10):
        bench.accumulator.append(TOPIC, b"x" * 50)
    sent: list[ProducerBatch] = []
    while batches := bench.take():
        sent += batches
        bench.settle_well(*batches)
    assert [batch.count for batch in sent] == [3, 3, 3]
    assert len(bench.queue().batches) == 1


def test_a_request_has_one_batch_of_a_partition_and_partitions_take_turns() -> None:
    bench = Bench(4, linger_ms=0, batch_size=200)
    for _ in range(3):
        for partition in range(4):
            bench.accumulator.append(TOPIC, b"x" * 100, partition=partition)
    size = len(bench.queue().batches[0].buffer)
    order = []
    while batches := bench.take(size_max=size * 3):
        order.append([batch.queue.partition for batch in batches])
        bench.settle_well(*batches)
    assert order == [[0, 1, 2], [3, 0, 1], [2, 3, 0], [1, 2, 3]]


def test_a_batch_larger_than_a_request_leaves_alone() -> None:
    bench = Bench(2, linger_ms=0)
    bench.accumulator.append(TOPIC, b"x" * 5000, partition=0)
    bench.accumulator.append(TOPIC, b"x", partition=1)
    assert [len(bench.take(size_max=100)) for _ in range(3)] == [1, 1, 0]


def test_retries_wait_unless_the_leader_is_new() -> None:
    bench = Bench(2, linger_ms=0)
    for partition in range(2):
        bench.accumulator.append(TOPIC, b"", partition=partition)
    batches = bench.take()
    for batch in batches:
        bench.handle_response(batch, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert bench.take() == []
    bench.set_leader({0: Leader(2, 1), 1: Leader(1, 0)})
    assert [batch.queue.partition for batch in bench.take(2)] == [0]
    assert bench.take() == []
    assert bench.accumulator.schedule.next_time() < NEVER
    bench.clock.now += 0.101
    assert [batch.queue.partition for batch in bench.take()] == [1]


def test_a_lane_follows_its_leader() -> None:
    bench = Bench(linger_ms=0)
    bench.accumulator.append(TOPIC, b"")
    assert bench.accumulator.schedule.nodes() == [1]
    bench.set_leader({0: Leader(-1, 1)})
    assert bench.accumulator.schedule.nodes() == []
    assert list(bench.accumulator.schedule.leaderless) == [bench.queue()]
    bench.set_leader({0: Leader(3, 2)})
    assert bench.accumulator.schedule.nodes() == [3]
    assert not bench.accumulator.schedule.leaderless


def test_one_request_in_flight_means_one_batch_of_a_partition() -> None:
    bench = Bench(
        linger_ms=0, batch_size=0, max_in_flight_requests_per_connection=1, enable_idempotence=False
    )
    for number in range(3):
        bench.accumulator.append(TOPIC, b"%d" % number)
    (first,) = bench.take()
    assert bench.take() == []
    bench.handle_response(first, ErrorCode.NETWORK_EXCEPTION)
    bench.clock.now += 1
    assert bench.take() == [first]
    bench.settle_well(first)
    assert len(bench.take()) == 1


def test_what_was_dropped_does_not_leave() -> None:
    bench = Bench(linger_ms=0)
    delivery = bench.accumulator.append(TOPIC, b"")
    bench.accumulator.schedule.drop(delivery[0])
    assert bench.take() == []
    assert bench.queue().open is None
    assert not bench.accumulator.schedule.nonempty
