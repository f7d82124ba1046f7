"""One step of a member towards its target: give up first, then take what is free.

G1  A partition is given to a member only when nobody holds it, the member itself aside. So no partition has two
    owners in one epoch.
G2  A member enters the epoch of the target once it has given up whatever it shall no longer hold; until then it
    stays in its own.
G3  What a member no longer subscribes to, it gives up at once, whatever the target says.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from ottla.groups.assignors.spec import Assignment
from ottla.groups.consumer.member import Holding, Member, MemberState
from ottla.wire.errors import BrokerError, ErrorCode

# What a member says that it owns; None when it says nothing.
Owned = Mapping[bytes, Sequence[int]] | None


@dataclass(frozen=True, slots=True)
class Goal:
    """Where a member shall go: the target and its epoch, the ids of its topics, and which partitions are held."""

    epoch: int
    target: Assignment
    topics: Set[bytes]
    is_held: Callable[[bytes, int], bool]


def reconcile(member: Member, goal: Goal, owned: Owned, *, resubscribed: bool) -> Member:
    """Return the member one step further, or as it is when it has to wait for something."""
    if member.state is MemberState.STABLE:
        if member.epoch != goal.epoch:
            return _advance(member, goal, owned, member.epoch)
        return _shrink(member, goal, owned) if resubscribed else member
    if member.state is MemberState.UNREVOKED:
        if not _owns_any(owned, member.revoking):
            return _advance(member, goal, owned, member.epoch)
        return _shrink(member, goal, owned) if resubscribed else member
    if member.state is MemberState.UNRELEASED:
        return _advance(member, goal, owned, member.epoch)
    if owned is None or owned:
        message = (
            "The consumer group member is in a unknown state. "
            "The member must abandon all its partitions and rejoin."
        )
        raise BrokerError(ErrorCode.FENCED_MEMBER_EPOCH, message)
    return _advance(member, goal, owned, goal.epoch)


def _advance(member: Member, goal: Goal, owned: Owned, epoch: int) -> Member:
    """Keep what is in the target, give up the rest, and once that is done take what is free."""
    kept: dict[bytes, dict[int, int]] = {}
    revoking: dict[bytes, dict[int, int]] = {}
    free: dict[bytes, list[int]] = {}
    waits = False
    for topic in {*goal.target, *member.assigned}:
        wanted = goal.target.get(topic, frozenset()) if topic in goal.topics else frozenset[int]()
        holds = member.assigned.get(topic, {})
        _put(kept, topic, {each: since for each, since in holds.items() if each in wanted})
        _put(revoking, topic, {each: since for each, since in holds.items() if each not in wanted})
        own = member.revoking.get(topic, {})
        missing = [each for each in wanted if each not in holds]
        found = [each for each in missing if each in own or not goal.is_held(topic, each)]
        waits = waits or len(found) < len(missing)
        if found:
            free[topic] = found
    if revoking and _owns_any(owned, revoking):
        return _step(member, epoch, MemberState.UNREVOKED, kept, revoking)
    for topic, partitions in free.items():
        kept.setdefault(topic, {}).update(dict.fromkeys(partitions, goal.epoch))
    return _step(member, goal.epoch, MemberState.UNRELEASED if waits else MemberState.STABLE, kept, {})


def _shrink(member: Member, goal: Goal, owned: Owned) -> Member:
    """Give up the topics the member does not subscribe to any more, within its epoch."""
    lost = {topic: parts for topic, parts in member.assigned.items() if topic not in goal.topics}
    if not lost:
        return member
    kept = {topic: parts for topic, parts in member.assigned.items() if topic not in lost}
    revoking = {topic: dict(parts) for topic, parts in member.revoking.items()}
    for topic, parts in lost.items():
        revoking.setdefault(topic, {}).update(parts)
    if _owns_any(owned, revoking):
        return _step(member, member.epoch, MemberState.UNREVOKED, kept, revoking)
    return replace(member, previous_epoch=member.epoch, assigned=kept)


def _step(member: Member, epoch: int, state: MemberState, assigned: Holding, revoking: Holding) -> Member:
    return replace(
        member, epoch=epoch, previous_epoch=member.epoch, state=state, assigned=assigned, revoking=revoking
    )


def _put(table: dict[bytes, dict[int, int]], topic: bytes, partitions: dict[int, int]) -> None:
    if partitions:
        table[topic] = partitions


def _owns_any(owned: Owned, holding: Holding) -> bool:
    """Whether the member still owns some of it; it does when it does not say."""
    if owned is None:
        return True
    return any(each in holding.get(topic, {}) for topic, partitions in owned.items() for each in partitions)
