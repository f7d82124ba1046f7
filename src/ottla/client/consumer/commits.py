"""Commits offsets, and fetches committed ones.

K1  Commits are sent in the order in which they were made. `commit_nowait` does not retry: a later commit may have been
    sent meanwhile.
K2  `commit` returns after the outcomes of all earlier commits are known.
K3  A commit has the generation of its member, so that a fenced member cannot overwrite the offsets of others.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, TypeVar

from ottla.client.cluster import NO_TOPIC_ID, Cluster
from ottla.client.consumer.group_coordinator import GroupCoordinator
from ottla.client.consumer.interceptor import ConsumerInterceptors
from ottla.client.errors import ClientError, CommitFailed, Fenced, Refused, TimedOut, refused
from ottla.client.record import OffsetAndMetadata, TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

R = TypeVar("R")

LOGGER = logging.getLogger("ottla.client")
Offsets = Mapping[TopicPartition, OffsetAndMetadata]
CommitCallback: TypeAlias = Callable[[Offsets, ClientError | None], object]
"""A callback with the outcome of a commit; the error is None when the offsets were committed."""

_NAMES_VERSION = 9
_STALE_COORDINATOR = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT}
)
_LEFT_BEHIND = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH}
)


class CommitIdentity(NamedTuple):
    """The member id and generation of a commit, or neither without a group membership."""

    member_id: str = ""
    generation: int = -1
    instance: str | None = None
    by_id: bool = False  # whether requests use topic ids, as in groups with epochs


class CommittingMember(Protocol):
    """The group member that commits."""

    def identity(self) -> CommitIdentity:
        """Return the identity for a commit. Raises CommitFailed if the consumer is not a member now."""
        ...

    def commit_refused(self, code: ErrorCode, identity: CommitIdentity) -> ClientError | None:
        """Handle a refused commit. Return the error to raise, or None for that of the code."""
        ...


class QueuedCommit:
    """A commit in the queue. The next one starts when this one and all before it have ended."""

    def __init__(self, before: "QueuedCommit | None") -> None:
        self._before = None if before is None or before.done.done() else before
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait(self, timeout_ms: float | None) -> None:
        """Wait for the commits before it. Raises TimedOut."""
        if self._before is not None:
            await asyncio.wait({self._before.done}, timeout=None if timeout_ms is None else timeout_ms / 1000)
            if not self._before.done.done():
                raise TimedOut("commits made before this one take too long")
            self._before = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is None:
            self.done.set_result(None)
        else:
            # This commit was cancelled while it waited. The ones behind it still have to wait.
            self._before.done.add_done_callback(lambda _: self.done.set_result(None))


class OffsetCommits:
    """Commits and fetches the offsets of one consumer's group."""

    def __init__(
        self,
        cluster: Cluster,
        coordinator: GroupCoordinator,
        member: CommittingMember,
        interceptors: ConsumerInterceptors,
    ) -> None:
        self._cluster = cluster
        self._coordinator = coordinator
        self._member = member
        self._interceptors = interceptors
        self._under_way: set[asyncio.Task[None]] = set()
        self._last: QueuedCommit | None = None
        self.failure: ClientError | None = None  # of a `commit_nowait`, after which no commit is possible
        self.count = 0

    # Committing

    async def commit(self, offsets: Offsets, timeout_ms: float, *, retry_stale_epoch: bool = False) -> None:
        """Commit, with retries until the timeout; `retry_stale_epoch` includes a changed member epoch."""
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        with self._enqueue() as queued:
            await queued.wait(timeout_ms)
            if offsets:
                left_ms = max(0.0, deadline - asyncio.get_running_loop().time()) * 1000
                await self._retry(
                    lambda: self._commit(offsets, retry_stale_epoch), left_ms, "committing offsets"
                )
                self._interceptors.commit(offsets)

    def commit_nowait(self, offsets: Offsets, callback: CommitCallback | None) -> None:
        """Commit once, and call `callback` with the outcome."""
        task = asyncio.create_task(self._commit_once(offsets, callback, self._enqueue()))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    def _enqueue(self) -> "QueuedCommit":
        self._last = QueuedCommit(self._last)
        return self._last

    async def _commit_once(
        self, offsets: Offsets, callback: CommitCallback | None, queued: "QueuedCommit"
    ) -> None:
        error: ClientError | None = None
        with queued:
            try:
                await queued.wait(None)
                if offsets:
                    await self._commit(offsets)
                    self._interceptors.commit(offsets)
            except ClientError as raised:
                error = raised
                if isinstance(error, Fenced):
                    self.failure = error
            except Exception as unforeseen:
                LOGGER.exception("a commit failed")
                error = ClientError(f"offsets were not committed: {unforeseen!r}")
                error.__cause__ = unforeseen
        if callback is not None:
            callback(offsets, error)
        elif error is not None:
            LOGGER.warning("offsets were not committed: %s", error)

    async def _commit(self, offsets: Offsets, retry_stale_epoch: bool = False) -> None:
        identity = self._member.identity()
        await self._coordinator.find()
        by_id = identity.by_id and all(self._topic_id(each.topic) != NO_TOPIC_ID for each in offsets)
        kind = OffsetCommitRequest.OffsetCommitRequestTopic
        topics: dict[str, OffsetCommitRequest.OffsetCommitRequestTopic] = {}
        for (name, number), (offset, metadata, epoch) in offsets.items():
            if offset < 0:
                raise CommitFailed(f"{name}-{number} cannot be at offset {offset}")
            topic = topics.setdefault(name, kind(name=name, topic_id=self._topic_id(name), partitions=[]))
            topic.partitions.append(
                kind.OffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=offset,
                    committed_leader_epoch=epoch,
                    committed_metadata=metadata,
                )
            )
        request = OffsetCommitRequest(
            group_id=self._coordinator.group_id,
            generation_id_or_member_epoch=identity.generation,
            member_id=identity.member_id,
            group_instance_id=identity.instance,
            topics=list(topics.values()),
        )
        answer = await self._coordinator.ask(
            request, OffsetCommitResponse, newest=None if by_id else _NAMES_VERSION
        )
        self.count += 1
        for topic_data in answer.topics:
            for data in topic_data.partitions:
                if data.error_code:
                    name = topic_data.name or self._cluster.name_of(topic_data.topic_id) or ""
                    raise self._refused(
                        data.error_code, f"{name}-{data.partition_index}", identity, retry_stale_epoch
                    )

    def _refused(
        self, number: int, about: str, identity: CommitIdentity, retry_stale_epoch: bool
    ) -> ClientError:
        error = refused(number, about=f"committing the offset of {about}")
        if retry_stale_epoch and error.code is ErrorCode.STALE_MEMBER_EPOCH:
            # A heartbeat has changed the epoch. The next attempt uses the new one.
            error.retriable = True
            return error
        if error.code in _STALE_COORDINATOR:
            self._coordinator.mark_unknown()
        member_error = self._member.commit_refused(error.code, identity)
        if member_error is not None:
            return member_error
        if error.code in _LEFT_BEHIND:
            return CommitFailed(
                f"offsets were not committed: the group has moved on without this consumer ({error.code.name})",
                hint="poll to join again; if this happens often, raise max.poll.interval.ms or lower max.poll.records",
            )
        return error

    # Committed offsets

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offset of each partition, None where there is none.

        Waits for the end of an open transaction that has offsets of the group.
        """
        wanted = list(partitions)
        if not wanted:
            return {}
        return await self._retry(lambda: self._fetch(wanted), timeout_ms, "asking for committed offsets")

    async def _fetch(
        self, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        try:
            identity = self._member.identity()
        except ClientError:
            identity = CommitIdentity()
        await self._coordinator.find()
        names: dict[str, list[int]] = {}
        for topic, number in partitions:
            names.setdefault(topic, []).append(number)
        by_id = identity.by_id and all(self._topic_id(name) != NO_TOPIC_ID for name in names)
        newest = None if by_id else _NAMES_VERSION
        request = self._fetch_request(names, identity, many=self._coordinator.serves(OffsetFetchRequest, 8))
        answer = await self._coordinator.ask(request, OffsetFetchResponse, newest=newest)
        group: Any = answer.groups[0] if answer.groups else answer
        if group.error_code:
            self._coordinator.handle_error(group.error_code)
            raise refused(group.error_code, about="asking for committed offsets")
        found: dict[TopicPartition, OffsetAndMetadata | None] = {}
        ids = {self._topic_id(name): name for name in names}
        for topic_data in group.topics:
            name = topic_data.name or ids.get(getattr(topic_data, "topic_id", NO_TOPIC_ID), "")
            for data in topic_data.partitions:
                partition = TopicPartition(name, data.partition_index)
                if data.error_code:
                    raise refused(data.error_code, about=f"asking for the committed offset of {partition}")
                found[partition] = (
                    None
                    if data.committed_offset < 0
                    else OffsetAndMetadata(
                        data.committed_offset, data.metadata or "", data.committed_leader_epoch
                    )
                )
        return {each: found.get(each) for each in partitions}

    def _fetch_request(
        self, names: Mapping[str, list[int]], identity: CommitIdentity, *, many: bool
    ) -> OffsetFetchRequest:
        kind = OffsetFetchRequest.OffsetFetchRequestGroup
        if not many:
            return OffsetFetchRequest(
                group_id=self._coordinator.group_id,
                topics=[
                    OffsetFetchRequest.OffsetFetchRequestTopic(name=name, partition_indexes=numbers)
                    for name, numbers in names.items()
                ],
                require_stable=True,
            )
        group = kind(
            group_id=self._coordinator.group_id,
            topics=[
                kind.OffsetFetchRequestTopics(
                    name=name, topic_id=self._topic_id(name), partition_indexes=numbers
                )
                for name, numbers in names.items()
            ],
        )
        if identity.by_id and identity.generation >= 0:
            group.member_id, group.member_epoch = identity.member_id, identity.generation
        return OffsetFetchRequest(groups=[group], require_stable=True)

    # Shared

    async def _retry(self, attempt: Callable[[], Awaitable[R]], timeout_ms: float, what: str) -> R:
        try:
            return await self._cluster.retry_until(attempt, timeout_ms, what)
        except TimedOut as error:
            cause = error.__cause__
            if isinstance(cause, Refused) and cause.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise cause from None
            raise

    def _topic_id(self, name: str) -> bytes:
        topic = self._cluster.topics.get(name)
        return NO_TOPIC_ID if topic is None else topic.id

    async def finish(self, timeout_s: float) -> None:
        """Wait for the commits of `commit_nowait`, and cancel those that take too long."""
        if self._under_way:
            _, late = await asyncio.wait(self._under_way, timeout=timeout_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
