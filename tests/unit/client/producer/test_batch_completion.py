"""What becomes of batches that were answered."""

import pytest

from ottla.client.errors import ClientError, Disconnected, RecordTooLarge, Refused
from ottla.client.producer.batch import ProducerBatch
from ottla.client.producer.transaction import TransactionState
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.produce import ProduceResponse
from tests.unit.client.producer.parts import TOPIC, Bench

RecordError = ProduceResponse.TopicProduceResponse.PartitionProduceResponse.BatchIndexAndErrorMessage


def sent(bench: Bench, count: int = 1) -> ProducerBatch:
    if bench.transaction is not None:
        bench.transaction.state = TransactionState.IN_TRANSACTION
        bench.transaction.added_partitions.add(bench.queue())
    for _ in range(count):
        bench.accumulator.append(TOPIC, b"x" * 100)
    bench.flush()
    (batch,) = bench.take()
    return batch


def test_success() -> None:
    bench = Bench()
    batch = sent(bench, 3)
    bench.handle_response(batch, base_offset=10)
    assert (batch.done, batch.base_offset, bench.statistics.records_sent) == (True, 10, 3)
    assert bench.queue().in_flight == 0


@pytest.mark.parametrize("idempotent", [True, False])
def test_what_may_pass_is_sent_again(idempotent: bool) -> None:
    bench = Bench(enable_idempotence=idempotent)
    batch = sent(bench)
    bench.handle_response(batch, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert not batch.done and batch.attempts == 1
    assert bench.take() == []
    bench.clock.now += 0.11
    assert bench.take() == [batch]
    bench.settle_well(batch)
    assert bench.statistics.batches_retried == 1


def test_attempts_are_counted() -> None:
    bench = Bench(retries=2, enable_idempotence=False)
    batch = sent(bench)
    lost = Disconnected("gone")
    for _ in range(3):
        bench.handle_response(batch, ErrorCode.NETWORK_EXCEPTION, error=lost)
        bench.clock.now += 1
        bench.take()
    assert batch.error is lost
    assert bench.statistics.records_failed == 1


def test_nothing_is_sent_again_when_its_time_is_up() -> None:
    bench = Bench(delivery_timeout_ms=31_000)
    batch = sent(bench)
    bench.clock.now += 31
    bench.handle_response(batch, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert isinstance(batch.error, Refused)


def test_an_answer_to_what_was_given_up_changes_nothing() -> None:
    bench = Bench(delivery_timeout_ms=31_000)
    batch = sent(bench)
    bench.clock.now += 31
    bench.completion.expire(bench.clock.now)
    assert batch.done and bench.queue().in_flight == 1
    error = batch.error
    bench.handle_response(batch, base_offset=5)
    assert batch.error is error and bench.queue().in_flight == 0
    assert bench.queue().sequences.last_acked == 0
    assert bench.accumulator.buffer_pool.free == bench.accumulator.buffer_pool.total


def test_what_the_broker_has_twice_it_has() -> None:
    bench = Bench()
    batch = sent(bench)
    bench.handle_response(batch, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    assert (batch.error, batch.base_offset) == (None, -1)


def test_too_large_for_the_broker() -> None:
    bench = Bench()
    batch = sent(bench, 10)
    bench.handle_response(batch, ErrorCode.MESSAGE_TOO_LARGE)
    parts = list(bench.queue().batches)
    assert [part.count for part in parts] == [5, 5]
    assert bench.queue().sequences.in_flight == parts
    assert bench.statistics.batches_split == 1
    alone = sent(Bench())
    single = Bench()
    alone = sent(single)
    single.handle_response(alone, ErrorCode.MESSAGE_TOO_LARGE, message="no")
    assert isinstance(alone.error, RecordTooLarge) and isinstance(alone.error.__cause__, Refused)


def test_parts_go_before_what_follows() -> None:
    for idempotent in (True, False):
        bench = Bench(batch_size=500, linger_ms=0, enable_idempotence=idempotent)
        for number in range(8):
            bench.accumulator.append(TOPIC, b"%d" % number * 100)
        (batch,) = bench.take()
        bench.handle_response(batch, ErrorCode.MESSAGE_TOO_LARGE)
        order = [bytes(each.buffer) for each in bench.queue().batches]
        firsts = [next(n for n in range(8) if b"%d" % n * 100 in each) for each in order]
        assert firsts == sorted(firsts)


def test_a_record_with_an_error_of_its_own() -> None:
    bench = Bench()
    batch = sent(bench, 3)
    error = RecordError(batch_index=1, batch_index_error_message="no key")
    bench.handle_response(batch, ErrorCode.INVALID_RECORD, message="bad", record_errors=[error])
    custom, other = batch.error_of(1), batch.error_of(0)
    assert isinstance(custom, Refused) and custom.code is ErrorCode.INVALID_RECORD and "no key" in str(custom)
    assert isinstance(other, ClientError) and "in a batch with one" in str(other)


def test_fatal_errors_are_the_end_of_the_producer() -> None:
    bench = Bench()
    assert bench.identity is not None
    batch = sent(bench)
    bench.handle_response(batch, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert bench.identity.fatal is batch.error
    bench.accumulator.append(TOPIC, b"more")
    assert bench.take() == []


def test_failures_reach_the_transaction() -> None:
    bench = Bench(transactional_id="x")
    assert bench.transaction is not None
    batch = sent(bench)
    bench.handle_response(batch, ErrorCode.INVALID_RECORD)
    assert bench.transaction.state is TransactionState.ABORTABLE_ERROR
    fenced = Bench(transactional_id="x")
    assert fenced.transaction is not None
    batch = sent(fenced)
    # The transaction may have timed out; the coordinator knows better whether the producer is fenced.
    fenced.handle_response(batch, ErrorCode.INVALID_PRODUCER_EPOCH)
    assert fenced.transaction.state is TransactionState.ABORTABLE_ERROR


def test_the_transaction_before_is_not_waited_for_long() -> None:
    bench = Bench(transactional_id="x")
    batch = sent(bench)
    bench.handle_response(batch, ErrorCode.CONCURRENT_TRANSACTIONS)
    bench.clock.now += 0.006
    assert bench.take() == [batch]
