"""Topics: create, delete, list, describe, and give them more partitions.

T1  A call that changes topics returns once a broker shows the change, or after a few seconds: brokers learn of a change
    after the controller has made it, and the caller wants to use the new topic.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

from ottla.client.admin.keyed_outcomes import LEADER_MOVED
from ottla.client.admin.request_keys import names_of
from ottla.client.admin.request_router import RequestRouter, at_any_broker
from ottla.client.admin.response_errors import error_of
from ottla.client.admin.topic import (
    CreatedTopic,
    NewPartitions,
    NewTopic,
    TopicDescription,
    TopicListing,
    creatable,
    created,
    described,
    growing,
)
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration, seconds
from ottla.client.errors import ClientError, refused
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.uuid import uuid_bytes, uuid_text

_SHOWN_S_MAX = 5.0
_Condition: TypeAlias = Callable[[MetadataResponse.MetadataResponseTopic], bool]


@renamed_timeouts
class Topics:
    """Topics, as `admin.topics`. Every call raises Refused, TimedOut or, for several topics, SomeFailed."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    async def create(
        self,
        topics: str | NewTopic | Iterable[str | NewTopic],
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, object] | None = None,
        validate_only: bool = False,
        timeout: Duration | None = None,
    ) -> dict[str, CreatedTopic]:
        """Create topics, and return them by name.

        `partitions`, `replication_factor` and `configs` are those of the topics given by name only; -1 means the
        broker's default. With `validate_only` the topics are checked and not created.
        """
        several = [topics] if isinstance(topics, str | NewTopic) else topics
        wanted = {
            each.name: each
            for each in (
                NewTopic(topic, partitions, replication_factor, configs or {})
                if isinstance(topic, str)
                else topic
                for topic in several
            )
        }

        async def ask(node: int | None, names: list[str]) -> dict[str, CreatedTopic | ClientError]:
            request = CreateTopicsRequest(
                topics=[creatable(wanted[name]) for name in names],
                timeout_ms=self._router.broker_timeout_ms(timeout),
                validate_only=validate_only,
            )
            answer = await self._router.send(node, request, CreateTopicsResponse)
            return {
                each.name: error_of(each, f"topic {each.name}") or created(each) for each in answer.topics
            }

        made = await self._router.request_each(wanted, at_any_broker, ask, timeout)
        if not validate_only:
            await self._shown(dict.fromkeys(made, _led), timeout)
        return made

    async def delete(
        self,
        topics: str | Iterable[str] = (),
        *,
        ids: str | Iterable[str] = (),
        timeout: Duration | None = None,
    ) -> None:
        """Delete topics by name or by id, with all their records."""
        state = DeleteTopicsRequest.DeleteTopicState
        wanted: dict[str, DeleteTopicsRequest.DeleteTopicState] = {
            name: state(name=name) for name in names_of(topics)
        }
        wanted |= {each: state(name=None, topic_id=uuid_bytes(each)) for each in names_of(ids)}

        async def ask(node: int | None, keys: list[str]) -> dict[str, str | ClientError | None]:
            request = DeleteTopicsRequest(
                topics=[wanted[key] for key in keys],
                # What stands for the names where ids are not yet known.
                topic_names=[key for key in keys if wanted[key].name is not None],
                timeout_ms=self._router.broker_timeout_ms(timeout),
            )
            answer = await self._router.send(node, request, DeleteTopicsResponse)
            outcomes: dict[str, str | ClientError | None] = {}
            for each in answer.responses:
                key = each.name if each.name in wanted else uuid_text(each.topic_id)
                outcomes[key or ""] = error_of(each, f"topic {key}") or each.name
            return outcomes

        gone = await self._router.request_each(wanted, at_any_broker, ask, timeout)
        await self._shown({name: _gone for name in gone.values() if name is not None}, timeout)

    async def list(
        self, *, internal: bool = False, timeout: Duration | None = None
    ) -> dict[str, TopicListing]:
        """Return all topics by name. Internal topics are left out unless `internal` is set."""
        answer = await self._router.request_one(
            MetadataRequest(topics=None, allow_auto_topic_creation=False),
            MetadataResponse,
            "the list of topics",
            timeout,
        )
        return {
            each.name: TopicListing(
                each.name, uuid_text(each.topic_id), each.is_internal, len(each.partitions)
            )
            for each in sorted(answer.topics, key=lambda topic: topic.name or "")
            if each.name is not None and (internal or not each.is_internal)
        }

    async def describe(
        self,
        topics: str | Iterable[str] = (),
        *,
        ids: str | Iterable[str] = (),
        operations: bool = False,
        page: int = 2000,
        timeout: Duration | None = None,
    ) -> dict[str, TopicDescription]:
        """Return topics with their partitions. `page` is the most partitions that a broker returns in one answer.

        With `operations`, the operations that this client may perform on each topic are returned, too.
        """
        names, by_id = names_of(topics), names_of(ids)
        # Only the answer in pages has eligible leaders, and only the other one knows ids.
        if by_id or not await self._router.serves(DescribeTopicPartitionsRequest):
            return await self._describe(names, by_id, operations, timeout)

        async def ask(node: int | None, keys: list[str]) -> dict[str, TopicDescription | ClientError]:
            return await self._describe_pages(node, keys, page, operations)

        return await self._router.request_each(names, at_any_broker, ask, timeout)

    async def _describe_pages(
        self, node: int | None, names: Sequence[str], page: int, operations: bool
    ) -> dict[str, TopicDescription | ClientError]:
        outcomes: dict[str, TopicDescription | ClientError] = {}
        cursor: DescribeTopicPartitionsRequest.Cursor | None = None
        while True:
            request = DescribeTopicPartitionsRequest(
                topics=[DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in sorted(names)],
                response_partition_limit=page,
                cursor=cursor,
            )
            answer = await self._router.send(node, request, DescribeTopicPartitionsResponse)
            for each in answer.topics:
                name = each.name or ""
                known = outcomes.get(name)
                outcomes[name] = error_of(each, f"topic {name}") or described(
                    each, known if isinstance(known, TopicDescription) else None, with_operations=operations
                )
            if answer.next_cursor is None:
                return outcomes
            following = answer.next_cursor
            cursor = DescribeTopicPartitionsRequest.Cursor(
                topic_name=following.topic_name, partition_index=following.partition_index
            )
            names = [name for name in names if name >= following.topic_name]

    async def _describe(
        self, names: Sequence[str], ids: Sequence[str], operations: bool, timeout: Duration | None
    ) -> dict[str, TopicDescription]:
        topic = MetadataRequest.MetadataRequestTopic

        async def ask(node: int | None, keys: list[str]) -> dict[str, TopicDescription | ClientError]:
            request = MetadataRequest(
                topics=[
                    topic(name=None, topic_id=uuid_bytes(key)) if key in ids else topic(name=key)
                    for key in keys
                ],
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=operations,
            )
            answer = await self._router.send(node, request, MetadataResponse)
            outcomes: dict[str, TopicDescription | ClientError] = {}
            for each in answer.topics:
                key = each.name if each.name in names else uuid_text(each.topic_id)
                outcomes[key or ""] = error_of(each, f"topic {key}") or described(
                    each, with_operations=operations
                )
            return outcomes

        return await self._router.request_each([*names, *ids], at_any_broker, ask, timeout)

    async def add_partitions(
        self,
        counts: Mapping[str, int | NewPartitions],
        *,
        validate_only: bool = False,
        timeout: Duration | None = None,
    ) -> None:
        """Add partitions to topics. `counts` has the new total number of partitions of each topic."""

        async def ask(node: int | None, names: list[str]) -> dict[str, ClientError | None]:
            request = CreatePartitionsRequest(
                topics=[growing(name, counts[name]) for name in names],
                timeout_ms=self._router.broker_timeout_ms(timeout),
                validate_only=validate_only,
            )
            answer = await self._router.send(node, request, CreatePartitionsResponse)
            return {each.name: error_of(each, f"topic {each.name}") for each in answer.results}

        await self._router.request_each(counts, at_any_broker, ask, timeout)
        if not validate_only:
            await self._shown({name: _grown(count) for name, count in counts.items()}, timeout)

    async def _shown(self, conditions: Mapping[str, _Condition], timeout: Duration | None) -> None:
        """Wait until a broker shows topics as they should be, but not for long."""

        async def ask(node: int | None, keys: list[str]) -> dict[str, bool | ClientError]:
            request = MetadataRequest(
                topics=[MetadataRequest.MetadataRequestTopic(name=key) for key in keys],
                allow_auto_topic_creation=False,
            )
            answer = await self._router.send(node, request, MetadataResponse)
            late = refused(ErrorCode.LEADER_NOT_AVAILABLE)
            return {each.name or "": conditions[each.name or ""](each) or late for each in answer.topics}

        limit = _SHOWN_S_MAX if timeout is None else min(seconds(timeout), _SHOWN_S_MAX)
        with suppress(ClientError):
            await self._router.request_each(
                conditions, at_any_broker, ask, limit, retriable_codes=LEADER_MOVED
            )


def _led(topic: MetadataResponse.MetadataResponseTopic) -> bool:
    if topic.error_code:
        # Without the permission to see the topic there is nothing to wait for.
        return topic.error_code not in LEADER_MOVED
    return all(each.leader_id >= 0 for each in topic.partitions)


def _gone(topic: MetadataResponse.MetadataResponseTopic) -> bool:
    return bool(topic.error_code)


def _grown(wanted: int | NewPartitions) -> _Condition:
    count = wanted.count if isinstance(wanted, NewPartitions) else wanted
    return lambda topic: _led(topic) and (bool(topic.error_code) or len(topic.partitions) >= count)
