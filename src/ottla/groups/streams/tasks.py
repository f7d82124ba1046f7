"""Tasks: a subtopology's work on one partition of its input, run actively, as a standby, or to warm up.

Tables of tasks go from the id of a subtopology to its partitions, and hold no empty sets.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

Partitions = Mapping[str, frozenset[int]]
# Partitions with the epoch in which a member got each.
Dated = Mapping[str, Mapping[int, int]]


class TaskIds(Protocol):
    """Tasks of one subtopology, as messages and records write them."""

    subtopology_id: str
    partitions: list[int]


@dataclass(frozen=True, slots=True)
class Tasks:
    """What a member shall run, or says that it runs."""

    active: Partitions = field(default_factory=dict)
    standby: Partitions = field(default_factory=dict)
    warmup: Partitions = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)


@dataclass(frozen=True, slots=True)
class Holding:
    """What a member runs as the coordinator has it; active tasks with the epochs in which it got them."""

    active: Dated = field(default_factory=dict)
    standby: Partitions = field(default_factory=dict)
    warmup: Partitions = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    @property
    def plain(self) -> Tasks:
        """The same without epochs."""
        active = {subtopology: frozenset(dates) for subtopology, dates in self.active.items()}
        return Tasks(active, self.standby, self.warmup)


def table(tasks: Iterable[TaskIds]) -> Partitions:
    """Read a list of tasks."""
    found: dict[str, frozenset[int]] = {}
    for each in tasks:
        if each.partitions:
            found[each.subtopology_id] = found.get(each.subtopology_id, frozenset()) | {*each.partitions}
    return found


def contains(tasks: Tasks, owned: Tasks) -> bool:
    """Whether everything that is owned is among the tasks, each in its own role."""
    return all(
        partitions <= have.get(subtopology, frozenset())
        for have, own in _roles(tasks, owned)
        for subtopology, partitions in own.items()
    )


def overlap(tasks: Tasks, owned: Tasks) -> bool:
    """Whether anything that is owned is among the tasks, in the same role."""
    return any(
        partitions & have.get(subtopology, frozenset())
        for have, own in _roles(tasks, owned)
        for subtopology, partitions in own.items()
    )


def _roles(one: Tasks, other: Tasks) -> Iterable[tuple[Partitions, Partitions]]:
    return (one.active, other.active), (one.standby, other.standby), (one.warmup, other.warmup)
