"""The first journey: bytes → connection → Produce → partition → log → segment file → reply."""

import struct
from typing import Any

from ottla.wire.batch import BATCH_HEADER_SIZE, Batch, scan
from ottla.wire.compression import Codec
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.produce import ProduceResponse
from tests.journeys.traveller import PRODUCE, Traveller, batch, produce_request
from tests.peers.deadline import eventually

LEADER_EPOCH_AT = struct.calcsize(">qi")


def segment(traveller: Traveller, topic: str, partition: int = 0) -> bytes:
    path = traveller.server.log_dir / f"{topic}-{partition}" / "00000000000000000000.log"
    return path.read_bytes()


def test_what_was_sent_is_what_is_on_disk_but_for_the_stamp(traveller: Traveller, topic: str) -> None:
    """The broker never looks at a record: only the base offset and the leader epoch are its own."""
    sent = [
        batch(b"one", b"two"),
        batch(*[b"x" * 100] * 50, codec=Codec.ZSTD),
        batch(b"last", codec=Codec.GZIP),
    ]
    offsets = [traveller.produce(topic, each).base_offset for each in sent]
    assert offsets == [0, 2, 52]
    stored, position = segment(traveller, topic), 0
    for each, offset in zip(sent, offsets, strict=True):
        found = stored[position : position + len(each)]
        assert struct.unpack_from(">q", found)[0] == offset
        assert struct.unpack_from(">i", found, LEADER_EPOCH_AT)[0] == 0
        assert found[LEADER_EPOCH_AT + 4 :] == each[LEADER_EPOCH_AT + 4 :]
        assert found[8:LEADER_EPOCH_AT] == each[8:LEADER_EPOCH_AT]
        position += len(each)
    assert position == len(stored)


def test_answers_come_in_the_order_of_the_requests(traveller: Traveller, topic: str) -> None:
    numbers = [
        traveller.line.send(
            produce_request(topic, batch(b"%d" % n), partition=n % 3, acks=(-1, 1)[n % 2]), PRODUCE
        )
        for n in range(60)
    ]
    offsets = []
    for number in numbers:
        answer = traveller.line.receive(ProduceResponse, PRODUCE, number)
        offsets.append(answer.responses[0].partition_responses[0].base_offset)
    assert offsets == [n // 3 for n in range(60)]


def test_without_acks_there_is_no_answer_but_the_record_is_there(traveller: Traveller, topic: str) -> None:
    traveller.line.send(produce_request(topic, batch(b"unseen"), acks=0), PRODUCE)
    hello = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    answer = traveller.line.ask(hello, ApiVersionsResponse, 3)  # the next answer is to the next request
    assert answer.error_code == 0
    eventually(lambda: traveller.end_offset(topic) == 1)


def test_a_refused_request_without_acks_ends_the_connection(traveller: Traveller, topic: str) -> None:
    """There is no other way to tell the client."""
    traveller.line.send(produce_request(topic, batch(b"nowhere"), partition=99, acks=0), PRODUCE)
    assert traveller.line.closed_by_server()


def test_a_corrupt_batch_is_refused_whole(traveller: Traveller, topic: str) -> None:
    traveller.produce(topic, batch(b"good"))
    before = segment(traveller, topic)
    for position in (BATCH_HEADER_SIZE, -1, 30):
        broken = bytearray(batch(b"bad", b"worse"))
        broken[position] ^= 1
        assert traveller.produce(topic, bytes(broken)).error_code == ErrorCode.CORRUPT_MESSAGE
    assert segment(traveller, topic) == before
    assert traveller.end_offset(topic) == 1


def test_one_partition_refused_does_not_hold_up_another(traveller: Traveller, topic: str) -> None:
    request = produce_request(topic, batch(b"fine"), partition=1)
    broken = bytearray(batch(b"broken"))
    broken[-1] ^= 1
    data = type(request.topic_data[0])
    request.topic_data[0].partition_data.append(data.PartitionProduceData(index=2, records=bytes(broken)))
    answer = traveller.line.ask(request, ProduceResponse, PRODUCE)
    found = {each.index: each.error_code for each in answer.responses[0].partition_responses}
    assert found == {1: ErrorCode.NONE, 2: ErrorCode.CORRUPT_MESSAGE}
    assert (traveller.end_offset(topic, 1), traveller.end_offset(topic, 2)) == (1, 0)


def test_an_idempotent_producer_sends_again(traveller: Traveller, topic: str) -> None:
    """Whoever did not see the answer may ask again: the same offset is given, and nothing stored twice."""

    def init() -> InitProducerIdResponse:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        return traveller.line.ask(request, InitProducerIdResponse, 4)

    eventually(lambda: init().error_code == 0)
    producer = init()
    who: dict[str, Any] = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
    batches = [batch(b"a", b"b", base_sequence=2 * n, **who) for n in range(5)]
    first = [traveller.produce(topic, each).base_offset for each in batches]
    again = [traveller.produce(topic, each).base_offset for each in batches]
    assert first == again == [0, 2, 4, 6, 8]
    assert traveller.end_offset(topic) == 10
    gap = traveller.produce(topic, batch(b"c", base_sequence=11, **who))
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    stored: list[Batch] = [each for _, each in scan(segment(traveller, topic))]
    assert [each.base_sequence for each in stored] == [0, 2, 4, 6, 8]
