"""Looks up offsets at the leaders of partitions: by timestamp, at both ends, and at the end of an epoch.

O1  Each leader gets one request for all of its partitions. Failed partitions are retried after a pause.
O2  The metadata is refreshed between retries, so that new leaders are found.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ottla.client.cluster import Cluster, Leader
from ottla.client.consumer.assigned_partition import NO_EPOCH, FetchPosition
from ottla.client.errors import ClientError, TimedOut, refused
from ottla.client.record import TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)

D = TypeVar("D")
R = TypeVar("R")

_CONSUMER = -1
# The error code of each partition.
ErrorCodes: TypeAlias = dict[TopicPartition, int]


class OffsetAndTimestamp(NamedTuple):
    """The first record that is not older than a time. The timestamp is in milliseconds since 1970."""

    offset: int
    timestamp: int
    leader_epoch: int = NO_EPOCH


class EpochEnd(NamedTuple):
    """Where the records of an epoch, or of the last one before it, end; -1 for none."""

    end_offset: int
    epoch: int


class OffsetLookup:
    """Looks up offsets for one consumer."""

    def __init__(self, settings: Mapping[str, Any], cluster: Cluster) -> None:
        self._cluster = cluster
        self._committed_only: bool = settings.get("isolation.level") == "read_committed"
        self._timeout_ms: int = settings["request.timeout.ms"]

    async def offsets(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: float
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Return what lies at each moment (-1 the end, -2 the beginning); nothing where no record is that young.

        TimedOut when some could not be asked in time, Refused when they may not be.
        """
        found: dict[TopicPartition, OffsetAndTimestamp] = {}

        async def ask(node: int, leaders: Mapping[TopicPartition, Leader]) -> ErrorCodes:
            return await self._list(node, leaders, timestamps, found)

        await self._until_done(timestamps, ask, timeout_ms, "looking up offsets")
        return found

    async def epoch_ends(
        self, positions: Mapping[TopicPartition, FetchPosition]
    ) -> dict[TopicPartition, EpochEnd]:
        """Ask the leaders for the ends of the positions' epochs, once. Failed partitions are left out."""
        by_node: dict[int, dict[TopicPartition, FetchPosition]] = {}
        for partition, position in positions.items():
            by_node.setdefault(position.leader, {})[partition] = position
        answers = await asyncio.gather(*(self._try(self._ends, *each) for each in by_node.items()))
        found: dict[TopicPartition, EpochEnd] = {}
        for answer in answers:
            if not isinstance(answer, ClientError):
                found |= answer
            elif not answer.retriable:
                raise answer
        return found

    # Asking until all have answered

    async def _until_done(
        self,
        partitions: Iterable[TopicPartition],
        ask: Callable[[int, Mapping[TopicPartition, Leader]], Awaitable[ErrorCodes]],
        timeout_ms: float,
        what: str,
    ) -> None:
        left = dict.fromkeys(partitions)
        backoff = self._cluster.connections.retry_backoff()
        last: ClientError | None = None
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while left:
                    by_node, last = await self._by_leader(left)
                    answers = await asyncio.gather(*(self._try(ask, *each) for each in by_node.items()))
                    for answer in answers:
                        if isinstance(answer, ClientError):
                            last = answer
                        else:
                            last = _note(answer, left, what) or last
                        if last is not None and not last.retriable:
                            raise last
                    if left:
                        self._cluster.request_refresh()
                        await asyncio.sleep(backoff.failed())
        except TimeoutError:
            raise TimedOut(f"{what} took longer than {timeout_ms / 1000:g} s: {last}") from last

    @staticmethod
    async def _try(ask: Callable[[int, D], Awaitable[R]], node: int, details: D) -> R | ClientError:
        # An error of one request must not cancel the others.
        try:
            return await ask(node, details)
        except ClientError as error:
            return error

    async def _by_leader(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[dict[int, dict[TopicPartition, Leader]], ClientError | None]:
        cluster = self._cluster
        missing = {each.topic for each in partitions if each.topic not in cluster.topics}
        last: ClientError | None = None
        if missing:
            try:
                await cluster.refresh(sorted(missing))
            except ClientError as error:
                last = error
        by_node: dict[int, dict[TopicPartition, Leader]] = {}
        for partition in partitions:
            leader, topic = cluster.leader(*partition), cluster.topics.get(partition.topic)
            if leader is not None:
                by_node.setdefault(leader.node, {})[partition] = leader
            elif topic is not None:
                last = refused(topic.error or ErrorCode.LEADER_NOT_AVAILABLE, about=str(partition))
        return by_node, last

    # One leader

    async def _list(
        self,
        node: int,
        leaders: Mapping[TopicPartition, Leader],
        timestamps: Mapping[TopicPartition, int],
        found: dict[TopicPartition, OffsetAndTimestamp],
    ) -> ErrorCodes:
        kind = ListOffsetsRequest.ListOffsetsTopic
        topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
        for partition, leader in leaders.items():
            topic = topics.setdefault(partition.topic, kind(name=partition.topic, partitions=[]))
            topic.partitions.append(
                kind.ListOffsetsPartition(
                    partition_index=partition.partition,
                    current_leader_epoch=leader.epoch,
                    timestamp=timestamps[partition],
                )
            )
        request = ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=1 if self._committed_only else 0,
            topics=list(topics.values()),
            timeout_ms=self._timeout_ms,
        )
        answer = await self._cluster.connections.ask(node, request, ListOffsetsResponse)
        outcome: ErrorCodes = {}
        for topic_data in answer.topics:
            for data in topic_data.partitions:
                partition = TopicPartition(topic_data.name, data.partition_index)
                # Old message formats have no timestamps, so there is no offset for a timestamp.
                timeless = data.error_code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
                outcome[partition] = 0 if timeless else data.error_code
                if not data.error_code and data.offset >= 0:
                    found[partition] = OffsetAndTimestamp(data.offset, data.timestamp, data.leader_epoch)
        return outcome

    async def _ends(
        self, node: int, positions: Mapping[TopicPartition, FetchPosition]
    ) -> dict[TopicPartition, EpochEnd]:
        kind = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
        topics: dict[str, OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = {}
        for partition, position in positions.items():
            topic = topics.setdefault(partition.topic, kind(topic=partition.topic, partitions=[]))
            topic.partitions.append(
                kind.OffsetForLeaderPartition(
                    partition=partition.partition,
                    current_leader_epoch=position.leader_epoch,
                    leader_epoch=position.epoch,
                )
            )
        request = OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=list(topics.values()))
        answer = await self._cluster.connections.ask(node, request, OffsetForLeaderEpochResponse)
        found: dict[TopicPartition, EpochEnd] = {}
        for topic_data in answer.topics:
            for data in topic_data.partitions:
                partition = TopicPartition(topic_data.topic, data.partition)
                if data.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    raise refused(data.error_code, about=f"checking the position in {partition}")
                if not data.error_code:
                    found[partition] = EpochEnd(data.end_offset, data.leader_epoch)
        return found


def _note(outcome: ErrorCodes, left: dict[TopicPartition, None], what: str) -> ClientError | None:
    """Remove the answered partitions. Return an error of the others, preferably one that is not retriable."""
    last: ClientError | None = None
    for partition, code in outcome.items():
        if not code:
            left.pop(partition, None)
        elif last is None or last.retriable:
            last = refused(code, about=f"{what} of {partition}")
    return last
