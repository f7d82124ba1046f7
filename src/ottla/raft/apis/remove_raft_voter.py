"""RemoveRaftVoter: a voter stops to be one (KIP-853). A leader that is removed leads until that is committed."""

from ottla.raft.event import Request
from ottla.raft.follower import Follower
from ottla.raft.leading import append_voters, expire_change
from ottla.raft.news import is_for_us, refuse_as_leader
from ottla.raft.replica import Replica
from ottla.raft.voter_change import VoterChange
from ottla.raft.voters import ReplicaKey
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


def ask(replica: Replica, key: ReplicaKey) -> RemoveRaftVoterRequest:
    """Ask that a copy be removed from the voters."""
    return RemoveRaftVoterRequest(
        cluster_id=replica.settings.cluster_id, voter_id=key.id, voter_directory_id=key.directory_id
    )


def answer(replica: Replica, request: Request, now: int) -> RemoveRaftVoterResponse | None:
    """Remove a voter; None while that is not committed."""
    message = request.message
    assert isinstance(message, RemoveRaftVoterRequest)
    settings = replica.settings
    if not is_for_us(replica, message.cluster_id):
        return _refusal(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f'The request is for cluster "{message.cluster_id}", and this is "{settings.cluster_id}".',
        )
    code = refuse_as_leader(replica, replica.epoch)
    if code:
        return _refusal(code)
    key = ReplicaKey(message.voter_id, message.voter_directory_id)
    if key.id < 0 or not any(key.directory_id):
        return _refusal(ErrorCode.INVALID_REQUEST, "A voter has an id and a directory id.")
    expire_change(replica, now)
    refused = refuse_change(replica)
    if refused is not None:
        return _refusal(*refused)
    voters = replica.voters.minus(key)
    if voters is None:
        return _refusal(
            ErrorCode.VOTER_NOT_FOUND, f"Node {key.id} with this directory is no voter, or is the last one."
        )
    replica.leader.change = VoterChange(
        request.token, key, now + settings.request_timeout_ms, adds=False, offset=replica.outline.end_offset
    )
    append_voters(replica, voters, now)
    return None


def refuse_change(replica: Replica) -> tuple[ErrorCode, str] | None:
    """Why the voters cannot be changed just now; None when they can (C1)."""
    leader, membership = replica.leader, replica.membership
    if leader.change is not None:
        return ErrorCode.REQUEST_TIMED_OUT, "Another change of the voters is under way."
    if not leader.is_established:
        return ErrorCode.REQUEST_TIMED_OUT, "The leader has not committed a record of its epoch yet."
    if not membership.can_change:
        return (
            ErrorCode.UNSUPPORTED_VERSION,
            f"Voters cannot be changed while kraft.version is {membership.kraft_version}.",
        )
    if membership.voters_offset is None or membership.voters_offset >= leader.high_watermark:
        return ErrorCode.REQUEST_TIMED_OUT, "The last change of the voters is not committed yet."
    return None


def _refusal(code: ErrorCode, message: str | None = None) -> RemoveRaftVoterResponse:
    return RemoveRaftVoterResponse(error_code=code, error_message=message)


def take(replica: Replica, node_id: int, response: RemoveRaftVoterResponse, now: int) -> bool:
    """Hear whether our old copy was removed; False when the leader is to be left alone for a moment."""
    expected = (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.VOTER_NOT_FOUND)
    return told_later(replica, response.error_code in expected, now)


def told_later(replica: Replica, is_expected: bool, now: int) -> bool:
    """Ask the leader about the voters again after some rounds of fetching."""
    role = replica.role
    if is_expected and isinstance(role, Follower):
        role.update_deadline = now + replica.settings.fetch_timeout_ms
    return is_expected
