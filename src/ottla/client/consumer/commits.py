"""Commits offsets, asks for committed ones, and commits from time to time without being asked.

K1  Commits reach the coordinator in the order in which they were made. One that was not waited for is not tried again:
    a later one may have overtaken it.
K2  `commit` returns after the outcome of every commit made before it is known.
K3  Who commits says which generation it is of, so that one who was left behind cannot undo what the others did.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, TypeVar

from ottla.client.cluster import NO_TOPIC_ID, Cluster
from ottla.client.consumer.coordinator import Coordinator
from ottla.client.consumer.interceptor import Interceptors
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


class Identity(NamedTuple):
    """Who commits: a member of a generation, or somebody outside of any."""

    member_id: str = ""
    generation: int = -1
    instance: str | None = None
    by_id: bool = False  # whether topics go by their ids, as in groups with epochs


class Member(Protocol):
    """Whom a commit is made for."""

    def identity(self) -> Identity:
        """Return who commits; raises CommitFailed when that is nobody for now."""
        ...

    def commit_refused(self, code: ErrorCode, identity: Identity) -> ClientError | None:
        """Take note that a commit was refused; return what to raise, or None for the code itself."""
        ...


class Turn:
    """A place in the row of commits; the next one's turn comes when this and all before it are done with."""

    def __init__(self, before: "Turn | None") -> None:
        self._before = None if before is None or before.done.done() else before
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait(self, timeout_ms: float | None) -> None:
        """Wait for those before; TimedOut when they take too long."""
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
            # Given up while waiting: those behind have to wait on.
            self._before.done.add_done_callback(lambda _: self.done.set_result(None))


class Commits:
    """The committed offsets of one consumer's group."""

    def __init__(
        self, cluster: Cluster, coordinator: Coordinator, member: Member, interceptors: Interceptors
    ) -> None:
        self._cluster = cluster
        self._coordinator = coordinator
        self._member = member
        self._interceptors = interceptors
        self._under_way: set[asyncio.Task[None]] = set()
        self._last: Turn | None = None
        self.failure: ClientError | None = None  # of a commit nobody waited for, and that nothing can follow
        self.count = 0

    # Committing

    async def commit(self, offsets: Offsets, timeout_ms: float, *, stubborn: bool = False) -> None:
        """Commit, and try again until the time is up; if `stubborn`, also when the member's epoch has just changed."""
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        with self._queue() as turn:
            await turn.wait(timeout_ms)
            if offsets:
                left_ms = max(0.0, deadline - asyncio.get_running_loop().time()) * 1000
                await self._persist(lambda: self._commit(offsets, stubborn), left_ms, "committing offsets")
                self._interceptors.commit(offsets)

    def commit_nowait(self, offsets: Offsets, callback: CommitCallback | None) -> None:
        """Commit once, and tell the outcome to `callback`."""
        task = asyncio.create_task(self._commit_once(offsets, callback, self._queue()))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    def _queue(self) -> "Turn":
        self._last = Turn(self._last)
        return self._last

    async def _commit_once(self, offsets: Offsets, callback: CommitCallback | None, turn: "Turn") -> None:
        error: ClientError | None = None
        with turn:
            try:
                await turn.wait(None)
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

    async def _commit(self, offsets: Offsets, stubborn: bool = False) -> None:
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
        for heard in answer.topics:
            for data in heard.partitions:
                if data.error_code:
                    name = heard.name or self._cluster.name_of(heard.topic_id) or ""
                    raise self._refused(data.error_code, f"{name}-{data.partition_index}", identity, stubborn)

    def _refused(self, number: int, about: str, identity: Identity, stubborn: bool) -> ClientError:
        error = refused(number, about=f"committing the offset of {about}")
        if stubborn and error.code is ErrorCode.STALE_MEMBER_EPOCH:
            # A heartbeat has brought another epoch meanwhile, and the next try is made with that.
            error.retriable = True
            return error
        if error.code in _STALE_COORDINATOR:
            self._coordinator.lose()
        told = self._member.commit_refused(error.code, identity)
        if told is not None:
            return told
        if error.code in _LEFT_BEHIND:
            return CommitFailed(
                f"offsets were not committed: the group has moved on without this consumer ({error.code.name})",
                hint="poll to join again; if this happens often, raise max.poll.interval.ms or lower max.poll.records",
            )
        return error

    # What was committed

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offset of each partition, None where there is none.

        Offsets of a transaction that has not ended are waited for, since nobody knows yet whether they count.
        """
        wanted = list(partitions)
        if not wanted:
            return {}
        return await self._persist(lambda: self._fetch(wanted), timeout_ms, "asking for committed offsets")

    async def _fetch(
        self, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        try:
            identity = self._member.identity()
        except ClientError:
            identity = Identity()
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
            self._coordinator.heed(group.error_code)
            raise refused(group.error_code, about="asking for committed offsets")
        found: dict[TopicPartition, OffsetAndMetadata | None] = {}
        ids = {self._topic_id(name): name for name in names}
        for heard in group.topics:
            name = heard.name or ids.get(getattr(heard, "topic_id", NO_TOPIC_ID), "")
            for data in heard.partitions:
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
        self, names: Mapping[str, list[int]], identity: Identity, *, many: bool
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

    # What both need

    async def _persist(self, attempt: Callable[[], Awaitable[R]], timeout_ms: float, what: str) -> R:
        try:
            return await self._cluster.persist(attempt, timeout_ms, what)
        except TimedOut as error:
            cause = error.__cause__
            if isinstance(cause, Refused) and cause.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise cause from None
            raise

    def _topic_id(self, name: str) -> bytes:
        topic = self._cluster.topics.get(name)
        return NO_TOPIC_ID if topic is None else topic.id

    async def finish(self, timeout_s: float) -> None:
        """Wait for commits that nobody waited for, and leave none behind."""
        if self._under_way:
            _, late = await asyncio.wait(self._under_way, timeout=timeout_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
