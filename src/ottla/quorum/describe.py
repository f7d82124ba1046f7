"""What DescribeQuorum answers: who leads, who votes, and how far everybody is."""

from typing import Any

from ottla.quorum.metadata_log import TOPIC
from ottla.quorum.quorum import Quorum
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse

Topic = DescribeQuorumResponse.TopicData
Partition = Topic.PartitionData
Node = DescribeQuorumResponse.Node


def describe_quorum(
    quorum: Quorum[Any], request: DescribeQuorumRequest, now_ms: int
) -> DescribeQuorumResponse:
    """Answer for the partition of the metadata log; any other has no quorum."""
    asked = [
        (topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in request.topics
    ]
    if asked != [(TOPIC, [0])]:
        return DescribeQuorumResponse(
            error_message=None,
            topics=[
                Topic(topic_name=name, partitions=[_unknown(index) for index in indexes])
                for name, indexes in asked
            ],
        )
    partition = Partition(
        error_message=None,
        leader_id=quorum.leader_id,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.committed_offset,
        current_voters=[
            # The leader is, by definition, caught up now.
            DescribeQuorumResponse.ReplicaState(
                replica_id=voter.id,
                replica_directory_id=voter.directory_id,
                log_end_offset=quorum.end_offset,
                last_fetch_timestamp=now_ms,
                last_caught_up_timestamp=now_ms,
            )
            for voter in quorum.voters.by_id.values()
        ],
    )
    nodes = [
        Node(
            node_id=voter.id,
            listeners=[
                Node.Listener(name=each.listener, host=each.host, port=each.port) for each in voter.addresses
            ],
        )
        for voter in quorum.voters.by_id.values()
    ]
    return DescribeQuorumResponse(
        error_message=None, topics=[Topic(topic_name=TOPIC, partitions=[partition])], nodes=nodes
    )


def _unknown(index: int) -> Partition:
    return Partition(
        partition_index=index,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message=None,
        leader_id=-1,
    )
