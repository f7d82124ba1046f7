"""The high watermark: when it rises at the leader, and what follows from it.

R3  A committed record is never cut off: a majority has it on disk, every later leader is elected by a majority that
    shares a voter with that one, and votes only for logs that have it.
"""

from ottla.raft.apis.fetch_reply import reply_with_records
from ottla.raft.replica import Replica
from ottla.raft.voter_change import VoterChange
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.add_raft_voter import AddRaftVoterResponse
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterResponse


def advance(replica: Replica) -> None:
    """Raise the watermark to what a majority has, and tell everybody who waits for that."""
    leader = replica.leader
    if not leader.advance():
        return
    replica.commit(leader.high_watermark)
    change = leader.change
    if change is not None and change.offset is not None and leader.high_watermark > change.offset:
        leader.change = None
        settle(replica, change, ErrorCode.NONE)
    offset = replica.membership.voters_offset
    if not replica.is_voter and offset is not None and leader.high_watermark > offset:
        # The voters without this replica are committed, so it has done its duty.
        leader.resigns = True
    wake(replica, all_of_them=True)


def wake(replica: Replica, *, all_of_them: bool = False) -> None:
    """Answer the parked fetches that there is something for."""
    leader = replica.leader
    parked, end_offset = leader.parked, replica.outline.end_offset
    woken = parked.take_all() if all_of_them else parked.take(lambda each: each.fetch_offset < end_offset)
    for each in woken:
        message = reply_with_records(replica, each.request, each.fetch_offset, each.size_bytes_max)
        replica.outbox.reply(each.request.token, message)


def settle(replica: Replica, change: VoterChange, code: ErrorCode, message: str | None = None) -> None:
    """Answer whoever asked for a change of voters."""
    if change.token is None:
        return
    kind = AddRaftVoterResponse if change.adds else RemoveRaftVoterResponse
    replica.outbox.reply(change.token, kind(error_code=code, error_message=message))
    change.token = None
