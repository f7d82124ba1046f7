"""Offsets: those that groups have committed, those that partitions have, and moving the first by the second."""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ottla.client.admin.keyed_outcomes import LEADER_MOVED
from ottla.client.admin.request_keys import by_topic, partitions_by_group
from ottla.client.admin.request_router import GROUP, RequestRouter
from ottla.client.admin.reset import Ends, Move, Reset, plan
from ottla.client.admin.response_errors import by_partition, error_of, nothing, without_none
from ottla.client.admin.topics import Topics
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration, Time, time_ms
from ottla.client.errors import ClientError, Unsupported
from ottla.client.record import OffsetAndMetadata, TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

# The version after it names topics by their ids, which an administrator need not know.
_BY_NAME = 9


class OffsetSpec(enum.IntEnum):
    """A place in a partition, where a time in milliseconds since 1970 is expected otherwise."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


_SINCE = {
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
    OffsetSpec.EARLIEST_PENDING_UPLOAD: 11,
}


class Isolation(enum.IntEnum):
    """Whether a partition ends after its last record, or before the first open transaction."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """An offset in a partition. It is -1 if there is none. The timestamp is -1 if the call did not ask for one."""

    offset: int
    timestamp: int
    leader_epoch: int


@renamed_timeouts
class Offsets:
    """Offsets, as `admin.offsets`. Every call raises Refused, TimedOut or, for several keys, SomeFailed."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    async def committed(
        self,
        group: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout: Duration | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of a group, for all partitions or for these. Those without one are left out."""
        wanted = {group: None if partitions is None else list(partitions)}
        found = await self.committed_by(wanted, require_stable=require_stable, timeout=timeout)
        return found[group]

    async def committed_by(
        self,
        groups: str | Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        timeout: Duration | None = None,
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        """Return the committed offsets of several groups, for all partitions or for those mapped to each group."""
        wanted = partitions_by_group(groups)
        kind = OffsetFetchRequest.OffsetFetchRequestGroup

        def asked(group: str) -> OffsetFetchRequest.OffsetFetchRequestGroup:
            partitions = wanted[group]
            topics = None
            if partitions is not None:
                topics = [
                    kind.OffsetFetchRequestTopics(name=name, partition_indexes=numbers)
                    for name, numbers in by_topic(partitions).items()
                ]
            return kind(group_id=group, topics=topics)

        async def ask(
            node: int | None, keys: list[str]
        ) -> dict[str, dict[TopicPartition, OffsetAndMetadata] | ClientError]:
            request = OffsetFetchRequest(groups=[asked(key) for key in keys], require_stable=require_stable)
            answer = await self._router.send(node, request, OffsetFetchResponse, newest=_BY_NAME)
            return {each.group_id: _fetched(each) for each in answer.groups}

        return await self._router.request_each(wanted, self._router.at_coordinator(GROUP), ask, timeout)

    async def alter(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout: Duration | None = None,
    ) -> None:
        """Commit offsets for a group. It must not have members."""
        kind = OffsetCommitRequest.OffsetCommitRequestTopic

        def committed(
            topic: str, number: int
        ) -> OffsetCommitRequest.OffsetCommitRequestTopic.OffsetCommitRequestPartition:
            given = offsets[TopicPartition(topic, number)]
            offset = given if isinstance(given, OffsetAndMetadata) else OffsetAndMetadata(given)
            return kind.OffsetCommitRequestPartition(
                partition_index=number,
                committed_offset=offset.offset,
                committed_leader_epoch=offset.leader_epoch,
                committed_metadata=offset.metadata,
            )

        async def ask(
            node: int | None, keys: list[TopicPartition]
        ) -> dict[TopicPartition, ClientError | None]:
            request = OffsetCommitRequest(
                group_id=group,
                topics=[
                    kind(name=topic, partitions=[committed(topic, each) for each in numbers])
                    for topic, numbers in by_topic(keys).items()
                ],
            )
            answer = await self._router.send(node, request, OffsetCommitResponse, newest=_BY_NAME)
            return by_partition(answer.topics, nothing, of=f" of group {group}")

        locate = self._router.at_coordinator_of(GROUP, group)
        retriable_codes = frozenset({ErrorCode.REBALANCE_IN_PROGRESS})
        await self._router.request_each(offsets, locate, ask, timeout, retriable_codes=retriable_codes)

    async def delete(
        self, group: str, partitions: Iterable[TopicPartition], *, timeout: Duration | None = None
    ) -> None:
        """Delete committed offsets of a group. Its members must not be subscribed to the topics."""
        kind = OffsetDeleteRequest.OffsetDeleteRequestTopic

        async def ask(
            node: int | None, keys: list[TopicPartition]
        ) -> dict[TopicPartition, ClientError | None]:
            topics = [
                kind(
                    name=topic,
                    partitions=[kind.OffsetDeleteRequestPartition(partition_index=each) for each in numbers],
                )
                for topic, numbers in by_topic(keys).items()
            ]
            request = OffsetDeleteRequest(group_id=group, topics=topics)
            answer = await self._router.send(node, request, OffsetDeleteResponse)
            refusal = error_of(answer, f"group {group}")
            if refusal is not None:
                return dict.fromkeys(keys, refusal)
            return by_partition(answer.topics, nothing, of=f" of group {group}")

        locate = self._router.at_coordinator_of(GROUP, group)
        await self._router.request_each(partitions, locate, ask, timeout)

    async def list(
        self,
        specs: Mapping[TopicPartition, Time],
        *,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        timeout: Duration | None = None,
    ) -> dict[TopicPartition, ListedOffset]:
        """Return the offset at an OffsetSpec, or of the first record at or after a time, for each partition."""
        times = {key: time_ms(spec) for key, spec in specs.items()}
        kind = ListOffsetsRequest.ListOffsetsTopic

        async def ask(
            node: int | None, keys: list[TopicPartition]
        ) -> dict[TopicPartition, ListedOffset | ClientError]:
            assert node is not None
            await self._check_version(node, [times[key] for key in keys])
            topics = [
                kind(
                    name=topic,
                    partitions=[
                        kind.ListOffsetsPartition(
                            partition_index=each, timestamp=times[TopicPartition(topic, each)]
                        )
                        for each in numbers
                    ],
                )
                for topic, numbers in by_topic(keys).items()
            ]
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=isolation,
                topics=topics,
                timeout_ms=self._router.broker_timeout_ms(timeout),
            )
            answer = await self._router.send(node, request, ListOffsetsResponse)
            return by_partition(answer.topics, _listed)

        return await self._router.request_each(
            times, self._router.at_leader, ask, timeout, retriable_codes=LEADER_MOVED
        )

    async def _check_version(self, node: int, times: Iterable[int]) -> None:
        await self._router.connections.connected(node)
        offered = self._router.connections.version(node, ListOffsetsRequest)
        for time in times:
            if time < 0 and offered < _SINCE.get(OffsetSpec(time), 0):
                word = OffsetSpec(time).name.lower().replace("_", " ")
                raise Unsupported(f"broker {node} is too old to look for the {word} offset")

    async def plan_reset(
        self,
        group: str,
        to: Reset,
        of: Iterable[str | TopicPartition] | None = None,
        *,
        timeout: Duration | None = None,
    ) -> dict[TopicPartition, Move]:
        """Return the moves that `reset` would make, and change nothing.

        `of` has the topics and partitions to reset; without it, all partitions with a committed offset are reset.
        """
        current = {key: each.offset for key, each in (await self.committed(group, timeout=timeout)).items()}
        partitions = tuple(current) if of is None else await self._partitions(of, timeout)
        begins = await self.list(dict.fromkeys(partitions, OffsetSpec.EARLIEST), timeout=timeout)
        ends = await self.list(dict.fromkeys(partitions, OffsetSpec.LATEST), timeout=timeout)
        time = to.time()
        found = {} if time is None else await self.list(dict.fromkeys(partitions, time), timeout=timeout)
        return {
            key: plan(
                to,
                key,
                Ends(begins[key].offset, ends[key].offset),
                current.get(key),
                found[key].offset if key in found else None,
            )
            for key in partitions
        }

    async def reset(
        self,
        group: str,
        to: Reset,
        of: Iterable[str | TopicPartition] | None = None,
        *,
        timeout: Duration | None = None,
    ) -> dict[TopicPartition, Move]:
        """Reset the offsets of a group as `plan_reset` shows, and return the moves. The group must not have members."""
        moves = await self.plan_reset(group, to, of, timeout=timeout)
        await self.alter(group, {key: move.target for key, move in moves.items()}, timeout=timeout)
        return moves

    async def _partitions(
        self, of: Iterable[str | TopicPartition], timeout: Duration | None
    ) -> tuple[TopicPartition, ...]:
        given = [of] if isinstance(of, str) else list(of)
        topics = [each for each in given if isinstance(each, str)]
        described = await Topics(self._router).describe(topics, timeout=timeout) if topics else {}
        return (
            *(each for each in given if isinstance(each, TopicPartition)),
            *(
                TopicPartition(topic.name, each.partition)
                for topic in described.values()
                for each in topic.partitions
            ),
        )


def _fetched(
    group: OffsetFetchResponse.OffsetFetchResponseGroup,
) -> dict[TopicPartition, OffsetAndMetadata] | ClientError:
    about = f"group {group.group_id}"
    return error_of(group, about) or without_none(by_partition(group.topics, _committed, of=f" of {about}"))


def _committed(each: Any) -> OffsetAndMetadata | None:
    if each.committed_offset < 0:
        return None
    return OffsetAndMetadata(each.committed_offset, each.metadata or "", each.committed_leader_epoch)


def _listed(each: Any) -> ListedOffset:
    return ListedOffset(each.offset, each.timestamp, each.leader_epoch)
