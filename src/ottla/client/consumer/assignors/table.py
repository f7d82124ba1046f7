"""The assignors that come with the client, by Kafka's names for them."""

from collections.abc import Callable, Iterable
from typing import Any, cast

from ottla.client.consumer.assignors.assignor import Assignor
from ottla.client.consumer.assignors.range import RangeAssignor
from ottla.client.consumer.assignors.roundrobin import RoundRobinAssignor
from ottla.client.consumer.assignors.sticky import CooperativeStickyAssignor, StickyAssignor
from ottla.metadata.settings.error import InvalidValue

_SETTING = "partition.assignment.strategy"

ASSIGNORS: dict[str, Callable[[], Assignor]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


def chosen(entries: Iterable[Any]) -> list[Assignor]:
    """Return the assignors that a setting names: by name, or as objects."""
    found: list[Assignor] = []
    for entry in entries:
        if not isinstance(entry, str):
            found.append(cast(Assignor, entry))
            continue
        make = ASSIGNORS.get(entry)
        if make is None:
            raise InvalidValue(_SETTING, entry, "is no assignor", f"[{', '.join(ASSIGNORS)}]")
        found.append(make())
    names = [each.name for each in found]
    if len(set(names)) < len(names):
        raise InvalidValue(_SETTING, ", ".join(names), "names an assignor twice", "")
    return found


def is_cooperative(assignors: Iterable[Assignor]) -> bool:
    """Say whether members keep their partitions while the group is rebalanced: only if every assignor can do that."""
    return all(each.cooperative for each in assignors)
