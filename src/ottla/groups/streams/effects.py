"""What streams groups ask of the cluster around them."""

from dataclasses import dataclass

from ottla.replicated.decision import Effect
from ottla.wire.messages.create_topics import CreateTopicsRequest

CreatableTopic = CreateTopicsRequest.CreatableTopic


@dataclass(frozen=True, slots=True)
class CreateInternalTopics(Effect):
    """Create topics that a topology needs for itself; asked again with every heartbeat while they are missing."""

    topics: tuple[CreatableTopic, ...]
