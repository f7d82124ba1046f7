"""Elections: who leads a partition, and what has to be recorded when its replicas change.

E1  A leader comes from the in-sync replicas; when those are gone, from the eligible ones (KIP-966); when those are gone
    too, it is the last known leader, and then the partition is recovering.
E2  Only an UNCLEAN election may choose a replica that was not in sync.
E3  Naming a leader, even the same one, raises the leader epoch. It is named whenever a replica leaves the assignment.
E4  Eligible replicas are those that left the in-sync set after it fell below min.insync.replicas, without an unclean
    stop since. They are forgotten once the set is large enough again.
"""

import enum
from collections.abc import Callable, Collection, Mapping, Sequence

from ottla.controller.view import View
from ottla.metadata.feature import DIRECTORIES_SINCE, EPOCH_BUMP_ON_SHRINK_UNTIL
from ottla.metadata.topics import NO_LEADER, NO_LEADER_CHANGE, RECOVERING, PartitionState, Topic
from ottla.wire.records.metadata import PartitionChangeRecord


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

    def __init__(
        self,
        view: View,
        topic: Topic,
        index: int,
        can_lead: Callable[[int], bool] | None = None,
    ) -> None:
        state = topic.partitions[index]
        self._view = view
        self._topic = topic
        self._index = index
        self._state = state
        self._features = view.image.features
        self._can_lead = can_lead or (lambda broker: view.can_lead(broker, state))
        self._elr = list(state.elr)
        self._min_isr = view.min_isr(topic)
        self.election = Election.ONLINE
        self.isr = list(state.isr)
        self.replicas = list(state.replicas)
        self.adding = list(state.adding)
        self.removing = list(state.removing)
        self.recovery = state.leader_recovery_state
        self.unclean_stops: Collection[int] = ()
        self.directories: Mapping[int, bytes] = {}

    def record(self) -> PartitionChangeRecord | None:
        """The change to write; None when nothing changes."""
        record = PartitionChangeRecord(topic_id=self._topic.id, partition_id=self._index)
        self._complete_reassignment()
        self._populate_elr()
        self._elect(record)
        if record.leader == NO_LEADER_CHANGE and not set(self._state.replicas) <= set(self.replicas):
            record.leader = self._state.leader
        self._record_isr(record)
        self._record_last_known_leader(record)
        self._record_assignment(record)
        if self.recovery != self._state.leader_recovery_state:
            record.leader_recovery_state = self.recovery
        nothing = PartitionChangeRecord(topic_id=self._topic.id, partition_id=self._index)
        return None if record == nothing else record

    def _complete_reassignment(self) -> None:
        completed = completed_reassignment(self.replicas, self.isr, self.adding, self.removing)
        if completed is not None:
            self.replicas, self.isr = completed
            self.adding, self.removing = [], []

    def _populate_elr(self) -> None:
        if not self._features.elr:
            return
        if len(self.isr) >= self._min_isr:
            self._elr = []
            return
        candidates = {*self._elr, *self._state.isr}
        self._elr = sorted(candidates - set(self.isr) - set(self.unclean_stops))

    def _elect(self, record: PartitionChangeRecord) -> None:
        leader, unclean = self._chosen()
        if leader == self._state.leader:
            return
        if leader in self._elr:
            self.isr = [leader]
            self._elr.remove(leader)
        record.leader = leader
        if unclean:
            # What the old leader alone had is lost from here on: only the new one is in sync.
            record.isr = [leader]
            # A sole replica has nobody to recover its lost records from, so it has nothing to recover.
            if self._state.leader_recovery_state != RECOVERING and len(self.replicas) > 1:
                record.leader_recovery_state = RECOVERING

    def _chosen(self) -> tuple[int, bool]:
        current = self._state.leader
        if self.election is Election.PREFERRED and self._is_eligible(self.replicas[0]):
            return self.replicas[0], False
        for candidate in (current, *self.replicas):
            if self._is_eligible(candidate):
                return candidate, False
        if self._last_known_leader_can_lead():
            return self._state.last_known_elr[0], True
        if self.election is Election.UNCLEAN:
            for candidate in self.replicas:
                if self._can_lead(candidate):
                    return candidate, True
        return NO_LEADER, False

    def _is_eligible(self, broker: int) -> bool:
        listed = broker in self.isr or (not self.isr and broker in self._elr)
        return listed and self._can_lead(broker)

    def _last_known_leader_can_lead(self) -> bool:
        last = self._state.last_known_elr
        return (
            self._features.elr
            and not self._elr
            and not self.isr
            and len(last) == 1
            and self._can_lead(last[0])
        )

    def _record_isr(self, record: PartitionChangeRecord) -> None:
        if record.isr is not None or not self._features.elr:
            self._elr = []
        if self._elr != list(self._state.elr):
            record.eligible_leader_replicas = self._elr
        # Without eligible replicas an empty set would leave nobody to elect from, so the last member stays in it.
        if record.isr is None and (self.isr or self._features.elr) and self.isr != list(self._state.isr):
            record.isr = self.isr
        shrunk = record.isr is not None and not set(self._state.isr) <= set(record.isr)
        bumps = self._features.metadata_version <= EPOCH_BUMP_ON_SHRINK_UNTIL
        if shrunk and bumps and record.leader == NO_LEADER_CHANGE:
            record.leader = self._state.leader

    def _record_last_known_leader(self, record: PartitionChangeRecord) -> None:
        if not self._features.elr:
            return
        if record.leader == NO_LEADER and not self._state.last_known_elr:
            record.last_known_elr = [self._state.leader]
        elif record.leader >= 0 and self._state.last_known_elr:
            record.last_known_elr = []

    def _record_assignment(self, record: PartitionChangeRecord) -> None:
        state = self._state
        if self._features.metadata_version >= DIRECTORIES_SINCE:
            known = {**dict(zip(state.replicas, state.directories, strict=True)), **self.directories}
            directories = [
                known.get(broker) or self._view.default_directory(broker) for broker in self.replicas
            ]
            if directories != list(state.directories):
                record.directories = directories
        if self.replicas != list(state.replicas):
            record.replicas = self.replicas
        if self.removing != list(state.removing):
            record.removing_replicas = self.removing
        if self.adding != list(state.adding):
            record.adding_replicas = self.adding


def completed_reassignment(
    replicas: Sequence[int], isr: Sequence[int], adding: Collection[int], removing: Collection[int]
) -> tuple[list[int], list[int]] | None:
    """Replicas and in-sync replicas once a reassignment is through; None while it is not, or there is none."""
    if not adding and not removing:
        return None
    kept = [broker for broker in replicas if broker not in removing]
    in_sync = [broker for broker in isr if broker not in removing]
    if not kept or (removing and not in_sync) or not set(adding) <= set(in_sync):
        return None
    # A smaller replica set is only worth having once all of it is in sync.
    if len(adding) < len(removing) and not set(kept) <= set(in_sync):
        return None
    return kept, in_sync


def change_leaders(
    view: View,
    partitions: Collection[tuple[Topic, int]],
    *,
    without: int = NO_LEADER,
    with_broker: int = NO_LEADER,
    unclean_stop: int = NO_LEADER,
) -> list[PartitionChangeRecord]:
    """What must change in `partitions` when a broker goes (`without`), comes, or comes back from an unclean stop."""
    records = []
    for topic, index in partitions:
        state = topic.partitions[index]

        def can_lead(broker: int, state: PartitionState = state) -> bool:
            if broker in {without, unclean_stop}:
                return False
            registered = view.image.brokers.get(broker)
            if registered is None or not (broker == with_broker or registered.active):
                return False
            return registered.has_online(state.directory_of(broker))

        transition = Transition(view, topic, index, can_lead)
        if view.unclean_elections(topic.name):
            transition.election = Election.UNCLEAN
        if unclean_stop != NO_LEADER:
            transition.unclean_stops = (unclean_stop,)
        transition.isr = [broker for broker in state.isr if broker not in {without, unclean_stop}]
        record = transition.record()
        if record is not None:
            records.append(record)
    return records
