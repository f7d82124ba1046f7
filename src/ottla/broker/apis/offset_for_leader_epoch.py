"""OffsetForLeaderEpoch (23): where an epoch ended.

With it a reader can tell whether its position survived a change of leader.
"""

from ottla.broker.api import Api
from ottla.broker.broker import Broker
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)

Topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
Part = Topic.EpochEndOffset


def handle(
    request: OffsetForLeaderEpochRequest, version: int, connection: Connection, broker: Broker
) -> OffsetForLeaderEpochResponse:
    """Answer each partition with the end of the largest epoch not above the one asked for."""
    topics = []
    for topic in request.topics:
        parts = []
        for asked in topic.partitions:
            part = Part(partition=asked.partition)
            parts.append(part)
            try:
                partition = broker.table.by_name(topic.topic, asked.partition)
                partition.check_leader(asked.current_leader_epoch)
                # Never cut at the high watermark, which a new leader has yet to learn: a consumer would take what it
                # has read for lost, and read it again.
                part.leader_epoch, part.end_offset = partition.log.end_offset_for_epoch(asked.leader_epoch)
            except BrokerError as error:
                part.error_code = error.code
            except OSError as error:
                part.error_code = partition.log.storage_error(error).code
        topics.append(Topic(topic=topic.topic, partitions=parts))
    return OffsetForLeaderEpochResponse(topics=topics)


API = Api(
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    handle,
    long=in_slices(Cut("topics.partitions", "topics.partitions")),
)
