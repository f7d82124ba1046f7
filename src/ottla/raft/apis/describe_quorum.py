"""DescribeQuorum: who leads, who votes, who looks on, and how far everybody is."""

from collections.abc import Iterable

from ottla.raft.event import Request
from ottla.raft.leader import Leader
from ottla.raft.news import names_our_log
from ottla.raft.progress import Progress
from ottla.raft.replica import Replica
from ottla.raft.settings import TOPIC
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from ottla.wire.uuid import ZERO_UUID

DIRECTORIES_SINCE = 2
_UNKNOWN = "This server does not host this topic-partition."

_Topic = DescribeQuorumResponse.TopicData
_Node = DescribeQuorumResponse.Node


def answer(replica: Replica, request: Request, now: int) -> DescribeQuorumResponse:
    """Describe the quorum, where it is led from here."""
    message = request.message
    assert isinstance(message, DescribeQuorumRequest)
    if not names_our_log(message.topics):
        asked = [(each.topic_name, each.partitions) for each in message.topics]
        return DescribeQuorumResponse(
            error_message=None,
            topics=[
                _Topic(
                    topic_name=name,
                    partitions=[
                        _Topic.PartitionData(
                            partition_index=each.partition_index,
                            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                            error_message=_UNKNOWN,
                        )
                        for each in partitions
                    ],
                )
                for name, partitions in asked
            ],
        )
    leader = replica.role
    if not isinstance(leader, Leader):
        refusal = _refusal(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return DescribeQuorumResponse(
            error_message=None, topics=[_Topic(topic_name=TOPIC, partitions=[refusal])]
        )
    leader.forget_observers(now)
    partition = _Topic.PartitionData(
        error_message=None,
        leader_id=replica.settings.node_id,
        leader_epoch=replica.epoch,
        high_watermark=leader.high_watermark,
        current_voters=_states(replica, request, leader.voters.values(), now),
        observers=_states(replica, request, leader.observers.values(), now),
    )
    response = DescribeQuorumResponse(
        error_message=None, topics=[_Topic(topic_name=TOPIC, partitions=[partition])]
    )
    if request.version >= DIRECTORIES_SINCE:
        response.nodes = [
            _Node(
                node_id=voter.id,
                listeners=[
                    _Node.Listener(name=each.listener, host=each.host, port=each.port)
                    for each in voter.addresses
                ],
            )
            for voter in replica.voters.by_id.values()
        ]
    return response


def _states(
    replica: Replica, request: Request, copies: Iterable[Progress], now: int
) -> list[DescribeQuorumResponse.ReplicaState]:
    own = replica.leader.own
    return [
        DescribeQuorumResponse.ReplicaState(
            replica_id=each.key.id,
            replica_directory_id=each.key.directory_id if request.version >= DIRECTORIES_SINCE else ZERO_UUID,
            # The leader is, by definition, at the end of its log now.
            log_end_offset=replica.outline.end_offset if each is own else each.end_offset,
            last_fetch_timestamp=now if each is own else each.fetched_ms,
            last_caught_up_timestamp=now if each is own else each.caught_up_ms,
        )
        for each in copies
    ]


def _refusal(index: int, code: ErrorCode) -> _Topic.PartitionData:
    return _Topic.PartitionData(partition_index=index, error_code=code, error_message=None, leader_id=-1)
