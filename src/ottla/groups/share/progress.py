"""How far a share group is in giving its share partitions durable state.

A share partition is handed to members once its state exists, never before: it is initializing while the share
coordinator is being asked, and initialized afterwards. Topics whose state is being deleted are remembered until that
is done.

    unknown --begun()--> initializing --done()--> initialized --deletion_begun()--> deleting
       ^                      |                                                         |
       +------failed()--------+-------------------deletion_done()-----------------------+
"""

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field
from typing import NamedTuple


class Topic(NamedTuple):
    """A topic's partitions, with the name it had."""

    name: str
    partitions: frozenset[int]


Topics = dict[bytes, Topic]


@dataclass(frozen=True, slots=True)
class Progress:
    """The topics of a share group, by id."""

    initializing: Topics = field(default_factory=dict)
    initialized: Topics = field(default_factory=dict)
    deleting: dict[bytes, str] = field(default_factory=dict)

    def begun(self, topics: Topics) -> "Progress":
        """Return the progress once the share coordinator is asked to begin these; they are no longer going away."""
        initializing = _joined(self.initializing, topics)
        deleting = {key: name for key, name in self.deleting.items() if key not in initializing}
        return Progress(initializing, self.initialized, deleting)

    def done(self, topics: Topics) -> "Progress":
        """Return the progress once these have state."""
        initializing = _without(self.initializing, _partitions(topics))
        return Progress(initializing, _joined(self.initialized, topics), self.deleting)

    def failed(self, partitions: Mapping[bytes, Set[int]]) -> "Progress":
        """Return the progress once the share coordinator refused these: they will be asked for again."""
        return Progress(_without(self.initializing, partitions), self.initialized, self.deleting)

    def deletion_begun(self, topics: Mapping[bytes, str]) -> "Progress":
        """Return the progress once the state of these initialized topics is about to be deleted."""
        initialized = {key: topic for key, topic in self.initialized.items() if key not in topics}
        return Progress(self.initializing, initialized, {**self.deleting, **topics})

    def deletion_done(self, topic_ids: Collection[bytes]) -> "Progress":
        """Return the progress once the state of these is deleted."""
        deleting = {key: name for key, name in self.deleting.items() if key not in topic_ids}
        return Progress(self.initializing, self.initialized, deleting)

    @property
    def topic_ids(self) -> set[bytes]:
        """Every topic that is spoken of."""
        return {*self.initializing, *self.initialized, *self.deleting}

    @property
    def topic_count(self) -> int:
        """How many topics are spoken of, those twice that are spoken of twice."""
        return len(self.initializing) + len(self.initialized) + len(self.deleting)

    def spoken_of(self, topic_ids: Set[bytes]) -> Set[bytes]:
        """Return which of these topics are spoken of; it takes as long as the fewer there are, of these or of ours."""
        if len(topic_ids) > self.topic_count:
            return {topic_id for topic_id in self.topic_ids if topic_id in topic_ids}
        ours = (self.initializing, self.initialized, self.deleting)
        return {topic_id for topic_id in topic_ids if any(topic_id in each for each in ours)}

    def without(self, topic_ids: Collection[bytes]) -> "Progress":
        """Return the progress without topics that are no more."""
        return Progress(
            {key: topic for key, topic in self.initializing.items() if key not in topic_ids},
            {key: topic for key, topic in self.initialized.items() if key not in topic_ids},
            {key: name for key, name in self.deleting.items() if key not in topic_ids},
        )

    def all_deleting(self, retried: Topics) -> tuple["Progress", Topics]:
        """Return the progress once all state is about to be deleted, and all of it; `retried` began to go earlier."""
        topics = _joined(_joined(self.initialized, self.initializing), retried)
        return Progress(deleting={key: topic.name for key, topic in topics.items()}), topics


def _joined(old: Topics, new: Topics) -> Topics:
    found = dict(old)
    for key, topic in new.items():
        known = old[key].partitions if key in old else frozenset()
        found[key] = Topic(topic.name, known | topic.partitions)
    return found


def _without(topics: Topics, partitions: Mapping[bytes, Set[int]]) -> Topics:
    left = {
        key: topic._replace(partitions=topic.partitions - partitions.get(key, set()))
        for key, topic in topics.items()
    }
    return {key: topic for key, topic in left.items() if topic.partitions}


def _partitions(topics: Topics) -> dict[bytes, frozenset[int]]:
    return {key: topic.partitions for key, topic in topics.items()}
