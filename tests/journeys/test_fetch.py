"""The second journey: Fetch → session → partition → byte range → reply; or, with nothing there, a place to wait."""

import time

from ottla.wire.batch import Batch, read_records, scan
from ottla.wire.compression import Codec
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from tests.journeys.traveller import FETCH, Traveller, batch, fetch_request


def batches(records: object) -> list[Batch]:
    return [each for _, each in scan(bytes(records or b""))]  # type: ignore[call-overload]


def test_a_fetch_returns_whole_batches_from_the_one_that_holds_the_offset(
    traveller: Traveller, topic: str
) -> None:
    for values in ([b"a"] * 5, [b"b"] * 5, [b"c"] * 5):
        traveller.produce(topic, batch(*values, codec=Codec.LZ4))
    found = traveller.fetch(topic, 7)
    assert [each.base_offset for each in batches(found.records)] == [5, 10]
    assert found.high_watermark == 15
    assert [each.value for each in read_records(bytes(found.records))] == [b"b"] * 5


def test_at_least_one_batch_comes_however_small_the_limit(traveller: Traveller, topic: str) -> None:
    traveller.produce(topic, batch(b"x" * 5000))
    traveller.produce(topic, batch(b"y" * 5000))
    assert [each.base_offset for each in batches(traveller.fetch(topic, 0, size_bytes_max=10).records)] == [0]


def test_a_fetch_at_the_end_waits_for_the_next_record(traveller: Traveller, topic: str) -> None:
    number = traveller.line.send(fetch_request(topic, 0, wait_ms=15_000, size_bytes_min=1), FETCH)
    began = time.monotonic()
    with Traveller(traveller.server) as other:
        other.produce(topic, batch(b"news"))
    answer = traveller.line.receive(FetchResponse, FETCH, number)
    assert time.monotonic() - began < 5
    [found] = answer.responses[0].partitions
    assert [each.value for each in read_records(bytes(found.records or b""))] == [b"news"]


def test_a_fetch_waits_until_there_is_as_much_as_it_asks_for(traveller: Traveller, topic: str) -> None:
    number = traveller.line.send(fetch_request(topic, 0, wait_ms=15_000, size_bytes_min=1000), FETCH)
    with Traveller(traveller.server) as other:
        for n in range(10):
            other.produce(topic, batch(b"%d" % n * 200))
    answer = traveller.line.receive(FetchResponse, FETCH, number)
    [found] = answer.responses[0].partitions
    assert sum(each.size for each in batches(found.records)) >= 1000


def test_a_fetch_waits_no_longer_than_it_says(traveller: Traveller, topic: str) -> None:
    began = time.monotonic()
    found = traveller.fetch(topic, 0, wait_ms=300, size_bytes_min=1)
    assert 0.25 < time.monotonic() - began < 5
    assert (found.error_code, bytes(found.records or b"")) == (ErrorCode.NONE, b"")


def test_an_offset_that_is_not_there(traveller: Traveller, topic: str) -> None:
    traveller.produce(topic, batch(b"only"))
    began = time.monotonic()
    for offset in (2, -1):
        found = traveller.fetch(topic, offset, wait_ms=10_000, size_bytes_min=1)
        assert found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert time.monotonic() - began < 5, "an error is not worth waiting on"


def test_a_session_tells_only_what_is_new(traveller: Traveller, topic: str) -> None:
    def ask(session: int, epoch: int, offsets: dict[int, int]) -> FetchResponse:
        wanted = FetchRequest.FetchTopic
        places = [
            wanted.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
            for partition, offset in offsets.items()
        ]
        topics = [wanted(topic=topic, partitions=places)] if places else []
        request = FetchRequest(session_id=session, session_epoch=epoch, topics=topics)
        return traveller.line.ask(request, FetchResponse, FETCH)

    def told(answer: FetchResponse) -> dict[int, int]:
        return {
            each.partition_index: len(batches(each.records))
            for found in answer.responses
            for each in found.partitions
        }

    whole = ask(0, 0, {0: 0, 1: 0, 2: 0})
    session = whole.session_id
    assert session != 0
    assert told(whole) == {0: 0, 1: 0, 2: 0}
    assert told(ask(session, 1, {})) == {}
    traveller.produce(topic, batch(b"news"), partition=1)
    assert told(ask(session, 2, {})) == {1: 1}
    assert told(ask(session, 3, {1: 1})) == {}  # the reader has moved on
    assert ask(session, 9, {}).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert ask(session, -1, {}).session_id == 0  # the session is over
    assert ask(session, 4, {}).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
