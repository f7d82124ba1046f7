"""A batch's header, its outcome, and its parts."""

import pytest

from ottla.client.errors import ClientError, TimedOut, WrongState
from ottla.client.producer.batch import ProducerBatch
from ottla.client.producer.delivery import Delivery
from ottla.wire.batch import Batch as Header
from ottla.wire.compression import Codec
from tests.unit.client.producer.parts import ME, TOPIC, Bench, records_of


def encoded(count: int = 40, **settings: object) -> tuple[Bench, ProducerBatch, list[Delivery]]:
    bench = Bench(**settings)
    deliveries = [
        bench.accumulator.append(
            TOPIC, b"%d " % number + b"v" * (number % 7) * 10, b"k%d" % number, 0, 1000 - number
        )
        for number in range(count)
    ]
    bench.flush()
    (batch,) = bench.take()
    return bench, batch, deliveries


def test_the_header() -> None:
    _, batch, _ = encoded(3)
    header = Header.parse(batch.buffer)
    assert (header.base_offset, header.last_offset_delta, header.record_count) == (0, 2, 3)
    assert (header.base_timestamp, header.max_timestamp) == (1000, 1000)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (*ME, 0)
    assert (header.codec, header.is_transactional) == (Codec.NONE, False)
    batch.number(9, 2, 17)
    batch.encode(Codec.NONE, None, True)
    header = Header.parse(batch.buffer)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, 17)
    assert header.is_transactional
    assert len(records_of(batch)) == 3


def test_encoding_again_does_not_compress_again() -> None:
    _, batch, _ = encoded(compression_type="lz4")
    before = records_of(batch)
    size = len(batch.buffer)
    batch.encode(Codec.LZ4, None, False)
    assert len(batch.buffer) == size
    assert records_of(batch) == before


def test_outcomes() -> None:
    bench, batch, deliveries = encoded(3)
    told: list[object] = []
    deliveries[1].add_done_callback(lambda each: told.append((each.metadata().offset, each.exception())))
    with pytest.raises(WrongState):
        deliveries[1].result()
    assert deliveries[1].metadata().offset == -1
    bench.handle_response(batch, base_offset=50, append_time=77)
    assert told == [(51, None)]
    assert [each.result().offset for each in deliveries] == [50, 51, 52]
    assert deliveries[0].result().timestamp == 77
    assert repr(deliveries[2]) == f"<Delivery {TOPIC}-0 at 52>"


def test_errors_of_single_records() -> None:
    bench, batch, deliveries = encoded(3)
    bench.accumulator.end(batch, ClientError("all"), errors={1: TimedOut("one")})
    assert [str(each.exception()) for each in deliveries] == ["all", "one", "all"]
    with pytest.raises(TimedOut):
        deliveries[1].result()


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_splitting_keeps_every_record(codec: str) -> None:
    _, batch, deliveries = encoded(compression_type=codec)
    before = records_of(batch)
    told: list[int] = []
    for each in deliveries:
        each.add_done_callback(lambda each: told.append(each.metadata().offset))
    parts = batch.split(400)
    assert len(parts) > 2
    assert all(len(part.buffer) <= 400 or part.count == 1 for part in parts)
    sequence = 0
    found = []
    for part in parts:
        assert part.base_sequence == sequence
        sequence += part.count
        part.encode(Codec[codec.upper()], None, False)
        found += [(each.timestamp, each.key, each.value) for each in records_of(part)]
    assert found == [(each.timestamp, each.key, each.value) for each in before]
    # A part is split once more.
    again = parts[1].split(150)
    assert sum(part.count for part in again) == parts[1].count
    assert list(batch.final_parts()) == [parts[0], *again, *parts[2:]]
    offset = 0
    ended = []
    for leaf in batch.final_parts():
        ended.append(leaf.end(None, offset))
        leaf.notify()
        offset += leaf.count
    assert ended == [None] * (len(ended) - 1) + [batch]
    assert [each.result().offset for each in deliveries] == list(range(40))
    assert told == list(range(40))
