"""Transactions: list, describe, abort one that hangs, fence producers."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ottla.client.admin.keyed_outcomes import LEADER_MOVED
from ottla.client.admin.producers import ProducerState
from ottla.client.admin.request_keys import names_of
from ottla.client.admin.request_router import TRANSACTION, RequestRouter
from ottla.client.admin.response_errors import by_partition, error_of, nothing
from ottla.client.deprecation import deprecated, renamed_durations, renamed_timeouts
from ottla.client.duration import Duration, seconds
from ottla.client.errors import ClientError, Refused
from ottla.client.record import TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id in a list. The state is Kafka's, such as Ongoing or CompleteCommit."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A transactional id with its current or last transaction.

    `timeout` is in seconds. `start_time_ms` is in milliseconds since 1970, or None if no transaction is open.
    """

    transactional_id: str
    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout: float
    start_time_ms: int | None
    partitions: frozenset[TopicPartition]

    @property
    @deprecated("TransactionDescription.timeout_ms is deprecated: use timeout, in seconds")
    def timeout_ms(self) -> int:
        """The timeout in milliseconds. Deprecated: use `timeout`."""
        return round(self.timeout * 1000)


class FencedProducer(NamedTuple):
    """The producer id and epoch that replace those of a fenced producer."""

    producer_id: int
    producer_epoch: int


@renamed_timeouts
class Transactions:
    """Transactions, as `admin.transactions`. Every call raises Refused, TimedOut or, for several ids, SomeFailed."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    @renamed_durations(running_ms="running_longer_than")
    async def list(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        running_longer_than: Duration | None = None,
        pattern: str | None = None,
        timeout: Duration | None = None,
    ) -> dict[str, TransactionListing]:
        """Return transactional ids: all, or those that match every filter that is given.

        `pattern` is a regular expression for the id. `running_longer_than` is the least age of an open transaction.
        """
        request = ListTransactionsRequest(
            state_filters=names_of(states),
            producer_id_filters=[*producer_ids],
            duration_filter=-1 if running_longer_than is None else round(seconds(running_longer_than) * 1000),
            transactional_id_pattern=pattern,
        )

        async def ask(
            node: int | None,
            keys: list[int],
        ) -> dict[int, ListTransactionsResponse | ClientError]:
            answer = await self._router.send(node, request, ListTransactionsResponse)
            if answer.unknown_state_filters:
                strange = ", ".join(answer.unknown_state_filters)
                return {
                    keys[0]: Refused(ErrorCode.INVALID_REQUEST, f"there is no transaction state {strange}")
                }
            return {keys[0]: error_of(answer, f"broker {node}") or answer}

        answers = await self._router.request_each(
            await self._router.brokers(timeout), self._router.at_broker, ask, timeout
        )
        return {
            each.transactional_id: TransactionListing(
                each.transactional_id, each.producer_id, each.transaction_state, node
            )
            for node, answer in answers.items()
            for each in answer.transaction_states
        }

    async def describe(
        self, transactional_ids: str | Iterable[str], *, timeout: Duration | None = None
    ) -> dict[str, TransactionDescription]:
        """Return transactional ids, each with its current or last transaction."""

        async def ask(node: int | None, keys: list[str]) -> dict[str, TransactionDescription | ClientError]:
            request = DescribeTransactionsRequest(transactional_ids=keys)
            answer = await self._router.send(node, request, DescribeTransactionsResponse)
            return {
                each.transactional_id: error_of(each, f"transactional id {each.transactional_id}")
                or _described(each, -1 if node is None else node)
                for each in answer.transaction_states
            }

        locate = self._router.at_coordinator(TRANSACTION)
        return await self._router.request_each(names_of(transactional_ids), locate, ask, timeout)

    async def fence(
        self, transactional_ids: str | Iterable[str], *, timeout: Duration | None = None
    ) -> dict[str, FencedProducer]:
        """Abort the open transactions of transactional ids, and fence the producers that use them."""

        async def fence_one(node: int | None, key: str) -> FencedProducer | ClientError:
            request = InitProducerIdRequest(
                transactional_id=key, transaction_timeout_ms=self._router.broker_timeout_ms(timeout)
            )
            try:
                answer = await self._router.send(node, request, InitProducerIdResponse)
            except ClientError as error:
                return error
            refusal = error_of(answer, f"transactional id {key}")
            return refusal or FencedProducer(answer.producer_id, answer.producer_epoch)

        async def ask(node: int | None, keys: list[str]) -> dict[str, FencedProducer | ClientError]:
            async with asyncio.TaskGroup() as tasks:
                fenced = {key: tasks.create_task(fence_one(node, key)) for key in keys}
            return {key: task.result() for key, task in fenced.items()}

        locate = self._router.at_coordinator(TRANSACTION)
        return await self._router.request_each(names_of(transactional_ids), locate, ask, timeout)

    async def abort(
        self, partition: TopicPartition, producer: ProducerState, *, timeout: Duration | None = None
    ) -> None:
        """Abort a transaction that its coordinator does not know any more, in one partition.

        `producer` comes from `admin.producers.describe`. Use `fence` for a transaction that its coordinator knows:
        this call aborts it in one partition only.
        """
        marker = WriteTxnMarkersRequest.WritableTxnMarker
        request = WriteTxnMarkersRequest(
            markers=[
                marker(
                    producer_id=producer.producer_id,
                    producer_epoch=producer.producer_epoch,
                    transaction_result=False,
                    topics=[
                        marker.WritableTxnMarkerTopic(
                            name=partition.topic, partition_indexes=[partition.partition]
                        )
                    ],
                    coordinator_epoch=producer.coordinator_epoch or 0,
                )
            ]
        )

        async def ask(
            node: int | None, keys: list[TopicPartition]
        ) -> dict[TopicPartition, ClientError | None]:
            answer = await self._router.send(node, request, WriteTxnMarkersResponse)
            return by_partition([topic for each in answer.markers for topic in each.topics], nothing)

        await self._router.request_each(
            [partition], self._router.at_leader, ask, timeout, retriable_codes=LEADER_MOVED
        )


def _described(
    each: DescribeTransactionsResponse.TransactionState, coordinator: int
) -> TransactionDescription:
    return TransactionDescription(
        each.transactional_id,
        coordinator,
        each.transaction_state,
        each.producer_id,
        each.producer_epoch,
        each.transaction_timeout_ms / 1000,
        each.transaction_start_time_ms if each.transaction_start_time_ms >= 0 else None,
        frozenset(
            TopicPartition(topic.topic, number) for topic in each.topics for number in topic.partitions
        ),
    )
