"""Flushes and deadlines."""

import pytest

from ottla.client.errors import TimedOut
from ottla.wire.errors import ErrorCode
from tests.unit.client.producer.parts import TOPIC, Bench


def test_a_flush_waits_for_what_was_before_it() -> None:
    bench = Bench(3, linger_ms=0)
    incomplete, told = bench.accumulator.incomplete, list[str]()
    incomplete.flush(lambda: told.append("nothing"))
    assert told == ["nothing"]
    first = bench.accumulator.append(TOPIC, b"", partition=0)[0]
    second = bench.accumulator.append(TOPIC, b"", partition=1)[0]
    incomplete.flush(lambda: told.append("two"))
    bench.accumulator.append(TOPIC, b"", partition=2)
    incomplete.flush(lambda: told.append("three"))
    by_lane = {batch.queue.partition: batch for batch in bench.take()}
    bench.settle_well(by_lane[1])
    assert second.done and told == ["nothing"]
    bench.settle_well(by_lane[0])
    assert first.done and told == ["nothing", "two"]
    bench.settle_well(by_lane[2])
    assert told == ["nothing", "two", "three"]


def test_a_split_batch_is_done_when_its_parts_are() -> None:
    bench = Bench(linger_ms=0)
    told: list[str] = []
    for _ in range(4):
        bench.accumulator.append(TOPIC, b"x" * 100)
    bench.accumulator.incomplete.flush(lambda: told.append("done"))
    (batch,) = bench.take()
    bench.handle_response(batch, ErrorCode.MESSAGE_TOO_LARGE)
    parts = list(bench.accumulator.incomplete)
    assert len(parts) == 2 and batch not in parts
    assert bench.accumulator.buffer_pool.free < bench.accumulator.buffer_pool.total
    for part in parts:
        assert not told
        assert bench.take() == [part]
        bench.settle_well(part)
    assert told == ["done"]
    assert bench.accumulator.buffer_pool.free == bench.accumulator.buffer_pool.total


def test_what_has_had_its_time() -> None:
    bench = Bench(2, linger_ms=0, delivery_timeout_ms=31_000)
    early = bench.accumulator.append(TOPIC, b"", partition=0)
    bench.clock.now += 10
    late = bench.accumulator.append(TOPIC, b"", partition=1)
    assert bench.accumulator.incomplete.next_time() == 131.0
    bench.clock.now = 131.0
    bench.completion.expire(bench.clock.now)
    assert early.done() and not late.done()
    with pytest.raises(TimedOut, match="not delivered within 31"):
        early.result()
    assert bench.statistics.batches_expired == 1
    assert [batch.queue.partition for batch in bench.take()] == [1]


def test_parts_share_the_deadline_of_what_they_were() -> None:
    bench = Bench(linger_ms=0, delivery_timeout_ms=31_000)
    deliveries = [bench.accumulator.append(TOPIC, b"x" * 100) for _ in range(4)]
    (batch,) = bench.take()
    bench.clock.now += 5
    bench.handle_response(batch, ErrorCode.MESSAGE_TOO_LARGE)
    (part,) = bench.take()
    bench.settle_well(part)
    bench.clock.now = 131.5
    bench.completion.expire(bench.clock.now)
    assert [each.exception() is None for each in deliveries] == [True, True, False, False]
    assert len(bench.accumulator.incomplete) == 0
