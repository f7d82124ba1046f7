"""Elections: who leads a partition, and what has to be recorded when its replicas change.

E1  A leader comes from the in-sync replicas; when those are gone, from the eligible ones (KIP-966); when those are gone
    too, it is the last known leader, and then the partition is recovering.
E2  Only an UNCLEAN election may choose a replica that was not in sync.
E3  Naming a leader, even the same one, raises the leader epoch. It is named whenever a replica leaves the assignment.
E4  Eligible replicas are those that left the in-sync set after it fell below min.insync.replicas, without an unclean
    stop since. They are forgotten once the set is large enough again.
E5  A broker that leaves the assignment is no longer eligible. Kafka 4.3 keeps it listed, though it can never lead.

Checked against Kafka's own class on random partitions: tests/property/test_controller_java.py.
"""

import enum
from collections.abc import Callable, Collection, Iterable, Mapping

from ottla.controller.view import View
from ottla.metadata.feature import DIRECTORIES_SINCE, EPOCH_BUMP_ON_SHRINK_UNTIL
from ottla.metadata.topics import NO_LEADER, NO_LEADER_CHANGE, RECOVERING, PartitionState, Topic
from ottla.wire.records.metadata import PartitionChangeRecord

Brokers = tuple[int, ...]
CanLead = Callable[[int, PartitionState], bool]


class Election(enum.Enum):
    """How eager an election is."""

    PREFERRED = "the first replica leads if it can"
    ONLINE = "a leader that works is kept"
    UNCLEAN = "a leader out of sync is better than none"


class Transition:
    """One partition on its way to another state; set what shall change, then ask for the `record`."""

    __slots__ = (
        "_can_lead", "_elr", "_features", "_index", "_min_isr", "_state", "_topic", "_view", "adding", "directories",
        "election", "isr", "recovery", "removing", "replicas", "unclean_stops",
    )  # fmt: skip

    def __init__(self, view: View, topic: Topic, index: int, can_lead: CanLead | None = None) -> None:
        state = topic.partitions[index]
        self._view = view
        self._topic = topic
        self._index = index
        self._state = state
        self._features = view.image.features
        self._can_lead = can_lead or view.can_lead
        self._min_isr = view.min_isr(topic)
        self._elr: Brokers = state.elr
        self.election = Election.ONLINE
        self.isr: Brokers = state.isr
        self.replicas: Brokers = state.replicas
        self.adding: Brokers = state.adding
        self.removing: Brokers = state.removing
        self.recovery = state.leader_recovery_state
        self.unclean_stops: Collection[int] = ()
        self.directories: Mapping[int, bytes] = {}

    def record(self) -> PartitionChangeRecord | None:
        """The change to write; None when nothing changes."""
        record = PartitionChangeRecord(topic_id=self._topic.id, partition_id=self._index)
        self._complete_reassignment()
        self._populate_elr()
        changed = self._elect(record)
        changed = self._record_in_sync(record) or changed
        changed = self._record_assignment(record) or changed
        if self.recovery != self._state.leader_recovery_state:
            record.leader_recovery_state = self.recovery
            changed = True
        return record if changed else None

    def _complete_reassignment(self) -> None:
        if not self.adding and not self.removing:
            return
        completed = completed_reassignment(self.replicas, self.isr, self.adding, self.removing)
        if completed is not None:
            self.replicas, self.isr = completed
            self.adding = self.removing = ()

    def _populate_elr(self) -> None:
        isr = self.isr
        if not self._features.elr:
            return  # what was listed while the feature was on may lead once more, and is then forgotten
        if len(isr) >= self._min_isr:
            self._elr = ()
            return
        left_out = {*isr, *self.unclean_stops}
        candidates = {*self._elr, *self._state.isr}
        self._elr = tuple(
            sorted(each for each in candidates if each not in left_out and each in self.replicas)
        )

    def _elect(self, record: PartitionChangeRecord) -> bool:
        state = self._state
        leader, unclean = self._chosen()
        if leader == state.leader:
            if self.replicas is state.replicas or set(state.replicas) <= set(self.replicas):
                return False
            record.leader = leader
            return True
        record.leader = leader
        if leader in self._elr:
            self.isr = (leader,)
            self._elr = tuple(each for each in self._elr if each != leader)
        if unclean:
            # What the old leader alone had is lost from here on: only the new one is in sync, and nobody eligible.
            self.isr, self._elr = (leader,), ()
            # A sole replica has nobody to recover its lost records from, so it has nothing to recover.
            if len(self.replicas) > 1:
                self.recovery = RECOVERING
        return True

    def _chosen(self) -> tuple[int, bool]:
        replicas, state = self.replicas, self._state
        if self.election is Election.PREFERRED and self._is_eligible(replicas[0]):
            return replicas[0], False
        if self._is_eligible(state.leader):
            return state.leader, False
        for candidate in replicas:
            if self._is_eligible(candidate):
                return candidate, False
        if self._last_known_leader_can_lead():
            return state.last_known_elr[0], True
        if self.election is Election.UNCLEAN:
            for candidate in replicas:
                if self._can_lead(candidate, state):
                    return candidate, True
        return NO_LEADER, False

    def _is_eligible(self, broker: int) -> bool:
        listed = broker in self.isr if self.isr else broker in self._elr
        return listed and self._can_lead(broker, self._state)

    def _last_known_leader_can_lead(self) -> bool:
        last = self._state.last_known_elr
        return (
            len(last) == 1
            and self._features.elr
            and not self._elr
            and not self.isr
            and last[0] in self.replicas
            and self._can_lead(last[0], self._state)
        )

    def _record_in_sync(self, record: PartitionChangeRecord) -> bool:
        state, features = self._state, self._features
        changed = False
        elr = self._elr if features.elr else ()
        if elr != state.elr:
            record.eligible_leader_replicas = list(elr)
            changed = True
        # Without eligible replicas an empty set would leave nobody to elect from, so the last member stays in it.
        if (self.isr or features.elr) and self.isr != state.isr:
            record.isr = list(self.isr)
            changed = True
            bumps = features.metadata_version <= EPOCH_BUMP_ON_SHRINK_UNTIL
            if bumps and record.leader == NO_LEADER_CHANGE and not set(state.isr) <= set(self.isr):
                record.leader = state.leader
        if features.elr:
            if record.leader == NO_LEADER and not state.last_known_elr and state.leader != NO_LEADER:
                record.last_known_elr = [state.leader]
            elif record.leader >= 0 and state.last_known_elr:
                record.last_known_elr = []
        return changed

    def _record_assignment(self, record: PartitionChangeRecord) -> bool:
        state = self._state
        changed = False
        moved = self.replicas != state.replicas
        if (moved or self.directories) and self._features.metadata_version >= DIRECTORIES_SINCE:
            known = {**dict(zip(state.replicas, state.directories, strict=True)), **self.directories}
            directories = tuple(
                known.get(broker) or self._view.default_directory(broker) for broker in self.replicas
            )
            if directories != state.directories:
                record.directories = list(directories)
                changed = True
        if moved:
            record.replicas = list(self.replicas)
        if self.removing != state.removing:
            record.removing_replicas = list(self.removing)
            changed = True
        if self.adding != state.adding:
            record.adding_replicas = list(self.adding)
            changed = True
        return changed or moved


def completed_reassignment(
    replicas: Brokers, isr: Brokers, adding: Collection[int], removing: Collection[int]
) -> tuple[Brokers, Brokers] | None:
    """Replicas and in-sync replicas once a reassignment is through; None while it is not, or there is none."""
    if not adding and not removing:
        return None
    kept = tuple(broker for broker in replicas if broker not in removing)
    in_sync = tuple(broker for broker in isr if broker not in removing)
    if not kept or (removing and not in_sync) or not set(adding) <= set(in_sync):
        return None
    # A smaller replica set is only worth having once all of it is in sync.
    if len(adding) < len(removing) and not set(kept) <= set(in_sync):
        return None
    return kept, in_sync


def change_leaders(
    view: View,
    partitions: Iterable[tuple[Topic, int, PartitionState]],
    *,
    without: int = NO_LEADER,
    with_broker: int = NO_LEADER,
    unclean_stop: int = NO_LEADER,
    records_max: int | None = None,
) -> list[PartitionChangeRecord]:
    """What must change in `partitions` when a broker goes (`without`), comes, or comes back from an unclean stop.

    With `records_max` only the first so many changes.
    """
    brokers = view.image.brokers
    gone = {without, unclean_stop} - {NO_LEADER}

    def can_lead(broker: int, state: PartitionState) -> bool:
        registered = brokers.get(broker)
        if registered is None or broker in gone or not (registered.active or broker == with_broker):
            return False
        return registered.has_online(state.directory_of(broker))

    records: list[PartitionChangeRecord] = []
    for topic, index, state in partitions:
        if len(records) == records_max:
            break
        transition = Transition(view, topic, index, can_lead)
        if view.unclean_elections(topic.name):
            transition.election = Election.UNCLEAN
        if unclean_stop != NO_LEADER:
            transition.unclean_stops = (unclean_stop,)
        if gone:
            transition.isr = tuple(broker for broker in state.isr if broker not in gone)
        record = transition.record()
        if record is not None:
            records.append(record)
    return records
