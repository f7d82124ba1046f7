"""Where share groups begin to read: describe, alter and delete their start offsets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ottla.client.admin.answer import by_partition, failure, nothing, present
from ottla.client.admin.asking import GROUP, Desk
from ottla.client.admin.question import by_topic, names_of, partitions_by_group
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration
from ottla.client.errors import ClientError
from ottla.client.record import TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from ottla.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)

_REBALANCING = frozenset({ErrorCode.REBALANCE_IN_PROGRESS})


@dataclass(frozen=True, slots=True)
class ShareOffset:
    """The first offset that a share group has not finished. `lag` is None if the broker does not return it."""

    start_offset: int
    leader_epoch: int
    lag: int | None = None


@renamed_timeouts
class ShareOffsets:
    """Offsets of share groups, as `admin.share_offsets`. Every call raises Refused, TimedOut or SomeFailed."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def describe(
        self,
        groups: str | Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        timeout: Duration | None = None,
    ) -> dict[str, dict[TopicPartition, ShareOffset]]:
        """Return the start offsets of groups, for all partitions or for those mapped to each group."""
        wanted = partitions_by_group(groups)
        kind = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup

        def asked(group: str) -> DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup:
            partitions = wanted[group]
            topics = None
            if partitions is not None:
                topics = [
                    kind.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=numbers)
                    for name, numbers in by_topic(partitions).items()
                ]
            return kind(group_id=group, topics=topics)

        async def ask(
            node: int | None, keys: list[str]
        ) -> dict[str, dict[TopicPartition, ShareOffset] | ClientError]:
            request = DescribeShareGroupOffsetsRequest(groups=[asked(key) for key in keys])
            answer = await self._desk.send(node, request, DescribeShareGroupOffsetsResponse)
            return {each.group_id: _offsets(each) for each in answer.groups}

        return await self._desk.settle(wanted, self._desk.at_coordinator(GROUP), ask, timeout)

    async def alter(
        self, group: str, offsets: Mapping[TopicPartition, int], *, timeout: Duration | None = None
    ) -> None:
        """Set the start offsets of a group. It must not have members."""
        kind = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic

        def altered(
            topic: str, number: int
        ) -> AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic.AlterShareGroupOffsetsRequestPartition:
            return kind.AlterShareGroupOffsetsRequestPartition(
                partition_index=number, start_offset=offsets[TopicPartition(topic, number)]
            )

        async def ask(
            node: int | None, keys: list[TopicPartition]
        ) -> dict[TopicPartition, ClientError | None]:
            request = AlterShareGroupOffsetsRequest(
                group_id=group,
                topics=[
                    kind(topic_name=topic, partitions=[altered(topic, each) for each in numbers])
                    for topic, numbers in by_topic(keys).items()
                ],
            )
            answer = await self._desk.send(node, request, AlterShareGroupOffsetsResponse)
            refusal = failure(answer, f"share group {group}")
            if refusal is not None:
                return dict.fromkeys(keys, refusal)
            return by_partition(answer.responses, nothing, of=f" of share group {group}")

        place = self._desk.at_coordinator_of(GROUP, group)
        await self._desk.settle(offsets, place, ask, timeout, again=_REBALANCING)

    async def delete(
        self, group: str, topics: str | Iterable[str], *, timeout: Duration | None = None
    ) -> None:
        """Delete the start offsets of a group for topics. It must not have members."""
        kind = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic

        async def ask(node: int | None, keys: list[str]) -> dict[str, ClientError | None]:
            request = DeleteShareGroupOffsetsRequest(
                group_id=group, topics=[kind(topic_name=key) for key in keys]
            )
            answer = await self._desk.send(node, request, DeleteShareGroupOffsetsResponse)
            refusal = failure(answer, f"share group {group}")
            if refusal is not None:
                return dict.fromkeys(keys, refusal)
            return {
                each.topic_name: failure(each, f"topic {each.topic_name} of share group {group}")
                for each in answer.responses
            }

        place = self._desk.at_coordinator_of(GROUP, group)
        await self._desk.settle(names_of(topics), place, ask, timeout, again=_REBALANCING)


def _offsets(
    group: DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup,
) -> dict[TopicPartition, ShareOffset] | ClientError:
    about = f"share group {group.group_id}"
    return failure(group, about) or present(by_partition(group.topics, _offset, of=f" of {about}"))


def _offset(each: Any) -> ShareOffset | None:
    if each.start_offset < 0:
        return None
    return ShareOffset(each.start_offset, each.leader_epoch, each.lag if each.lag >= 0 else None)
