"""The metadata of the cluster that a client uses: brokers, and topics with their leaders.

M1  A leader is replaced only by one of a higher epoch, whoever names it: a late answer changes nothing.
M2  All callers that wait for metadata share one request.
M3  An error does not remove metadata. A topic is removed when the cluster says that it does not exist, or when it was
    not used for `metadata.max.idle.ms`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from ottla.client.connections import ClientConnections, Node
from ottla.client.errors import ClientError, Closed, NoBroker, Refused, TimedOut, refused
from ottla.client.hedged_request import ask_hedged
from ottla.client.shared_task import start_shared, wait_shared
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse

M = TypeVar("M", bound=Message)
R = TypeVar("R")

NO_LEADER = -1
NO_TOPIC_ID = bytes(16)
_MAINTENANCE_SECONDS = 1.0
_CANONICAL = "resolve_canonical_bootstrap_servers_only"


class Leader(NamedTuple):
    """The leader of a partition, its epoch, and the brokers with replicas."""

    node: int
    epoch: int
    replicas: tuple[int, ...] = ()
    in_sync: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()


@dataclass(slots=True, eq=False)
class TopicMetadata:
    """A topic as the last metadata response described it."""

    name: str
    id: bytes = NO_TOPIC_ID
    is_internal: bool = False
    error: ErrorCode = ErrorCode.NONE
    leaders: dict[int, Leader] = field(default_factory=dict)
    used_at: float = 0.0


class Cluster:
    """The cluster behind some addresses. `open` begins, `close` ends."""

    def __init__(self, settings: Mapping[str, Any], connections: ClientConnections) -> None:
        self._settings = settings
        self.connections = connections
        self.topics: dict[str, TopicMetadata] = {}
        self._names: dict[bytes, str] = {}
        self.id: str | None = None
        self.controller: int = -1
        self.version = 0
        self._listeners: list[Callable[[], object]] = []
        self._refreshing: asyncio.Task[None] | None = None
        self._refreshed_at = 0.0
        self._wants_all = False
        self._ended = False
        self._missing: set[str] = set()
        self._maintenance: asyncio.Task[None] | None = None
        self._rebootstraps = settings["metadata.recovery.strategy"].lower() == "rebootstrap"
        self._seeds = [
            Node(-1 - number, *_address(each)) for number, each in enumerate(settings["bootstrap.servers"])
        ]

    # Life

    async def open(self, timeout_ms: float | None = None) -> None:
        """Connect to a broker. Raises NoBroker if none answers in time."""
        if self._settings["client.dns.lookup"] == _CANONICAL:
            self._seeds = await self._canonical()
        self.connections.learn(self._seeds)
        self._refreshed_at = self._now()
        limit_ms = self._settings.get("default.api.timeout.ms", 60_000) if timeout_ms is None else timeout_ms
        backoff = self.connections.retry_backoff()
        last: ClientError | None = None
        try:
            async with asyncio.timeout(limit_ms / 1000):
                while True:
                    try:
                        await self.refresh()
                        break
                    except Refused:
                        raise
                    except ClientError as error:
                        last = error
                        if not error.retriable:
                            raise
                        await asyncio.sleep(backoff.failed())
        except TimeoutError:
            tried = ", ".join(self._settings["bootstrap.servers"])
            hint = "check bootstrap.servers, and that the broker runs and its port is reachable"
            raise NoBroker(
                f"no broker of {tried} answered within {limit_ms / 1000:g} s" + (f": {last}" if last else ""),
                hint=hint,
            ) from None
        self._maintenance = asyncio.create_task(self._maintain())

    async def _canonical(self) -> list[Node]:
        """Return the bootstrap addresses with the full names of the hosts, as certificates have them."""
        found: list[tuple[str, int]] = []
        for node in self._seeds:
            try:
                found += [(name, node.port) for name in await self.connections.network.canonical(node.host)]
            except OSError:
                found.append((node.host, node.port))
        return [Node(-1 - number, *place) for number, place in enumerate(dict.fromkeys(found))]

    async def close(self) -> None:
        """Stop all tasks and close all connections."""
        self._ended = True
        for task in (self._maintenance, self._refreshing):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError, ClientError):
                    await task
        self._maintenance = None
        self.connections.close()
        # Transports close in the next turns of the loop.
        await asyncio.sleep(0)

    async def _maintain(self) -> None:
        """Refresh old metadata, and close idle connections."""
        max_age_s = self._settings["metadata.max.age.ms"] / 1000
        forgotten_s = self._settings["metadata.recovery.rebootstrap.trigger.ms"] / 1000
        while True:
            await asyncio.sleep(min(_MAINTENANCE_SECONDS, max_age_s or _MAINTENANCE_SECONDS))
            self.connections.close_idle()
            self._forget_unused()
            if self._now() - self._refreshed_at >= max_age_s:
                with suppress(ClientError):
                    await self.refresh()
            if self._rebootstraps and self._now() - self._refreshed_at >= max_age_s + forgotten_s:
                # No known broker answers: use the bootstrap servers again (KIP-1102).
                self.connections.learn(self._seeds)
                self._refreshed_at = self._now()
                self.request_refresh()

    def _forget_unused(self) -> None:
        idle_ms = self._settings.get("metadata.max.idle.ms")
        if idle_ms is None:
            return
        before = self._now() - idle_ms / 1000
        for topic in [each for each in self.topics.values() if each.used_at < before]:
            self._forget(topic.name)

    # Known metadata

    def add_listener(self, changed: Callable[[], object]) -> None:
        """Call `changed` after every change of the metadata."""
        self._listeners.append(changed)

    def remove_listener(self, changed: Callable[[], object]) -> None:
        """Stop calling it."""
        self._listeners.remove(changed)

    def leader(self, topic: str, partition: int) -> Leader | None:
        """Return the leader of a partition, or None if it is not known."""
        known = self.topics.get(topic)
        found = None if known is None else known.leaders.get(partition)
        return None if found is None or found.node == NO_LEADER else found

    def name_of(self, topic_id: bytes) -> str | None:
        """Return the name of a topic."""
        return self._names.get(topic_id)

    def node(self, node_id: int) -> Node | None:
        """Return a broker with its address."""
        return next((node for node in self.connections.nodes if node.id == node_id), None)

    async def topic(
        self, name: str, timeout_ms: float | None = None, *, auto_create: bool = True
    ) -> TopicMetadata:
        """Return a topic. Asks for it until it is known. Raises Refused or TimedOut."""
        known = self.topics.get(name)
        if known is not None and known.error is ErrorCode.NONE and known.leaders:
            known.used_at = self._now()
            return known
        limit_ms = self._settings.get("default.api.timeout.ms", 60_000) if timeout_ms is None else timeout_ms
        backoff = self.connections.retry_backoff()
        last: ClientError | None = None
        try:
            async with asyncio.timeout(limit_ms / 1000):
                while True:
                    try:
                        await self.refresh([name], auto_create=auto_create)
                        known = self.topics.get(name)
                        if known is not None and known.error is ErrorCode.NONE and known.leaders:
                            known.used_at = self._now()
                            return known
                        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known is None else known.error
                        last = refused(code, about=f"topic {name}")
                    except ClientError as error:
                        last = error
                    if not last.retriable:
                        raise last
                    await asyncio.sleep(backoff.failed())
        except TimeoutError:
            if isinstance(last, Refused):
                raise last from None
            raise TimedOut(
                f"topic {name} did not become known within {limit_ms / 1000:g} s: {last}"
            ) from None

    # Updates

    def set_all_topics(self, wanted: bool = True) -> None:
        """Ask for all topics from now on, or stop that. A subscription by pattern needs it."""
        self._wants_all = wanted

    def retain(self, names: Iterable[str]) -> None:
        """Forget all other topics, and ask for them no more."""
        kept = set(names)
        for name in [name for name in self.topics if name not in kept]:
            self._forget(name)

    def request_refresh(self) -> None:
        """Refresh the metadata soon, because a part of it was wrong."""
        if self._refreshing is None and not self._ended:
            self._refreshing = start_shared(self._refresh_soon())

    async def refresh(self, names: Iterable[str] | None = None, *, auto_create: bool | None = None) -> None:
        """Refresh the metadata of the topics in use, and of these."""
        names = list(names or ())
        # The next request includes these topics too. Otherwise frequent requests of another caller could delay them.
        self._missing.update(names)
        while self._refreshing is not None:
            running = self._refreshing
            with suppress(ClientError):
                await wait_shared(running, _closed)
            if all(name in self.topics for name in names):
                return
            if self._refreshing is running:
                self._refreshing = None
        task = self._refreshing = start_shared(self._refresh(names, auto_create))
        await wait_shared(task, _closed)

    async def _refresh_soon(self) -> None:
        await asyncio.sleep(self._settings["retry.backoff.ms"] / 1000)
        with suppress(ClientError):
            await self._refresh((), None)

    async def _refresh(self, names: Iterable[str], auto_create: bool | None) -> None:
        try:
            await self._ask_metadata(names, auto_create)
        finally:
            if self._refreshing is asyncio.current_task():
                self._refreshing = None

    async def _ask_metadata(self, names: Iterable[str], auto_create: bool | None) -> None:
        if auto_create is None:
            auto_create = bool(self._settings.get("allow.auto.create.topics", True))
        missing, self._missing = self._missing, set()
        wanted = None if self._wants_all else sorted({*self.topics, *names, *missing})
        request = MetadataRequest(
            topics=None
            if wanted is None
            else [MetadataRequest.MetadataRequestTopic(name=name) for name in wanted],
            allow_auto_topic_creation=auto_create,
        )
        self._take(await self.ask_fastest(request, MetadataResponse), wanted)

    def _take(self, answer: MetadataResponse, wanted: list[str] | None) -> None:
        if answer.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            self.connections.learn(self._seeds)
            raise NoBroker("the broker asks to begin again from bootstrap.servers")
        self._refreshed_at = self._now()
        self.id, self.controller = answer.cluster_id, answer.controller_id
        if answer.brokers:
            self.connections.learn(
                [Node(each.node_id, each.host, each.port, each.rack) for each in answer.brokers]
            )
        for each in answer.topics:
            if each.name is not None:
                self._take_topic(each.name, each)
        if wanted is None:
            listed = {each.name for each in answer.topics}
            for name in [name for name in self.topics if name not in listed]:
                self._forget(name)
        self._changed()

    def _take_topic(self, name: str, data: MetadataResponse.MetadataResponseTopic) -> None:
        error = ErrorCode(data.error_code)
        known = self.topics.get(name)
        used_at = known.used_at if known else self._now()
        if error is not ErrorCode.NONE:
            if known is None or error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._forget(name)
                self.topics[name] = TopicMetadata(name, error=error, used_at=used_at)
            return
        if known is None or known.id != data.topic_id:
            self._forget(name)
            known = TopicMetadata(name, data.topic_id, data.is_internal, used_at=used_at)
            self.topics[name] = known
            if known.id != NO_TOPIC_ID:
                self._names[known.id] = name
        known.error = error
        for part in data.partitions:
            before = known.leaders.get(part.partition_index)
            if before is not None and -1 < part.leader_epoch < before.epoch:
                continue
            known.leaders[part.partition_index] = Leader(
                part.leader_id,
                part.leader_epoch,
                tuple(part.replica_nodes),
                tuple(part.isr_nodes),
                tuple(part.offline_replicas),
            )

    def learn_leader(self, topic: str, partition: int, node: int, epoch: int, nodes: Iterable[Node]) -> bool:
        """Use a leader that a produce or fetch response named (KIP-951). Return whether it is a new one."""
        known = self.topics.get(topic)
        before = None if known is None else known.leaders.get(partition)
        if known is None or before is None or node == NO_LEADER or epoch < before.epoch:
            return False
        if epoch == before.epoch and before.node != NO_LEADER:
            return False
        merged = {each.id: each for each in self.connections.nodes} | {each.id: each for each in nodes}
        if node not in merged:
            return False
        self.connections.learn(merged.values())
        known.leaders[partition] = before._replace(node=node, epoch=epoch)
        self._changed()
        return True

    def supersede_leader(self, topic: str, partition: int, epoch: int) -> None:
        """Discard a leader with an earlier epoch than this one, which a committed offset or a record has shown."""
        known = self.topics.get(topic)
        before = None if known is None else known.leaders.get(partition)
        if known is not None and before is not None and -1 < before.epoch < epoch:
            known.leaders[partition] = before._replace(node=NO_LEADER, epoch=epoch)
            self._changed()
            self.request_refresh()

    def _forget(self, name: str) -> None:
        topic = self.topics.pop(name, None)
        if topic is not None:
            self._names.pop(topic.id, None)

    def _changed(self) -> None:
        self.version += 1
        for listener in tuple(self._listeners):
            listener()

    # Requests

    async def ask_any(self, request: Message, response: type[M], *, timeout_ms: float | None = None) -> M:
        """Ask any broker, and the next one if it cannot be reached. Raises NoBroker or the last error."""
        tried: set[int] = set()
        last: ClientError | None = None
        while (node := self.connections.least_loaded(frozenset(tried))) is not None:
            try:
                return await self.connections.ask(node, request, response, timeout_ms=timeout_ms)
            except ClientError as error:
                if not error.retriable:
                    raise
                tried.add(node)
                last = error
        raise self._no_answer_error(last)

    async def ask_fastest(self, request: Message, response: type[M]) -> M:
        """Ask any broker, and a second one too if the first is slow. Raises the same errors as `ask_any`."""
        try:
            return await ask_hedged(self.connections, request, response)
        except ClientError as error:
            if error.retriable:
                raise self._no_answer_error(error) from None
            raise

    def _no_answer_error(self, last: ClientError | None) -> ClientError:
        """Return the error after no broker answered. The next request also tries the bootstrap servers."""
        if self._rebootstraps:
            known = {(node.host, node.port) for node in self.connections.nodes}
            self.connections.learn(
                [*self.connections.nodes, *(n for n in self._seeds if (n.host, n.port) not in known)]
            )
        return NoBroker("no broker is known") if last is None else last

    async def coordinator(self, kind: int, key: str) -> int:
        """Return the broker that coordinates a group (0), a transactional id (1) or a share partition (2)."""
        request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
        node = self.connections.least_loaded()
        if node is None:
            raise NoBroker("no broker is known")
        await self.connections.connected(node)
        if self.connections.version(node, FindCoordinatorRequest) < 4:
            request = FindCoordinatorRequest(key=key, key_type=kind)
        else:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        answer = await self.connections.ask(node, request, FindCoordinatorResponse)
        found: Any = answer.coordinators[0] if answer.coordinators else answer
        if found.error_code:
            raise refused(found.error_code, found.error_message, about=f"the coordinator of {key}")
        if self.node(found.node_id) is None:
            self.connections.learn([*self.connections.nodes, Node(found.node_id, found.host, found.port)])
        return int(found.node_id)

    async def retry_until(self, attempt: Callable[[], Awaitable[R]], timeout_ms: float, what: str) -> R:
        """Retry a call until it succeeds, fails with an error that is not retriable, or the timeout is over."""
        backoff = self.connections.retry_backoff()
        last: ClientError | None = None
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while True:
                    try:
                        return await attempt()
                    except Closed:
                        raise
                    except ClientError as error:
                        if not error.retriable:
                            raise
                        last = error
                    await asyncio.sleep(backoff.failed())
        except TimeoutError:
            raise TimedOut(f"{what} did not succeed within {timeout_ms / 1000:g} s: {last}") from last

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


def _closed() -> Closed:
    return Closed("the client is closed")


def _address(text: str) -> tuple[str, int]:
    """Return host and port of `host:port` or `[v6]:port`."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise ClientError(
            f"bootstrap.servers names {text!r}, which is not an address",
            hint="write host:port, as in localhost:9092",
        )
    return host.strip("[]"), int(port)
