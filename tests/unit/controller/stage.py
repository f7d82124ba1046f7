"""A stage for the controller: a cluster in memory on which every decision takes effect at once."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from ottla.controller.attention import PULSE_MS
from ottla.controller.controller import Controller
from ottla.metadata.config import ConfigType
from ottla.metadata.content import feature_records
from ottla.metadata.feature import SUPPORTED, default_levels
from ottla.metadata.fold import Fold
from ottla.metadata.image import Image
from ottla.metadata.settings.layers import BrokerValues
from ottla.metadata.topics import PartitionState
from ottla.replicated.decision import Decision
from ottla.wire.message import Message
from ottla.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from ottla.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.world.entropy import SeededEntropy

R = TypeVar("R")
Wish = CreateTopicsRequest.CreatableTopic
CLUSTER = "cluster"
FEATURES = default_levels()
NO_ELR = {**FEATURES, "eligible.leader.replicas.version": 0}
BEAT_MS = 500


def directory(broker: int, number: int = 0) -> bytes:
    """An id for a broker's log directory."""
    return bytes([0xD0, broker, number] + [1] * 13)


class Stage:
    """A controller on node 1, and the brokers registered with it."""

    def __init__(
        self, *brokers: int, features: dict[str, int] | None = None, settings: dict[str, str] | None = None
    ) -> None:
        self.now = 1_000_000
        self.records: list[Message] = []
        self.is_full = False  # the disk: what is decided is not recorded
        self.refused = 0
        self._settings = settings or {}
        self.controller = self._lead(Fold(), 1)
        bootstrap = list(feature_records(features or FEATURES))
        self.do(lambda controller, now: controller.activate(bootstrap, now))
        for broker in brokers:
            self.register(broker)
            self.heartbeat(broker)

    def _lead(self, fold: Fold, node_id: int) -> Controller:
        values = {"node.id": str(node_id), "process.roles": "broker,controller", **self._settings}
        return Controller(
            fold,
            node_id=node_id,
            cluster_id=CLUSTER,
            values=BrokerValues(values),
            entropy=SeededEntropy(7),
            kraft_version=1,
            now=self.now,
        )

    def fail_over(self, node_id: int) -> None:
        """Let another node take the controller's place."""
        self.controller = self._lead(Fold(self.image), node_id)
        self.do(lambda controller, now: controller.activate([], now))

    @property
    def image(self) -> Image:
        return self.controller.image

    def do(self, decide: Callable[[Controller, int], Decision[R]]) -> R:
        """Let the controller decide and apply its records; `self.records` keeps them."""
        decision = decide(self.controller, self.now)
        if self.is_full and decision.records:
            self.records, self.refused = [], self.refused + 1
            return decision.reply
        self.records = list(decision.records)  # type: ignore[arg-type]
        for record in self.records:
            self.controller.apply(self.controller.end_offset, record)
        return decision.reply

    def wait(self, ms: int, *, beating: Iterable[int] = ()) -> None:
        """Let time pass as the host does; the brokers that are `beating` go on with their heartbeats."""
        records: list[Message] = []
        for passed in range(PULSE_MS, ms + 1, PULSE_MS):
            self.now += PULSE_MS
            if passed % BEAT_MS == 0:
                for broker in beating:
                    self.heartbeat(broker)
                    records += self.records
            while (deadline := self.controller.deadline) is not None and deadline <= self.now:
                self.do(lambda controller, now: controller.expire(now))
                records += self.records
        self.records = records

    def disconnect(self, broker: int, *, epoch: int | None = None) -> None:
        """Close the connection of a broker."""
        known = self.image.brokers[broker].epoch if epoch is None else epoch
        self.do(lambda controller, now: controller.broker_disconnected(broker, known, now))

    def restart(self, broker: int, *, clean: bool) -> None:
        """Let a broker stop and come back before anybody has missed it."""
        epoch = self.image.brokers[broker].epoch
        incarnation = self.image.brokers[broker].incarnation_id[1] + 1
        self.disconnect(broker)
        self.register(broker, incarnation=incarnation, previous_epoch=epoch if clean else -1)

    def register(
        self,
        broker: int,
        *,
        incarnation: int = 1,
        previous_epoch: int = -1,
        directories: int = 1,
        rack: str | None = None,
    ) -> int:
        request = BrokerRegistrationRequest(
            broker_id=broker,
            cluster_id=CLUSTER,
            incarnation_id=bytes([broker, incarnation] * 8),
            listeners=[BrokerRegistrationRequest.Listener(name="PLAINTEXT", host=f"host{broker}", port=9092)],
            features=[
                BrokerRegistrationRequest.Feature(
                    name=name, min_supported_version=low, max_supported_version=high
                )
                for name, (low, high) in SUPPORTED.items()
            ],
            rack=rack,
            log_dirs=[directory(broker, number) for number in range(directories)],
            previous_broker_epoch=previous_epoch,
        )
        return self.do(lambda controller, now: controller.register_broker(request, now)).broker_epoch

    def heartbeat(
        self,
        broker: int,
        *,
        want_fence: bool = False,
        want_shut_down: bool = False,
        offline: list[bytes] | None = None,
        cordoned: list[bytes] | None = None,
        offset: int | None = None,
    ) -> BrokerHeartbeatResponse:
        request = BrokerHeartbeatRequest(
            broker_id=broker,
            broker_epoch=self.image.brokers[broker].epoch,
            current_metadata_offset=self.controller.end_offset - 1 if offset is None else offset,
            want_fence=want_fence,
            want_shut_down=want_shut_down,
            offline_log_dirs=offline or [],
            cordoned_log_dirs=cordoned,
        )
        return self.do(lambda controller, now: controller.heartbeat(request, now))

    def create(self, *topics: Wish, validate_only: bool = False) -> CreateTopicsResponse:
        request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
        return self.do(lambda controller, now: controller.create_topics(request, now))

    def configure(self, kind: ConfigType, name: str, key: str, value: str | None) -> None:
        """Set one value, or take it back."""
        request = IncrementalAlterConfigsRequest(
            resources=[
                IncrementalAlterConfigsRequest.AlterConfigsResource(
                    resource_type=kind,
                    resource_name=name,
                    configs=[
                        IncrementalAlterConfigsRequest.AlterConfigsResource.AlterableConfig(
                            name=key, config_operation=int(value is None), value=value
                        )
                    ],
                )
            ]
        )
        (answer,) = self.do(
            lambda controller, now: controller.incremental_alter_configs(request, now)
        ).responses
        assert not answer.error_code, answer.error_message

    def alter_partition(
        self,
        isr: list[int],
        *,
        topic: str = "one",
        index: int = 0,
        broker: int | None = None,
        recovery: int = 0,
        leader_epoch: int | None = None,
        partition_epoch: int | None = None,
        broker_epochs: dict[int, int] | None = None,
    ) -> AlterPartitionResponse.TopicData.PartitionData:
        """Let the leader, or whoever is named, report who is in sync."""
        state = self.state(topic, index)
        broker = state.leader if broker is None else broker
        kind = AlterPartitionRequest.TopicData
        part = kind.PartitionData(
            partition_index=index,
            leader_epoch=state.leader_epoch if leader_epoch is None else leader_epoch,
            partition_epoch=state.partition_epoch if partition_epoch is None else partition_epoch,
            leader_recovery_state=recovery,
            new_isr_with_epochs=[
                kind.PartitionData.BrokerState(broker_id=each, broker_epoch=self._epoch(each, broker_epochs))
                for each in isr
            ],
        )
        request = AlterPartitionRequest(
            broker_id=broker,
            broker_epoch=self.image.brokers[broker].epoch,
            topics=[kind(topic_id=self.image.topics.by_name[topic].id, partitions=[part])],
        )
        response = self.do(lambda controller, now: controller.alter_partition(request, 3, now))
        return response.topics[0].partitions[0]

    def _epoch(self, broker: int, epochs: dict[int, int] | None) -> int:
        known = self.image.brokers.get(broker)
        return (epochs or {}).get(broker, -1 if known is None else known.epoch)

    def reassign(
        self, replicas: list[int] | None, *, topic: str = "one", index: int = 0, may_resize: bool = True
    ) -> tuple[int, str | None]:
        """Begin to move a partition, or give that up."""
        kind = AlterPartitionReassignmentsRequest.ReassignableTopic
        partition = kind.ReassignablePartition(partition_index=index, replicas=replicas)
        request = AlterPartitionReassignmentsRequest(
            topics=[kind(name=topic, partitions=[partition])], allow_replication_factor_change=may_resize
        )
        response = self.do(lambda controller, now: controller.alter_partition_reassignments(request, now))
        result = response.responses[0].partitions[0]
        return result.error_code, result.error_message

    def state(self, topic: str, index: int = 0) -> PartitionState:
        found = self.image.partition(topic, index)
        assert found is not None
        return found


def wish(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    *,
    assignments: dict[int, list[int]] | None = None,
    configs: dict[str, str | None] | None = None,
) -> Wish:
    """A topic to be created."""
    return Wish(
        name=name,
        num_partitions=-1 if assignments else partitions,
        replication_factor=-1 if assignments else replicas,
        assignments=[
            Wish.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in (assignments or {}).items()
        ],
        configs=[Wish.CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )
