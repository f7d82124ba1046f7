"""Topics as far as groups need to know them."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class TopicFacts(NamedTuple):
    """A topic: its name, its id, how many partitions, and the racks that hold each of them."""

    name: str
    id: bytes
    partitions: int
    racks: tuple[frozenset[str], ...] = ()


class TopicsView(Protocol):
    """The topics of the metadata image in force."""

    @property
    def version(self) -> int:
        """A number that grows with every change."""
        ...

    def find(self, name: str) -> TopicFacts | None:
        """Return the topic of a name."""
        ...

    def by_id(self, topic_id: bytes) -> TopicFacts | None:
        """Return the topic of an id."""
        ...

    def names(self) -> Iterable[str]:
        """Return the name of every topic."""
        ...
