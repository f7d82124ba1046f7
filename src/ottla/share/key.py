"""What share partitions are known by, and which partition of `__share_group_state` keeps each of them."""

from typing import NamedTuple

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
    units = str(key).encode("utf-16-be")
    number = 0
    for at in range(0, len(units), 2):
        number = (31 * number + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    number = number if number < 0x80000000 else number - 0x100000000
    # The absolute value; of the least int, which has none, it is 0.
    return (0 if number == -0x80000000 else abs(number)) % partitions
