"""The upgrade of kraft.version: from voters in the settings to voters in the log.

The leader has been told by each voter which directory it uses and what it speaks. Once it knows that of all, it writes
the new version and the voters in one batch, and from then on they can be changed.
"""

from ottla.raft.event import Upgrade
from ottla.raft.leader import Leader
from ottla.raft.leading import append_controls
from ottla.raft.replica import Replica
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.control import KRaftVersionRecord


def upgrade(replica: Replica, event: Upgrade, now: int) -> None:
    """Raise kraft.version; BrokerError when that cannot be done."""
    leader, level = replica.role, event.kraft_version
    if not isinstance(leader, Leader):
        raise BrokerError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, "kraft.version is raised by the leader of the quorum."
        )
    current = replica.membership.kraft_version if leader.told_version is None else leader.told_version
    if level == current:
        return
    if level < current:
        raise _refusal(f"kraft.version is {current} and cannot be lowered to {level}.")
    voters = leader.told_voters
    if voters is None or not voters.supports(level):
        raise _refusal(f"Not all voters are known to speak kraft.version {level}.")
    unknown = [id for id, voter in voters.by_id.items() if not any(voter.directory_id)]
    if unknown:
        named = ", ".join(map(str, unknown))
        raise _refusal(f"Not all voters have told which directory they use: {named} did not.")
    if not event.validate_only:
        leader.told_version, leader.told_voters = level, None
        append_controls(replica, [KRaftVersionRecord(kraft_version=level), voters.record()], now)


def _refusal(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_UPDATE_VERSION, message)
