"""What the commands on streams groups work with: the shelf, hashes of topics, and timers.

T1  A member is heard from within its session, or it is out.
T2  A member gives up what it is told to within its rebalance timeout, or it is out.
T3  A group that was empty waits a little for more members before it computes an assignment.
"""

from typing import cast

from ottla.groups.consumer.digest import Digests
from ottla.groups.group import Kind
from ottla.groups.shelf import Shelf, TimerKey
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import Member
from ottla.replicated.keyed import KeyedRecord
from ottla.wire.errors import BrokerError, ErrorCode


class Desk:
    """One partition's streams groups, as commands see them."""

    __slots__ = ("digests", "shelf")

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.digests = Digests(shelf.topics)

    def find(self, group_id: str) -> StreamsGroup:
        """Return a group; GROUP_ID_NOT_FOUND when there is none, or it is of another kind."""
        group = self.shelf.groups.get(group_id)
        if isinstance(group, StreamsGroup):
            return group
        if group is None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
        raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")

    def find_or_new(self, group_id: str, out: list[KeyedRecord]) -> StreamsGroup:
        """Return the group to join; one that is not there, or that classic members have left, is made."""
        found = self.shelf.groups.get(group_id)
        if found is None:
            return StreamsGroup(group_id)
        if found.kind is Kind.CLASSIC and found.state == "Empty":
            out += found.tombstones()
            return StreamsGroup(group_id)
        return self.find(group_id)

    def check_room(self, group: StreamsGroup) -> None:
        """Raise GROUP_MAX_SIZE_REACHED for whoever joins a group that is full, even one of its own."""
        size_max = cast(int, self.shelf.values["group.streams.max.size"])
        if len(group.members) >= size_max:
            message = f"The streams group has reached its maximum capacity of {size_max} members."
            raise BrokerError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """How often members shall be heard from."""
        return cast(int, self.shelf.config(group_id, "streams.heartbeat.interval.ms"))

    def assignment_configs(self, group_id: str) -> dict[str, str]:
        """Return the settings that the assignor goes by, as they are kept with the epoch of a group."""
        return {"num.standby.replicas": str(self.shelf.config(group_id, "streams.num.standby.replicas"))}

    def may_assign(self, group: StreamsGroup, now: int) -> bool:
        """Whether it is long enough since the last assignment, however small the group (ADR 0024)."""
        interval_ms = cast(int, self.shelf.config(group.id, "streams.assignment.interval.ms"))
        last = group.assignment_timestamp
        # An assignment that is yet to come was made before the clock was set back.
        return last == 0 or interval_ms == 0 or not last <= now < last + interval_ms

    def await_heartbeat(self, group_id: str, member_id: str, now: int) -> None:
        """Give a member a whole session to be heard from again."""
        timeout_ms = cast(int, self.shelf.config(group_id, "streams.session.timeout.ms"))
        self.shelf.timers.set(_key(group_id, "session", member_id), now + timeout_ms)

    def await_revocation(self, group_id: str, member: Member, now: int) -> None:
        """Give a member its rebalance timeout to let tasks go."""
        self.shelf.timers.set(_key(group_id, "rebalance", member.id), now + member.rebalance_timeout_ms)

    def await_members(self, group_id: str, now: int) -> None:
        """Wait for more members, from when the first came."""
        delay_ms = cast(int, self.shelf.config(group_id, "streams.initial.rebalance.delay.ms"))
        if delay_ms > 0 and not self.awaits_members(group_id):
            self.shelf.timers.set(_key(group_id, "initial", ""), now + delay_ms)

    def forget(self, group_id: str) -> None:
        """A group is gone: should there be another of its name, it waits for members anew."""
        self.shelf.timers.cancel(_key(group_id, "initial", ""))

    def awaits_members(self, group_id: str) -> bool:
        """Whether a group waits for more members."""
        return _key(group_id, "initial", "") in self.shelf.timers


def _key(group_id: str, what: str, member_id: str) -> TimerKey:
    return "streams", group_id, what, member_id
