"""What a consumer wants to read, and what it has been given to read.

S1  Topics by name, topics by pattern and partitions by hand exclude each other; `unsubscribe` is the way from one to
    another.
S2  A partition that stays assigned keeps its reading: position, pauses and all.
S3  A partition of a topic that is no longer subscribed to is not read from, even while the group still assigns it.
"""

import enum
import re
from collections.abc import Callable, Iterable, Iterator

from ottla.client.consumer.listener import RebalanceListener
from ottla.client.consumer.reading import Reading
from ottla.client.errors import WrongState
from ottla.client.record import OffsetAndMetadata, TopicPartition


class Kind(enum.Enum):
    """How the partitions are chosen."""

    NONE = "nothing"
    TOPICS = "topics by name"
    PATTERN = "topics by pattern"
    REMOTE_PATTERN = "topics by a pattern that the broker matches"
    MANUAL = "partitions by hand"


class Subscription:
    """The wishes and the assignment of one consumer."""

    def __init__(self) -> None:
        self.kind = Kind.NONE
        self.topics: frozenset[str] = frozenset()
        self.group_topics: frozenset[str] = (
            frozenset()
        )  # of all members, known to the leader of a classic group
        self.pattern: re.Pattern[str] | None = None
        self.remote_pattern: str | None = None
        self.listener: RebalanceListener | None = None
        self.readings: dict[TopicPartition, Reading] = {}
        self.version = 0  # of the assignment

    # Wishes

    def subscribe(self, topics: Iterable[str], listener: RebalanceListener | None) -> bool:
        """Want topics by name; whether that is a change."""
        names = frozenset(topics)
        for name in names:
            if not isinstance(name, str) or not name.strip():
                raise WrongState(f"{name!r} is no name of a topic")
        self._become(Kind.TOPICS)
        self.listener = listener
        changed, self.topics = names != self.topics, names
        return changed

    def subscribe_pattern(self, pattern: re.Pattern[str], listener: RebalanceListener | None) -> None:
        """Want the topics whose whole names match; `match` says which those are."""
        self._become(Kind.PATTERN)
        self.pattern, self.listener = pattern, listener

    def subscribe_remotely(self, pattern: str, listener: RebalanceListener | None) -> None:
        """Want the topics whose whole names match in the eyes of the broker, by its RE2 syntax."""
        self._become(Kind.REMOTE_PATTERN)
        self.remote_pattern, self.listener = pattern, listener

    def match(self, names: Iterable[str]) -> bool:
        """Work out which topics the pattern stands for; whether that is a change."""
        assert self.pattern is not None
        matching = frozenset(filter(self.pattern.fullmatch, names))
        changed, self.topics = matching != self.topics, matching
        return changed

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Want these partitions, and no group's word on them."""
        wanted = dict.fromkeys(TopicPartition(*each) for each in partitions)
        for partition in wanted:
            if not partition.topic.strip() or partition.partition < 0:
                raise WrongState(f"{partition} is no name of a partition")
        self._become(Kind.MANUAL)
        self.topics = frozenset(each.topic for each in wanted)
        self._place(wanted)

    def unsubscribe(self) -> None:
        """Want nothing, and have nothing."""
        self.kind = Kind.NONE
        self.topics = self.group_topics = frozenset()
        self.pattern = self.remote_pattern = None
        self._place(())

    def _become(self, kind: Kind) -> None:
        if self.kind not in (Kind.NONE, kind):
            raise WrongState(
                f"this consumer reads {self.kind.value}, not {kind.value}", hint="call unsubscribe() first"
            )
        self.kind = kind

    @property
    def is_automatic(self) -> bool:
        """Whether a group assigns the partitions."""
        return self.kind not in (Kind.NONE, Kind.MANUAL)

    @property
    def known_topics(self) -> frozenset[str]:
        """The topics that metadata is needed of."""
        assigned = frozenset(each.topic for each in self.readings)
        return self.topics | self.group_topics | assigned

    def wants(self, topic: str) -> bool:
        """Say whether partitions of a topic may be assigned."""
        if self.kind is Kind.PATTERN:
            return self.pattern is not None and self.pattern.fullmatch(topic) is not None
        return self.kind is Kind.REMOTE_PATTERN or topic in self.topics

    # What was given

    def take(self, partitions: Iterable[TopicPartition]) -> None:
        """Have what the group assigned."""
        self._place(partitions)

    def _place(self, partitions: Iterable[TopicPartition]) -> None:
        before = self.readings
        self.readings = {each: before.get(each) or Reading(each) for each in partitions}
        for partition, reading in before.items():
            if partition not in self.readings:
                # Whatever is still under way for it comes to nothing.
                reading.era += 1
                reading.revoking = True
        self.version += 1

    def reading(self, partition: TopicPartition) -> Reading:
        """Return the reading of an assigned partition; WrongState if it is not assigned."""
        found = self.readings.get(partition)
        if found is None:
            raise WrongState(f"{TopicPartition(*partition)} is not assigned to this consumer")
        return found

    def is_fetchable(self, reading: Reading) -> bool:
        """Say whether records of it may be fetched, and handed out."""
        return reading.is_fetchable and (
            self.kind is not Kind.TOPICS or reading.partition.topic in self.topics
        )

    def some(self, wanted: Callable[[Reading], bool]) -> Iterator[Reading]:
        """Yield the readings of which something holds."""
        return filter(wanted, self.readings.values())

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return how far everything was handed out, as it would be committed."""
        return {
            reading.partition: OffsetAndMetadata(position.offset, "", position.epoch)
            for reading in self.readings.values()
            if (position := reading.valid_position) is not None
        }

    def move_to_end(self, partition: TopicPartition) -> None:
        """Have a partition asked for last, since it has just had its turn."""
        reading = self.readings.pop(partition, None)
        if reading is not None:
            self.readings[partition] = reading
