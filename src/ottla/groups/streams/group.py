"""A streams group: its topology, its members, what they shall run and what they run, and the epochs that order it.

E1  The epoch of the group rises with every change of its members, its topics or its settings; the target assignment
    follows it, and the members follow the target: member epoch <= assignment epoch <= group epoch.
E2  What is volatile here (`refreshed`, `configured`, `endpoint_epoch`, `shutdown_by`) is worked out anew, or asked for
    anew, by whoever leads next; all else is a fold of records.

    Empty --a member joins--> NotReady --all topics are there--> Assigning --the target is computed--> Reconciling
    --all have it--> Stable
"""

from collections.abc import Callable

from ottla.groups.epochs import EpochGroup
from ottla.groups.group import Kind
from ottla.groups.streams import records
from ottla.groups.streams.configuration import Configured, configure
from ottla.groups.streams.member import Member
from ottla.groups.streams.owners import Owners
from ottla.groups.streams.tasks import Tasks
from ottla.groups.streams.topology import Topology
from ottla.groups.topics import TopicsView
from ottla.replicated.keyed import KeyedRecord
from ottla.wire.errors import BrokerError, ErrorCode

PROTOCOL_TYPE = "streams"
# OffsetCommit knows member epochs from this version on.
_COMMIT_VERSION_MIN = 9

# Raises BrokerError unless a partition, by the name of its topic, may be committed.
TaskCheck = Callable[[str, int], None]


class StreamsGroup(EpochGroup[Member]):
    """One group."""

    __slots__ = (
        "_configured_for",
        "configs",
        "configured",
        "endpoint_epoch",
        "owners",
        "shutdown_by",
        "targets",
        "topology",
        "validated_epoch",
    )

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.validated_epoch = 0
        self.configs: dict[str, str] = {}
        self.topology: Topology | None = None
        self.targets: dict[str, Tasks] = {}
        self.owners = Owners()
        self.configured: Configured | None = None
        self._configured_for: tuple[int, Topology] | None = None
        self.endpoint_epoch = 0
        self.shutdown_by: str | None = None

    @property
    def kind(self) -> Kind:
        """Which protocol its members speak."""
        return Kind.STREAMS

    @property
    def protocol_type(self) -> str:
        """What ListGroups shows."""
        return PROTOCOL_TYPE

    @property
    def state(self) -> str:
        """The state as Kafka names it."""
        if not self.members:
            return "Empty"
        if self.topology is None or self.topology.epoch != self.validated_epoch:
            return "NotReady"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    def configure(self, topology: Topology, topics: TopicsView) -> Configured:
        """Set the topology against the topics, if either is another than last time."""
        known = self._configured_for
        if self.configured is None or known is None or known[0] != topics.version or known[1] is not topology:
            self.configured = configure(topology, topics)
            self._configured_for = topics.version, topology
        return self.configured

    def target(self, member_id: str) -> Tasks:
        """Return what a member shall run."""
        return self.targets.get(member_id, Tasks())

    def put_topology(self, topology: Topology | None) -> None:
        """Take in what the group runs."""
        for each, by in ((self.topology, -1), (topology, 1)):
            self.held_bytes += 0 if each is None else by * each.size_bytes
        self.topology = topology

    def put(self, member: Member) -> None:
        """Take a member in, or in place of what it was."""
        before = self.members.get(member.id)
        if before is not None:
            self.held_bytes -= before.size_bytes
            self.owners.remove(before)
        self.members[member.id] = member
        self.held_bytes += member.size_bytes
        self.owners.add(member)

    def remove(self, member_id: str) -> None:
        """Let a member go; with the last one, the wish that all of them shut down is fulfilled."""
        member = self.members.pop(member_id)
        self.held_bytes -= member.size_bytes
        self.owners.remove(member)
        if not self.members:
            self.shutdown_by = None

    def subscribes_to(self, topic: str) -> bool:
        """Whether the group reads the topic, which it does not when nobody is in it."""
        return bool(self.members) and self.topology is not None and topic in self.topology.sources

    def commit_check(
        self, member_id: str, instance_id: str | None, epoch: int, version: int, *, transactional: bool
    ) -> TaskCheck | None:
        """Return what has yet to be asked of each partition, or None when the member may commit them all.

        A member whose epoch is behind may still commit for those active tasks it has had since then (KIP-1251).
        """
        if epoch < 0 and not self.members:
            return None
        if transactional and epoch == -1 and member_id == "" and instance_id is None:
            return None
        member = self.member(member_id)
        if not transactional and version < _COMMIT_VERSION_MIN:
            message = (
                "OffsetCommit version 9 or above must be used by members using the streams group protocol"
            )
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, message)
        if epoch == member.epoch:
            return None
        if epoch > member.epoch:
            raise _stale(f"Received member epoch {epoch} is newer than current member epoch {member.epoch}.")
        if self.topology is None:
            raise _stale("Topology is not available for offset commit validation.")
        sources = self.topology.sources

        def check(topic: str, partition: int) -> None:
            subtopology = sources.get(topic)
            if subtopology is None:
                raise _stale(f"Topic {topic} is not in the topology.")
            since = member.epoch_of(subtopology, partition)
            task = f"{subtopology}-{partition}"
            if since is None:
                raise _stale(f"Task {task} is not assigned or pending revocation for member.")
            if epoch < since:
                message = (
                    f"Received member epoch {epoch} is older than assignment epoch {since} for task {task}."
                )
                raise _stale(message)

        return check

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, version: int, *, transactional: bool
    ) -> None:
        """Raise BrokerError unless this member may commit any partition under this epoch."""
        if self.commit_check(member_id, instance_id, epoch, version, transactional=transactional) is not None:
            _check_epoch(self.member(member_id), epoch)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Raise BrokerError unless this member may read offsets."""
        if member_id is None and epoch < 0:
            return
        _check_epoch(self.member(member_id or ""), epoch)

    def check_delete(self) -> None:
        """Raise BrokerError unless nobody is in it."""
        if self.members:
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP)

    def expires_at(self, now: int, commit_timestamp: int, retention_ms: int) -> int | None:
        """Return when an offset of a topic nobody reads expires."""
        return commit_timestamp + retention_ms

    def tombstones(self) -> list[KeyedRecord]:
        """Return the records that remove the group."""
        return records.group_gone(self.id, self.members)


def _check_epoch(member: Member, epoch: int) -> None:
    if epoch != member.epoch:
        raise _stale(
            f"The received member epoch {epoch} does not match the expected member epoch {member.epoch}."
        )


def _stale(message: str) -> BrokerError:
    return BrokerError(ErrorCode.STALE_MEMBER_EPOCH, message)
