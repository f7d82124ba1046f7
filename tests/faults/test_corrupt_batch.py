"""A batch that was damaged on its way is refused with Kafka's code, and nothing of it is stored.

The codes are those that Apache Kafka 4.3.1 answered when it was sent the same batches.
"""

import struct
from collections.abc import Iterator

import pytest

from ottla.wire.compression import Codec
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.produce import ProduceRequest, ProduceResponse
from tests.faults.by_hand import Hand, batch, hand
from tests.peers.ottla import OttlaServer

LENGTH = slice(8, 12)
LEADER_EPOCH = range(12, 16)
MAGIC = 16
ATTRIBUTES = 22
TRANSACTIONAL = 0x10


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaServer]:
    with OttlaServer(tmp_path_factory.mktemp("corrupt")) as running:
        yield running


def expected(whole: bytes, damaged: bytes, position: int) -> ErrorCode:
    """What Kafka says to a batch whose byte at `position` was changed."""
    if position < LENGTH.start:
        return ErrorCode.INVALID_RECORD  # the base offset of what a producer sends is 0
    if position < LENGTH.stop:
        (length,) = struct.unpack(">i", damaged[LENGTH])
        # A batch that claims to go on is no batch at all; one that ends early has the wrong CRC.
        return ErrorCode.INVALID_RECORD if length + 12 > len(whole) else ErrorCode.CORRUPT_MESSAGE
    if position in LEADER_EPOCH:
        return ErrorCode.NONE  # the broker writes its own there
    if position == MAGIC and damaged[MAGIC] in (0, 1):
        return ErrorCode.INVALID_RECORD
    if position == ATTRIBUTES and damaged[ATTRIBUTES] & TRANSACTIONAL:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name.lower())
@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
def test_every_flipped_byte_is_noticed(server: OttlaServer, codec: Codec, idempotent: bool) -> None:
    topic = f"flipped-{codec.name.lower()}-{idempotent}"
    with hand(server.port) as client:
        assert client.create_topic(topic) is ErrorCode.NONE
        producer_id, epoch = client.init_producer() if idempotent else (-1, -1)
        whole = batch(
            b"first " * 9,
            b"second " * 9,
            codec=codec,
            producer_id=producer_id,
            epoch=epoch,
            sequence=0 if idempotent else -1,
        )
        end_offset = 0
        for position in range(len(whole)):
            for mask in (0xFF, 0x80, 0x01):
                damaged = bytearray(whole)
                damaged[position] ^= mask
                code, base_offset = client.produce(topic, bytes(damaged))
                what = f"byte {position} ^ {mask:#x}"
                assert code is expected(whole, bytes(damaged), position), what
                if code is ErrorCode.NONE and (not idempotent or end_offset == 0):
                    end_offset += 2
                elif code is not ErrorCode.NONE:
                    assert base_offset == -1, what
                assert client.end_offset(topic) == end_offset, what
        # What was refused has left no trace in the producer's sequence either.
        more = batch(
            b"third", codec=codec, producer_id=producer_id, epoch=epoch, sequence=2 if idempotent else -1
        )
        assert client.produce(topic, more) == (ErrorCode.NONE, end_offset)
        check_stored(client, topic, {whole[61:], more[61:]})


def test_every_truncated_batch_is_refused(server: OttlaServer) -> None:
    whole = batch(b"first", b"second")
    with hand(server.port) as client:
        assert client.create_topic("truncated") is ErrorCode.NONE
        for size in range(len(whole)):
            assert client.produce("truncated", whole[:size])[0] is ErrorCode.INVALID_RECORD, f"{size} bytes"
        assert client.end_offset("truncated") == 0
        assert client.produce("truncated", whole) == (ErrorCode.NONE, 0)


def test_what_is_more_or_less_than_one_batch_is_refused(server: OttlaServer) -> None:
    whole = batch(b"first", b"second")
    with hand(server.port) as client:
        assert client.create_topic("several") is ErrorCode.NONE
        assert client.produce("several", whole + whole)[0] is ErrorCode.INVALID_RECORD
        assert client.produce("several", whole + bytes(20))[0] is ErrorCode.CORRUPT_MESSAGE
        assert client.produce("several", whole + b"\xff" * 100)[0] is ErrorCode.CORRUPT_MESSAGE
        for length in (0, 13, 14, 48, 49, 60):
            damaged = bytearray(whole)
            damaged[LENGTH] = struct.pack(">i", length)
            assert client.produce("several", bytes(damaged))[0] is ErrorCode.CORRUPT_MESSAGE, length
        assert client.end_offset("several") == 0


def test_good_partitions_of_a_request_are_stored(server: OttlaServer) -> None:
    """One bad batch does not take the others of its request with it, with any acks."""
    topic_data = ProduceRequest.TopicProduceData
    bad = bytearray(batch(b"bad"))
    bad[-1] ^= 1
    with hand(server.port) as client:
        assert client.create_topic("mixed", 3) is ErrorCode.NONE
        parts = [
            topic_data.PartitionProduceData(index=index, records=records)
            for index, records in enumerate((batch(b"good"), bytes(bad), batch(b"good too")))
        ]
        request = ProduceRequest(
            acks=1, timeout_ms=1000, topic_data=[topic_data(name="mixed", partition_data=parts)]
        )
        answer = client.connection.ask(request, ProduceResponse, 9).responses[0].partition_responses
        assert [each.error_code for each in answer] == [0, ErrorCode.CORRUPT_MESSAGE, 0]
        assert [client.end_offset("mixed", partition=n) for n in range(3)] == [1, 0, 1]
    with hand(server.port) as client:
        # Without an answer to put a code into, the connection is closed; nothing of the bad batch is stored.
        client.send_produce("mixed", bytes(bad), partition=1, acks=0)
        assert client.connection.closed_by_server()
    with hand(server.port) as client:
        assert client.end_offset("mixed", partition=1) == 0


def test_a_corrupt_batch_leaves_nothing_in_the_files(server: OttlaServer) -> None:
    with hand(server.port) as client:
        assert client.create_topic("files") is ErrorCode.NONE
        log = server.log_dir / "files-0" / "00000000000000000000.log"
        bad = bytearray(batch(b"secret value"))
        bad[40] ^= 4
        assert client.produce("files", bytes(bad))[0] is ErrorCode.CORRUPT_MESSAGE
        assert log.stat().st_size == 0
        assert client.produce("files", batch(b"good value")) == (ErrorCode.NONE, 0)
        assert b"secret" not in log.read_bytes()


def check_stored(client: Hand, topic: str, bodies: set[bytes]) -> None:
    data = client.read_all(topic)
    position = 0
    while position < len(data):
        (length,) = struct.unpack_from(">i", data, position + 8)
        assert data[position + 61 : position + length + 12] in bodies
        position += length + 12
