"""The way from one generation to the next.

B1  A generation begins when every member has joined and nobody who asked for a member id is yet to come, or when the
    rebalance timeout is over; whoever has not joined by then, static members aside, is out.
B2  The first rebalance of an empty group waits `group.initial.rebalance.delay.ms`, and as long again whenever someone
    new came in meanwhile, up to the rebalance timeout in all. Where that is nothing, it waits the few milliseconds that
    members who start together are apart: the first alone would begin a generation that the second ends (ADR 0024).
B3  Members that joined have until the rebalance timeout to fetch their assignment; who does not is out.
"""

from ottla.groups.classic.answers import joined, refused_sync
from ottla.groups.classic.draft import Draft
from ottla.groups.classic.group import Phase
from ottla.groups.classic.records import group_record
from ottla.wire.errors import ErrorCode

_INITIAL_DELAY = "group.initial.rebalance.delay.ms"
_APART_MS = 5


def rebalance_or_complete(draft: Draft) -> None:
    """Begin a rebalance, or see whether the one under way can end."""
    if draft.group.phase is not Phase.PREPARING:
        prepare(draft)
    else:
        complete_if_all_joined(draft)


def complete_if_all_joined(draft: Draft) -> None:
    """End a rebalance that waits for nobody, unless it is a group's first, which waits for its delay."""
    group = draft.group
    if group.phase is Phase.PREPARING and group.first_wait_ms is None and group.all_joined:
        complete_join(draft)


def prepare(draft: Draft) -> None:
    """Call everybody to join again."""
    group = draft.group
    if group.phase is Phase.COMPLETING:
        for member in list(group.members.values()):
            if member.sync is not None:
                draft.say(refused_sync(member.sync, ErrorCode.REBALANCE_IN_PROGRESS))
                draft.await_heartbeat(member)
            group.put(member._replace(assignment=b"", sync=None))
    group.pending_sync.clear()
    draft.cancel_timer("sync")
    is_first = group.phase is Phase.EMPTY
    group.enter(Phase.PREPARING, draft.now)
    if is_first:
        group.has_newcomer = False
        delay_ms = _initial_delay_ms(draft)
        group.first_wait_ms = (delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        draft.set_timer("join", delay_ms)
        return
    group.first_wait_ms = None
    if group.all_joined:
        complete_join(draft)
    else:
        draft.set_timer("join", group.rebalance_timeout_ms)


def join_is_over(draft: Draft) -> None:
    """Time is up for those who have not joined; a first rebalance may be given more of it."""
    group = draft.group
    if group.phase is not Phase.PREPARING:
        return
    if group.first_wait_ms is not None and group.has_newcomer and group.first_wait_ms[1] > 0:
        waited_ms, left_ms = group.first_wait_ms
        group.has_newcomer = False
        delay_ms = min(_initial_delay_ms(draft), left_ms)
        group.first_wait_ms = (delay_ms, max(left_ms - waited_ms, 0))
        draft.set_timer("join", delay_ms)
        return
    complete_join(draft)


def _initial_delay_ms(draft: Draft) -> int:
    delay_ms: int = draft.values[_INITIAL_DELAY]
    return max(delay_ms, _APART_MS)


def complete_join(draft: Draft) -> None:
    """Begin the next generation with those who joined."""
    group = draft.group
    draft.cancel_timer("join")
    for member in list(group.members.values()):
        if member.join is None and member.instance_id is None:
            draft.drop(member.id)
    if not group.elect() and group.members:
        # Only static members, and none of them joined: their sessions decide how long they are waited for.
        group.first_wait_ms = None
        draft.set_timer("join", group.rebalance_timeout_ms)
        return
    group.begin_generation(draft.now)
    if not group.members:
        draft.record(group_record(group, {}))
        return
    for member in list(group.members.values()):
        if member.join is not None:
            draft.say(joined(member.join, group, member.id, with_members=member.id == group.leader))
        group.put(member._replace(join=None, is_new=False))
        group.pending_sync.add(member.id)
        draft.await_heartbeat(member)
    draft.set_timer("sync", group.rebalance_timeout_ms)


def sync_is_over(draft: Draft) -> None:
    """Time is up for those who joined the generation and have not fetched their assignment."""
    group = draft.group
    if group.phase in (Phase.COMPLETING, Phase.STABLE) and group.pending_sync:
        for member_id in sorted(group.pending_sync):
            draft.drop(member_id)
        prepare(draft)


def lose(draft: Draft, member_id: str) -> None:
    """A member was not heard from, or one that was given an id never came back with it."""
    group = draft.group
    was_in = member_id in group.members
    draft.drop(member_id)
    if was_in and group.phase in (Phase.COMPLETING, Phase.STABLE):
        prepare(draft)
    elif group.phase is Phase.PREPARING and group.all_joined:
        complete_join(draft)
