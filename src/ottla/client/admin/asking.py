"""How a question reaches the broker that can answer it, and is put again until it is answered.

Q1  A broker is sent one request with all the keys that are its business.
Q2  What a broker refuses for the moment only is asked again after a pause, of whoever is right by then, until the time
    for the call is up; what is refused for good is not.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

from ottla.client.admin.answer import failure
from ottla.client.admin.errand import AGAIN, Errand
from ottla.client.cluster import Cluster
from ottla.client.duration import Duration, seconds
from ottla.client.errors import ClientError, Malformed, Refused, Unsupported, refused
from ottla.client.links import Node
from ottla.client.record import TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
M = TypeVar("M", bound=Message)

# Where a key is to be asked: a broker, or None for any; or why that cannot be known.
Where: TypeAlias = int | ClientError | None
Place = Callable[[Collection[K]], Awaitable[Mapping[K, Where]]]
Ask = Callable[[int | None, list[K]], Awaitable[Mapping[K, V | ClientError]]]

GROUP, TRANSACTION = 0, 1
"""What a coordinator coordinates."""


class Desk:
    """Where an admin client's questions are taken in. `settings` are an admin client's."""

    def __init__(self, cluster: Cluster, settings: Mapping[str, Any]) -> None:
        self.cluster = cluster
        self.links = cluster.links
        self._timeout_ms: float = settings["default.api.timeout.ms"]
        self._request_timeout_ms: int = settings["request.timeout.ms"]
        self._retries: int = settings["retries"]

    def budget_ms(self, timeout: Duration | None) -> int:
        """Return how long a broker itself may take over one request."""
        return int(min(self._limit_ms(timeout), self._request_timeout_ms))

    def _limit_ms(self, timeout: Duration | None) -> float:
        return self._timeout_ms if timeout is None else seconds(timeout) * 1000

    async def send(
        self, node: int | None, request: Message, response: type[M], *, newest: int | None = None
    ) -> M:
        """Send one request to a broker, or to any, once."""
        if node is None:
            return await self.cluster.ask_any(request, response)
        return await self.links.ask(node, request, response, newest=newest)

    async def one(
        self,
        request: Message,
        response: type[M],
        what: str,
        timeout: Duration | None = None,
        *,
        place: Place[str] | None = None,
    ) -> M:
        """Return the answer to one request, whose error code, where it has one, is the error raised."""

        async def ask(node: int | None, keys: list[str]) -> dict[str, M | ClientError]:
            answer = await self.send(node, request, response)
            return {what: failure(answer, what) or answer}

        return (await self.settle([what], place or anywhere, ask, timeout))[what]

    async def settle(
        self,
        keys: Iterable[K],
        place: Place[K],
        ask: Ask[K, V],
        timeout: Duration | None = None,
        *,
        again: frozenset[ErrorCode] = frozenset(),
    ) -> dict[K, V]:
        """Ask about each key at its place until all are answered; `again` are further codes worth another try."""
        errand: Errand[K, V] = Errand(keys, AGAIN | again, asyncio.get_running_loop().time())
        limit_ms = self._limit_ms(timeout)
        backoff = self.links.retry_backoff()
        try:
            async with asyncio.timeout(limit_ms / 1000):
                while errand.open and backoff.failures <= self._retries:
                    await self._round(errand, place, ask)
                    if errand.open:
                        await asyncio.sleep(backoff.failed())
        except TimeoutError:
            errand.give_up(f"within {limit_ms / 1000:g} s")
        errand.give_up(f"in {self._retries + 1} tries")
        return errand.outcome()

    async def _round(self, errand: Errand[K, V], place: Place[K], ask: Ask[K, V]) -> None:
        now = asyncio.get_running_loop().time()
        try:
            places = await place(tuple(errand.open))
        except ClientError as error:
            errand.take(dict.fromkeys(errand.open, error), now)
            return
        nodes: dict[int | None, list[K]] = {}
        silent = Malformed("the broker did not say what became of it")
        for key in tuple(errand.open):
            where = places.get(key, silent)
            if isinstance(where, ClientError):
                errand.take({key: where}, now)
            else:
                nodes.setdefault(where, []).append(key)

        async def visit(node: int | None, keys: list[K]) -> None:
            try:
                outcomes = await ask(node, keys)
            except ClientError as error:
                outcomes = dict.fromkeys(keys, error)
            errand.take({key: outcomes.get(key, silent) for key in keys}, now)

        if len(nodes) == 1:
            ((node, keys),) = nodes.items()
            await visit(node, keys)
        elif nodes:
            async with asyncio.TaskGroup() as visits:
                for node, keys in nodes.items():
                    visits.create_task(visit(node, keys))

    async def serves(self, request: type[Message]) -> bool:
        """Whether the cluster serves a request at all."""
        node = self.links.least_loaded()
        try:
            if node is not None:
                await self.links.connected(node)
                self.links.version(node, request)
        except Unsupported:
            return False
        except ClientError:
            # Whoever asks next will try again for longer.
            pass
        return True

    # Places

    async def brokers(self, timeout: Duration | None = None) -> list[int]:
        """Return the ids of all brokers."""

        async def ask(node: int | None, keys: list[str]) -> dict[str, list[int] | ClientError]:
            return {keys[0]: await self._brokers()}

        return (await self.settle(["the brokers"], anywhere, ask, timeout))["the brokers"]

    async def _brokers(self) -> list[int]:
        await self.cluster.refresh()
        return [node.id for node in self.links.nodes if node.id >= 0]

    async def at_broker(self, keys: Collection[int]) -> dict[int, Where]:
        """Place what is asked of the broker that it names."""
        known = {node.id for node in self.links.nodes}
        if not known.issuperset(keys):
            known = set(await self._brokers())
        return {key: key if key in known else no_broker(key) for key in keys}

    def at_coordinator(self, kind: int) -> Place[str]:
        """Place groups, or transactional ids, at their coordinators."""

        async def place(keys: Collection[str]) -> dict[str, Where]:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys))
            answer = await self.send(None, request, FindCoordinatorResponse)
            self._learn([Node(each.node_id, each.host, each.port) for each in answer.coordinators])
            return {
                each.key: failure(each, f"the coordinator of {each.key}") or each.node_id
                for each in answer.coordinators
            }

        return place

    def at_coordinator_of(self, kind: int, key: str) -> Place[Any]:
        """Place whatever is asked about a group, or about a transactional id, at its coordinator."""
        lookup = self.at_coordinator(kind)

        async def place(keys: Collection[Any]) -> dict[Any, Where]:
            return dict.fromkeys(keys, (await lookup([key])).get(key))

        return place

    async def at_leader(self, keys: Collection[TopicPartition]) -> dict[TopicPartition, Where]:
        """Place partitions at their leaders."""
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
        places: dict[TopicPartition, Where] = {}
        for key in keys:
            topic, leader = topics.get(key.topic), leaders.get(key, -1)
            if topic is None or (not topic.error_code and key not in leaders):
                places[key] = refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, about=str(key))
            elif topic.error_code:
                places[key] = refused(topic.error_code, about=str(key))
            else:
                places[key] = (
                    leader if leader >= 0 else refused(ErrorCode.LEADER_NOT_AVAILABLE, about=str(key))
                )
        return places

    def _learn(self, nodes: Iterable[Node]) -> None:
        known = {node.id: node for node in self.links.nodes}
        news = {node.id: node for node in nodes if node.id >= 0 and node.id not in known}
        if news:
            self.links.learn([*known.values(), *news.values()])


async def anywhere(keys: Collection[K]) -> dict[K, Where]:
    """Place everything at any broker, which passes on to the controller what is the controller's."""
    return dict.fromkeys(keys)


def no_broker(node: int) -> Refused:
    """Return the error for a broker that the cluster does not have."""
    hint = "brokers are listed by admin.cluster.describe()"
    # Not BROKER_NOT_AVAILABLE: it would be tried again, and an id does not become right by waiting.
    return Refused(
        ErrorCode.INVALID_REQUEST, "the cluster has no such broker", about=f"broker {node}", hint=hint
    )
