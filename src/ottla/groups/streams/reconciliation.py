"""One member's way from the tasks it runs to those it shall run.

R1  A task is active with one member at a time, and a process has it in one role at a time: who shall have it waits
    until it is free.
R2  A member enters the epoch of the target once it has given up whatever it shall no longer run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from ottla.groups.streams.member import Member, MemberState
from ottla.groups.streams.owners import Owners
from ottla.groups.streams.tasks import Dated, Holding, Partitions, Tasks, overlap
from ottla.wire.errors import BrokerError, ErrorCode


@dataclass(frozen=True, slots=True)
class Goal:
    """Where a member shall go: the target and its epoch, and who has what now."""

    epoch: int
    target: Tasks
    owners: Owners


def reconcile(member: Member, goal: Goal, owned: Tasks | None) -> Member:
    """Return the member one step further, or as it is when it has to wait; `owned` is None when it does not say."""
    if member.state is MemberState.STABLE:
        return member if member.epoch == goal.epoch else _advance(member, goal, owned, member.epoch)
    if member.state is MemberState.UNREVOKED:
        if owned is None or overlap(member.revoking.plain, owned):
            return member
        return _advance(member, goal, owned, member.epoch + 1)
    if member.state is MemberState.UNRELEASED:
        return _advance(member, goal, owned, member.epoch)
    if owned is None or owned:
        message = "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin."
        raise BrokerError(ErrorCode.FENCED_MEMBER_EPOCH, message)
    return _advance(member, goal, owned, goal.epoch)


def _advance(member: Member, goal: Goal, owned: Tasks | None, epoch: int) -> Member:
    """Keep what is in the target, give up the rest, and once that is done take what is free."""
    owners, process = goal.owners, member.process_id

    def is_taken(subtopology: str, partition: int) -> bool:
        return owners.is_active(subtopology, partition) or owners.is_spare(subtopology, partition, process)

    def is_here(subtopology: str, partition: int) -> bool:
        return owners.is_with(subtopology, partition, process)

    has, target = member.assigned, goal.target
    active = _compare(has.active, target.active, goal.epoch, is_taken)
    standby = _compare(_undated(has.standby), target.standby, goal.epoch, is_here)
    warmup = _compare(_undated(has.warmup), target.warmup, goal.epoch, is_here)
    lost = Holding(active.lost, _plain(standby.lost), _plain(warmup.lost))
    if lost and (owned is None or overlap(lost.plain, owned)):
        kept = Holding(active.kept, _plain(standby.kept), _plain(warmup.kept))
        return _step(member, epoch, MemberState.UNREVOKED, kept, lost)
    grown = Holding(active.grown, _plain(standby.grown), _plain(warmup.grown))
    waits = active.waits or standby.waits or warmup.waits
    return _step(
        member, goal.epoch, MemberState.UNRELEASED if waits else MemberState.STABLE, grown, Holding()
    )


class _Change(NamedTuple):
    """One role's tasks: those kept, those lost, those kept along with what is free, and whether some are not."""

    kept: Dated
    lost: Dated
    grown: Dated
    waits: bool


def _compare(has: Dated, target: Partitions, epoch: int, is_taken: Callable[[str, int], bool]) -> _Change:
    kept: dict[str, Mapping[int, int]] = {}
    lost: dict[str, Mapping[int, int]] = {}
    grown: dict[str, Mapping[int, int]] = {}
    waits = False
    for each in {*target, *has}:
        wanted, dates = target.get(each, frozenset()), has.get(each, {})
        stays = {partition: since for partition, since in dates.items() if partition in wanted}
        free = [partition for partition in wanted if partition not in stays and not is_taken(each, partition)]
        waits = waits or len(stays) + len(free) < len(wanted)
        _put(kept, each, stays)
        _put(lost, each, {partition: since for partition, since in dates.items() if partition not in wanted})
        _put(grown, each, stays | dict.fromkeys(free, epoch))
    return _Change(kept, lost, grown, waits)


def _step(member: Member, epoch: int, state: MemberState, assigned: Holding, revoking: Holding) -> Member:
    return replace(
        member, epoch=epoch, previous_epoch=member.epoch, state=state, assigned=assigned, revoking=revoking
    )


def _put(table: dict[str, Mapping[int, int]], subtopology: str, dates: Mapping[int, int]) -> None:
    if dates:
        table[subtopology] = dates


def _undated(tasks: Partitions) -> Dated:
    return {each: dict.fromkeys(partitions, 0) for each, partitions in tasks.items()}


def _plain(tasks: Dated) -> Partitions:
    return {each: frozenset(partitions) for each, partitions in tasks.items()}
