"""ListOffsets (2): find an offset by time, or by one of the special timestamps.

-2 earliest, -1 latest (the last stable offset for read-committed readers), -3 the record with the largest timestamp
(v7), -4 earliest local (v8), -5 latest tiered (v9), -6 earliest pending upload (v11). Nothing is tiered yet, so the
local log is the whole log.
"""

from collections import Counter

from ottla.broker.api import Api
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.partition.partition import Partition
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
_NEVER = 1 << 15
_NOT_AVAILABLE_SINCE = 5
_SINCE = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}

Topic = ListOffsetsResponse.ListOffsetsTopicResponse
Part = Topic.ListOffsetsPartitionResponse


def handle(
    request: ListOffsetsRequest, version: int, connection: Connection, broker: Broker
) -> ListOffsetsResponse:
    """Look every partition up."""
    committed = request.isolation_level == 1
    topics = []
    for topic in request.topics:
        asks = Counter(asked.partition_index for asked in topic.partitions)
        parts = []
        for asked in {asked.partition_index: asked for asked in topic.partitions}.values():
            part = Part(partition_index=asked.partition_index)
            parts.append(part)
            try:
                if asks[asked.partition_index] > 1:
                    raise BrokerError(ErrorCode.INVALID_REQUEST)
                partition = broker.table.by_name(topic.name, asked.partition_index)
                partition.check_leader(asked.current_leader_epoch)
                if asked.timestamp < 0 and version < _SINCE.get(asked.timestamp, _NEVER):
                    raise BrokerError(ErrorCode.UNSUPPORTED_VERSION)
                if request.replica_id >= 0 and asked.timestamp == LATEST:
                    part.offset, epoch = partition.log.end_offset, partition.leader_epoch
                else:
                    part.timestamp, part.offset, epoch = find(partition, asked.timestamp, committed=committed)
                if version >= 4:
                    part.leader_epoch = epoch
            except BrokerError as error:
                part.error_code = error.code
                if error.code is ErrorCode.OFFSET_NOT_AVAILABLE and version < _NOT_AVAILABLE_SINCE:
                    part.error_code = ErrorCode.LEADER_NOT_AVAILABLE
            except OSError as error:
                part.error_code = partition.log.storage_error(error).code
        topics.append(Topic(name=topic.name, partitions=parts))
    return ListOffsetsResponse(topics=topics)


def find(partition: Partition, timestamp: int, *, committed: bool) -> tuple[int, int, int]:
    """Return (timestamp, offset, leader epoch); -1 for what there is not."""
    log = partition.log
    end_offset = partition.last_stable_offset if committed else partition.high_watermark
    if timestamp == LATEST:
        partition.check_known(end_offset)
        return -1, end_offset, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        epoch = log.epoch_for_offset(log.start_offset)
        return -1, log.start_offset, -1 if epoch is None else epoch
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return -1, -1, -1
    found = log.max_timestamp() if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    if found is None or found.offset >= end_offset:
        partition.check_known(end_offset)
        return -1, -1, -1
    return found.timestamp, found.offset, -1 if found.leader_epoch is None else found.leader_epoch


API = Api(ListOffsetsRequest, ListOffsetsResponse, handle)
