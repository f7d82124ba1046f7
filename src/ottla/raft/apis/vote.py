"""Vote: a voter asks for a vote, or, since v2, whether it would get one.

V1  A vote is given once an epoch, and only to a log that has all that ours has: its last record is of a higher epoch,
    or of the same one and not before ours (Raft, §5.4.1).
V2  Whoever is asked need not be a voter by its own log, and neither need the one who asks, as far as N4 of `news.py`
    lets it: the log may not have come that far yet. That the right copies vote is seen to by naming them.
"""

from ottla.raft.candidate import Candidate
from ottla.raft.election_state import NOBODY
from ottla.raft.event import Request
from ottla.raft.news import (
    address_for,
    addresses_in,
    is_for_us,
    is_meant,
    names_our_log,
    refuse_elector,
    weigh,
)
from ottla.raft.prospective import Prospective
from ottla.raft.replica import Replica
from ottla.raft.settings import TOPIC
from ottla.raft.voters import ReplicaKey
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.vote import VoteRequest, VoteResponse

ENDPOINTS_SINCE = 1


def ask(replica: Replica, voter: ReplicaKey) -> VoteRequest:
    """Ask a voter for its vote, or whether it would give it."""
    outline, key = replica.outline, replica.key
    partition = VoteRequest.TopicData.PartitionData(
        replica_epoch=replica.epoch,
        replica_id=key.id,
        replica_directory_id=key.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=outline.last_epoch,
        last_offset=outline.end_offset,
        pre_vote=isinstance(replica.role, Prospective),
    )
    return VoteRequest(
        cluster_id=replica.settings.cluster_id,
        voter_id=voter.id,
        topics=[VoteRequest.TopicData(topic_name=TOPIC, partitions=[partition])],
    )


def answer(replica: Replica, request: Request, now: int) -> VoteResponse:
    """Give the vote, or do not."""
    message = request.message
    assert isinstance(message, VoteRequest)
    if not is_for_us(replica, message.cluster_id):
        return VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    if not names_our_log(message.topics):
        return VoteResponse(error_code=ErrorCode.INVALID_REQUEST)
    code, granted = _decide(replica, message, now)
    partition = VoteResponse.TopicData.PartitionData(
        error_code=code,
        leader_id=replica.state.leader_id,
        leader_epoch=replica.epoch,
        vote_granted=granted,
    )
    response = VoteResponse(topics=[VoteResponse.TopicData(topic_name=TOPIC, partitions=[partition])])
    address = address_for(replica, request.listener)
    if address is not None and request.version >= ENDPOINTS_SINCE:
        response.node_endpoints = [
            VoteResponse.NodeEndpoint(node_id=replica.state.leader_id, host=address.host, port=address.port)
        ]
    return response


def _decide(replica: Replica, message: VoteRequest, now: int) -> tuple[ErrorCode, bool]:
    asked = message.topics[0].partitions[0]
    # A candidate's epoch is new, so nothing can have been written in it; a pre-vote's is the one it is in.
    last_epoch_max = asked.replica_epoch - (not asked.pre_vote)
    if asked.last_offset < 0 or not 0 <= asked.last_offset_epoch <= last_epoch_max:
        return ErrorCode.INVALID_REQUEST, False
    code = refuse_elector(replica, asked.replica_id, asked.replica_epoch, now)
    if code:
        return code, False
    if asked.replica_epoch > replica.epoch:
        replica.become_unattached(asked.replica_epoch, NOBODY, now)
    if not is_meant(replica, message.voter_id, asked.voter_directory_id):
        return ErrorCode.INVALID_VOTER_KEY, False
    key = ReplicaKey(asked.replica_id, asked.replica_directory_id)
    granted = replica.role.grants(
        replica.state,
        key,
        is_current=is_current(replica, asked.last_offset, asked.last_offset_epoch),
        is_pre_vote=asked.pre_vote,
    )
    if granted and not asked.pre_vote and replica.state.voted_id == NOBODY:
        replica.vote(key, now)
    return ErrorCode.NONE, granted


def is_current(replica: Replica, end_offset: int, last_epoch: int) -> bool:
    """True when a log that ends so has all that ours has."""
    outline = replica.outline
    return (last_epoch, end_offset) >= (outline.last_epoch, outline.end_offset)


def take(replica: Replica, voter_id: int, response: VoteResponse, now: int) -> bool:
    """Count a vote; False when the voter is to be left alone for a moment."""
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION and isinstance(replica.role, Prospective):
        # Somebody does not know pre-votes, so they are not waited for.
        replica.become_candidate(now)
        return True
    if response.error_code or not names_our_log(response.topics):
        return False
    told = response.topics[0].partitions[0]
    addresses = addresses_in(replica, told.leader_id, response.node_endpoints)
    outcome = weigh(replica, told.error_code, told.leader_id, told.leader_epoch, addresses, now)
    if outcome is not None:
        return outcome
    if told.error_code:
        return False
    role = replica.role
    if isinstance(role, Prospective | Candidate):
        role.ballot.record(voter_id, granted=told.vote_granted)
        if role.ballot.is_won and isinstance(role, Prospective):
            replica.become_candidate(now)
        elif role.ballot.is_won:
            replica.become_leader(now)
        elif role.ballot.is_lost and isinstance(role, Prospective):
            lose(replica, now)
    return True


def lose(replica: Replica, now: int) -> None:
    """Give up asking: go back to the leader that was known, or to nobody."""
    leader_id = replica.state.leader_id
    if leader_id != NOBODY and replica.become_follower(
        replica.epoch, leader_id, replica.leader_addresses, now
    ):
        return
    replica.become_unattached(replica.epoch, leader_id, now)
