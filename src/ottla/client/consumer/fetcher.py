"""Fetches records from brokers, ahead of the application.

G1  Each broker has one fetch in flight. The next is sent after its response, even if the application does not poll,
    unless too many bytes from this broker are in the fetch buffer.
G2  So for each broker at most one response (fetch.max.bytes) and one partition of another (max.partition.fetch.bytes)
    are in memory.
G3  Each fetch names all fetchable partitions of its broker, so no partition waits because another one has data.
G4  After an error of a partition only this partition pauses.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from ottla.client.cluster import NO_TOPIC_ID, Cluster
from ottla.client.connections import ClientConnections, Node
from ottla.client.consumer.assigned_partition import NO_NODE, AssignedPartition
from ottla.client.consumer.background import start
from ottla.client.consumer.completed_fetch import CompletedFetch, deserialization, end_of_last_batch
from ottla.client.consumer.fetch_buffer import NEVER, FetchBuffer
from ottla.client.consumer.fetch_session import (
    FetchSessionHandler,
    FetchSessionRequest,
    PartitionData,
    WantedPartition,
)
from ottla.client.consumer.fetched_batches import FetchedBatches
from ottla.client.consumer.offset_reset import NONE, parse_reset
from ottla.client.consumer.subscription import Subscription
from ottla.client.consumer.wake_event import WakeEvent
from ottla.client.errors import ClientError, Closed, NoOffset, refused
from ottla.client.record import TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.fetch import FetchRequest, FetchResponse

_CLOSE_MS = 1_000
# Errors that mean that the metadata is out of date.
_STALE = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
_PASSING = frozenset({ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR})


class Fetcher:
    """Keeps the fetch buffer of a consumer filled."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        cluster: Cluster,
        connections: ClientConnections,
        subscription: Subscription,
        wake_event: WakeEvent,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._connections = connections
        self._subscription = subscription
        self._wake_event = wake_event
        self.buffer = FetchBuffer(
            subscription.is_fetchable,
            deserialization(settings["key.deserializer"], settings["value.deserializer"]),
        )
        self._reset_to = parse_reset(settings["auto.offset.reset"])
        self._committed_only: bool = settings["isolation.level"] == "read_committed"
        self._partition_bytes_max: int = settings["max.partition.fetch.bytes"]
        self._ahead_bytes = min(self._partition_bytes_max, settings["fetch.max.bytes"])
        self._backoff_s: float = settings["retry.backoff.ms"] / 1000
        self._sessions: dict[int, FetchSessionHandler] = {}
        self._under_way: dict[int, asyncio.Task[None]] = {}
        self._nodes: frozenset[int] = frozenset()  # brokers of fetchable partitions
        self._errors: list[Exception] = []
        self._timer: asyncio.TimerHandle | None = None
        self._known = -1  # version of the metadata that the leaders come from
        self._closed = False
        self.fetches = 0
        self.bytes = 0

    # Calls of the consumer

    def raise_error(self) -> None:
        """Raise the next error that is not retriable."""
        if self._errors:
            raise self._errors.pop(0)

    def refill(self) -> None:
        """Send more fetches if the buffer has room. This is cheap enough for every poll."""
        held, under_way = self.buffer.bytes_of, self._under_way
        for node in self._nodes:
            if node not in under_way and held.get(node, 0) <= self._ahead_bytes:
                self.send()
                return

    # Requests

    def send(self) -> None:
        """Send a fetch to every broker that has fetchable partitions and no fetch in flight."""
        if self._closed:
            return
        self.learn_leaders()
        now = asyncio.get_running_loop().time()
        later = NEVER
        topics, under_way = self._cluster.topics, self._under_way
        nodes: set[int] = set()
        by_node: dict[int, dict[TopicPartition, WantedPartition]] = {}
        for partition, assigned in self._subscription.assignment.items():
            if not self._subscription.is_fetchable(assigned):
                continue
            if assigned.retry_at > now:
                later = min(later, assigned.retry_at)
                continue
            node = self._node_for(assigned, now)
            nodes.add(node)
            if node == NO_NODE or node in under_way:
                continue
            topic = topics.get(partition.topic)
            assert assigned.position is not None
            by_node.setdefault(node, {})[partition] = WantedPartition(
                NO_TOPIC_ID if topic is None else topic.id,
                assigned.fetch_offset,
                assigned.position.leader_epoch,
                self._partition_bytes_max,
            )
        for node, wanted in by_node.items():
            if self.buffer.bytes_of.get(node, 0) <= self._ahead_bytes:
                # The ids are read now: the application may seek before the task starts.
                position_ids = {
                    partition: self._subscription.assignment[partition].position_id for partition in wanted
                }
                under_way[node] = start(self._fetch(node, wanted, position_ids), self._fail)
        self._nodes = frozenset(nodes - {NO_NODE})
        self._wake_at(later)

    def learn_leaders(self) -> None:
        """Use the leaders of new metadata."""
        if self._known == self._cluster.version:
            return
        self._known = self._cluster.version
        self._connections.learn(self._cluster.connections.nodes)
        for partition, assigned in self._subscription.assignment.items():
            leader = self._cluster.leader(*partition)
            if leader is not None:
                assigned.set_leader(leader.node, leader.epoch)

    def _node_for(self, assigned: AssignedPartition, now: float) -> int:
        position = assigned.position
        assert position is not None
        leader = self._cluster.leader(*assigned.partition)
        if leader is None or position.leader == NO_NODE:
            if leader is not None:
                assigned.set_leader(leader.node, leader.epoch)
                return leader.node if assigned.is_fetchable else NO_NODE
            if assigned.partition.topic in self._cluster.topics:
                self._cluster.request_refresh()
            return NO_NODE
        replica = assigned.replica_to_read(now)
        if replica == NO_NODE:
            return position.leader
        if replica in leader.replicas and replica not in leader.offline and self._cluster.node(replica):
            return replica
        assigned.clear_preferred_replica()
        self._cluster.request_refresh()
        return position.leader

    def _wake_at(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if when != NEVER:
            self._timer = asyncio.get_running_loop().call_at(when, self.send)

    async def _fetch(
        self,
        node: int,
        wanted: dict[TopicPartition, WantedPartition],
        position_ids: dict[TopicPartition, int],
    ) -> None:
        session = self._sessions.setdefault(node, FetchSessionHandler())
        try:
            await self._connections.connected(node)
            session_request = session.build_request(wanted)
            version = self._connections.version(node, FetchRequest, newest=session_request.newest)
            answer = await self._connections.ask(
                node, self._request(session_request), FetchResponse, newest=session_request.newest
            )
            self.fetches += 1
            self._handle_response(node, session, answer, version, wanted, position_ids)
        except Closed:
            return
        except ClientError as error:
            self._failed(session, error)
        except asyncio.CancelledError:
            session.failed()
            raise
        finally:
            del self._under_way[node]
        self._wake_event.set()
        self.send()

    def _request(self, session_request: FetchSessionRequest) -> FetchRequest:
        settings = self._settings
        return FetchRequest(
            max_wait_ms=settings["fetch.max.wait.ms"],
            min_bytes=settings["fetch.min.bytes"],
            max_bytes=settings["fetch.max.bytes"],
            isolation_level=1 if self._committed_only else 0,
            session_id=session_request.session_id,
            session_epoch=session_request.epoch,
            topics=session_request.topics,
            forgotten_topics_data=session_request.forgotten,
            rack_id=settings["client.rack"],
        )

    def _fail(self, error: Exception) -> None:
        self._errors.append(error)
        self._wake_event.set()

    # Responses

    def _failed(self, session: FetchSessionHandler, error: ClientError) -> None:
        session.failed()
        for partition in session.partitions:
            assigned = self._subscription.assignment.get(partition)
            if assigned is not None:
                assigned.clear_preferred_replica()
                assigned.retry_at = max(assigned.retry_at, self._now() + self._backoff_s)
        if error.retriable:
            self._cluster.request_refresh()
        else:
            self._errors.append(error)

    def _handle_response(
        self,
        node: int,
        session: FetchSessionHandler,
        answer: FetchResponse,
        version: int,
        wanted: Mapping[TopicPartition, WantedPartition],
        position_ids: Mapping[TopicPartition, int],
    ) -> None:
        found = session.handle_response(answer, version)
        if found is None:
            if answer.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR:
                self._cluster.request_refresh()
            return
        nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in answer.node_endpoints]
        for partition, data in found.items():
            assigned = self._subscription.assignment.get(partition)
            if assigned is None or assigned.position_id != position_ids.get(partition):
                continue
            if data.error_code:
                self._refused(assigned, data, wanted[partition].offset, nodes)
                self._subscription.move_to_end(partition)
            else:
                self._take(node, assigned, data, wanted[partition].offset)

    def _take(self, node: int, assigned: AssignedPartition, data: PartitionData, offset: int) -> None:
        if data.high_watermark >= 0:
            assigned.high_watermark = data.high_watermark
        if data.last_stable_offset >= 0:
            assigned.last_stable_offset = data.last_stable_offset
        if data.log_start_offset >= 0:
            assigned.log_start_offset = data.log_start_offset
        if data.preferred_read_replica >= 0:
            assigned.set_preferred_replica(
                data.preferred_read_replica, self._now() + self._settings["metadata.max.age.ms"] / 1000
            )
        records = data.records
        if not records:
            return
        self.bytes += len(records)
        aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
        fetched = FetchedBatches(*assigned.partition, records, offset, aborted, self._settings["check.crcs"])
        last = end_of_last_batch(records)
        if last is None:
            # The error is raised when the fetch is opened. Until then the partition is not fetched.
            last = (offset, -1)
            assigned.retry_at = NEVER
        assigned.fetch_offset = max(last[0], offset)
        self.buffer.put(CompletedFetch(assigned, node, fetched, *last))
        self._subscription.move_to_end(assigned.partition)

    def _refused(
        self, assigned: AssignedPartition, data: PartitionData, offset: int, nodes: list[Node]
    ) -> None:
        partition = assigned.partition
        error = refused(data.error_code, about=f"fetching {partition} at offset {offset}")
        code = error.code
        assigned.retry_at = self._now() + self._backoff_s
        if code in _STALE:
            assigned.clear_preferred_replica()
            hint = data.current_leader
            if hint is not None and self._cluster.learn_leader(
                *partition, hint.leader_id, hint.leader_epoch, nodes
            ):
                self.learn_leaders()
            else:
                self._cluster.request_refresh()
        elif code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range(assigned, offset)
        elif code not in _PASSING:
            self._errors.append(error)

    def _out_of_range(self, assigned: AssignedPartition, offset: int) -> None:
        if assigned.clear_preferred_replica():
            assigned.retry_at = 0.0
            return
        position = assigned.position
        if position is None or position.offset != offset:
            return  # this was a fetch ahead of the position; it is repeated from the position
        if self._reset_to is not NONE:
            assigned.reset(self._reset_to)
            return
        assigned.retry_at = NEVER
        self._errors.append(
            NoOffset(
                f"{assigned.partition} has no offset {offset}, and auto.offset.reset is none",
                hint="seek to an offset that exists, or set auto.offset.reset to earliest or latest",
            )
        )

    # Closing

    async def close(self, *, politely: bool) -> None:
        """Stop fetching. With `politely`, close the fetch sessions at the brokers."""
        self._closed = True
        self._wake_at(NEVER)
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.buffer.clear()
        if politely:
            ended = [self._end(node, session) for node, session in self._sessions.items() if session.id]
            await asyncio.gather(*ended, return_exceptions=True)

    async def _end(self, node: int, session: FetchSessionHandler) -> None:
        # Over another connection than fetches: there a fetch in flight would have to be answered first.
        connections = self._cluster.connections
        if connections.is_connected(node):
            await connections.ask(node, self._request(session.close()), FetchResponse, timeout_ms=_CLOSE_MS)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
