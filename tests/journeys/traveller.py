"""A client by hand: one connection, and the requests that the journeys are made of."""

import time
from typing import Any, Self

from ottla.wire.batch import build_batch
from ottla.wire.compression import Codec
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.messages.produce import ProduceRequest, ProduceResponse
from ottla.wire.record import Record
from tests.peers.connection import Connection
from tests.peers.deadline import eventually
from tests.peers.server import Server

PRODUCE, FETCH, LIST_OFFSETS, METADATA, CREATE_TOPICS = 12, 12, 7, 12, 7


def batch(*values: bytes, codec: Codec = Codec.NONE, **more: Any) -> bytes:
    """A batch of records with these values, stamped with the time of day."""
    now_ms = int(time.time() * 1000)
    return bytes(
        build_batch([Record(n, now_ms, b"key", value) for n, value in enumerate(values)], codec=codec, **more)
    )


class Traveller:
    """A connection to a server, with what one says on it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.line = Connection(server.port)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.line.close()

    def create_topic(self, name: str, partitions: int = 1, **settings: object) -> bytes:
        """Make a topic, wait until all of it is led, and return its id."""
        new = CreateTopicsRequest.CreatableTopic
        configs = [
            new.CreatableTopicConfig(name=k.replace("_", "."), value=str(v)) for k, v in settings.items()
        ]
        wish = new(name=name, num_partitions=partitions, replication_factor=1, configs=configs)
        answer = self.line.ask(CreateTopicsRequest(topics=[wish]), CreateTopicsResponse, CREATE_TOPICS)
        assert answer.topics[0].error_code == 0, answer
        eventually(lambda: all(self.end_offset(name, n) is not None for n in range(partitions)))
        topic_id: bytes = answer.topics[0].topic_id
        return topic_id

    def metadata(self, *topics: str) -> MetadataResponse:
        wanted = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        return self.line.ask(request, MetadataResponse, METADATA)

    def end_offset(self, topic: str, partition: int = 0) -> int | None:
        """Where the partition ends, or None while it is not led here."""
        wanted = ListOffsetsRequest.ListOffsetsTopic
        place = wanted.ListOffsetsPartition(partition_index=partition, timestamp=-1)
        request = ListOffsetsRequest(replica_id=-1, topics=[wanted(name=topic, partitions=[place])])
        found = self.line.ask(request, ListOffsetsResponse, LIST_OFFSETS).topics[0].partitions[0]
        return found.offset if found.error_code == 0 else None

    def produce(self, topic: str, records: bytes, *, partition: int = 0, acks: int = -1) -> Any:
        """Write one batch, and return what is said about it."""
        request = produce_request(topic, records, partition=partition, acks=acks)
        return self.line.ask(request, ProduceResponse, PRODUCE).responses[0].partition_responses[0]

    def fetch(self, topic: str, offset: int, **more: Any) -> Any:
        """Read one partition outside of a session, and return its part of the answer."""
        return (
            self.line.ask(fetch_request(topic, offset, **more), FetchResponse, FETCH)
            .responses[0]
            .partitions[0]
        )


def produce_request(topic: str, records: bytes, *, partition: int = 0, acks: int = -1) -> ProduceRequest:
    data = ProduceRequest.TopicProduceData
    place = data.PartitionProduceData(index=partition, records=records)
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[data(name=topic, partition_data=[place])])


def fetch_request(
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    wait_ms: int = 0,
    size_bytes_min: int = 0,
    size_bytes_max: int = 1 << 20,
    **more: Any,
) -> FetchRequest:
    wanted = FetchRequest.FetchTopic
    place = wanted.FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=size_bytes_max
    )
    topics = [wanted(topic=topic, partitions=[place])]
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=size_bytes_min, topics=topics, **more)
