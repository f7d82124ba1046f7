"""DescribeQuorum (55): who leads the metadata log, who votes, and how far each has come.

The only partition there is to ask for is `__cluster_metadata-0`. v1 brought the times of the last fetch, v2 directory
ids and where the voters listen (KIP-853).
"""

from ottla.broker.api import Api
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.controller.names import CLUSTER_METADATA
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse

Replica = DescribeQuorumResponse.ReplicaState
Topic = DescribeQuorumResponse.TopicData
Part = Topic.PartitionData
Node = DescribeQuorumResponse.Node

_UNKNOWN = "This server does not host this topic-partition."


def handle(
    request: DescribeQuorumRequest, version: int, connection: Connection, broker: Broker
) -> DescribeQuorumResponse:
    """Describe the quorum that this node leads."""
    asked = [
        (topic.topic_name, part.partition_index) for topic in request.topics for part in topic.partitions
    ]
    if asked != [(CLUSTER_METADATA, 0)]:
        return _unknown(request)
    quorum = broker.quorum
    now_ms = broker.clock.now_ms()
    voters = []
    for voter in quorum.voters.by_id.values():
        state = Replica(replica_id=voter.id, log_end_offset=quorum.end_offset)
        # The leader has always just fetched, and is always caught up with itself.
        state.last_fetch_timestamp = state.last_caught_up_timestamp = now_ms
        if version >= 2:
            state.replica_directory_id = voter.directory_id
        voters.append(state)
    part = Part(
        leader_id=quorum.leader_id,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.committed_offset,
        current_voters=voters,
    )
    response = DescribeQuorumResponse(topics=[Topic(topic_name=CLUSTER_METADATA, partitions=[part])])
    if version >= 2:
        response.nodes = [
            Node(
                node_id=voter.id,
                listeners=[
                    Node.Listener(name=at.listener, host=at.host, port=at.port) for at in voter.addresses
                ],
            )
            for voter in quorum.voters.by_id.values()
        ]
    return response


def _unknown(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DescribeQuorumResponse(
        topics=[
            Topic(
                topic_name=topic.topic_name,
                partitions=[
                    Part(partition_index=part.partition_index, error_code=code, error_message=_UNKNOWN)
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


API = Api(DescribeQuorumRequest, DescribeQuorumResponse, handle)
