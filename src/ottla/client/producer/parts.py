"""Puts the parts of a producer together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from ottla.client.backoff import Backoff
from ottla.client.cluster import Cluster
from ottla.client.doors import Doors
from ottla.client.links import Links
from ottla.client.producer.accumulator import Accumulator
from ottla.client.producer.identity import Identity
from ottla.client.producer.partitioner import Choice, partitioner
from ottla.client.producer.preparation import Preparation
from ottla.client.producer.sender import Sender
from ottla.client.producer.settlement import Settlement
from ottla.client.producer.tally import Statistics
from ottla.client.producer.terms import Terms
from ottla.client.producer.transaction import Transaction
from ottla.client.producer.transactor import Transactor
from ottla.world.clock import RealClock
from ottla.world.entropy import RealEntropy


@dataclass(frozen=True, slots=True)
class Parts:
    """What a producer is made of. The last three are None without idempotence, transactions or anything to prepare."""

    terms: Terms
    cluster: Cluster
    accumulator: Accumulator
    sender: Sender
    statistics: Statistics
    identity: Identity | None
    transactor: Transactor | None
    transaction: Transaction | None
    preparation: Preparation | None

    @classmethod
    def of(
        cls,
        settings: Mapping[str, Any],
        cluster: Cluster | None = None,
        doors: Doors = Doors(),  # noqa: B008  # it never changes
    ) -> Self:
        """Make the parts, around a cluster that is there or one of their own; nothing is started."""
        terms, entropy, clock = Terms.of(settings), doors.entropy or RealEntropy(), doors.clock or RealClock()
        statistics = Statistics(buffer_bytes=terms.memory_bytes)
        cluster = cluster or Cluster(settings, Links(settings, doors.network, entropy))
        choice = Choice(
            partitioner(settings["partitioner.class"]),
            ignores_keys=terms.ignores_keys,
            adaptive=terms.is_adaptive,
            chance=entropy,
        )
        accumulator = Accumulator(terms, choice, clock.monotonic, clock.time_ns)
        name = terms.transactional_id
        transaction = None if name is None else Transaction(name)
        identity = Identity(transactional=name is not None) if terms.is_idempotent else None

        def pause(attempts: int) -> float:
            backoff = Backoff(settings["retry.backoff.ms"], settings["retry.backoff.max.ms"], entropy)
            backoff.failures = attempts - 1
            return backoff.failed()

        settlement = Settlement(terms, accumulator, identity, transaction, statistics, pause)
        sender = Sender(terms, cluster, accumulator, settlement, statistics, clock.monotonic)
        accumulator.wake, choice.is_slow = sender.wake, sender.is_slow
        transactor = None
        if identity is not None:
            transactor = Transactor(
                terms, cluster, accumulator, identity, transaction, sender.wake, sender.flush
            )
            sender.bear(identity, transaction, transactor)
        if transaction is not None:
            accumulator.admit = transaction.admit
        return cls(
            terms,
            cluster,
            accumulator,
            sender,
            statistics,
            identity,
            transactor,
            transaction,
            Preparation.of(settings),
        )
