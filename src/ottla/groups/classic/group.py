"""A classic group: its members, its generation, and where it stands between two of them.

C1  Every member speaks the group's protocol type, and at least one protocol that all the others speak.
C2  The leader is a member, and there is none only while nobody is in.
C3  An instance id belongs to one member at a time.

    EMPTY --first join--> PREPARING --all joined, or time is up--> COMPLETING --leader's sync--> STABLE
      ^                    |     ^                                     |                           |
      +---- nobody joined -+     +----------- someone joins, leaves or is late -------------------+

Members and the way between two generations are known to this process alone; what the log holds is the last
generation that was completed. Who wants to change a group takes a `copy`, and puts it in place when its record is.
"""

from collections.abc import Collection, Iterator
from enum import Enum

from ottla.groups.classic.member import Member, text_bytes
from ottla.groups.classic.subscription import CONSUMER, topics_of
from ottla.groups.group import Kind
from ottla.groups.shelf import TimerKey
from ottla.replicated.keyed import KeyedRecord
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.records.classic_group import GroupMetadataKey


class Phase(Enum):
    """Where a group stands; the value is Kafka's name for it."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


class ClassicGroup:
    """One classic group.

    `since_ms` is when it came into its phase; `protocol_type` is empty for a group that only holds offsets;
    `topics` are those its consumers read, None if that is not known; `pending` have a member id and are to join with
    it; `pending_sync` have joined the generation and are to fetch their assignment; `first_wait_ms` is how long a
    first rebalance waits now and may wait after that, None for any other rebalance.
    """

    __slots__ = (
        "_joining",
        "_member_bytes",
        "_support",
        "first_wait_ms",
        "generation",
        "has_newcomer",
        "id",
        "instances",
        "leader",
        "members",
        "pending",
        "pending_sync",
        "phase",
        "protocol_name",
        "protocol_type",
        "since_ms",
        "topics",
    )

    kind = Kind.CLASSIC

    def __init__(
        self,
        group_id: str,
        *,
        protocol_type: str = "",
        protocol_name: str | None = None,
        generation: int = 0,
        leader: str | None = None,
        since_ms: int | None = None,
    ) -> None:
        self.id = group_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.generation = generation
        self.leader = leader
        self.since_ms = since_ms
        self.phase = Phase.EMPTY
        self.members: dict[str, Member] = {}
        self.instances: dict[str, str] = {}
        self.pending: set[str] = set()
        self.pending_sync: set[str] = set()
        self.topics: frozenset[str] | None = None
        self.has_newcomer = False
        self.first_wait_ms: tuple[int, int] | None = None
        self._support: dict[str, int] = {}
        self._joining = 0
        self._member_bytes = 0

    def copy(self) -> "ClassicGroup":
        """Return a group that can be changed without this one noticing."""
        other = ClassicGroup.__new__(ClassicGroup)
        for name in ClassicGroup.__slots__:
            setattr(other, name, getattr(self, name))
        other.members = dict(self.members)
        other.instances = dict(self.instances)
        other.pending = set(self.pending)
        other.pending_sync = set(self.pending_sync)
        other._support = dict(self._support)
        return other

    @property
    def state(self) -> str:
        """Where the group stands, as Kafka names it."""
        return self.phase.value

    @property
    def is_simple(self) -> bool:
        """Whether the group merely holds offsets."""
        return not self.protocol_type and self.phase is Phase.EMPTY and not self.pending

    @property
    def held_bytes(self) -> int:
        """How many bytes its members hold, and the ids of those that are yet to join."""
        return self._member_bytes + sum(map(text_bytes, self.pending))

    @property
    def joining(self) -> int:
        """How many members wait for the next generation."""
        return self._joining

    @property
    def all_joined(self) -> bool:
        """Whether nobody is waited for."""
        return self._joining == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long a rebalance may take: as long as the most patient member allows."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def timer_keys(self) -> Iterator[TimerKey]:
        """Return the keys of all timers that the group may have set."""
        yield ("classic", self.id, "join", "")
        yield ("classic", self.id, "sync", "")
        for member_id in (*self.members, *self.pending):
            yield ("classic", self.id, "heartbeat", member_id)

    # Changes

    def enter(self, phase: Phase, now: int) -> None:
        """Come into a phase."""
        self.phase, self.since_ms = phase, now

    def put(self, member: Member) -> None:
        """Let a member in, or put it in place of what it was."""
        old = self.members.get(member.id)
        if old is not None:
            self._count(old, -1)
        self.members[member.id] = member
        self._count(member, +1)
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.id
        self.leader = self.leader or member.id
        self.pending.discard(member.id)

    def remove(self, member_id: str) -> Member | None:
        """Let a member, or one that was yet to join, go; the next in line leads if it was the leader."""
        self.pending.discard(member_id)
        self.pending_sync.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self._count(member, -1)
        if member.instance_id is not None and self.instances.get(member.instance_id) == member_id:
            del self.instances[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace(self, old: Member, new: Member) -> None:
        """Give the seat of a static member to its next incarnation, the lead with it."""
        led = self.leader == old.id
        self.remove(old.id)
        self.put(new)
        if led:
            self.leader = new.id

    def elect(self) -> bool:
        """Make sure that the leader is one who joined; False when nobody did."""
        if self.leader is None:
            return False
        leader = self.members.get(self.leader)
        if leader is not None and leader.join is not None:
            return True
        joined = next((member.id for member in self.members.values() if member.join is not None), None)
        self.leader = joined or self.leader
        return joined is not None

    def begin_generation(self, now: int) -> None:
        """Close the doors: those who are in make up the next generation."""
        self.generation += 1
        self.protocol_name = self.choose_protocol() if self.members else None
        self.learn_topics()
        self.enter(Phase.COMPLETING if self.members else Phase.EMPTY, now)
        self.pending_sync.clear()
        self.first_wait_ms = None

    def load(self) -> None:
        """Take the phase of a group that was just read from its record."""
        self.phase = Phase.STABLE if self.members else Phase.EMPTY
        self.learn_topics()

    def learn_topics(self) -> None:
        """Look up which topics the members read."""
        if self.protocol_type != CONSUMER:
            self.topics = None
        elif not self.members:
            self.topics = frozenset()
        elif self.protocol_name is None:
            self.topics = None
        else:
            name = self.protocol_name
            self.topics = topics_of(member.metadata(name) for member in self.members.values())

    def _count(self, member: Member, by: int) -> None:
        self._member_bytes += by * member.size_bytes
        self._joining += by if member.join is not None else 0
        for name, _ in member.protocols:
            self._support[name] = self._support.get(name, 0) + by

    # Protocols

    def supports(self, protocol_type: str, names: Collection[str]) -> bool:
        """Whether one who speaks these protocols can be in the group."""
        if self.phase is Phase.EMPTY:
            return bool(protocol_type) and bool(names)
        return protocol_type == self.protocol_type and any(
            self._support.get(name, 0) == len(self.members) for name in names
        )

    def choose_protocol(self) -> str:
        """Return the protocol with most votes among those that every member speaks."""
        candidates = {name for name, count in self._support.items() if count == len(self.members)}
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    # What may be done

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Raise BrokerError unless this is a member, and its instance has no newer incarnation."""
        if instance_id is not None:
            holder = self.instances.get(instance_id)
            if holder is None:
                raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
            if holder != member_id:
                raise BrokerError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, version: int, *, transactional: bool
    ) -> None:
        """Raise BrokerError unless offsets may be committed by this member under this generation."""
        # No generation: an administrator, or a consumer that uses the group for its offsets alone.
        if epoch < 0 and self.phase is Phase.EMPTY:
            return
        if epoch >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            if epoch != self.generation:
                raise BrokerError(ErrorCode.ILLEGAL_GENERATION)
        elif not transactional and self.phase is not Phase.EMPTY:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not transactional and self.phase is Phase.COMPLETING:
            raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Let anyone read offsets: classic members do not say who they are."""

    def check_delete(self) -> None:
        """Raise BrokerError unless nobody is in."""
        if self.phase is not Phase.EMPTY:
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP)

    def check_offset_delete(self) -> None:
        """Raise BrokerError unless offsets may be deleted; with members in, that takes to know what they read."""
        if self.phase is not Phase.EMPTY and self.protocol_type != CONSUMER:
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP)

    def subscribes_to(self, topic: str) -> bool:
        """Whether a member reads the topic; consumers whose topics are not known may read any."""
        return self.protocol_type == CONSUMER if self.topics is None else topic in self.topics

    def expires_at(self, now: int, commit_timestamp: int, retention_ms: int) -> int | None:
        """Return when an offset expires: counted from when the group became empty, or from the commit."""
        if not self.protocol_type:
            return commit_timestamp + retention_ms
        if self.phase is Phase.EMPTY:
            return (commit_timestamp if self.since_ms is None else self.since_ms) + retention_ms
        if self.phase is Phase.STABLE and self.topics is not None:
            return commit_timestamp + retention_ms
        return None

    def tombstones(self) -> list[KeyedRecord]:
        """Return the record that removes the group."""
        return [KeyedRecord(GroupMetadataKey(group=self.id), None)]
