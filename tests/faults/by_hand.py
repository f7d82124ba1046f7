"""The few requests that the fault tests send by hand, batch by batch, and what came back."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.wire.batch import BATCH_HEADER, LOG_OVERHEAD, build_batch
from ottla.wire.compression import Codec
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.messages.produce import ProduceRequest, ProduceResponse
from ottla.wire.record import Record
from tests.peers.connection import Connection
from tests.peers.deadline import eventually


def batch(
    *values: bytes,
    codec: Codec = Codec.NONE,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    timestamp_ms: int | None = None,
    key: bytes | None = b"key",
) -> bytes:
    """A batch as a producer sends it."""
    moment = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
    records = [Record(n, moment, key, value, ()) for n, value in enumerate(values)]
    built = build_batch(
        records, codec=codec, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
    )
    return bytes(built)


class Hand:
    """A connection and the requests that go over it."""

    def __init__(self, port: int, *, seconds_max: float = 20.0) -> None:
        self.connection = Connection(port, seconds_max=seconds_max)

    def create_topic(self, name: str, partitions: int = 1, **settings: object) -> ErrorCode:
        """Ask for a topic, and wait until its partitions have a leader if it was made."""
        topic = CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[
                CreateTopicsRequest.CreatableTopic.CreatableTopicConfig(
                    name=key.replace("_", "."), value=str(value)
                )
                for key, value in settings.items()
            ],
        )
        answer = self.connection.ask(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse, 7)
        code = ErrorCode(answer.topics[0].error_code)
        if code is ErrorCode.NONE:
            eventually(lambda: self.has_leaders(name, partitions))
        return code

    def has_leaders(self, name: str, partitions: int) -> bool:
        topics = self.metadata(name).topics
        return len(topics[0].partitions) == partitions and all(
            each.error_code == 0 for each in topics[0].partitions
        )

    def metadata(self, *names: str) -> MetadataResponse:
        """Metadata of some topics, or of all."""
        wanted = [MetadataRequest.MetadataRequestTopic(name=name) for name in names] or None
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        return self.connection.ask(request, MetadataResponse, 9)

    def init_producer(self) -> tuple[int, int]:
        """A new producer id and its epoch."""
        answer = self.connection.ask(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000),
            InitProducerIdResponse,
            4,
        )
        assert answer.error_code == 0, ErrorCode(answer.error_code)
        return answer.producer_id, answer.producer_epoch

    def produce(
        self, topic: str, data: bytes, *, partition: int = 0, acks: int = -1
    ) -> tuple[ErrorCode, int]:
        """Send one batch, and return the error code and the base offset of the answer."""
        self.send_produce(topic, data, partition=partition, acks=acks)
        return self.receive_produce()

    def send_produce(self, topic: str, data: bytes, *, partition: int = 0, acks: int = -1) -> None:
        part = ProduceRequest.TopicProduceData.PartitionProduceData(index=partition, records=data)
        request = ProduceRequest(
            acks=acks,
            timeout_ms=10_000,
            topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[part])],
        )
        self.connection.send(request, 9)

    def receive_produce(self) -> tuple[ErrorCode, int]:
        part = self.connection.receive(ProduceResponse, 9).responses[0].partition_responses[0]
        return ErrorCode(part.error_code), part.base_offset

    def fetch(self, topic: str, offset: int, *, partition: int = 0) -> tuple[ErrorCode, bytes]:
        """Read from an offset on, without waiting."""
        part = FetchRequest.FetchTopic.FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=1 << 24
        )
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, topics=[FetchRequest.FetchTopic(topic=topic, partitions=[part])]
        )
        answer = self.connection.ask(request, FetchResponse, 12)
        if answer.error_code or not answer.responses:
            return ErrorCode(answer.error_code), b""
        found = answer.responses[0].partitions[0]
        return ErrorCode(found.error_code), bytes(found.records or b"")

    def read_all(self, topic: str, *, partition: int = 0, start_offset: int = 0) -> bytes:
        """All batches of a partition, as they stand in its log."""
        found = bytearray()
        offset = start_offset
        while True:
            code, data = self.fetch(topic, offset, partition=partition)
            assert code is ErrorCode.NONE, code
            if not data:
                return bytes(found)
            found += data
            for header in headers(data):
                offset = header[0] + header[6] + 1

    def end_offset(self, topic: str, *, partition: int = 0) -> int:
        """Where the partition ends, as a client is told."""
        part = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
            partition_index=partition, timestamp=-1
        )
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[part])]
        )
        found = self.connection.ask(request, ListOffsetsResponse, 5).topics[0].partitions[0]
        assert found.error_code == 0, ErrorCode(found.error_code)
        return found.offset

    def close(self) -> None:
        self.connection.close()


@contextmanager
def hand(port: int, *, seconds_max: float = 20.0) -> Iterator[Hand]:
    """A connection for the length of a block."""
    client = Hand(port, seconds_max=seconds_max)
    try:
        yield client
    finally:
        client.close()


def headers(data: bytes) -> Iterator[tuple[int, ...]]:
    """The header of each batch."""
    position = 0
    while position < len(data):
        header = BATCH_HEADER.unpack_from(data, position)
        yield header
        position += header[1] + LOG_OVERHEAD
