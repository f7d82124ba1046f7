"""BeginQuorumEpoch: the leader makes itself known to voters that do not fetch from it."""

from ottla.raft.event import Request
from ottla.raft.news import (
    address_for,
    addresses_in,
    addresses_of,
    hear,
    is_for_us,
    is_meant,
    names_our_log,
    refuse_leader,
    weigh,
)
from ottla.raft.replica import Replica
from ottla.raft.settings import TOPIC
from ottla.raft.voters import ReplicaKey
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse

ENDPOINTS_SINCE = 1


def ask(replica: Replica, voter: ReplicaKey) -> BeginQuorumEpochRequest:
    """Tell a voter who leads."""
    kind = BeginQuorumEpochRequest.TopicData
    partition = kind.PartitionData(
        voter_directory_id=voter.directory_id,
        leader_id=replica.settings.node_id,
        leader_epoch=replica.epoch,
    )
    return BeginQuorumEpochRequest(
        cluster_id=replica.settings.cluster_id,
        voter_id=voter.id,
        topics=[kind(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=[
            BeginQuorumEpochRequest.LeaderEndpoint(name=each.listener, host=each.host, port=each.port)
            for each in replica.settings.addresses
        ],
    )


def answer(replica: Replica, request: Request, now: int) -> BeginQuorumEpochResponse:
    """Follow the leader, unless it is a leader of the past."""
    message = request.message
    assert isinstance(message, BeginQuorumEpochRequest)
    if not is_for_us(replica, message.cluster_id):
        return BeginQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    if not names_our_log(message.topics):
        return BeginQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
    told = message.topics[0].partitions[0]
    code = refuse_leader(replica, told.leader_id, told.leader_epoch, now)
    if not code:
        addresses = addresses_of(replica, told.leader_id, message.leader_endpoints)
        hear(replica, told.leader_id, told.leader_epoch, addresses, now)
        if not is_meant(replica, message.voter_id, told.voter_directory_id):
            code = ErrorCode.INVALID_VOTER_KEY
    kind = BeginQuorumEpochResponse.TopicData
    partition = kind.PartitionData(
        error_code=code, leader_id=replica.state.leader_id, leader_epoch=replica.epoch
    )
    response = BeginQuorumEpochResponse(topics=[kind(topic_name=TOPIC, partitions=[partition])])
    address = address_for(replica, request.listener)
    if address is not None and request.version >= ENDPOINTS_SINCE:
        response.node_endpoints = [
            BeginQuorumEpochResponse.NodeEndpoint(
                node_id=replica.state.leader_id, host=address.host, port=address.port
            )
        ]
    return response


def take(replica: Replica, voter_id: int, response: BeginQuorumEpochResponse, now: int) -> bool:
    """Hear whether the voter agrees; False when it is to be left alone for a moment."""
    if response.error_code or not names_our_log(response.topics):
        return False
    told = response.topics[0].partitions[0]
    addresses = addresses_in(replica, told.leader_id, response.node_endpoints)
    outcome = weigh(replica, told.error_code, told.leader_id, told.leader_epoch, addresses, now)
    return outcome if outcome is not None else told.error_code == ErrorCode.NONE
