"""Offsets: those that groups have committed, those that partitions have, and moving the first by the second."""

import datetime
import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ottla.client.admin.answer import by_partition, failure, nothing, present
from ottla.client.admin.asking import GROUP, Desk
from ottla.client.admin.errand import LEADER_MOVED
from ottla.client.admin.question import by_topic, partitions_by_group
from ottla.client.admin.reset import Ends, Move, Reset, milliseconds, plan
from ottla.client.admin.topics import Topics
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
    """A place in a partition; any other number is a time, in milliseconds since 1970."""

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
    """Whether the end of a partition is that of its records, or lies before the first open transaction."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """What was found in a partition. The offset is -1 where nothing was, the timestamp where it was not asked for."""

    offset: int
    timestamp: int
    leader_epoch: int


class Offsets:
    """Offsets, as `admin.offsets`. Every call raises Refused, TimedOut or, about several keys, SomeFailed."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def committed(
        self,
        group: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what a group has committed, of all partitions or of these; those without an offset are left out."""
        wanted = {group: None if partitions is None else list(partitions)}
        found = await self.committed_by(wanted, require_stable=require_stable, timeout_ms=timeout_ms)
        return found[group]

    async def committed_by(
        self,
        groups: str | Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        """Return what each of several groups has committed, of all partitions or of those mapped to it."""
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
            answer = await self._desk.send(node, request, OffsetFetchResponse, newest=_BY_NAME)
            return {each.group_id: _fetched(each) for each in answer.groups}

        return await self._desk.settle(wanted, self._desk.at_coordinator(GROUP), ask, timeout_ms)

    async def alter(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout_ms: float | None = None,
    ) -> None:
        """Commit offsets for a group that has no members reading those topics."""
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
            answer = await self._desk.send(node, request, OffsetCommitResponse, newest=_BY_NAME)
            return by_partition(answer.topics, nothing, of=f" of group {group}")

        place = self._desk.at_coordinator_of(GROUP, group)
        again = frozenset({ErrorCode.REBALANCE_IN_PROGRESS})
        await self._desk.settle(offsets, place, ask, timeout_ms, again=again)

    async def delete(
        self, group: str, partitions: Iterable[TopicPartition], *, timeout_ms: float | None = None
    ) -> None:
        """Forget what a group has committed for partitions of topics that no member reads."""
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
            answer = await self._desk.send(node, request, OffsetDeleteResponse)
            refusal = failure(answer, f"group {group}")
            if refusal is not None:
                return dict.fromkeys(keys, refusal)
            return by_partition(answer.topics, nothing, of=f" of group {group}")

        place = self._desk.at_coordinator_of(GROUP, group)
        await self._desk.settle(partitions, place, ask, timeout_ms)

    async def list(
        self,
        specs: Mapping[TopicPartition, int | datetime.datetime],
        *,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, ListedOffset]:
        """Return the offset at a place in each partition: an OffsetSpec, or the first record at or after a time."""
        times = {key: milliseconds(spec) for key, spec in specs.items()}
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
                timeout_ms=self._desk.budget_ms(timeout_ms),
            )
            answer = await self._desk.send(node, request, ListOffsetsResponse)
            return by_partition(answer.topics, _listed)

        return await self._desk.settle(times, self._desk.at_leader, ask, timeout_ms, again=LEADER_MOVED)

    async def _check_version(self, node: int, times: Iterable[int]) -> None:
        await self._desk.links.connected(node)
        offered = self._desk.links.version(node, ListOffsetsRequest)
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
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, Move]:
        """Work out where a group's offsets would go: of all partitions it has committed, or of topics and partitions.

        Nothing is changed; `reset` does that.
        """
        current = {
            key: each.offset for key, each in (await self.committed(group, timeout_ms=timeout_ms)).items()
        }
        partitions = tuple(current) if of is None else await self._partitions(of, timeout_ms)
        begins = await self.list(dict.fromkeys(partitions, OffsetSpec.EARLIEST), timeout_ms=timeout_ms)
        ends = await self.list(dict.fromkeys(partitions, OffsetSpec.LATEST), timeout_ms=timeout_ms)
        time = to.time()
        found = (
            {} if time is None else await self.list(dict.fromkeys(partitions, time), timeout_ms=timeout_ms)
        )
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
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, Move]:
        """Move a group's offsets as `plan_reset` works out, and return the moves. The group must have no members."""
        moves = await self.plan_reset(group, to, of, timeout_ms=timeout_ms)
        await self.alter(group, {key: move.target for key, move in moves.items()}, timeout_ms=timeout_ms)
        return moves

    async def _partitions(
        self, of: Iterable[str | TopicPartition], timeout_ms: float | None
    ) -> tuple[TopicPartition, ...]:
        given = [of] if isinstance(of, str) else list(of)
        topics = [each for each in given if isinstance(each, str)]
        described = await Topics(self._desk).describe(topics, timeout_ms=timeout_ms) if topics else {}
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
    return failure(group, about) or present(by_partition(group.topics, _committed, of=f" of {about}"))


def _committed(each: Any) -> OffsetAndMetadata | None:
    if each.committed_offset < 0:
        return None
    return OffsetAndMetadata(each.committed_offset, each.metadata or "", each.committed_leader_epoch)


def _listed(each: Any) -> ListedOffset:
    return ListedOffset(each.offset, each.timestamp, each.leader_epoch)
