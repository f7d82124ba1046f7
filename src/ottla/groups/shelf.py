"""What the protocols of one partition of `__consumer_offsets` share: the groups, their timers, and the world around.

The four kinds of groups live side by side under one set of names, so a name is of one kind at a time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.groups.group import Group
from ottla.groups.tally import Tally
from ottla.groups.topics import TopicsView
from ottla.replicated.timers import Timers

# (kind, group id, what, member id): the part that set a timer is told when it is due.
TimerKey = tuple[str, str, str, str]


@dataclass(slots=True, weakref_slot=True)
class Shelf:
    """One partition's groups, and what every kind of them needs.

    `values` are the broker's settings under Kafka's names; `config(group_id, name)` is a setting of a group, such as
    `consumer.session.timeout.ms`, or the broker's default for it; `unique` returns 16 random bytes.
    """

    topics: TopicsView
    values: Mapping[str, Any]
    config: Callable[[str, str], Any]
    unique: Callable[[], bytes]
    groups: dict[str, Group] = field(default_factory=dict)
    timers: Timers[TimerKey] = field(default_factory=Timers)
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        """Let the bytes of its members be counted."""
        self.tally.members.watch(self)
