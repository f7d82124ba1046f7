"""Producers that partitions remember."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ottla.client.admin.keyed_outcomes import LEADER_MOVED
from ottla.client.admin.request_keys import by_topic
from ottla.client.admin.request_router import Destination, RequestRouter
from ottla.client.admin.response_errors import by_partition
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration
from ottla.client.errors import ClientError
from ottla.client.record import TopicPartition
from ottla.wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse


@dataclass(frozen=True, slots=True)
class ProducerState:
    """The state of a producer in a partition. `transaction_start_offset` is None unless it has an open transaction.

    `last_timestamp` is in milliseconds since 1970.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int | None
    transaction_start_offset: int | None


@renamed_timeouts
class Producers:
    """Producers, as `admin.producers`."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    async def describe(
        self,
        partitions: Iterable[TopicPartition],
        *,
        broker: int | None = None,
        timeout: Duration | None = None,
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        """Return the active producers of partitions, as their leaders know them, or as `broker` does.

        Raises Refused, TimedOut or, for several partitions, SomeFailed.
        """

        async def at_that_broker(keys: Collection[TopicPartition]) -> dict[TopicPartition, Destination]:
            assert broker is not None
            return dict.fromkeys(keys, (await self._router.at_broker([broker]))[broker])

        async def ask(
            node: int | None, keys: list[TopicPartition]
        ) -> dict[TopicPartition, tuple[ProducerState, ...] | ClientError]:
            request = DescribeProducersRequest(
                topics=[
                    DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=numbers)
                    for topic, numbers in by_topic(keys).items()
                ]
            )
            answer = await self._router.send(node, request, DescribeProducersResponse)
            return by_partition(answer.topics, lambda each: tuple(map(_state, each.active_producers)))

        if broker is not None:
            return await self._router.request_each(partitions, at_that_broker, ask, timeout)
        return await self._router.request_each(
            partitions, self._router.at_leader, ask, timeout, retriable_codes=LEADER_MOVED
        )


def _state(
    each: DescribeProducersResponse.TopicResponse.PartitionResponse.ProducerState,
) -> ProducerState:
    return ProducerState(
        each.producer_id,
        each.producer_epoch,
        each.last_sequence,
        each.last_timestamp,
        each.coordinator_epoch if each.coordinator_epoch >= 0 else None,
        each.current_txn_start_offset if each.current_txn_start_offset >= 0 else None,
    )
