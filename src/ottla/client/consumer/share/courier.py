"""Carries share fetches and acknowledgements to brokers, and brings back records.

Y1  One request is under way with each broker: sessions count them.
Y2  Records are fetched only while the application waits for them, since their locks begin to run when they are
    acquired. Acknowledgements ride along with a fetch, or go on their own when there is none to ride with.
Y3  Every acknowledgement's fate is told: to who waits for it, and to the callback.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ottla.client.cluster import NO_TOPIC_ID, Cluster
from ottla.client.consumer.background import start
from ottla.client.consumer.bell import Bell
from ottla.client.consumer.chunk import Chunk
from ottla.client.consumer.parcel import decoder
from ottla.client.consumer.share.acknowledgement import Acks, Tip, renews
from ottla.client.consumer.share.delivery import Deliveries
from ottla.client.consumer.share.harvest import Piece, pieces_of
from ottla.client.consumer.share.session import FINAL_EPOCH, ShareSession
from ottla.client.consumer.subscription import Subscription
from ottla.client.errors import ClientError, Closed, Refused, TimedOut, refused
from ottla.client.links import Links, Node
from ottla.client.record import TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from ottla.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

Outcome = dict[Tip, ClientError | None]
AcknowledgementCallback: TypeAlias = Callable[
    [Mapping[TopicPartition, list[int]], ClientError | None], object
]
"""A callback with offsets that were acknowledged, and an error or None."""

_MOVED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
_PASSING = frozenset(
    {
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


class Errand:
    """Acknowledgements to be brought to one broker on their own."""

    def __init__(self, acks: dict[Tip, Acks], deadline: float, *, closing: bool = False) -> None:
        self.acks = acks
        self.deadline = deadline
        self.closing = closing
        self.outcome: Outcome = {}
        self.done = asyncio.get_running_loop().create_future()


class Route:
    """What there is between a share consumer and one broker."""

    def __init__(self) -> None:
        self.session = ShareSession()
        self.acks: dict[Tip, Acks] = {}  # to ride along with the next fetch
        self.errands: deque[Errand] = deque()
        self.task: asyncio.Task[None] | None = None


class Courier:
    """The ways to all brokers."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        cluster: Cluster,
        links: Links,
        subscription: Subscription,
        deliveries: Deliveries,
        bell: Bell,
        member_id: str,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._links = links
        self._subscription = subscription
        self._deliveries = deliveries
        self._bell = bell
        self._member_id = member_id
        self._group_id: str = settings["group.id"]
        self._decode = decoder(settings["key.deserializer"], settings["value.deserializer"])
        self._by_record = settings["share.acquire.mode"] == "RECORD_LIMIT"
        self._chosen: int | None = None  # the broker whose turn it is, where records are counted exactly
        self._turn = -1
        self._routes: dict[int, Route] = {}
        self._wants = False
        self._known = -1
        self.pieces: deque[tuple[Tip, int, Piece]] = deque()
        self.errors: list[Exception] = []
        self.told: AcknowledgementCallback | None = None
        self.lock_timeout_ms: int | None = None
        self.fetches = self.bytes = self.acknowledged = 0

    # The application's side

    def ride(self, acks: Mapping[int, Mapping[Tip, Acks]]) -> None:
        """Have acknowledgements go along with the next fetches."""
        for node, by_tip in acks.items():
            waiting = self._route(node).acks
            for tip, each in by_tip.items():
                waiting.setdefault(tip, {}).update(each)

    def carry(
        self, acks: Mapping[int, dict[Tip, Acks]], timeout_ms: float, *, closing: bool = False
    ) -> list[Errand]:
        """Have acknowledgements go on their own, with those that waited for a ride; end the sessions if `closing`."""
        deadline = self._now() + timeout_ms / 1000
        errands: list[Errand] = []
        nodes = set(acks) | {node for node, each in self._routes.items() if each.acks or closing}
        for node in sorted(nodes):
            route = self._route(node)
            together, route.acks = route.acks, {}
            for tip, each in acks.get(node, {}).items():
                together.setdefault(tip, {}).update(each)
            errand = Errand(together, deadline, closing=closing)
            errands.append(errand)
            route.errands.append(errand)
            self._go(node)
        return errands

    def want(self, wanted: bool) -> None:
        """Have records fetched, or no more."""
        self._wants = wanted
        if not wanted:
            return
        if self._known != self._cluster.version:
            self._known = self._cluster.version
            self._links.learn(self._cluster.links.nodes)
        nodes = dict.fromkeys(node for node, _ in self._leaders())
        if self._by_record and nodes and self._chosen not in nodes:
            order = list(nodes)
            self._turn = (self._turn + 1) % len(order)
            self._chosen = order[self._turn]
        for node in nodes | {node: None for node, each in self._routes.items() if each.acks}:
            self._go(node)

    def _leaders(self) -> list[tuple[int, Tip]]:
        found: list[tuple[int, Tip]] = []
        for partition in self._subscription.readings:
            leader, topic = self._cluster.leader(*partition), self._cluster.topics.get(partition.topic)
            if leader is None or topic is None or topic.id == NO_TOPIC_ID:
                self._cluster.stale()
            else:
                found.append((leader.node, Tip(topic.id, *partition)))
        return found

    def _route(self, node: int) -> Route:
        return self._routes.setdefault(node, Route())

    def _go(self, node: int) -> None:
        route = self._route(node)
        if route.task is None:
            route.task = start(self._serve(node, route), self._fail)

    def _fail(self, error: Exception) -> None:
        self.errors.append(error)
        self._bell.ring()

    # One broker

    async def _serve(self, node: int, route: Route) -> None:
        try:
            while True:
                if route.errands:
                    await self._acknowledge(node, route, route.errands[0])
                    errand = route.errands.popleft()
                    errand.done.set_result(errand.outcome)
                elif not self._wants or not await self._fetch(node, route):
                    return
        except Closed:
            return
        finally:
            route.task = None
            for errand in route.errands:
                if not errand.done.done():
                    errand.done.set_result(errand.outcome)
            route.errands.clear()

    async def _fetch(self, node: int, route: Route) -> bool:
        """Fetch once; whether it is worth trying again at once."""
        session, settings = route.session, self._settings
        acks, route.acks = route.acks, {}
        if session.is_new:
            # What was acquired in another session is not to be acknowledged in this one.
            self._settle_all(node, acks, refused(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            acks = {}
        wanted = [tip for leader, tip in self._leaders() if leader == node]
        ask = session.fetch(wanted, acks)
        renewing = renews(acks.values())
        idle = renewing or not wanted or (self._by_record and node != self._chosen)
        if idle and not renewing and ask.is_empty:
            return False
        request = ShareFetchRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=ask.epoch,
            max_wait_ms=0 if idle else settings["fetch.max.wait.ms"],
            min_bytes=0 if idle else settings["fetch.min.bytes"],
            max_bytes=0 if idle else settings["fetch.max.bytes"],
            max_records=0 if idle else settings["max.poll.records"],
            batch_size=0 if idle else settings["max.poll.records"],
            share_acquire_mode=1 if self._by_record else 0,
            is_renew_ack=renewing,
            topics=ask.topics,
            forgotten_topics_data=ask.forgotten,
        )
        try:
            answer = await self._links.ask(node, request, ShareFetchResponse)
        except ClientError as unheard:
            session.failed()
            await self._trouble(node, acks, unheard)
            return True
        self.fetches += 1
        if not session.heard(answer.error_code):
            error = refused(answer.error_code, answer.error_message, about=f"group {self._group_id}")
            await self._trouble(node, acks, error)
            return True
        if answer.acquisition_lock_timeout_ms > 0:
            self.lock_timeout_ms = answer.acquisition_lock_timeout_ms
        self._take(node, answer, acks)
        self._bell.ring()
        if self._by_record and node == self._chosen:
            self._chosen = None
        return not idle

    async def _trouble(self, node: int, acks: Mapping[Tip, Acks], error: ClientError) -> None:
        self._settle_all(node, acks, error)
        self._cluster.stale()
        if not error.retriable:
            self.errors.append(error)
            self._wants = False
            self._bell.ring()
        await asyncio.sleep(self._settings["retry.backoff.ms"] / 1000)

    def _take(self, node: int, answer: ShareFetchResponse, acks: dict[Tip, Acks]) -> None:
        names = {(tip.topic_id, tip.partition): tip for tip in [*self._route(node).session.partitions, *acks]}
        nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in answer.node_endpoints]
        for topic in answer.responses:
            for data in topic.partitions:
                tip = names.get((topic.topic_id, data.partition_index))
                if tip is None:
                    continue
                mine = acks.pop(tip, None)
                if mine is not None:
                    code = data.acknowledge_error_code
                    self._settle(
                        node, tip, mine, refused(code, data.acknowledge_error_message) if code else None
                    )
                if data.error_code:
                    self._refused(tip, data, nodes)
                elif data.acquired_records:
                    self._wants = False
                    self._acquire(node, tip, data)
        # Nothing was said of these.
        self._settle_all(node, acks, refused(ErrorCode.INVALID_RECORD_STATE))

    def _acquire(
        self, node: int, tip: Tip, data: ShareFetchResponse.ShareFetchableTopicResponse.PartitionData
    ) -> None:
        records = data.records or b""
        self.bytes += len(records)
        chunk = Chunk(tip.topic, tip.partition, records, 0, (), self._settings["check.crcs"])
        acquired = [
            (each.first_offset, each.last_offset, each.delivery_count) for each in data.acquired_records
        ]
        self.pieces += [(tip, node, piece) for piece in pieces_of(chunk, acquired, self._decode)]

    def _refused(self, tip: Tip, data: Any, nodes: list[Node]) -> None:
        error = refused(data.error_code, data.error_message, about=f"fetching {tip.topic}-{tip.partition}")
        if error.code in _MOVED:
            self._moved(tip, data, nodes)
        elif error.code not in _PASSING:
            self.errors.append(error)

    def _moved(self, tip: Tip, data: Any, nodes: list[Node]) -> None:
        hint = data.current_leader
        if not self._cluster.learn_leader(tip.topic, tip.partition, hint.leader_id, hint.leader_epoch, nodes):
            self._cluster.stale()

    # Acknowledgements on their own

    async def _acknowledge(self, node: int, route: Route, errand: Errand) -> None:
        backoff = self._links.retry_backoff()
        left = {tip: each for tip, each in errand.acks.items() if each}
        while left or errand.closing:
            session = route.session
            for tip in [tip for tip in left if self._has_moved(node, tip)]:
                self._finish(node, errand, tip, left.pop(tip), refused(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            if session.is_new or (not left and not errand.closing):
                break
            error = await self._say(node, session, errand, left)
            if errand.closing:
                session.failed()
            if error is None or not error.retriable or errand.closing:
                break
            if self._now() >= errand.deadline:
                for tip, each in left.items():
                    self._finish(node, errand, tip, each, TimedOut(f"acknowledging took too long: {error}"))
                return
            await asyncio.sleep(backoff.failed())
        for tip, each in left.items():
            self._finish(node, errand, tip, each, refused(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    async def _say(
        self, node: int, session: ShareSession, errand: Errand, left: dict[Tip, Acks]
    ) -> ClientError | None:
        """Send what is left once; strike off what has an outcome, and return why the rest has none."""
        request = ShareAcknowledgeRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=FINAL_EPOCH if errand.closing else session.epoch,
            is_renew_ack=renews(left.values()),
            topics=session.acknowledge(left),
        )
        try:
            answer = await self._links.ask(node, request, ShareAcknowledgeResponse)
        except ClientError as unheard:
            session.failed()
            for tip, each in left.items():
                self._finish(node, errand, tip, each, unheard)
            left.clear()
            return None
        if not session.heard(answer.error_code):
            error = refused(answer.error_code, answer.error_message, about=f"group {self._group_id}")
            if not error.retriable or session.is_new:
                for tip, each in left.items():
                    self._finish(node, errand, tip, each, error)
                left.clear()
            return error
        if answer.acquisition_lock_timeout_ms > 0:
            self.lock_timeout_ms = answer.acquisition_lock_timeout_ms
        nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in answer.node_endpoints]
        names = {(tip.topic_id, tip.partition): tip for tip in left}
        last: ClientError | None = None
        for topic in answer.responses:
            for data in topic.partitions:
                tip_now = names.pop((topic.topic_id, data.partition_index), None)
                if tip_now is None:
                    continue
                fault = refused(data.error_code, data.error_message) if data.error_code else None
                if fault is not None and fault.code in _MOVED:
                    self._moved(tip_now, data, nodes)
                elif fault is not None and fault.retriable:
                    last = fault
                    continue
                self._finish(node, errand, tip_now, left.pop(tip_now), fault)
        for tip in names.values():
            self._finish(node, errand, tip, left.pop(tip), refused(ErrorCode.INVALID_RECORD_STATE))
        return last

    def _has_moved(self, node: int, tip: Tip) -> bool:
        leader = self._cluster.leader(tip.topic, tip.partition)
        return leader is not None and leader.node != node

    # What became of them

    def _finish(self, node: int, errand: Errand, tip: Tip, acks: Acks, error: ClientError | None) -> None:
        errand.outcome[tip] = error
        self._settle(node, tip, acks, error)

    def _settle_all(self, node: int, acks: Mapping[Tip, Acks], error: Refused | ClientError) -> None:
        for tip, each in acks.items():
            self._settle(node, tip, each, error)

    def _settle(self, node: int, tip: Tip, acks: Acks, error: ClientError | None) -> None:
        if error is None:
            self.acknowledged += len(acks)
        self._deliveries.sent(tip, node, acks, succeeded=error is None)
        if self.told is not None:
            try:
                self.told({TopicPartition(tip.topic, tip.partition): sorted(acks)}, error)
            except Exception as raised:  # noqa: BLE001  # a poll raises it; what came with the same answer goes on
                self.errors.append(raised)
        self._bell.ring()

    # The end

    async def close(self) -> None:
        """Leave no task behind."""
        self._wants = False
        tasks = [each.task for each in self._routes.values() if each.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
