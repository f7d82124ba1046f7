"""Where share groups begin to read: describe, alter and delete their start offsets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ottla.client.admin.request_keys import by_topic, names_of, partitions_by_group
from ottla.client.admin.request_router import GROUP, RequestRouter
from ottla.client.admin.response_errors import by_partition, error_of, nothing, without_none
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

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

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
            answer = await self._router.send(node, request, DescribeShareGroupOffsetsResponse)
            return {each.group_id: _offsets(each) for each in answer.groups}

        return await self._router.request_each(wanted, self._router.at_coordinator(GROUP), ask, timeout)

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
            answer = await self._router.send(node, request, AlterShareGroupOffsetsResponse)
            refusal = error_of(answer, f"share group {group}")
            if refusal is not None:
                return dict.fromkeys(keys, refusal)
            return by_partition(answer.responses, nothing, of=f" of share group {group}")

        locate = self._router.at_coordinator_of(GROUP, group)
        await self._router.request_each(offsets, locate, ask, timeout, retriable_codes=_REBALANCING)

    async def delete(
        self, group: str, topics: str | Iterable[str], *, timeout: Duration | None = None
    ) -> None:
        """Delete the start offsets of a group for topics. It must not have members."""
        kind = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic

        async def ask(node: int | None, keys: list[str]) -> dict[str, ClientError | None]:
            request = DeleteShareGroupOffsetsRequest(
                group_id=group, topics=[kind(topic_name=key) for key in keys]
            )
            answer = await self._router.send(node, request, DeleteShareGroupOffsetsResponse)
            refusal = error_of(answer, f"share group {group}")
            if refusal is not None:
                return dict.fromkeys(keys, refusal)
            return {
                each.topic_name: error_of(each, f"topic {each.topic_name} of share group {group}")
                for each in answer.responses
            }

        locate = self._router.at_coordinator_of(GROUP, group)
        await self._router.request_each(names_of(topics), locate, ask, timeout, retriable_codes=_REBALANCING)


def _offsets(
    group: DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup,
) -> dict[TopicPartition, ShareOffset] | ClientError:
    about = f"share group {group.group_id}"
    return error_of(group, about) or without_none(by_partition(group.topics, _offset, of=f" of {about}"))


def _offset(each: Any) -> ShareOffset | None:
    if each.start_offset < 0:
        return None
    return ShareOffset(each.start_offset, each.leader_epoch, each.lag if each.lag >= 0 else None)
