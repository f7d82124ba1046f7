"""Sends each request of an admin client to the broker that can answer it, and retries it.

Q1  A broker gets one request with all keys that it is responsible for.
Q2  After a retriable error a key is asked for again after a pause, at the broker that is responsible then, until the
    timeout of the call. Other errors are final.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

from ottla.client.admin.keyed_outcomes import ALWAYS_RETRIABLE, KeyedOutcomes
from ottla.client.admin.response_errors import error_of
from ottla.client.cluster import Cluster
from ottla.client.connections import Node
from ottla.client.duration import Duration, seconds
from ottla.client.errors import ClientError, Malformed, Refused, Unsupported, refused
from ottla.client.record import TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
M = TypeVar("M", bound=Message)

# The broker to ask about a key, or None for any broker, or the error of the look-up.
Destination: TypeAlias = int | ClientError | None
Locate = Callable[[Collection[K]], Awaitable[Mapping[K, Destination]]]
AskBroker = Callable[[int | None, list[K]], Awaitable[Mapping[K, V | ClientError]]]

GROUP, TRANSACTION = 0, 1
"""The kinds of coordinators."""


class RequestRouter:
    """Routes the requests of an admin client. `settings` are an admin client's."""

    def __init__(self, cluster: Cluster, settings: Mapping[str, Any]) -> None:
        self.cluster = cluster
        self.connections = cluster.connections
        self._timeout_ms: float = settings["default.api.timeout.ms"]
        self._request_timeout_ms: int = settings["request.timeout.ms"]
        self._retries: int = settings["retries"]

    def broker_timeout_ms(self, timeout: Duration | None) -> int:
        """Return the timeout for a broker to carry out one request."""
        return int(min(self._limit_ms(timeout), self._request_timeout_ms))

    def _limit_ms(self, timeout: Duration | None) -> float:
        return self._timeout_ms if timeout is None else seconds(timeout) * 1000

    async def send(
        self, node: int | None, request: Message, response: type[M], *, newest: int | None = None
    ) -> M:
        """Send one request once, to a broker or to any."""
        if node is None:
            return await self.cluster.ask_any(request, response)
        return await self.connections.ask(node, request, response, newest=newest)

    async def request_one(
        self,
        request: Message,
        response: type[M],
        what: str,
        timeout: Duration | None = None,
        *,
        locate: Locate[str] | None = None,
    ) -> M:
        """Send one request until it succeeds, and return the answer. Raises the error of its error code."""

        async def ask(node: int | None, keys: list[str]) -> dict[str, M | ClientError]:
            answer = await self.send(node, request, response)
            return {what: error_of(answer, what) or answer}

        return (await self.request_each([what], locate or at_any_broker, ask, timeout))[what]

    async def request_each(
        self,
        keys: Iterable[K],
        locate: Locate[K],
        ask: AskBroker[K, V],
        timeout: Duration | None = None,
        *,
        retriable_codes: frozenset[ErrorCode] = frozenset(),
    ) -> dict[K, V]:
        """Ask the broker of each key until all have an answer. `retriable_codes` are additional retriable codes."""
        outcomes_by_key: KeyedOutcomes[K, V] = KeyedOutcomes(
            keys, ALWAYS_RETRIABLE | retriable_codes, asyncio.get_running_loop().time()
        )
        limit_ms = self._limit_ms(timeout)
        backoff = self.connections.retry_backoff()
        try:
            async with asyncio.timeout(limit_ms / 1000):
                while outcomes_by_key.open and backoff.failures <= self._retries:
                    await self._round(outcomes_by_key, locate, ask)
                    if outcomes_by_key.open:
                        await asyncio.sleep(backoff.failed())
        except TimeoutError:
            outcomes_by_key.fail_open(f"within {limit_ms / 1000:g} s")
        outcomes_by_key.fail_open(f"in {self._retries + 1} tries")
        return outcomes_by_key.outcome()

    async def _round(
        self, outcomes_by_key: KeyedOutcomes[K, V], locate: Locate[K], ask: AskBroker[K, V]
    ) -> None:
        now = asyncio.get_running_loop().time()
        try:
            destinations = await locate(tuple(outcomes_by_key.open))
        except ClientError as error:
            outcomes_by_key.record(dict.fromkeys(outcomes_by_key.open, error), now)
            return
        nodes: dict[int | None, list[K]] = {}
        unanswered = Malformed("the broker did not say what became of it")
        for key in tuple(outcomes_by_key.open):
            destination = destinations.get(key, unanswered)
            if isinstance(destination, ClientError):
                outcomes_by_key.record({key: destination}, now)
            else:
                nodes.setdefault(destination, []).append(key)

        async def ask_broker(node: int | None, keys: list[K]) -> None:
            try:
                outcomes = await ask(node, keys)
            except ClientError as error:
                outcomes = dict.fromkeys(keys, error)
            outcomes_by_key.record({key: outcomes.get(key, unanswered) for key in keys}, now)

        if len(nodes) == 1:
            ((node, keys),) = nodes.items()
            await ask_broker(node, keys)
        elif nodes:
            async with asyncio.TaskGroup() as tasks:
                for node, keys in nodes.items():
                    tasks.create_task(ask_broker(node, keys))

    async def serves(self, request: type[Message]) -> bool:
        """Whether the cluster serves a request at all."""
        node = self.connections.least_loaded()
        try:
            if node is not None:
                await self.connections.connected(node)
                self.connections.version(node, request)
        except Unsupported:
            return False
        except ClientError:
            # The next request is retried, and raises the error.
            pass
        return True

    # Destinations

    async def brokers(self, timeout: Duration | None = None) -> list[int]:
        """Return the ids of all brokers."""

        async def ask(node: int | None, keys: list[str]) -> dict[str, list[int] | ClientError]:
            return {keys[0]: await self._brokers()}

        return (await self.request_each(["the brokers"], at_any_broker, ask, timeout))["the brokers"]

    async def _brokers(self) -> list[int]:
        await self.cluster.refresh()
        return [node.id for node in self.connections.nodes if node.id >= 0]

    async def at_broker(self, keys: Collection[int]) -> dict[int, Destination]:
        """Return each broker id as its own destination."""
        known = {node.id for node in self.connections.nodes}
        if not known.issuperset(keys):
            known = set(await self._brokers())
        return {key: key if key in known else unknown_broker(key) for key in keys}

    def at_coordinator(self, kind: int) -> Locate[str]:
        """Return a function that finds the coordinators of groups or transactional ids."""

        async def locate(keys: Collection[str]) -> dict[str, Destination]:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys))
            answer = await self.send(None, request, FindCoordinatorResponse)
            self._learn([Node(each.node_id, each.host, each.port) for each in answer.coordinators])
            return {
                each.key: error_of(each, f"the coordinator of {each.key}") or each.node_id
                for each in answer.coordinators
            }

        return locate

    def at_coordinator_of(self, kind: int, key: str) -> Locate[Any]:
        """Return a function that sends all keys to the coordinator of one group or transactional id."""
        lookup = self.at_coordinator(kind)

        async def locate(keys: Collection[Any]) -> dict[Any, Destination]:
            return dict.fromkeys(keys, (await lookup([key])).get(key))

        return locate

    async def at_leader(self, keys: Collection[TopicPartition]) -> dict[TopicPartition, Destination]:
        """Return the leaders of partitions."""
        names = dict.fromkeys(key.topic for key in keys)
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=False,
        )
        answer = await self.send(None, request, MetadataResponse)
        self._learn([Node(each.node_id, each.host, each.port, each.rack) for each in answer.brokers])
        topics = {each.name: each for each in answer.topics}
        leaders = {
            TopicPartition(name, each.partition_index): each.leader_id
            for name, topic in topics.items()
            if name is not None
            for each in topic.partitions
        }
        destinations: dict[TopicPartition, Destination] = {}
        for key in keys:
            topic, leader = topics.get(key.topic), leaders.get(key, -1)
            if topic is None or (not topic.error_code and key not in leaders):
                destinations[key] = refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, about=str(key))
            elif topic.error_code:
                destinations[key] = refused(topic.error_code, about=str(key))
            else:
                destinations[key] = (
                    leader if leader >= 0 else refused(ErrorCode.LEADER_NOT_AVAILABLE, about=str(key))
                )
        return destinations

    def _learn(self, nodes: Iterable[Node]) -> None:
        known = {node.id: node for node in self.connections.nodes}
        news = {node.id: node for node in nodes if node.id >= 0 and node.id not in known}
        if news:
            self.connections.learn([*known.values(), *news.values()])


async def at_any_broker(keys: Collection[K]) -> dict[K, Destination]:
    """Send all keys to any broker. It forwards requests for the controller."""
    return dict.fromkeys(keys)


def unknown_broker(node: int) -> Refused:
    """Return the error for a broker that the cluster does not have."""
    hint = "brokers are listed by admin.cluster.describe()"
    # Not BROKER_NOT_AVAILABLE: that is retriable, and a wrong id stays wrong.
    return Refused(
        ErrorCode.INVALID_REQUEST, "the cluster has no such broker", about=f"broker {node}", hint=hint
    )
