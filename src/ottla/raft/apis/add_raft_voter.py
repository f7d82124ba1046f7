"""AddRaftVoter: a copy of the log becomes a voter (KIP-853).

    request --answer()--> the new voter is asked what it speaks --take_versions()--> record --commit--> answered

A voter is added that has been at the end of the log: a new majority may need it at once.
"""

from ottla.raft.apis.remove_raft_voter import refuse_change, told_later
from ottla.raft.asking import send
from ottla.raft.event import Request
from ottla.raft.leader import Leader
from ottla.raft.leading import append_voters, expire_change
from ottla.raft.news import is_for_us, refuse_as_leader
from ottla.raft.replica import Replica
from ottla.raft.settings import node_at
from ottla.raft.voter_change import VoterChange
from ottla.raft.voters import Address, ReplicaKey, Voter
from ottla.raft.watermark import settle
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

FEATURE = "kraft.version"


def ask(replica: Replica) -> AddRaftVoterRequest:
    """Ask to become a voter."""
    settings = replica.settings
    return AddRaftVoterRequest(
        cluster_id=settings.cluster_id,
        timeout_ms=settings.request_timeout_ms,
        voter_id=settings.node_id,
        voter_directory_id=settings.directory_id,
        listeners=[
            AddRaftVoterRequest.Listener(name=each.listener, host=each.host, port=each.port)
            for each in settings.addresses
        ],
        # The answer would wait for a commit that may need this replica's own fetch.
        ack_when_committed=False,
    )


def answer(replica: Replica, request: Request, now: int) -> AddRaftVoterResponse | None:
    """Begin to add a voter; None while the answer is not known."""
    message = request.message
    assert isinstance(message, AddRaftVoterRequest)
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
    addresses = tuple(Address(each.name, each.host, each.port) for each in message.listeners)
    node = node_at(key.id, addresses, settings.listener)
    if key.id < 0 or not any(key.directory_id):
        return _refusal(ErrorCode.INVALID_REQUEST, "A voter has an id and a directory id.")
    if node is None:
        return _refusal(
            ErrorCode.INVALID_REQUEST, f"The new voter has no address for listener {settings.listener}."
        )
    expire_change(replica, now)
    refused = refuse_change(replica)
    if refused is not None:
        return _refusal(*refused)
    if key.id in replica.voters.by_id:
        return _refusal(ErrorCode.DUPLICATE_VOTER, f"Node {key.id} is a voter already.")
    if not send(replica, node, _ask_versions, now):
        return _refusal(
            ErrorCode.REQUEST_TIMED_OUT, f"Node {key.id} cannot be asked what it speaks just now."
        )
    replica.leader.change = VoterChange(
        request.token,
        key,
        now + settings.request_timeout_ms,
        adds=True,
        addresses=addresses,
        is_acked_early=not message.ack_when_committed,
    )
    return None


def _ask_versions() -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name="ottla", client_software_version="1")


def take_versions(replica: Replica, node_id: int, response: ApiVersionsResponse, now: int) -> bool:
    """Hear what the new voter speaks, and write it down among the voters; False when it could not be asked."""
    leader = replica.role
    if not isinstance(leader, Leader):
        return True
    change = leader.change
    if change is None or not change.adds or change.key.id != node_id or change.offset is not None:
        return True
    level = replica.membership.kraft_version
    range = next((each for each in response.supported_features if each.name == FEATURE), None)
    if response.error_code:
        return _give_up(
            replica, leader, change, ErrorCode.REQUEST_TIMED_OUT, "The new voter did not say what it speaks."
        )
    if range is None or not range.min_version <= level <= range.max_version:
        _give_up(
            replica,
            leader,
            change,
            ErrorCode.INVALID_REQUEST,
            f"The new voter does not speak {FEATURE} {level}.",
        )
        return True
    if not leader.is_caught_up(change.key, now):
        _give_up(
            replica,
            leader,
            change,
            ErrorCode.REQUEST_TIMED_OUT,
            "The new voter is too far behind the leader.",
        )
        return True
    voter = Voter(
        change.key.id, change.key.directory_id, change.addresses, (range.min_version, range.max_version)
    )
    voters = replica.voters.plus(voter)
    assert voters is not None
    change.offset = replica.outline.end_offset
    append_voters(replica, voters, now)
    if change.is_acked_early:
        settle(replica, change, ErrorCode.NONE)
    return True


def _give_up(replica: Replica, leader: Leader, change: VoterChange, code: ErrorCode, message: str) -> bool:
    leader.change = None
    settle(replica, change, code, message)
    return False


def _refusal(code: ErrorCode, message: str | None = None) -> AddRaftVoterResponse:
    return AddRaftVoterResponse(error_code=code, error_message=message)


def take(replica: Replica, node_id: int, response: AddRaftVoterResponse, now: int) -> bool:
    """Hear whether we were added; False when the leader is to be left alone for a moment."""
    expected = (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.DUPLICATE_VOTER)
    return told_later(replica, response.error_code in expected, now)
