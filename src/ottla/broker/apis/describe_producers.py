"""DescribeProducers (61): the producers that a partition remembers, and their open transactions (KIP-664).

A partition is described as often as it is named, but no more than twice (`mentions.py`).
"""

from ottla.broker.api import Api
from ottla.broker.broker import Broker
from ottla.broker.mentions import mentions
from ottla.broker.replica import local_replica
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.controller.names import invalid_name
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse

Topic = DescribeProducersResponse.TopicResponse
Part = Topic.PartitionResponse
Producer = Part.ProducerState


def handle(
    request: DescribeProducersRequest, version: int, connection: Connection, broker: Broker
) -> DescribeProducersResponse:
    """Describe the producers of every partition that is led here."""
    topics = []
    named = ((topic, index) for topic in request.topics for index in topic.partition_indexes)
    kept: dict[int, list[int]] = {}
    for topic, index in mentions(named, lambda each: (each[0].name, each[1])):
        kept.setdefault(id(topic), []).append(index)
    for topic in request.topics:
        name = topic.name
        fault = invalid_name(name)
        parts = []
        for index in kept.get(id(topic), ()):
            part = Part(partition_index=index)
            parts.append(part)
            try:
                if fault is not None:
                    raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
                part.active_producers = _producers(name, index, broker)
            except BrokerError as error:
                part.error_code, part.error_message = error.code, error.message
        topics.append(Topic(name=name, partitions=parts))
    return DescribeProducersResponse(topics=topics)


def _producers(topic: str, index: int, broker: Broker) -> list[Producer]:
    partition = local_replica(broker, topic, index)
    partition.check_leader(-1)
    return [
        Producer(
            producer_id=each.producer_id,
            producer_epoch=each.epoch,
            last_sequence=each.batches[-1].last_sequence if each.batches else -1,
            last_timestamp=each.last_timestamp,
            coordinator_epoch=each.coordinator_epoch,
            current_txn_start_offset=each.transaction_first_offset,
        )
        for each in partition.log.producers()
    ]


API = Api(
    DescribeProducersRequest,
    DescribeProducersResponse,
    handle,
    long=in_slices(Cut("topics.partition_indexes", "topics.partitions", ("name", "")), size=100),
)
