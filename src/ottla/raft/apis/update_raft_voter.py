"""UpdateRaftVoter: a voter tells the leader where it listens and what it speaks.

Where voters stand in the log, that is written down there. Where they do not, the leader keeps it in mind for the
moment at which kraft.version is raised.
"""

from ottla.raft.apis.remove_raft_voter import refuse_change
from ottla.raft.event import Request
from ottla.raft.follower import Follower
from ottla.raft.leading import append_voters, expire_change
from ottla.raft.news import address_for, is_for_us, refuse_as_leader, weigh
from ottla.raft.replica import Replica
from ottla.raft.settings import node_at
from ottla.raft.voters import Address, Voter, Voters
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse


def ask(replica: Replica) -> UpdateRaftVoterRequest:
    """Tell the leader who we are."""
    settings = replica.settings
    low, high = settings.voter.kraft_versions
    return UpdateRaftVoterRequest(
        cluster_id=settings.cluster_id,
        current_leader_epoch=replica.epoch,
        voter_id=settings.node_id,
        voter_directory_id=settings.directory_id,
        listeners=[
            UpdateRaftVoterRequest.Listener(name=each.listener, host=each.host, port=each.port)
            for each in settings.addresses
        ],
        kraft_version_feature=UpdateRaftVoterRequest.KRaftVersionFeature(
            min_supported_version=low, max_supported_version=high
        ),
    )


def answer(replica: Replica, request: Request, now: int) -> UpdateRaftVoterResponse:
    """Write down what the voter says of itself."""
    message = request.message
    assert isinstance(message, UpdateRaftVoterRequest)
    if is_for_us(replica, message.cluster_id):
        code = _update(replica, message, now)
    else:
        code = ErrorCode.INCONSISTENT_CLUSTER_ID
    state = replica.state
    leader = UpdateRaftVoterResponse.CurrentLeader(leader_id=state.leader_id, leader_epoch=state.epoch)
    address = address_for(replica, request.listener)
    if address is not None:
        leader.host, leader.port = address.host, address.port
    return UpdateRaftVoterResponse(error_code=code, current_leader=leader)


def _update(replica: Replica, message: UpdateRaftVoterRequest, now: int) -> ErrorCode:
    code = refuse_as_leader(replica, message.current_leader_epoch)
    if code:
        return code
    settings, membership, leader = replica.settings, replica.membership, replica.leader
    versions = message.kraft_version_feature
    voter = Voter(
        message.voter_id,
        message.voter_directory_id,
        tuple(Address(each.name, each.host, each.port) for each in message.listeners),
        (versions.min_supported_version, versions.max_supported_version),
    )
    if (
        voter.id < 0
        or not any(voter.directory_id)
        or node_at(voter.id, voter.addresses, settings.listener) is None
        or not 0 <= voter.kraft_versions[0] <= voter.kraft_versions[1]
    ):
        return ErrorCode.INVALID_REQUEST
    expire_change(replica, now)
    if leader.change is not None or not leader.is_established:
        return ErrorCode.REQUEST_TIMED_OUT
    voters: Voters | None
    if membership.can_change:
        if refuse_change(replica) is not None:
            return ErrorCode.REQUEST_TIMED_OUT
        voters = membership.voters.changed(voter)
    elif leader.told_voters is None:
        return ErrorCode.REQUEST_TIMED_OUT  # they are just being written to the log
    else:
        voters = leader.told_voters.changed(voter, any_directory=True)
    if not voter.supports(membership.kraft_version):
        return ErrorCode.INVALID_REQUEST
    if voters is None:
        return ErrorCode.VOTER_NOT_FOUND
    if membership.can_change:
        append_voters(replica, voters, now)
    else:
        leader.told_voters = voters
    leader.heard_from(voter.key, now)
    return ErrorCode.NONE


def take(replica: Replica, node_id: int, response: UpdateRaftVoterResponse, now: int) -> bool:
    """Hear that the leader knows; False when it is to be left alone for a moment."""
    current, listener = response.current_leader, replica.settings.listener
    leader_id, epoch = (current.leader_id, current.leader_epoch) if current is not None else (-1, -1)
    if current is not None and leader_id >= 0 and current.host:
        addresses: tuple[Address, ...] = (Address(listener, current.host, current.port),)
    else:
        addresses = replica.voters.addresses_of(leader_id)
    if current is not None:
        outcome = weigh(replica, response.error_code, leader_id, epoch, addresses, now)
        if outcome is not None:
            return outcome
    role = replica.role
    if response.error_code in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION) and isinstance(role, Follower):
        role.has_told_leader = True
        role.heard(now, replica.settings.fetch_timeout_ms)
        return True
    return False
