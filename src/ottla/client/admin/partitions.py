"""Partitions: drop old records, elect leaders, move replicas to other brokers."""

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ottla.client.admin.keyed_outcomes import LEADER_MOVED, results_or_raise
from ottla.client.admin.request_keys import by_topic
from ottla.client.admin.request_router import RequestRouter, at_any_broker
from ottla.client.admin.response_errors import by_partition, error_of, nothing
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration
from ottla.client.errors import ClientError
from ottla.client.record import TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from ottla.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

EVERYTHING = -1
"""The offset that stands for the end of a partition."""


class ElectionType(enum.IntEnum):
    """Which replica can become leader: the preferred one if it is in sync, or any, even if records are lost."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class Reassignment:
    """The replicas of a partition that is being moved."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@renamed_timeouts
class Partitions:
    """Partitions, as `admin.partitions`. Every call raises Refused, TimedOut or, for several, SomeFailed."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    async def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout: Duration | None = None
    ) -> dict[TopicPartition, int]:
        """Delete the records before an offset, or EVERYTHING; return the new first offset of each partition."""
        kind = DeleteRecordsRequest.DeleteRecordsTopic

        async def ask(
            node: int | None, keys: list[TopicPartition]
        ) -> dict[TopicPartition, int | ClientError]:
            topics = [
                kind(
                    name=topic,
                    partitions=[
                        kind.DeleteRecordsPartition(
                            partition_index=each, offset=before[TopicPartition(topic, each)]
                        )
                        for each in partitions
                    ],
                )
                for topic, partitions in by_topic(keys).items()
            ]
            request = DeleteRecordsRequest(topics=topics, timeout_ms=self._router.broker_timeout_ms(timeout))
            answer = await self._router.send(node, request, DeleteRecordsResponse)
            return by_partition(answer.topics, lambda each: int(each.low_watermark))

        return await self._router.request_each(
            before, self._router.at_leader, ask, timeout, retriable_codes=LEADER_MOVED
        )

    async def elect(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        kind: ElectionType = ElectionType.PREFERRED,
        *,
        timeout: Duration | None = None,
    ) -> dict[TopicPartition, bool]:
        """Elect leaders of partitions, or of all; return for each whether it has a new leader."""
        wanted = None if partitions is None else list(partitions)
        request = ElectLeadersRequest(
            election_type=kind,
            topic_partitions=None
            if wanted is None
            else [
                ElectLeadersRequest.TopicPartitions(topic=topic, partitions=numbers)
                for topic, numbers in by_topic(wanted).items()
            ],
            timeout_ms=self._router.broker_timeout_ms(timeout),
        )
        answer = await self._router.request_one(request, ElectLeadersResponse, "the election", timeout)
        outcomes: dict[TopicPartition, bool | ClientError] = {}
        for topic in answer.replica_election_results:
            for each in topic.partition_result:
                key = TopicPartition(topic.topic, each.partition_id)
                unneeded = each.error_code == ErrorCode.ELECTION_NOT_NEEDED
                outcomes[key] = not unneeded if unneeded else error_of(each, str(key)) or True
        return results_or_raise(outcomes)

    async def reassign(
        self,
        replicas: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout: Duration | None = None,
    ) -> None:
        """Begin to move partitions to brokers, the preferred leader first. None cancels a move."""
        kind = AlterPartitionReassignmentsRequest.ReassignableTopic

        def moved(
            topic: str, number: int
        ) -> AlterPartitionReassignmentsRequest.ReassignableTopic.ReassignablePartition:
            brokers = replicas[TopicPartition(topic, number)]
            return kind.ReassignablePartition(
                partition_index=number, replicas=None if brokers is None else list(brokers)
            )

        async def ask(
            node: int | None, keys: list[TopicPartition]
        ) -> dict[TopicPartition, ClientError | None]:
            request = AlterPartitionReassignmentsRequest(
                timeout_ms=self._router.broker_timeout_ms(timeout),
                allow_replication_factor_change=allow_replication_factor_change,
                topics=[
                    kind(name=topic, partitions=[moved(topic, each) for each in partitions])
                    for topic, partitions in by_topic(keys).items()
                ],
            )
            answer = await self._router.send(node, request, AlterPartitionReassignmentsResponse)
            refusal = error_of(answer, "the reassignment")
            if refusal is not None:
                return dict.fromkeys(keys, refusal)
            return by_partition(answer.responses, nothing)

        await self._router.request_each(replicas, at_any_broker, ask, timeout)

    async def reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout: Duration | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """Return the partitions that are being moved: all, or those among `partitions`."""
        kind = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
        request = ListPartitionReassignmentsRequest(
            timeout_ms=self._router.broker_timeout_ms(timeout),
            topics=None
            if partitions is None
            else [kind(name=topic, partition_indexes=each) for topic, each in by_topic(partitions).items()],
        )
        answer = await self._router.request_one(
            request, ListPartitionReassignmentsResponse, "the list of reassignments", timeout
        )
        return {
            TopicPartition(topic.name, each.partition_index): Reassignment(
                tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
            )
            for topic in answer.topics
            for each in topic.partitions
        }
