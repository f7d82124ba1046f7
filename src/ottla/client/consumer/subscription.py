"""The subscription of a consumer, and its assigned partitions.

S1  Topics by name, topics by pattern and partitions assigned by hand exclude each other. `unsubscribe` allows another.
S2  A partition that stays assigned keeps its state: the position, the pause and so on.
S3  A partition of a topic that is no longer subscribed is not fetched, even if the group still assigns it.
"""

import enum
import re
from collections.abc import Callable, Iterable, Iterator

from ottla.client.consumer.assigned_partition import AssignedPartition
from ottla.client.consumer.listener import RebalanceListener
from ottla.client.errors import WrongState
from ottla.client.record import OffsetAndMetadata, TopicPartition


class SubscriptionType(enum.Enum):
    """How the partitions are chosen."""

    NONE = "nothing"
    TOPICS = "topics by name"
    PATTERN = "topics by pattern"
    REMOTE_PATTERN = "topics by a pattern that the broker matches"
    MANUAL = "partitions by hand"


class Subscription:
    """The subscription and the assignment of one consumer."""

    def __init__(self) -> None:
        self.kind = SubscriptionType.NONE
        self.topics: frozenset[str] = frozenset()
        self.group_topics: frozenset[str] = (
            frozenset()
        )  # of all members, known to the leader of a classic group
        self.pattern: re.Pattern[str] | None = None
        self.remote_pattern: str | None = None
        self.listener: RebalanceListener | None = None
        self.assignment: dict[TopicPartition, AssignedPartition] = {}
        self.version = 0  # of the assignment

    # Subscription

    def subscribe(self, topics: Iterable[str], listener: RebalanceListener | None) -> bool:
        """Subscribe to topics by name. Return whether they have changed."""
        names = frozenset(topics)
        for name in names:
            if not isinstance(name, str) or not name.strip():
                raise WrongState(f"{name!r} is not a topic name")
        self._set_kind(SubscriptionType.TOPICS)
        self.listener = listener
        changed, self.topics = names != self.topics, names
        return changed

    def subscribe_pattern(self, pattern: re.Pattern[str], listener: RebalanceListener | None) -> None:
        """Subscribe to the topics whose whole names match. `match` finds them."""
        self._set_kind(SubscriptionType.PATTERN)
        self.pattern, self.listener = pattern, listener

    def subscribe_remotely(self, pattern: str, listener: RebalanceListener | None) -> None:
        """Subscribe to the topics whose whole names match. The broker matches, in RE2's syntax."""
        self._set_kind(SubscriptionType.REMOTE_PATTERN)
        self.remote_pattern, self.listener = pattern, listener

    def match(self, names: Iterable[str]) -> bool:
        """Find the topics that match the pattern. Return whether they have changed."""
        assert self.pattern is not None
        matching = frozenset(filter(self.pattern.fullmatch, names))
        changed, self.topics = matching != self.topics, matching
        return changed

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign these partitions by hand."""
        wanted = dict.fromkeys(TopicPartition(*each) for each in partitions)
        for partition in wanted:
            if not partition.topic.strip() or partition.partition < 0:
                raise WrongState(f"{partition} is not a partition")
        self._set_kind(SubscriptionType.MANUAL)
        self.topics = frozenset(each.topic for each in wanted)
        self._set_assignment(wanted)

    def unsubscribe(self) -> None:
        """Remove the subscription and the assignment."""
        self.kind = SubscriptionType.NONE
        self.topics = self.group_topics = frozenset()
        self.pattern = self.remote_pattern = None
        self._set_assignment(())

    def _set_kind(self, kind: SubscriptionType) -> None:
        if self.kind not in (SubscriptionType.NONE, kind):
            raise WrongState(
                f"this consumer reads {self.kind.value}, not {kind.value}", hint="call unsubscribe() first"
            )
        self.kind = kind

    @property
    def is_automatic(self) -> bool:
        """Whether a group assigns the partitions."""
        return self.kind not in (SubscriptionType.NONE, SubscriptionType.MANUAL)

    @property
    def known_topics(self) -> frozenset[str]:
        """The topics that metadata is needed of."""
        assigned = frozenset(each.topic for each in self.assignment)
        return self.topics | self.group_topics | assigned

    def wants(self, topic: str) -> bool:
        """Say whether partitions of a topic may be assigned."""
        if self.kind is SubscriptionType.PATTERN:
            return self.pattern is not None and self.pattern.fullmatch(topic) is not None
        return self.kind is SubscriptionType.REMOTE_PATTERN or topic in self.topics

    # Assignment

    def assign_from_group(self, partitions: Iterable[TopicPartition]) -> None:
        """Set the partitions that the group has assigned."""
        self._set_assignment(partitions)

    def _set_assignment(self, partitions: Iterable[TopicPartition]) -> None:
        before = self.assignment
        self.assignment = {each: before.get(each) or AssignedPartition(each) for each in partitions}
        for partition, assigned in before.items():
            if partition not in self.assignment:
                # Fetches in flight for it are discarded.
                assigned.position_id += 1
                assigned.revoking = True
        self.version += 1

    def assigned(self, partition: TopicPartition) -> AssignedPartition:
        """Return the state of an assigned partition. Raises WrongState if it is not assigned."""
        found = self.assignment.get(partition)
        if found is None:
            raise WrongState(f"{TopicPartition(*partition)} is not assigned to this consumer")
        return found

    def is_fetchable(self, assigned: AssignedPartition) -> bool:
        """Return whether its records may be fetched and returned."""
        return assigned.is_fetchable and (
            self.kind is not SubscriptionType.TOPICS or assigned.partition.topic in self.topics
        )

    def assigned_where(self, wanted: Callable[[AssignedPartition], bool]) -> Iterator[AssignedPartition]:
        """Return the assigned partitions that meet a condition."""
        return filter(wanted, self.assignment.values())

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the positions as offsets to commit."""
        return {
            assigned.partition: OffsetAndMetadata(position.offset, "", position.epoch)
            for assigned in self.assignment.values()
            if (position := assigned.valid_position) is not None
        }

    def move_to_end(self, partition: TopicPartition) -> None:
        """Move a partition to the end of the order of fetches."""
        assigned = self.assignment.pop(partition, None)
        if assigned is not None:
            self.assignment[partition] = assigned
