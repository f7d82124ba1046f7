"""Sends share fetches and acknowledgements to brokers, and collects the acquired records.

Y1  Each broker has one request in flight, because share sessions count requests.
Y2  Records are fetched only while the application waits for them, since their acquisition locks start at the fetch.
    Acknowledgements are sent with a fetch, or in their own request if there is none.
Y3  The outcome of every acknowledgement is reported to the waiting caller and to the callback.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ottla.client.cluster import NO_TOPIC_ID, Cluster
from ottla.client.connections import ClientConnections, Node
from ottla.client.consumer.background import start
from ottla.client.consumer.completed_fetch import deserialization
from ottla.client.consumer.fetched_batches import FetchedBatches
from ottla.client.consumer.share.acknowledgement import Acks, TopicIdPartition, renews
from ottla.client.consumer.share.acquired_records import AcquiredRecords, acquired_records_of
from ottla.client.consumer.share.in_flight_records import InFlightRecords
from ottla.client.consumer.share.share_session import FINAL_EPOCH, ShareSessionHandler
from ottla.client.consumer.subscription import Subscription
from ottla.client.consumer.wake_event import WakeEvent
from ottla.client.errors import ClientError, Closed, Refused, TimedOut, refused
from ottla.client.record import TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from ottla.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

Outcome = dict[TopicIdPartition, ClientError | None]
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


class AcknowledgementRequest:
    """Acknowledgements for one broker that are sent without a fetch."""

    def __init__(self, acks: dict[TopicIdPartition, Acks], deadline: float, *, closing: bool = False) -> None:
        self.acks = acks
        self.deadline = deadline
        self.closing = closing
        self.outcome: Outcome = {}
        self.done = asyncio.get_running_loop().create_future()


class BrokerShareState:
    """The state of a share consumer for one broker."""

    def __init__(self) -> None:
        self.session = ShareSessionHandler()
        self.acks: dict[TopicIdPartition, Acks] = {}  # to send with the next fetch
        self.pending_acknowledgements: deque[AcknowledgementRequest] = deque()
        self.task: asyncio.Task[None] | None = None


class ShareFetcher:
    """Fetches and acknowledges records for one share consumer."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        cluster: Cluster,
        connections: ClientConnections,
        subscription: Subscription,
        in_flight: InFlightRecords,
        wake_event: WakeEvent,
        member_id: str,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._connections = connections
        self._subscription = subscription
        self._in_flight = in_flight
        self._wake_event = wake_event
        self._member_id = member_id
        self._group_id: str = settings["group.id"]
        self._decode = deserialization(settings["key.deserializer"], settings["value.deserializer"])
        self._by_record = settings["share.acquire.mode"] == "RECORD_LIMIT"
        self._turn_node: int | None = (
            None  # the next broker to fetch from, if the acquire mode is RECORD_LIMIT
        )
        self._turn = -1
        self._brokers: dict[int, BrokerShareState] = {}
        self._is_fetching = False
        self._known = -1
        self.acquired_records: deque[tuple[TopicIdPartition, int, AcquiredRecords]] = deque()
        self.errors: list[Exception] = []
        self.acknowledgement_callback: AcknowledgementCallback | None = None
        self.lock_timeout_ms: int | None = None
        self.fetches = self.bytes = self.acknowledged = 0

    # Calls of the consumer

    def attach(self, acks: Mapping[int, Mapping[TopicIdPartition, Acks]]) -> None:
        """Send acknowledgements with the next fetches."""
        for node, by_partition in acks.items():
            waiting = self._state_of(node).acks
            for partition, each in by_partition.items():
                waiting.setdefault(partition, {}).update(each)

    def send_acknowledgements(
        self, acks: Mapping[int, dict[TopicIdPartition, Acks]], timeout_ms: float, *, closing: bool = False
    ) -> list[AcknowledgementRequest]:
        """Send these and all waiting acknowledgements now. With `closing`, end the sessions."""
        deadline = self._now() + timeout_ms / 1000
        pending_acknowledgements: list[AcknowledgementRequest] = []
        nodes = set(acks) | {node for node, each in self._brokers.items() if each.acks or closing}
        for node in sorted(nodes):
            state = self._state_of(node)
            together, state.acks = state.acks, {}
            for partition, each in acks.get(node, {}).items():
                together.setdefault(partition, {}).update(each)
            pending = AcknowledgementRequest(together, deadline, closing=closing)
            pending_acknowledgements.append(pending)
            state.pending_acknowledgements.append(pending)
            self._start_sending(node)
        return pending_acknowledgements

    def set_fetching(self, wanted: bool) -> None:
        """Start or stop fetching."""
        self._is_fetching = wanted
        if not wanted:
            return
        if self._known != self._cluster.version:
            self._known = self._cluster.version
            self._connections.learn(self._cluster.connections.nodes)
        nodes = dict.fromkeys(node for node, _ in self._leaders())
        if self._by_record and nodes and self._turn_node not in nodes:
            order = list(nodes)
            self._turn = (self._turn + 1) % len(order)
            self._turn_node = order[self._turn]
        for node in nodes | {node: None for node, each in self._brokers.items() if each.acks}:
            self._start_sending(node)

    def _leaders(self) -> list[tuple[int, TopicIdPartition]]:
        found: list[tuple[int, TopicIdPartition]] = []
        for partition in self._subscription.assignment:
            leader, topic = self._cluster.leader(*partition), self._cluster.topics.get(partition.topic)
            if leader is None or topic is None or topic.id == NO_TOPIC_ID:
                self._cluster.request_refresh()
            else:
                found.append((leader.node, TopicIdPartition(topic.id, *partition)))
        return found

    def _state_of(self, node: int) -> BrokerShareState:
        return self._brokers.setdefault(node, BrokerShareState())

    def _start_sending(self, node: int) -> None:
        state = self._state_of(node)
        if state.task is None:
            state.task = start(self._serve(node, state), self._fail)

    def _fail(self, error: Exception) -> None:
        self.errors.append(error)
        self._wake_event.set()

    # One broker

    async def _serve(self, node: int, state: BrokerShareState) -> None:
        try:
            while True:
                if state.pending_acknowledgements:
                    await self._acknowledge(node, state, state.pending_acknowledgements[0])
                    pending = state.pending_acknowledgements.popleft()
                    pending.done.set_result(pending.outcome)
                elif not self._is_fetching or not await self._fetch(node, state):
                    return
        except Closed:
            return
        finally:
            state.task = None
            for pending in state.pending_acknowledgements:
                if not pending.done.done():
                    pending.done.set_result(pending.outcome)
            state.pending_acknowledgements.clear()

    async def _fetch(self, node: int, state: BrokerShareState) -> bool:
        """Fetch once. Return whether to fetch again at once."""
        session, settings = state.session, self._settings
        acks, state.acks = state.acks, {}
        if session.is_new:
            # Records of an earlier session cannot be acknowledged in this one.
            self._complete_all(node, acks, refused(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            acks = {}
        wanted = [partition for leader, partition in self._leaders() if leader == node]
        session_request = session.fetch(wanted, acks)
        renewing = renews(acks.values())
        idle = renewing or not wanted or (self._by_record and node != self._turn_node)
        if idle and not renewing and session_request.is_empty:
            return False
        request = ShareFetchRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=session_request.epoch,
            max_wait_ms=0 if idle else settings["fetch.max.wait.ms"],
            min_bytes=0 if idle else settings["fetch.min.bytes"],
            max_bytes=0 if idle else settings["fetch.max.bytes"],
            max_records=0 if idle else settings["max.poll.records"],
            batch_size=0 if idle else settings["max.poll.records"],
            share_acquire_mode=1 if self._by_record else 0,
            is_renew_ack=renewing,
            topics=session_request.topics,
            forgotten_topics_data=session_request.forgotten,
        )
        try:
            answer = await self._connections.ask(node, request, ShareFetchResponse)
        except ClientError as lost:
            session.failed()
            await self._handle_failure(node, acks, lost)
            return True
        self.fetches += 1
        if not session.handle_response(answer.error_code):
            error = refused(answer.error_code, answer.error_message, about=f"group {self._group_id}")
            await self._handle_failure(node, acks, error)
            return True
        if answer.acquisition_lock_timeout_ms > 0:
            self.lock_timeout_ms = answer.acquisition_lock_timeout_ms
        self._take(node, answer, acks)
        self._wake_event.set()
        if self._by_record and node == self._turn_node:
            self._turn_node = None
        return not idle

    async def _handle_failure(
        self, node: int, acks: Mapping[TopicIdPartition, Acks], error: ClientError
    ) -> None:
        self._complete_all(node, acks, error)
        self._cluster.request_refresh()
        if not error.retriable:
            self.errors.append(error)
            self._is_fetching = False
            self._wake_event.set()
        await asyncio.sleep(self._settings["retry.backoff.ms"] / 1000)

    def _take(self, node: int, answer: ShareFetchResponse, acks: dict[TopicIdPartition, Acks]) -> None:
        names = {
            (partition.topic_id, partition.partition): partition
            for partition in [*self._state_of(node).session.partitions, *acks]
        }
        nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in answer.node_endpoints]
        for topic in answer.responses:
            for data in topic.partitions:
                partition = names.get((topic.topic_id, data.partition_index))
                if partition is None:
                    continue
                mine = acks.pop(partition, None)
                if mine is not None:
                    code = data.acknowledge_error_code
                    self._complete(
                        node, partition, mine, refused(code, data.acknowledge_error_message) if code else None
                    )
                if data.error_code:
                    self._refused(partition, data, nodes)
                elif data.acquired_records:
                    self._is_fetching = False
                    self._acquire(node, partition, data)
        # These are missing in the response.
        self._complete_all(node, acks, refused(ErrorCode.INVALID_RECORD_STATE))

    def _acquire(
        self,
        node: int,
        partition: TopicIdPartition,
        data: ShareFetchResponse.ShareFetchableTopicResponse.PartitionData,
    ) -> None:
        records = data.records or b""
        self.bytes += len(records)
        fetched = FetchedBatches(
            partition.topic, partition.partition, records, 0, (), self._settings["check.crcs"]
        )
        acquired = [
            (each.first_offset, each.last_offset, each.delivery_count) for each in data.acquired_records
        ]
        self.acquired_records += [
            (partition, node, acquired_part)
            for acquired_part in acquired_records_of(fetched, acquired, self._decode)
        ]

    def _refused(self, partition: TopicIdPartition, data: Any, nodes: list[Node]) -> None:
        error = refused(
            data.error_code, data.error_message, about=f"fetching {partition.topic}-{partition.partition}"
        )
        if error.code in _MOVED:
            self._moved(partition, data, nodes)
        elif error.code not in _PASSING:
            self.errors.append(error)

    def _moved(self, partition: TopicIdPartition, data: Any, nodes: list[Node]) -> None:
        hint = data.current_leader
        if not self._cluster.learn_leader(
            partition.topic, partition.partition, hint.leader_id, hint.leader_epoch, nodes
        ):
            self._cluster.request_refresh()

    # Acknowledgements without a fetch

    async def _acknowledge(self, node: int, state: BrokerShareState, pending: AcknowledgementRequest) -> None:
        backoff = self._connections.retry_backoff()
        left = {partition: each for partition, each in pending.acks.items() if each}
        while left or pending.closing:
            session = state.session
            for partition in [partition for partition in left if self._has_moved(node, partition)]:
                self._finish(
                    node, pending, partition, left.pop(partition), refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                )
            if session.is_new or (not left and not pending.closing):
                break
            error = await self._send_once(node, session, pending, left)
            if pending.closing:
                session.failed()
            if error is None or not error.retriable or pending.closing:
                break
            if self._now() >= pending.deadline:
                for partition, each in left.items():
                    self._finish(
                        node, pending, partition, each, TimedOut(f"acknowledging took too long: {error}")
                    )
                return
            await asyncio.sleep(backoff.failed())
        for partition, each in left.items():
            self._finish(node, pending, partition, each, refused(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    async def _send_once(
        self,
        node: int,
        session: ShareSessionHandler,
        pending: AcknowledgementRequest,
        left: dict[TopicIdPartition, Acks],
    ) -> ClientError | None:
        """Send the remaining acknowledgements once. Remove those with an outcome, and return the error of the rest."""
        request = ShareAcknowledgeRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=FINAL_EPOCH if pending.closing else session.epoch,
            is_renew_ack=renews(left.values()),
            topics=session.acknowledge(left),
        )
        try:
            answer = await self._connections.ask(node, request, ShareAcknowledgeResponse)
        except ClientError as lost:
            session.failed()
            for partition, each in left.items():
                self._finish(node, pending, partition, each, lost)
            left.clear()
            return None
        if not session.handle_response(answer.error_code):
            error = refused(answer.error_code, answer.error_message, about=f"group {self._group_id}")
            if not error.retriable or session.is_new:
                for partition, each in left.items():
                    self._finish(node, pending, partition, each, error)
                left.clear()
            return error
        if answer.acquisition_lock_timeout_ms > 0:
            self.lock_timeout_ms = answer.acquisition_lock_timeout_ms
        nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in answer.node_endpoints]
        names = {(partition.topic_id, partition.partition): partition for partition in left}
        last: ClientError | None = None
        for topic in answer.responses:
            for data in topic.partitions:
                partition_now = names.pop((topic.topic_id, data.partition_index), None)
                if partition_now is None:
                    continue
                fault = refused(data.error_code, data.error_message) if data.error_code else None
                if fault is not None and fault.code in _MOVED:
                    self._moved(partition_now, data, nodes)
                elif fault is not None and fault.retriable:
                    last = fault
                    continue
                self._finish(node, pending, partition_now, left.pop(partition_now), fault)
        for partition in names.values():
            self._finish(
                node, pending, partition, left.pop(partition), refused(ErrorCode.INVALID_RECORD_STATE)
            )
        return last

    def _has_moved(self, node: int, partition: TopicIdPartition) -> bool:
        leader = self._cluster.leader(partition.topic, partition.partition)
        return leader is not None and leader.node != node

    # Outcomes

    def _finish(
        self,
        node: int,
        pending: AcknowledgementRequest,
        partition: TopicIdPartition,
        acks: Acks,
        error: ClientError | None,
    ) -> None:
        pending.outcome[partition] = error
        self._complete(node, partition, acks, error)

    def _complete_all(
        self, node: int, acks: Mapping[TopicIdPartition, Acks], error: Refused | ClientError
    ) -> None:
        for partition, each in acks.items():
            self._complete(node, partition, each, error)

    def _complete(
        self, node: int, partition: TopicIdPartition, acks: Acks, error: ClientError | None
    ) -> None:
        if error is None:
            self.acknowledged += len(acks)
        self._in_flight.sent(partition, node, acks, succeeded=error is None)
        if self.acknowledgement_callback is not None:
            try:
                self.acknowledgement_callback(
                    {TopicPartition(partition.topic, partition.partition): sorted(acks)}, error
                )
            except Exception as raised:  # noqa: BLE001  # the next poll raises it; the rest of the response is still handled
                self.errors.append(raised)
        self._wake_event.set()

    # Closing

    async def close(self) -> None:
        """Stop all tasks."""
        self._is_fetching = False
        tasks = [each.task for each in self._brokers.values() if each.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
