"""Puts the parts of a producer together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from ottla.client.backoff import Backoff
from ottla.client.cluster import Cluster
from ottla.client.connections import ClientConnections
from ottla.client.producer.accumulator import Accumulator
from ottla.client.producer.batch_completion import BatchCompletion
from ottla.client.producer.config import ProducerConfig
from ottla.client.producer.identity import ProducerIdentity
from ottla.client.producer.partitioner import PartitionSelector, partitioner
from ottla.client.producer.record_preparation import RecordPreparation
from ottla.client.producer.sender import Sender
from ottla.client.producer.statistics import Statistics
from ottla.client.producer.transaction import ProducerTransaction
from ottla.client.producer.transaction_client import TransactionClient
from ottla.client.system_interfaces import SystemInterfaces
from ottla.world.clock import RealClock
from ottla.world.entropy import RealEntropy


@dataclass(frozen=True, slots=True)
class ProducerParts:
    """The parts of a producer. Those without a use for its settings are None."""

    config: ProducerConfig
    cluster: Cluster
    accumulator: Accumulator
    sender: Sender
    statistics: Statistics
    identity: ProducerIdentity | None
    transaction_client: TransactionClient | None
    transaction: ProducerTransaction | None
    preparation: RecordPreparation | None

    @classmethod
    def of(
        cls,
        settings: Mapping[str, Any],
        cluster: Cluster | None = None,
        interfaces: SystemInterfaces = SystemInterfaces(),  # noqa: B008  # it never changes
    ) -> Self:
        """Make the parts, with the given cluster or a new one. Nothing is started."""
        config, entropy, clock = (
            ProducerConfig.of(settings),
            interfaces.entropy or RealEntropy(),
            interfaces.clock or RealClock(),
        )
        statistics = Statistics(buffer_bytes=config.memory_bytes)
        cluster = cluster or Cluster(settings, ClientConnections(settings, interfaces.network, entropy))
        selector = PartitionSelector(
            partitioner(settings["partitioner.class"]),
            ignores_keys=config.ignores_keys,
            adaptive=config.is_adaptive,
            entropy=entropy,
        )
        accumulator = Accumulator(config, selector, clock.monotonic, clock.time_ns)
        name = config.transactional_id
        transaction = None if name is None else ProducerTransaction(name)
        identity = ProducerIdentity(transactional=name is not None) if config.is_idempotent else None

        def pause(attempts: int) -> float:
            backoff = Backoff(settings["retry.backoff.ms"], settings["retry.backoff.max.ms"], entropy)
            backoff.failures = attempts - 1
            return backoff.failed()

        completion = BatchCompletion(config, accumulator, identity, transaction, statistics, pause)
        sender = Sender(config, cluster, accumulator, completion, statistics, clock.monotonic)
        accumulator.wake, selector.is_slow = sender.wake, sender.is_slow
        transaction_client = None
        if identity is not None:
            transaction_client = TransactionClient(
                config, cluster, accumulator, identity, transaction, sender.wake, sender.flush
            )
            sender.set_idempotence(identity, transaction, transaction_client)
        if transaction is not None:
            accumulator.on_new_batch = transaction.add_partition
        return cls(
            config,
            cluster,
            accumulator,
            sender,
            statistics,
            identity,
            transaction_client,
            transaction,
            RecordPreparation.of(settings),
        )
