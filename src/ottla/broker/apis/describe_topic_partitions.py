"""DescribeTopicPartitions (75): topics and their partitions, a page at a time (KIP-966).

Topics come in the order of their names. No topics asked for means all. A page holds as many partitions as the client
asks for, within `max.request.partition.size.limit`, and ends with a cursor where the next page begins.
"""

from ottla.broker.api import Api
from ottla.broker.apis.metadata import INTERNAL_TOPICS, TOPIC_OPERATIONS
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.metadata.image import Image
from ottla.metadata.topics import PartitionState
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)

Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
Part = Topic.DescribeTopicPartitionsResponsePartition
Cursor = DescribeTopicPartitionsResponse.Cursor


def handle(
    request: DescribeTopicPartitionsRequest, version: int, connection: Connection, broker: Broker
) -> DescribeTopicPartitionsResponse:
    """Describe one page."""
    cursor = request.cursor
    everything = not request.topics
    image = broker.image
    asked = image.topics.by_name if everything else {topic.name for topic in request.topics}
    first = "" if cursor is None else cursor.topic_name
    names = sorted(name for name in asked if name >= first)
    if cursor is not None and (cursor.partition_index < 0 or (not everything and first not in asked)):
        return DescribeTopicPartitionsResponse(
            topics=[Topic(name=topic.name, error_code=ErrorCode.INVALID_REQUEST) for topic in request.topics]
        )
    limit = broker.settings["max.request.partition.size.limit"]
    assert isinstance(limit, int)
    left = max(1, min(limit, request.response_partition_limit))
    response = DescribeTopicPartitionsResponse()
    for name in names:
        if not left:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        found = image.topics.by_name.get(name)
        if found is None:
            response.topics.append(_absent(name, broker))
            continue
        start = cursor.partition_index if cursor is not None and name == first else 0
        end = min(len(found.partitions), start + left)
        response.topics.append(
            Topic(
                name=name,
                topic_id=found.id,
                is_internal=name in INTERNAL_TOPICS,
                partitions=[
                    _part(index, found.partitions[index], image, connection.listener)
                    for index in range(start, end)
                ],
                topic_authorized_operations=TOPIC_OPERATIONS,
            )
        )
        if end < len(found.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
        left -= max(0, end - start)
    return response


def _absent(name: str, broker: Broker) -> Topic:
    return Topic(
        name=name,
        error_code=broker.absence(name),
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _part(index: int, state: PartitionState, image: Image, listener: str) -> Part:
    return Part(
        partition_index=index,
        leader_id=state.leader if _listens(state.leader, image, listener) else -1,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        eligible_leader_replicas=list(state.elr),
        last_known_elr=list(state.last_known_elr),
        offline_replicas=[each for each in state.replicas if not _online(each, state, image, listener)],
    )


def _listens(node_id: int, image: Image, listener: str) -> bool:
    broker = image.brokers.get(node_id)
    return broker is not None and listener in broker.listeners


def _online(node_id: int, state: PartitionState, image: Image, listener: str) -> bool:
    if not _listens(node_id, image, listener):
        return False
    broker = image.brokers[node_id]
    return not broker.fenced and broker.has_online(state.directory_of(node_id))


API = Api(DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, handle)
