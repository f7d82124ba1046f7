"""Who leads instead (KIP-951): told along with an error, so that a client need not ask for it."""

from typing import NamedTuple

from ottla.broker.broker import Broker
from ottla.metadata.topics import NO_LEADER
from ottla.wire.errors import ErrorCode

TOLD_WITH = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class Hint(NamedTuple):
    """A leader, its epoch, and where it listens."""

    leader_id: int
    leader_epoch: int
    host: str
    port: int
    rack: str | None


def hint(broker: Broker, topic: str | bytes, index: int, listener: str) -> Hint | None:
    """Who leads a partition, by the name or the id of its topic; None when nobody does that can be reached here."""
    topics = broker.image.topics
    found = topics.by_id.get(topic) if isinstance(topic, bytes) else topics.by_name.get(topic)
    state = None if found is None else found.partitions.get(index)
    if state is None or state.leader == NO_LEADER:
        return None
    for node_id, host, port, rack in broker.endpoints(listener):
        if node_id == state.leader:
            return Hint(node_id, state.leader_epoch, host, port, rack)
    return None
