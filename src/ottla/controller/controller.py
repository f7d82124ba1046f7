"""The controller: commands in, decisions out, over the image that its own records fold to.

K1  A decision sees every record appended before it, committed or not; the host holds its reply back until they are.
K2  No clock, no disk, no chance but what is handed in: equal calls on equal controllers give equal decisions.
K3  Nothing is rolled back. When leadership goes, the controller is dropped, and the next one starts from its image.
K4  Who was heard from and how far they are is not recorded: a new controller listens anew.
K5  `expire` is to be called when `deadline` says so, again while it still says so, and no later: the gaps between calls
    tell the controller whether it was awake itself.
K6  What is remembered besides the image (K4) changes with the record that says so, not with the decision: that may be
    refused, as by a full disk, and has to be made again then.

Each command lives in the module of its noun; this one only holds the state between them.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

from ottla.controller import (
    activation,
    configs,
    directories,
    features,
    fencing,
    partitions,
    producer_ids,
    reassignment,
    registration,
)
from ottla.controller.attention import PULSE_MS
from ottla.controller.create_partitions import create_partitions
from ottla.controller.create_topics import create_topics
from ottla.controller.delete_topics import delete_topics
from ottla.controller.elect_leaders import elect_leaders
from ottla.controller.heartbeat import heartbeat
from ottla.controller.progress import Progress
from ottla.controller.rounds import Rounds
from ottla.controller.session import Patience, Sessions
from ottla.controller.view import View
from ottla.metadata.fold import Change, Fold
from ottla.metadata.image import Image
from ottla.metadata.settings.layers import BrokerValues
from ottla.replicated.decision import Decision, Millis
from ottla.wire.message import Message
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from ottla.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from ottla.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from ottla.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from ottla.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from ottla.wire.records.metadata import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from ottla.world.entropy import Entropy


class Controller:
    """The active controller of a cluster."""

    __slots__ = (
        "_decided_at",
        "_dirty",
        "_fold",
        "_half_fenced",
        "_leaving",
        "_progress",
        "_rests_until",
        "_returning",
        "_rounds",
        "_sessions",
        "_settled",
        "_view",
    )

    def __init__(
        self,
        fold: Fold,
        *,
        node_id: int,
        cluster_id: str,
        values: BrokerValues,
        entropy: Entropy,
        kraft_version: int,
        raise_kraft_version: Callable[[int, bool], None] | None = None,
        now: Millis,
    ) -> None:
        self._fold = fold
        self._view = view = View(
            fold.image,
            node_id=node_id,
            cluster_id=cluster_id,
            values=values,
            entropy=entropy,
            kraft_version=kraft_version,
            raise_kraft_version=raise_kraft_version,
        )
        self._settled: list[Change] = []
        self._dirty = True
        self._leaving: int | None = None
        self._half_fenced: set[int] = set()
        # Brokers that are owed the lead of what has none (B10 of `fencing`).
        self._returning: dict[int, None] = {}
        # Where the log ended when `expire` last decided something, and until when it decides nothing.
        self._decided_at: int | None = None
        self._rests_until: Millis = 0
        self._sessions = Sessions(node_id, Patience.from_settings(view.values), now)
        self._progress = Progress(node_id, fold.image)
        self._rounds = Rounds(view, now)
        for broker in fold.image.brokers.values():
            if not broker.fenced:
                self._sessions.expect(broker.id, now)

    @property
    def image(self) -> Image:
        """The cluster with every record applied so far."""
        return self._now().image

    @property
    def end_offset(self) -> int:
        """The offset of the record that comes next."""
        return self._fold.end_offset

    @property
    def deadline(self) -> Millis | None:
        """When to look at brokers that may have gone silent, or at leaders that may be chosen better."""
        self._now()
        if self._returning:
            return self._rests_until
        due = [each.deadline for each in (self._sessions, self._rounds)]
        first = min((each for each in due if each is not None), default=None)
        return None if first is None else max(first, self._rests_until)

    def apply(self, offset: int, record: Message) -> None:
        """Take one record in."""
        self._fold.apply(offset, record)
        self._dirty = True
        if isinstance(record, PartitionChangeRecord):
            # The partitions that a broker gives up come behind the record that says that it leaves.
            if self._leaving is not None:
                self._progress.leaving(self._leaving, offset)
        elif isinstance(record, RegisterBrokerRecord):
            if not record.in_controlled_shutdown:
                self._progress.remove(record.broker_id)
            if record.fenced:
                self._sessions.remove(record.broker_id)
            self._progress.registered(record.broker_id, offset)
        elif isinstance(record, UnregisterBrokerRecord):
            self._progress.remove(record.broker_id)
            self._sessions.remove(record.broker_id)
        elif isinstance(record, BrokerRegistrationChangeRecord):
            if record.fenced == fencing.FENCE:
                self._fenced(record.broker_id)
            if record.in_controlled_shutdown:
                self._leaving = record.broker_id
                self._progress.leaving(record.broker_id, offset)
        elif isinstance(record, ConfigRecord) and record.name == "unclean.leader.election.enable":
            self._rounds.hasten()

    def advance(self, end_offset: int, epoch: int, timestamp_ms: int) -> None:
        """Note the end of a batch in the log."""
        self._fold.advance(end_offset, epoch, timestamp_ms)
        self._dirty = True

    def settle(self) -> list[Change]:
        """The steps from image to image since the last call."""
        self._now()
        settled, self._settled = self._settled, []
        return settled

    def expire(self, now: Millis) -> Decision[None]:
        """Fence one broker that is gone, or a piece of it; when there is none, do what is due of the rounds."""
        if self._decided_at == self.end_offset:
            # What was decided last is not in the log. The disk may be full, and is not asked again without a pause.
            self._decided_at, self._rests_until = None, now + PULSE_MS
            return Decision(None)
        records = self._due(now)
        self._decided_at = self.end_offset if records else None
        return Decision(None, tuple(records))

    def _due(self, now: Millis) -> Sequence[Message]:
        view = self._now()
        while (silent := self._sessions.stale(now)) is not None:
            broker = view.image.brokers.get(silent)
            if broker is None or broker.fenced:
                self._sessions.remove(silent)
                continue
            records, last = fencing.fence_step(view, broker)
            if not last:
                self._half_fenced.add(silent)
            return records
        return self._lead_again() or self._rounds.due(now)

    def _lead_again(self) -> list[Message]:
        """A piece of what a broker that came back is to lead."""
        view = self._now()
        for broker_id in tuple(self._returning):
            broker = view.image.brokers.get(broker_id)
            if broker is None or not broker.active:
                del self._returning[broker_id]
                continue
            records, last = fencing.lead_step(view, broker)
            if records:
                return records  # and it is looked at again: they may be refused
            if last:
                del self._returning[broker_id]
        return []

    def _fenced(self, broker_id: int) -> None:
        """A broker is out of service, by the log."""
        self._sessions.remove(broker_id)
        self._half_fenced.discard(broker_id)

    def broker_disconnected(
        self, broker_id: int, broker_epoch: int, now: Millis, *, refused: bool = False
    ) -> Decision[None]:
        """Note that the connection by which this incarnation of a broker was last heard has closed.

        To be called for that connection alone: a broker that speaks on another one by now is there. When leadership
        begins, it may also be called for brokers whose node is known to be gone. `refused` says that nobody listens
        there any more.
        """
        broker = self._now().image.brokers.get(broker_id)
        if broker is not None and broker.epoch == broker_epoch:
            self._sessions.disconnected(broker_id, now, refused=refused)
        return Decision(None)

    def broker_doubted(self, broker_id: int, now: Millis) -> Decision[None]:
        """Note that a broker is the node of the last controller, which was succeeded without a word."""
        self._sessions.doubt(broker_id, now)
        return Decision(None)

    def activate(self, bootstrap: Iterable[Message], now: Millis) -> Decision[None]:
        """Take over the log that was loaded."""
        return activation.activate(
            self._now(), bootstrap, transaction_open=self._fold.transaction_offset is not None
        )

    def register_broker(
        self, request: BrokerRegistrationRequest, now: Millis
    ) -> Decision[BrokerRegistrationResponse]:
        """BrokerRegistration."""
        return registration.register_broker(self._now(), self._sessions, request, self.end_offset, now)

    def register_controller(
        self, request: ControllerRegistrationRequest, now: Millis
    ) -> Decision[ControllerRegistrationResponse]:
        """ControllerRegistration."""
        return registration.register_controller(self._now(), request)

    def heartbeat(self, request: BrokerHeartbeatRequest, now: Millis) -> Decision[BrokerHeartbeatResponse]:
        """BrokerHeartbeat."""
        self._rests_until = min(self._rests_until, now + PULSE_MS)  # should the clock have been set back
        view, broker_id = self._now(), request.broker_id
        broker = view.image.brokers.get(broker_id)
        returns = broker_id in self._half_fenced or not self._progress.has_heard(broker_id)
        returns = returns or (broker is not None and broker.fenced)
        decision = heartbeat(view, self._sessions, self._progress, request, now)
        if returns and not decision.reply.is_fenced:
            self._half_fenced.discard(broker_id)
            if view.census.leaderless:
                self._returning[broker_id] = None
        return decision

    def unregister_broker(
        self, request: UnregisterBrokerRequest, now: Millis
    ) -> Decision[UnregisterBrokerResponse]:
        """UnregisterBroker."""
        return registration.unregister_broker(self._now(), self._sessions, request, now)

    def create_topics(
        self, request: CreateTopicsRequest, now: Millis, describable: Collection[str] | None = None
    ) -> Decision[CreateTopicsResponse]:
        """CreateTopics; `describable` names the topics whose settings the caller may see, None means all."""
        return create_topics(self._now(), request, describable)

    def delete_topics(
        self, request: DeleteTopicsRequest, version: int, now: Millis
    ) -> Decision[DeleteTopicsResponse]:
        """DeleteTopics."""
        return delete_topics(self._now(), request, version)

    def create_partitions(
        self, request: CreatePartitionsRequest, now: Millis
    ) -> Decision[CreatePartitionsResponse]:
        """CreatePartitions."""
        return create_partitions(self._now(), request)

    def alter_configs(self, request: AlterConfigsRequest, now: Millis) -> Decision[AlterConfigsResponse]:
        """AlterConfigs."""
        return configs.alter_configs(self._now(), request)

    def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest, now: Millis
    ) -> Decision[IncrementalAlterConfigsResponse]:
        """IncrementalAlterConfigs."""
        return configs.incremental_alter_configs(self._now(), request)

    def update_features(
        self, request: UpdateFeaturesRequest, version: int, now: Millis
    ) -> Decision[UpdateFeaturesResponse]:
        """UpdateFeatures."""
        return features.update_features(self._now(), request, version)

    def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest, now: Millis
    ) -> Decision[AllocateProducerIdsResponse]:
        """AllocateProducerIds."""
        return producer_ids.allocate_producer_ids(self._now(), request)

    def elect_leaders(self, request: ElectLeadersRequest, now: Millis) -> Decision[ElectLeadersResponse]:
        """ElectLeaders."""
        return elect_leaders(self._now(), request)

    def alter_partition(
        self, request: AlterPartitionRequest, version: int, now: Millis
    ) -> Decision[AlterPartitionResponse]:
        """AlterPartition."""
        return partitions.alter_partition(self._now(), request, version)

    def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest, now: Millis
    ) -> Decision[AlterPartitionReassignmentsResponse]:
        """AlterPartitionReassignments."""
        return reassignment.alter_partition_reassignments(self._now(), request)

    def list_partition_reassignments(
        self, request: ListPartitionReassignmentsRequest, now: Millis
    ) -> Decision[ListPartitionReassignmentsResponse]:
        """ListPartitionReassignments."""
        return reassignment.list_partition_reassignments(self._now(), request)

    def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest, now: Millis
    ) -> Decision[AssignReplicasToDirsResponse]:
        """AssignReplicasToDirs."""
        return directories.assign_replicas_to_dirs(self._now(), request)

    def _now(self) -> View:
        self._leaving = None
        if self._dirty:
            self._dirty = False
            for change in self._fold.settle():
                self._settled.append(change)
                self._view.follow(change)
        return self._view
