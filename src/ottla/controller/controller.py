"""The controller: commands in, decisions out, over the image that its own records fold to.

K1  A decision sees every record appended before it, committed or not; the host holds its reply back until they are.
K2  No clock, no disk, no chance but what is handed in: equal calls on equal controllers give equal decisions.
K3  Nothing is rolled back. When leadership goes, the controller is dropped, and the next one starts from its image.

Each command lives in the module of its noun; this one only holds the state between them.
"""

from collections.abc import Collection, Iterable

from ottla.controller import (
    activation,
    brokers,
    configs,
    directories,
    features,
    partitions,
    producer_ids,
    reassignment,
)
from ottla.controller.create_partitions import create_partitions
from ottla.controller.create_topics import create_topics
from ottla.controller.delete_topics import delete_topics
from ottla.controller.elect_leaders import elect_leaders
from ottla.controller.session import Sessions
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
from ottla.wire.records.metadata import BrokerRegistrationChangeRecord
from ottla.world.entropy import Entropy


class Controller:
    """The active controller of a cluster."""

    __slots__ = ("_dirty", "_fold", "_sessions", "_settled", "_view")

    def __init__(
        self,
        fold: Fold,
        *,
        node_id: int,
        cluster_id: str,
        values: BrokerValues,
        entropy: Entropy,
        kraft_version: int,
        now: Millis,
    ) -> None:
        self._fold = fold
        self._view = View(
            fold.image,
            node_id=node_id,
            cluster_id=cluster_id,
            values=values,
            entropy=entropy,
            kraft_version=kraft_version,
        )
        self._settled: list[Change] = []
        self._dirty = True
        self._sessions = Sessions(node_id, self._view.number("broker.session.timeout.ms"))
        for broker in fold.image.brokers.values():
            if not broker.fenced:
                self._sessions.touch(broker.id, now)

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
        """When a broker's session may run out."""
        return self._sessions.deadline

    def apply(self, offset: int, record: Message) -> None:
        """Take one record in."""
        self._fold.apply(offset, record)
        self._dirty = True
        if isinstance(record, BrokerRegistrationChangeRecord) and record.in_controlled_shutdown:
            self._sessions.shutting_down(record.broker_id, offset)

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
        """Fence the broker that was silent for longest, if it was silent for too long."""
        silent = self._sessions.stale(now)
        if silent is None:
            return Decision(None)
        self._sessions.remove(silent)
        broker = self.image.brokers.get(silent)
        return Decision(None) if broker is None or broker.fenced else brokers.fence(self._now(), silent)

    def activate(self, bootstrap: Iterable[Message], now: Millis) -> Decision[None]:
        """Take over the log that was loaded."""
        return activation.activate(
            self._now(), bootstrap, transaction_open=self._fold.transaction_offset is not None
        )

    def register_broker(
        self, request: BrokerRegistrationRequest, now: Millis
    ) -> Decision[BrokerRegistrationResponse]:
        """BrokerRegistration."""
        return brokers.register(self._now(), self._sessions, request, self.end_offset, now)

    def register_controller(
        self, request: ControllerRegistrationRequest, now: Millis
    ) -> Decision[ControllerRegistrationResponse]:
        """ControllerRegistration."""
        return brokers.register_controller(self._now(), request)

    def heartbeat(self, request: BrokerHeartbeatRequest, now: Millis) -> Decision[BrokerHeartbeatResponse]:
        """BrokerHeartbeat."""
        return brokers.heartbeat(self._now(), self._sessions, request, now)

    def unregister_broker(
        self, request: UnregisterBrokerRequest, now: Millis
    ) -> Decision[UnregisterBrokerResponse]:
        """UnregisterBroker."""
        self._sessions.remove(request.broker_id)
        return brokers.unregister(self._now(), request)

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
        if self._dirty:
            self._dirty = False
            for change in self._fold.settle():
                self._settled.append(change)
                for topic in change.delta.removed_topics.values():
                    self._view.collisions.remove(topic.name)
                for made in change.delta.topics.values():
                    if made.created:
                        self._view.collisions.add(made.name)
                self._view.image = change.image
        return self._view
