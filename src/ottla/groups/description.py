"""Groups with many members are described in parts, each of which takes a turn of the loop.

D1  A part has one group's members from some number to another, in an order that stays while nobody comes or goes; what
    is said of the group itself is that of the first part.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from ottla.groups.group import Group, Kind

ALL = slice(0, None)


class Part(NamedTuple):
    """Some groups with all of their members, or one with some."""

    group_ids: list[str]
    members: slice


def some(group: Any, members: slice) -> Iterator[Any]:
    """Go through some of the members of a group."""
    return islice(_ordered(group), members.start, members.stop)


def costs(groups: Iterable[Group | None]) -> Iterator[int]:
    """Say, piece by piece, what the description of groups costs, in members of which there is little to say."""
    for group in groups:
        yield 1
        for member in () if group is None else group.members.values():
            yield member.description_cost  # type: ignore[attr-defined]  # each kind's members have it


def parts(groups: Iterable[tuple[str, Group | None]], most: int) -> Iterator[Part]:
    """Divide groups into parts that cost no more than `most`, or are a single member."""
    held: list[str] = []
    spent = 0
    none = True
    for group_id, group in groups:
        none = False
        cost, cuts = 1, [0]
        for number, member in enumerate(() if group is None else _ordered(group)):
            of_member: int = member.description_cost
            if cost > 1 and cost + of_member > most:
                cuts.append(number)
                cost = 1
            cost += of_member
        if held and (len(cuts) > 1 or spent + cost > most):
            yield Part(held, ALL)
            held, spent = [], 0
        if len(cuts) == 1:
            held.append(group_id)
            spent += cost
        else:
            for begin, end in zip(cuts, [*cuts[1:], None], strict=True):
                yield Part([group_id], slice(begin, end))
    if held or none:
        yield Part(held, ALL)


def _ordered(group: Any) -> Iterable[Any]:
    if group.kind is Kind.SHARE:
        return (group.members[member_id] for member_id in sorted(group.members))
    return group.members.values()  # type: ignore[no-any-return]
