"""Requests made beforehand, so that a load generator in Python spends its time sending and not encoding.

All frames of a run are alike: the server stamps the offsets itself, and a client that only counts answers needs no
correlation ids of their own.
"""

import random
import time

from ottla.wire.batch import build_batch
from ottla.wire.message import Message
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.list_offsets import ListOffsetsRequest
from ottla.wire.messages.produce import ProduceRequest
from ottla.wire.record import Record
from tests.peers.connection import request_frame

# The versions that librdkafka 2.16 uses, by topic name.
PRODUCE_VERSION = 10
FETCH_VERSION = 11
LIST_OFFSETS_VERSION = 7
CREATE_TOPICS_VERSION = 7


def value(size_bytes: int) -> bytes:
    """A value that does not compress, the same in every run."""
    return random.Random(1).randbytes(size_bytes)


def produce_frame(topic: str, partition: int, *, records: int, size_bytes: int, acks: int) -> bytes:
    """A Produce request with one batch of so many records of that size."""
    now_ms, content = int(time.time() * 1000), value(size_bytes)
    batch = build_batch([Record(n, now_ms, None, content) for n in range(records)])
    data = ProduceRequest.TopicProduceData
    request = ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        topic_data=[
            data(name=topic, partition_data=[data.PartitionProduceData(index=partition, records=batch)])
        ],
    )
    return request_frame(request, PRODUCE_VERSION, 1)


def fetch_request(topic: str, partition: int, offset: int, size_bytes_max: int) -> Message:
    """A Fetch outside of any session, for one partition."""
    wanted = FetchRequest.FetchTopic
    place = wanted.FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=size_bytes_max, current_leader_epoch=-1
    )
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=size_bytes_max,
        session_id=0,
        session_epoch=-1,
        topics=[wanted(topic=topic, partitions=[place])],
    )


def end_offset_request(topic: str, partition: int) -> Message:
    """Asks for the end of a partition."""
    wanted = ListOffsetsRequest.ListOffsetsTopic
    place = wanted.ListOffsetsPartition(partition_index=partition, current_leader_epoch=-1, timestamp=-1)
    return ListOffsetsRequest(replica_id=-1, topics=[wanted(name=topic, partitions=[place])])


def create_topic_request(topic: str, partitions: int) -> Message:
    new = CreateTopicsRequest.CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[new], timeout_ms=60_000)
