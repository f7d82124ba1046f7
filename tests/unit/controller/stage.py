"""A stage for the controller: a cluster in memory on which every decision takes effect at once."""

from collections.abc import Callable
from typing import TypeVar

from ottla.controller.controller import Controller
from ottla.metadata.content import feature_records
from ottla.metadata.feature import SUPPORTED, default_levels
from ottla.metadata.fold import Fold
from ottla.metadata.image import Image
from ottla.metadata.settings.layers import BrokerValues
from ottla.metadata.topics import PartitionState
from ottla.replicated.decision import Decision
from ottla.wire.message import Message
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.world.entropy import SeededEntropy

R = TypeVar("R")
Wish = CreateTopicsRequest.CreatableTopic
CLUSTER = "cluster"
FEATURES = default_levels()


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
        self.controller = Controller(
            Fold(),
            node_id=1,
            cluster_id=CLUSTER,
            values=BrokerValues({"node.id": "1", "process.roles": "broker,controller", **(settings or {})}),
            entropy=SeededEntropy(7),
            kraft_version=1,
            now=self.now,
        )
        bootstrap = list(feature_records(features or FEATURES))
        self.do(lambda controller, now: controller.activate(bootstrap, now))
        for broker in brokers:
            self.register(broker)
            self.heartbeat(broker)

    @property
    def image(self) -> Image:
        return self.controller.image

    def do(self, decide: Callable[[Controller, int], Decision[R]]) -> R:
        """Let the controller decide and apply its records; `self.records` keeps them."""
        decision = decide(self.controller, self.now)
        self.records = list(decision.records)  # type: ignore[arg-type]
        for record in self.records:
            self.controller.apply(self.controller.end_offset, record)
        return decision.reply

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
    ) -> BrokerHeartbeatResponse:
        request = BrokerHeartbeatRequest(
            broker_id=broker,
            broker_epoch=self.image.brokers[broker].epoch,
            current_metadata_offset=self.controller.end_offset,
            want_fence=want_fence,
            want_shut_down=want_shut_down,
            offline_log_dirs=offline or [],
        )
        return self.do(lambda controller, now: controller.heartbeat(request, now))

    def create(self, *topics: Wish, validate_only: bool = False) -> CreateTopicsResponse:
        request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
        return self.do(lambda controller, now: controller.create_topics(request, now))

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
