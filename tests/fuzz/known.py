"""What the fuzz knows of the broker it talks to: names it made, and ids it learned from answers.

K1  The honest client's topic is not among the names, nor is its id: whatever an administrator may do to a topic is done
    to others.
K2  Every collection is bounded; a new value takes the place of an old one.
"""

import random
from collections import deque
from typing import Any

TOPICS = {
    "fuzz-plain": {},
    "fuzz-compacted": {"cleanup.policy": "compact", "segment.ms": "2000", "min.cleanable.dirty.ratio": "0.01"},
    "fuzz-append-time": {"message.timestamp.type": "LogAppendTime"},
    "fuzz-gzip": {"compression.type": "gzip"},
    "fuzz-zstd": {"compression.type": "zstd", "cleanup.policy": "compact"},
    "fuzz-small": {"segment.bytes": "1048576", "retention.bytes": "2097152", "max.message.bytes": "5000"},
}
PARTITIONS = 3
# Made and deleted as the fuzz goes on.
PASSING = tuple(f"passing-{number}" for number in range(12))
GROUPS = {
    "classic": tuple(f"classic-{number}" for number in range(6)),
    "consumer": tuple(f"consumer-{number}" for number in range(6)),
    "share": tuple(f"share-{number}" for number in range(4)),
    "streams": tuple(f"streams-{number}" for number in range(4)),
}
EVERY_GROUP = tuple(name for names in GROUPS.values() for name in names)
TRANSACTIONAL_IDS = tuple(f"transaction-{number}" for number in range(8))
_SIZE_MAX = 64


class Known:
    """Ids that make a request go deep instead of being refused at the door."""

    def __init__(self) -> None:
        self.topic_ids: dict[str, bytes] = {}
        self.cluster_id = ""
        self.directory_id = bytes(16)
        self.members: deque[str] = deque(maxlen=_SIZE_MAX)
        self.producers: deque[tuple[int, int]] = deque([(0, 0)], maxlen=_SIZE_MAX)
        self.fetch_sessions: deque[int] = deque([1], maxlen=_SIZE_MAX)
        self.epochs: deque[int] = deque([0, 1], maxlen=_SIZE_MAX)
        self.offsets: deque[int] = deque([0, 1], maxlen=_SIZE_MAX)

    def learn(self, answer: Any) -> None:
        """Keep what a later request can make use of."""
        member_id = getattr(answer, "member_id", None)
        if member_id:
            self.members.append(member_id)
        for name in ("member_epoch", "generation_id"):
            epoch = getattr(answer, name, None)
            if epoch is not None and epoch >= 0:
                self.epochs.append(epoch)
        if getattr(answer, "producer_id", -1) >= 0:
            self.producers.append((answer.producer_id, answer.producer_epoch))
        if getattr(answer, "session_id", 0):
            self.fetch_sessions.append(answer.session_id)
        if getattr(answer, "responses", None) and hasattr(answer.responses[0], "partition_responses"):
            for part in answer.responses[0].partition_responses[:1]:
                if part.base_offset > 0:
                    self.offsets.append(part.base_offset)
        for topic in getattr(answer, "topics", None) or ():
            name, topic_id = getattr(topic, "name", None), getattr(topic, "topic_id", None)
            if name in PASSING and topic_id and topic_id != bytes(16):
                self.topic_ids[name] = topic_id

    def topic(self, chance: random.Random) -> str:
        """A topic that is there, mostly."""
        return chance.choice(tuple(TOPICS)) if chance.random() < 0.7 else chance.choice(PASSING)

    def topic_id(self, chance: random.Random) -> bytes:
        """An id of such a topic."""
        ids = tuple(self.topic_ids.values())
        return chance.choice(ids) if ids else bytes(16)
