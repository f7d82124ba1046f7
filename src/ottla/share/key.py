"""What share partitions are known by, and which partition of `__share_group_state` keeps each of them."""

from typing import NamedTuple

from ottla.wire.java_hash import absolute, java_hash, known_hash
from ottla.wire.uuid import uuid_text


class ShareKey(NamedTuple):
    """One group's share of one partition."""

    group_id: str
    topic_id: bytes
    partition: int

    def __str__(self) -> str:
        return f"{self.group_id}:{uuid_text(self.topic_id)}:{self.partition}"


def state_partition(key: ShareKey, partitions: int) -> int:
    """Return the partition of `__share_group_state` that keeps a key: the hash of its text, as Java has it."""
    number = java_hash(f":{uuid_text(key.topic_id)}:{key.partition}", known_hash(key.group_id))
    return absolute(number) % partitions
