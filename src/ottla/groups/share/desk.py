"""What the commands on share groups work with: the shelf, the hash of topics, timers, and who waits for state."""

from collections.abc import Mapping
from typing import cast

from ottla.groups.consumer.digest import Digests
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.progress import Topic, Topics
from ottla.groups.shelf import Shelf, TimerKey
from ottla.wire.errors import BrokerError, ErrorCode

NO_NAME = "<UNKNOWN>"  # What Kafka writes for a topic that is no more.


class Desk:
    """One partition's share groups, as commands see them."""

    __slots__ = ("_asked_ms", "digests", "shelf")

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.digests = Digests(shelf.topics)
        # When the share coordinator was last asked for a topic's state.
        self._asked_ms: dict[tuple[str, bytes], int] = {}

    def find(self, group_id: str) -> ShareGroup:
        """Return a group; GROUP_ID_NOT_FOUND when there is none, or it is of another kind."""
        group = self.shelf.groups.get(group_id)
        if isinstance(group, ShareGroup):
            return group
        if group is None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
        raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")

    def find_or_new(self, group_id: str) -> ShareGroup:
        """Return a group, or one that is to be; GROUP_ID_NOT_FOUND when it is of another kind."""
        return self.find(group_id) if group_id in self.shelf.groups else ShareGroup(group_id)

    def await_heartbeat(self, group_id: str, member_id: str, now: int) -> None:
        """Give a member a whole session to be heard from again."""
        timeout_ms = cast(int, self.shelf.config(group_id, "share.session.timeout.ms"))
        self.shelf.timers.set(session_key(group_id, member_id), now + timeout_ms)

    def asked(self, group_id: str, topic_id: bytes, now: int) -> None:
        """Note that the share coordinator is asked for a topic's state."""
        self._asked_ms[group_id, topic_id] = now

    def is_asking(self, group_id: str, topic_id: bytes, now: int) -> bool:
        """Whether it was asked a short while ago, so that it need not be asked again."""
        asked_ms = self._asked_ms.get((group_id, topic_id))
        interval_ms = cast(int, self.shelf.values["group.share.initialize.retry.interval.ms"])
        return asked_ms is not None and 0 <= now - asked_ms < interval_ms

    def forget(self, group_id: str, topic_id: bytes) -> None:
        """Note that the share coordinator has answered for a topic."""
        self._asked_ms.pop((group_id, topic_id), None)

    def named(self, partitions: Mapping[bytes, frozenset[int]]) -> Topics:
        """Return partitions with the names of their topics."""
        return {topic_id: Topic(self.name(topic_id), each) for topic_id, each in partitions.items()}

    def name(self, topic_id: bytes) -> str:
        """Return a topic's name."""
        facts = self.shelf.topics.by_id(topic_id)
        return NO_NAME if facts is None else facts.name


def session_key(group_id: str, member_id: str) -> TimerKey:
    """Return what a member's session timer is known by."""
    return "share", group_id, "session", member_id
