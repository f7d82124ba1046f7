"""What an idempotent producer sends again, in which epoch, and what it waits for."""

import pytest

from ottla.client.producer.batch import ProducerBatch
from ottla.client.producer.identity import ProducerIdentity
from ottla.client.producer.sequence import EPOCH_MAX, UNKNOWN_PRODUCER, ProducerId
from ottla.wire.errors import ErrorCode
from tests.unit.client.producer.parts import ME, TOPIC, Bench

OUT_OF_ORDER, UNKNOWN = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID


def bench_with(count: int, **settings: object) -> tuple[Bench, ProducerIdentity, list[ProducerBatch]]:
    """A producer with so many batches in flight, all of one partition, where one was written before."""
    bench = Bench(batch_size=0, linger_ms=0, **settings)
    identity = bench.identity
    assert identity is not None
    if bench.transaction is not None:
        bench.transaction.added_partitions.add(bench.queue())
    bench.accumulator.append(TOPIC, b"before")
    bench.settle_well(*bench.take())
    batches: list[ProducerBatch] = []
    for number in range(count):
        bench.accumulator.append(TOPIC, b"%d" % number)
        batches += bench.take()
    assert len(batches) == count
    return bench, identity, batches


def test_nothing_leaves_without_a_producer_id() -> None:
    bench = Bench(linger_ms=0)
    assert bench.identity is not None
    bench.identity.producer = UNKNOWN_PRODUCER
    bench.accumulator.append(TOPIC, b"")
    assert bench.take() == []
    bench.identity.set_producer(ME)
    bench.accumulator.recheck_all()
    assert len(bench.take()) == 1


def test_the_first_batch_of_a_partition_leaves_alone() -> None:
    bench = Bench(batch_size=0, linger_ms=0)
    for number in range(3):
        bench.accumulator.append(TOPIC, b"%d" % number)
    (first,) = bench.take()
    assert bench.take() == []
    bench.settle_well(first)
    assert len(bench.take()) == len(bench.take()) == 1


def test_of_batches_sent_again_the_first_leaves_alone() -> None:
    bench, _, batches = bench_with(4)
    for batch in batches:
        bench.handle_response(batch, ErrorCode.NETWORK_EXCEPTION)
    bench.accumulator.append(TOPIC, b"new")
    bench.clock.now += 1
    assert list(bench.queue().batches)[:4] == batches
    for batch in batches:
        assert bench.take() == [batch]
        # What is new follows the last of them at once.
        assert len(bench.take()) == (batch is batches[-1])
        bench.settle_well(batch)


def test_no_more_follow_one_in_flight_than_a_broker_remembers() -> None:
    bench, _, batches = bench_with(3)
    bench.settle_well(batches[1], batches[2])
    for _ in range(4):
        bench.accumulator.append(TOPIC, b"more")
    assert [len(bench.take()) for _ in range(3)] == [1, 1, 0]
    bench.settle_well(batches[0])
    assert [len(bench.take()) for _ in range(3)] == [1, 1, 0]


def test_answers_in_any_order_keep_the_queue_in_order() -> None:
    bench, _, batches = bench_with(4)
    for index in (2, 0, 3, 1):
        bench.handle_response(batches[index], ErrorCode.NETWORK_EXCEPTION)
    assert list(bench.queue().batches) == batches


def test_out_of_order_behind_a_failure_is_only_sent_again() -> None:
    bench, identity, batches = bench_with(3)
    bench.handle_response(batches[0], ErrorCode.NOT_LEADER_OR_FOLLOWER)
    bench.handle_response(batches[1], OUT_OF_ORDER)
    bench.handle_response(batches[2], OUT_OF_ORDER)
    assert not identity.bump()
    assert [batch.base_sequence for batch in batches] == [1, 2, 3]


def test_out_of_order_of_the_first_means_another_epoch() -> None:
    bench, identity, batches = bench_with(3)
    bench.handle_response(batches[0], OUT_OF_ORDER)
    assert identity.bump()
    assert identity.producer == ProducerId(ME.id, 1)
    assert [(batch.producer_epoch, batch.base_sequence) for batch in batches] == [(1, 0), (1, 1), (1, 2)]
    # Those still under way in the former epoch are refused, and follow.
    bench.handle_response(batches[1], OUT_OF_ORDER)
    bench.handle_response(batches[2], ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert not identity.bump()
    bench.clock.now += 1
    for batch in batches:
        assert bench.take() == [batch]
        bench.settle_well(batch)


def test_a_partition_changes_its_epoch_when_nothing_is_in_flight() -> None:
    bench, identity, batches = bench_with(2)
    identity.set_producer(ProducerId(ME.id, 5))
    bench.accumulator.append(TOPIC, b"new")
    assert bench.take() == []
    bench.settle_well(batches[0])
    assert bench.take() == []
    bench.settle_well(batches[1])
    (batch,) = bench.take()
    assert (batch.producer_epoch, batch.base_sequence) == (5, 0)


def test_after_the_last_epoch_a_new_id_is_needed() -> None:
    bench, identity, batches = bench_with(1)
    identity.producer = ProducerId(ME.id, EPOCH_MAX)
    bench.handle_response(batches[0], OUT_OF_ORDER)
    assert identity.bump()
    assert identity.producer == UNKNOWN_PRODUCER
    bench.clock.now += 1
    assert bench.take() == []
    identity.set_producer(ProducerId(8, 0))
    bench.accumulator.recheck_all()
    (batch,) = bench.take()
    assert (batch.producer_id, batch.base_sequence) == (8, 0)


def test_a_broker_without_memory_of_the_producer() -> None:
    bench, identity, batches = bench_with(2)
    queue = bench.queue()
    assert identity.may_retry(queue, batches[0], UNKNOWN, -1)
    assert not identity.bump()
    assert identity.may_retry(queue, batches[0], UNKNOWN, 0)
    assert identity.bump()
    assert identity.may_retry(queue, batches[1], UNKNOWN, 0)
    assert not identity.bump()


def test_a_broker_without_memory_of_a_transactional_producer() -> None:
    bench, identity, batches = bench_with(2, transactional_id="x")
    queue = bench.queue()
    # The log begins behind what was written, so that the memory of it is gone is as it should be.
    assert identity.may_retry(queue, batches[0], UNKNOWN, 50)
    assert [batch.base_sequence for batch in batches] == [0, 1]
    batches[0].renumbered = False
    assert not identity.may_retry(queue, batches[0], UNKNOWN, 0)
    identity.failed(queue, batches[0], UNKNOWN, refused=True)
    assert queue.sequences.next == 0


def test_out_of_order_in_a_transaction_is_final() -> None:
    bench, identity, batches = bench_with(2, transactional_id="x")
    assert identity.may_retry(bench.queue(), batches[1], OUT_OF_ORDER, 0)
    assert not identity.may_retry(bench.queue(), batches[0], OUT_OF_ORDER, 0)


def test_a_refused_batch_means_another_epoch_or_a_closed_gap() -> None:
    bench, identity, batches = bench_with(2)
    bench.handle_response(batches[0], ErrorCode.INVALID_RECORD)
    assert identity.bump()
    assert (batches[1].producer_epoch, batches[1].base_sequence) == (1, 0)
    bench, identity, batches = bench_with(2, transactional_id="x")
    bench.handle_response(batches[0], ErrorCode.INVALID_RECORD)
    assert not identity.bump()
    assert (batches[1].producer_epoch, batches[1].base_sequence) == (0, 1)


def test_nothing_new_leaves_before_the_fate_of_what_was_given_up_is_known() -> None:
    bench, identity, batches = bench_with(3, delivery_timeout_ms=31_000)
    batches[1].created_at = batches[2].created_at = 120.0
    bench.clock.now = 131.5
    bench.completion.expire(bench.clock.now)
    assert batches[0].done and identity.has_unresolved
    bench.accumulator.append(TOPIC, b"new")
    assert bench.take() == []
    assert identity.resolve() == {}
    # The others were written, so the first was, too.
    bench.settle_well(batches[1])
    bench.settle_well(batches[2])
    assert identity.resolve() == {bench.queue(): False} and not identity.has_unresolved
    assert not identity.bump()
    bench.accumulator.recheck_all()
    assert len(bench.take()) == 1


def test_a_leader_that_is_none_any_more_may_have_written_it() -> None:
    """Nothing behind it is numbered anew, or it would be written twice (KAFKA-13574)."""
    bench, identity, batches = bench_with(2, delivery_timeout_ms=31_000)
    batches[1].created_at = 120.0
    bench.clock.now = 131.5
    bench.handle_response(batches[0], ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert batches[0].done and identity.has_unresolved
    assert not identity.bump()
    bench.settle_well(batches[1])
    assert identity.resolve() == {bench.queue(): False}
    assert not identity.bump()


def test_what_was_given_up_and_lost_means_another_epoch() -> None:
    bench, identity, batches = bench_with(2, delivery_timeout_ms=31_000)
    bench.clock.now = 131.5
    bench.completion.expire(bench.clock.now)
    assert all(batch.done for batch in batches)
    assert identity.resolve() == {bench.queue(): True}
    assert identity.bump()
    bench.accumulator.append(TOPIC, b"new")
    (batch,) = bench.take()
    assert (batch.producer_epoch, batch.base_sequence) == (1, 0)


def test_the_one_behind_what_was_given_up_may_tell_that_it_was_lost() -> None:
    bench, identity, batches = bench_with(3, delivery_timeout_ms=31_000)
    batches[1].created_at = batches[2].created_at = 120.0
    bench.clock.now = 131.5
    bench.completion.expire(bench.clock.now)
    assert identity.may_retry(bench.queue(), batches[2], OUT_OF_ORDER, 0)
    assert not identity.bump()
    assert identity.may_retry(bench.queue(), batches[1], OUT_OF_ORDER, 0)
    assert identity.bump()


@pytest.mark.parametrize("code", [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT])
def test_what_may_pass_is_tried_again(code: ErrorCode) -> None:
    bench, identity, batches = bench_with(1)
    assert identity.may_retry(bench.queue(), batches[0], code, -1)
    assert not identity.may_retry(bench.queue(), batches[0], ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1)
