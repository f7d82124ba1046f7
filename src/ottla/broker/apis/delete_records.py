"""DeleteRecords (21): drop the oldest records of partitions, up to an offset.

Offset -1 stands for the high watermark; one beyond it is out of range, and one below the log's start changes nothing.
The answer tells the low watermark, where the partition now begins. A topic that is only compacted refuses: its records
are kept by key, not by age.
"""

from ottla.broker.api import Api, Pending
from ottla.broker.apis.metadata import INTERNAL_TOPICS
from ottla.broker.broker import Broker
from ottla.broker.replica import local_replica
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.partition.flusher import storage_error
from ottla.partition.partition import Partition
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse

Topic = DeleteRecordsResponse.DeleteRecordsTopicResult
Part = Topic.DeleteRecordsPartitionResult

HIGH_WATERMARK = -1
_LOOK_S = 0.02


def handle(
    request: DeleteRecordsRequest, version: int, connection: Connection, broker: Broker
) -> DeleteRecordsResponse | Pending:
    """Raise the start of every partition named, and answer once all replicas that live have done the same."""
    topics = []
    behind: list[tuple[Partition, int, Part]] = []
    for topic in request.topics:
        parts = []
        for asked in topic.partitions:
            part = Part(partition_index=asked.partition_index, low_watermark=-1)
            parts.append(part)
            try:
                partition = local_replica(broker, topic.name, asked.partition_index)
                partition.check_leader(-1)
                if topic.name in INTERNAL_TOPICS:
                    message = f"Cannot delete records of internal topic {topic.name}"
                    raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
                part.low_watermark = delete_before(partition, asked.offset)
                if partition.leadership is not None:
                    partition.start_has_moved()
                    behind.append((partition, part.low_watermark, part))
            except BrokerError as error:
                part.error_code = error.code
        topics.append(Topic(name=topic.name, partitions=parts))
    response = DeleteRecordsResponse(topics=topics)
    return _wait(behind, response, request.timeout_ms, broker) if behind else response


def _wait(
    behind: list[tuple[Partition, int, Part]],
    response: DeleteRecordsResponse,
    timeout_ms: int,
    broker: Broker,
) -> Pending:
    """Answer once the followers have followed, or when the client has waited long enough."""
    pending = Pending()
    deadline = broker.clock.monotonic() + timeout_ms / 1000
    roles = broker.table.roles
    assert roles is not None, "who has followers has roles"

    def look() -> None:
        late = broker.clock.monotonic() >= deadline
        waits = False
        for partition, offset, part in behind:
            leadership = partition.leadership
            if leadership is None:
                part.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                continue
            part.low_watermark = leadership.start_offset(partition.log.start_offset, roles.lives)
            if part.low_watermark < offset:
                waits = True
                if late:
                    part.error_code = ErrorCode.REQUEST_TIMED_OUT
        if waits and not late:
            broker.call_later(_LOOK_S, look)
        else:
            pending.resolve(response)

    look()
    return pending


def delete_before(partition: Partition, offset: int) -> int:
    """Let a partition begin at `offset`, unless it begins later already, and return where it begins."""
    log = partition.log
    if log.config.is_compacted and not log.config.is_deleted:
        message = f"Records of partition {log.topic}-{log.partition} can not be deleted due to the configured policy"
        raise BrokerError(ErrorCode.POLICY_VIOLATION, message)
    if offset == HIGH_WATERMARK:
        offset = partition.high_watermark
    if not 0 <= offset <= partition.high_watermark:
        message = f"The offset {offset} for partition {log.topic}-{log.partition} is not valid"
        raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE, message)
    try:
        log.raise_start_offset(offset)
    except OSError as error:
        raise storage_error(error) from error
    return log.start_offset


API = Api(
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    handle,
    long=in_slices(Cut("topics.partitions", "topics.partitions"), size=100),
)
