"""A consumer group: its members, what they shall hold and what they hold, and the epochs that order the two.

E1  The epoch of the group rises with every change of what its members want; the target assignment follows it, and the
    members follow the target: member epoch <= assignment epoch <= group epoch.
E2  Everything here but `refreshed` is a fold of records.

    Empty --a member joins--> Assigning --the target is computed--> Reconciling --all have it--> Stable
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from ottla.groups.assignors.spec import Assignment
from ottla.groups.consumer import records, subscription
from ottla.groups.consumer.member import Holding, Member, MemberState
from ottla.groups.consumer.subscription import Counts, Resolved, tally
from ottla.groups.epochs import EpochGroup
from ottla.groups.group import Kind
from ottla.replicated.keyed import KeyedRecord
from ottla.wire.errors import BrokerError, ErrorCode

PROTOCOL_TYPE = "consumer"
_NOTHING: Assignment = {}
# OffsetCommit knows member epochs from this version on.
_COMMIT_VERSION_MIN = 9

# Raises BrokerError unless a partition, by the id of its topic, may be committed.
CommitCheck = Callable[[bytes, int], None]


class ConsumerGroup(EpochGroup[Member]):
    """One group, with counts kept as its members come and go."""

    __slots__ = (
        "_owners",
        "assignors",
        "classic_count",
        "classic_protocols",
        "counts",
        "has_topics_record",
        "regexes",
        "resolved",
        "statics",
        "targets",
    )

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.statics: dict[str, str] = {}
        self.targets: dict[str, Assignment] = {}
        self.counts: Counts = {}
        self.assignors: dict[str, int] = {}
        self.regexes: dict[str, int] = {}
        self.resolved: dict[str, Resolved] = {}
        self.classic_count = 0
        self.classic_protocols: dict[str, int] = {}
        self.has_topics_record = False
        self._owners: dict[bytes, dict[int, int]] = {}

    @property
    def kind(self) -> Kind:
        """Which protocol its members speak."""
        return Kind.CONSUMER

    @property
    def protocol_type(self) -> str:
        """What ListGroups shows."""
        return PROTOCOL_TYPE

    @property
    def state(self) -> str:
        """The state as Kafka names it."""
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    def static_member(self, instance_id: str | None) -> Member | None:
        """Return the member of an instance id."""
        if instance_id is None or instance_id not in self.statics:
            return None
        return self.member(self.statics[instance_id])

    def target(self, member: Member) -> Assignment:
        """Return what a member shall hold; a static one that is back takes over what its predecessor should."""
        member_id = member.id if member.instance_id is None else self.statics.get(member.instance_id, "")
        return self.targets.get(member_id, _NOTHING)

    def is_held(self, topic_id: bytes, partition: int) -> bool:
        """Whether a member holds a partition, or has yet to give it up."""
        return partition in self._owners.get(topic_id, _NOTHING)

    def topics_of(self, member: Member) -> frozenset[str]:
        """Return the names of the topics a member wants, its regular expression's among them once it is resolved."""
        resolved = self.resolved.get(member.regex) if member.regex else None
        return member.topics if resolved is None else member.topics | resolved.topics

    def counts_with(self, before: Member, after: Member) -> Counts:
        """Return how often each topic is wanted once a member is replaced."""
        counts = dict(self.counts)
        subscription.add(counts, before.topics, names=-1)
        subscription.add(counts, after.topics, names=1)
        if before.regex and before.regex != after.regex and self.regexes.get(before.regex) == 1:
            subscription.add(counts, self.resolved.get(before.regex, Resolved()).topics, regexes=-1)
        return counts

    def put(self, member: Member) -> None:
        """Take a member in, or in place of what it was."""
        before = self.members.get(member.id)
        if before is not None:
            self._uncount(before)
        self.members[member.id] = member
        self._count(member)
        if member.instance_id is not None:
            self.statics[member.instance_id] = member.id
        for holding in (member.assigned, member.revoking):
            self._hold(holding, member.epoch)

    def remove(self, member_id: str) -> None:
        """Let a member go."""
        member = self.members.pop(member_id)
        self._uncount(member)
        if member.instance_id is not None and self.statics.get(member.instance_id) == member_id:
            del self.statics[member.instance_id]

    def resolve(self, pattern: str, resolved: Resolved | None) -> None:
        """Note what a regular expression stands for; None when nobody wants it any more."""
        before = self.resolved.pop(pattern, None)
        if before is not None:
            subscription.add(self.counts, before.topics, regexes=-1)
        if resolved is not None:
            self.resolved[pattern] = resolved
            subscription.add(self.counts, resolved.topics, regexes=1)

    def _count(self, member: Member) -> None:
        self.held_bytes += member.size_bytes
        subscription.add(self.counts, member.topics, names=1)
        self._tally(member, 1)

    def _uncount(self, member: Member) -> None:
        self.held_bytes -= member.size_bytes
        subscription.add(self.counts, member.topics, names=-1)
        self._tally(member, -1)
        for holding in (member.assigned, member.revoking):
            self._release(holding, member.epoch)

    def _tally(self, member: Member, by: int) -> None:
        tally(self.assignors, member.assignor, by)
        tally(self.regexes, member.regex, by)
        if member.classic is not None:
            self.classic_count += by
            for protocol in member.classic.supported_protocols:
                tally(self.classic_protocols, protocol.name, by)

    def _hold(self, holding: Holding, epoch: int) -> None:
        for topic_id, partitions in holding.items():
            owners = self._owners.setdefault(topic_id, {})
            for partition in partitions:
                owners[partition] = max(epoch, owners.get(partition, epoch))

    def _release(self, holding: Holding, epoch: int) -> None:
        """Let partitions go, but those that someone else has got since."""
        for topic_id, partitions in holding.items():
            owners = self._owners.get(topic_id)
            if owners is None:
                continue
            for partition in partitions:
                if owners.get(partition) == epoch:
                    del owners[partition]
            if not owners:
                del self._owners[topic_id]

    def subscribes_to(self, topic: str) -> bool:
        """Whether a member reads the topic."""
        return topic in self.counts

    def commit_check(
        self, member_id: str, instance_id: str | None, epoch: int, version: int, *, transactional: bool
    ) -> CommitCheck | None:
        """Return what has yet to be asked of each partition, or None when the member may commit them all.

        A member whose epoch is behind may still commit those partitions it has held since then (KIP-1251).
        """
        if epoch < 0 and not self.members:
            return None
        if transactional and epoch == -1 and member_id == "" and instance_id is None:
            return None
        member = self.member(member_id)
        if not transactional and member.classic is None and version < _COMMIT_VERSION_MIN:
            message = (
                "OffsetCommit version 9 or above must be used by members using the consumer group protocol"
            )
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, message)
        if epoch == member.epoch:
            return None
        if epoch > member.epoch:
            message = (
                f"Received {_epoch_word(member)} {epoch} is newer than current member epoch {member.epoch}."
            )
            raise _stale(member, message)

        def check(topic_id: bytes, partition: int) -> None:
            since = member.epoch_of(topic_id, partition)
            if since is None:
                raise _stale(
                    member, f"Partition {partition} is not assigned or pending revocation for member."
                )
            if epoch < since:
                message = f"Received {_epoch_word(member)} {epoch} is older than assignment epoch {since}."
                raise _stale(member, message)

        return check

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, version: int, *, transactional: bool
    ) -> None:
        """Raise BrokerError unless this member may commit any partition under this epoch."""
        if self.commit_check(member_id, instance_id, epoch, version, transactional=transactional) is not None:
            self._check_epoch(self.member(member_id), epoch)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Raise BrokerError unless this member may read offsets."""
        if member_id is None and epoch < 0:
            return
        self._check_epoch(self.member(member_id or ""), epoch)

    def _check_epoch(self, member: Member, epoch: int) -> None:
        if epoch != member.epoch:
            message = (
                f"The received {_epoch_word(member)} {epoch} does not match the expected member epoch "
                f"{member.epoch}."
            )
            raise _stale(member, message)

    def check_delete(self) -> None:
        """Raise BrokerError unless nobody is in it."""
        if self.members:
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP)

    def expires_at(self, now: int, commit_timestamp: int, retention_ms: int) -> int | None:
        """Return when an offset of a topic nobody reads expires."""
        return commit_timestamp + retention_ms

    def tombstones(self) -> list[KeyedRecord]:
        """Return the records that remove the group."""
        return records.group_gone(self.id, self.members, self.resolved)

    def waits_for_others(self, member: Member) -> bool:
        """Whether others have yet to give up something that this member shall have."""
        if member.state is not MemberState.UNRELEASED:
            return False
        return any(
            partition not in member.assigned.get(topic_id, _NOTHING) and self.is_held(topic_id, partition)
            for topic_id, partitions in self.targets.get(member.id, _NOTHING).items()
            for partition in partitions
        )


def gone(member: Member) -> Member:
    """Return a member that holds nothing any more, but is still in the group's list."""
    return replace(member, epoch=-1, previous_epoch=-1, assigned={}, revoking={})


def preferred(assignors: Mapping[str, int], default: str) -> str:
    """Return the assignor that most members ask for."""
    return max(assignors, key=assignors.__getitem__) if assignors else default


def _epoch_word(member: Member) -> str:
    return "member epoch" if member.classic is None else "generation id"


def _stale(member: Member, message: str) -> BrokerError:
    code = ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
    return BrokerError(code, message)
