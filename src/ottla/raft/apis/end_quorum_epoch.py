"""EndQuorumEpoch: a leader that steps down tells the voters, and who of them should stand first.

The first in line stands at once, and each one behind it waits twice as long as the one before, so that the longest log
is likely to win without a second round.
"""

from ottla.raft.event import Request
from ottla.raft.follower import Follower
from ottla.raft.news import (
    address_for,
    addresses_in,
    addresses_of,
    hear,
    is_for_us,
    names_our_log,
    refuse_leader,
    weigh,
)
from ottla.raft.replica import Replica
from ottla.raft.resigned import Resigned
from ottla.raft.settings import TOPIC
from ottla.raft.voters import ReplicaKey
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse

ENDPOINTS_SINCE = 1


def ask(replica: Replica, successors: list[ReplicaKey]) -> EndQuorumEpochRequest:
    """Tell a voter that this replica leads no longer."""
    kind = EndQuorumEpochRequest.TopicData
    partition = kind.PartitionData(
        leader_id=replica.settings.node_id,
        leader_epoch=replica.epoch,
        preferred_successors=[key.id for key in successors],
        preferred_candidates=[
            kind.PartitionData.ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id)
            for key in successors
        ],
    )
    return EndQuorumEpochRequest(
        cluster_id=replica.settings.cluster_id,
        topics=[kind(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=[
            EndQuorumEpochRequest.LeaderEndpoint(name=each.listener, host=each.host, port=each.port)
            for each in replica.settings.addresses
        ],
    )


def answer(replica: Replica, request: Request, now: int) -> EndQuorumEpochResponse:
    """Take note that the leader is gone, and stand for election when it is our turn."""
    message = request.message
    assert isinstance(message, EndQuorumEpochRequest)
    if not is_for_us(replica, message.cluster_id):
        return EndQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    if not names_our_log(message.topics):
        return EndQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
    told = message.topics[0].partitions[0]
    code = refuse_leader(replica, told.leader_id, told.leader_epoch, now)
    if not code:
        addresses = addresses_of(replica, told.leader_id, message.leader_endpoints)
        hear(replica, told.leader_id, told.leader_epoch, addresses, now)
        role = replica.role
        if isinstance(role, Follower) and replica.state.leader_id == told.leader_id:
            candidates = [
                ReplicaKey(each.candidate_id, each.candidate_directory_id)
                for each in told.preferred_candidates
            ] or [ReplicaKey(id) for id in told.preferred_successors]
            role.doubt(now + patience_ms(replica, candidates))
    kind = EndQuorumEpochResponse.TopicData
    partition = kind.PartitionData(
        error_code=code, leader_id=replica.state.leader_id, leader_epoch=replica.epoch
    )
    response = EndQuorumEpochResponse(topics=[kind(topic_name=TOPIC, partitions=[partition])])
    address = address_for(replica, request.listener)
    if address is not None and request.version >= ENDPOINTS_SINCE:
        response.node_endpoints = [
            EndQuorumEpochResponse.NodeEndpoint(
                node_id=replica.state.leader_id, host=address.host, port=address.port
            )
        ]
    return response


def patience_ms(replica: Replica, candidates: list[ReplicaKey]) -> int:
    """How long to let those go first who are in front of us."""
    patience_ms_max = replica.settings.election_backoff_ms_max
    key = replica.key
    for place, candidate in enumerate(candidates):
        if candidate in (key, ReplicaKey(key.id)):
            if place == 0:
                return 0
            first_ms = patience_ms_max >> (len(candidates) - 1)
            return min(patience_ms_max, first_ms << (place - 1))
    return patience_ms_max if candidates else 0


def take(replica: Replica, voter_id: int, response: EndQuorumEpochResponse, now: int) -> bool:
    """Hear that a voter knows; False when it is to be left alone for a moment."""
    if response.error_code or not names_our_log(response.topics):
        return False
    told = response.topics[0].partitions[0]
    addresses = addresses_in(replica, told.leader_id, response.node_endpoints)
    outcome = weigh(replica, told.error_code, told.leader_id, told.leader_epoch, addresses, now)
    if outcome is not None:
        return outcome
    if told.error_code:
        return False
    if isinstance(replica.role, Resigned):
        replica.role.unaware.discard(voter_id)
    return True
