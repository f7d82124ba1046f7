"""Fetches records from brokers, ahead of the application.

G1  One fetch is under way with each broker. The next leaves when its answer is here, whether or not the application
    asks for records meanwhile, as long as little enough of what that broker sent waits to be handed out.
G2  So no more than one answer (fetch.max.bytes) and one partition's part of another (max.partition.fetch.bytes) is
    held for each broker.
G3  Each fetch names every partition that may be read from that broker, so none waits because another has data.
G4  An error of one partition is that partition's: it is asked for again after a pause, and the others at once.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from ottla.client.cluster import NO_TOPIC_ID, Cluster
from ottla.client.consumer.background import start
from ottla.client.consumer.bell import Bell
from ottla.client.consumer.chunk import Chunk
from ottla.client.consumer.parcel import Parcel, decoder, last_of
from ottla.client.consumer.reading import NO_NODE, Reading
from ottla.client.consumer.reset import NONE, parse_reset
from ottla.client.consumer.session import Ask, FetchSession, PartitionData, Wanted
from ottla.client.consumer.shelf import NEVER, Shelf
from ottla.client.consumer.subscription import Subscription
from ottla.client.errors import ClientError, Closed, NoOffset, refused
from ottla.client.links import Links, Node
from ottla.client.record import TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.fetch import FetchRequest, FetchResponse

_CLOSE_MS = 1_000
# These say that what is known of the cluster is out of date.
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
    """Keeps a shelf of fetched records filled."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        cluster: Cluster,
        links: Links,
        subscription: Subscription,
        bell: Bell,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._links = links
        self._subscription = subscription
        self._bell = bell
        self.shelf = Shelf(
            subscription.is_fetchable, decoder(settings["key.deserializer"], settings["value.deserializer"])
        )
        self._reset_to = parse_reset(settings["auto.offset.reset"])
        self._committed_only: bool = settings["isolation.level"] == "read_committed"
        self._partition_bytes_max: int = settings["max.partition.fetch.bytes"]
        self._ahead_bytes = min(self._partition_bytes_max, settings["fetch.max.bytes"])
        self._backoff_s: float = settings["retry.backoff.ms"] / 1000
        self._sessions: dict[int, FetchSession] = {}
        self._under_way: dict[int, asyncio.Task[None]] = {}
        self._nodes: frozenset[int] = frozenset()  # those there is something to be had from
        self._errors: list[Exception] = []
        self._timer: asyncio.TimerHandle | None = None
        self._known = -1  # version of the cluster's metadata that leaders were taken from
        self._closed = False
        self.fetches = 0
        self.bytes = 0

    # The application's side

    def raise_error(self) -> None:
        """Raise what went wrong for good since the last time."""
        if self._errors:
            raise self._errors.pop(0)

    def refill(self) -> None:
        """Send more fetches if enough was handed out; cheap enough to be asked after each poll."""
        held, under_way = self.shelf.bytes_of, self._under_way
        for node in self._nodes:
            if node not in under_way and held.get(node, 0) <= self._ahead_bytes:
                self.send()
                return

    # Asking

    def send(self) -> None:
        """Send a fetch to every broker that has none under way and something to be asked for."""
        if self._closed:
            return
        self.learn_leaders()
        now = asyncio.get_running_loop().time()
        later = NEVER
        topics, under_way = self._cluster.topics, self._under_way
        nodes: set[int] = set()
        by_node: dict[int, dict[TopicPartition, Wanted]] = {}
        for partition, reading in self._subscription.readings.items():
            if not self._subscription.is_fetchable(reading):
                continue
            if reading.retry_at > now:
                later = min(later, reading.retry_at)
                continue
            node = self._node_for(reading, now)
            nodes.add(node)
            if node == NO_NODE or node in under_way:
                continue
            topic = topics.get(partition.topic)
            assert reading.position is not None
            by_node.setdefault(node, {})[partition] = Wanted(
                NO_TOPIC_ID if topic is None else topic.id,
                reading.fetch_offset,
                reading.position.leader_epoch,
                self._partition_bytes_max,
            )
        for node, wanted in by_node.items():
            if self.shelf.bytes_of.get(node, 0) <= self._ahead_bytes:
                # Here and now: before the task begins somebody may seek once more.
                eras = {partition: self._subscription.readings[partition].era for partition in wanted}
                under_way[node] = start(self._fetch(node, wanted, eras), self._fail)
        self._nodes = frozenset(nodes - {NO_NODE})
        self._wake_at(later)

    def learn_leaders(self) -> None:
        """Take in who leads, if anything is new about that."""
        if self._known == self._cluster.version:
            return
        self._known = self._cluster.version
        self._links.learn(self._cluster.links.nodes)
        for partition, reading in self._subscription.readings.items():
            leader = self._cluster.leader(*partition)
            if leader is not None:
                reading.lead(leader.node, leader.epoch)

    def _node_for(self, reading: Reading, now: float) -> int:
        position = reading.position
        assert position is not None
        leader = self._cluster.leader(*reading.partition)
        if leader is None or position.leader == NO_NODE:
            if leader is not None:
                reading.lead(leader.node, leader.epoch)
                return leader.node if reading.is_fetchable else NO_NODE
            if reading.partition.topic in self._cluster.topics:
                self._cluster.stale()
            return NO_NODE
        replica = reading.nearest(now)
        if replica == NO_NODE:
            return position.leader
        if replica in leader.replicas and replica not in leader.offline and self._cluster.node(replica):
            return replica
        reading.leave_replica()
        self._cluster.stale()
        return position.leader

    def _wake_at(self, moment: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if moment != NEVER:
            self._timer = asyncio.get_running_loop().call_at(moment, self.send)

    async def _fetch(
        self, node: int, wanted: dict[TopicPartition, Wanted], eras: dict[TopicPartition, int]
    ) -> None:
        session = self._sessions.setdefault(node, FetchSession())
        try:
            await self._links.connected(node)
            ask = session.ask(wanted)
            version = self._links.version(node, FetchRequest, newest=ask.newest)
            answer = await self._links.ask(node, self._request(ask), FetchResponse, newest=ask.newest)
            self.fetches += 1
            self._heard(node, session, answer, version, wanted, eras)
        except Closed:
            return
        except ClientError as error:
            self._failed(session, error)
        except asyncio.CancelledError:
            session.failed()
            raise
        finally:
            del self._under_way[node]
        self._bell.ring()
        self.send()

    def _request(self, ask: Ask) -> FetchRequest:
        settings = self._settings
        return FetchRequest(
            max_wait_ms=settings["fetch.max.wait.ms"],
            min_bytes=settings["fetch.min.bytes"],
            max_bytes=settings["fetch.max.bytes"],
            isolation_level=1 if self._committed_only else 0,
            session_id=ask.session_id,
            session_epoch=ask.epoch,
            topics=ask.topics,
            forgotten_topics_data=ask.forgotten,
            rack_id=settings["client.rack"],
        )

    def _fail(self, error: Exception) -> None:
        self._errors.append(error)
        self._bell.ring()

    # Answers

    def _failed(self, session: FetchSession, error: ClientError) -> None:
        session.failed()
        for partition in session.partitions:
            reading = self._subscription.readings.get(partition)
            if reading is not None:
                reading.leave_replica()
                reading.retry_at = max(reading.retry_at, self._now() + self._backoff_s)
        if error.retriable:
            self._cluster.stale()
        else:
            self._errors.append(error)

    def _heard(
        self,
        node: int,
        session: FetchSession,
        answer: FetchResponse,
        version: int,
        wanted: Mapping[TopicPartition, Wanted],
        eras: Mapping[TopicPartition, int],
    ) -> None:
        found = session.heard(answer, version)
        if found is None:
            if answer.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR:
                self._cluster.stale()
            return
        nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in answer.node_endpoints]
        for partition, data in found.items():
            reading = self._subscription.readings.get(partition)
            if reading is None or reading.era != eras.get(partition):
                continue
            if data.error_code:
                self._refused(reading, data, wanted[partition].offset, nodes)
                self._subscription.move_to_end(partition)
            else:
                self._take(node, reading, data, wanted[partition].offset)

    def _take(self, node: int, reading: Reading, data: PartitionData, offset: int) -> None:
        if data.high_watermark >= 0:
            reading.high_watermark = data.high_watermark
        if data.last_stable_offset >= 0:
            reading.last_stable_offset = data.last_stable_offset
        if data.log_start_offset >= 0:
            reading.log_start_offset = data.log_start_offset
        if data.preferred_read_replica >= 0:
            reading.read_from(
                data.preferred_read_replica, self._now() + self._settings["metadata.max.age.ms"] / 1000
            )
        records = data.records
        if not records:
            return
        self.bytes += len(records)
        aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
        chunk = Chunk(*reading.partition, records, offset, aborted, self._settings["check.crcs"])
        last = last_of(records)
        if last is None:
            # The parcel says what is wrong when it is opened; until then there is nothing more to ask for.
            last = (offset, -1)
            reading.retry_at = NEVER
        reading.fetch_offset = max(last[0], offset)
        self.shelf.put(Parcel(reading, node, chunk, *last))
        self._subscription.move_to_end(reading.partition)

    def _refused(self, reading: Reading, data: PartitionData, offset: int, nodes: list[Node]) -> None:
        partition = reading.partition
        error = refused(data.error_code, about=f"fetching {partition} at offset {offset}")
        code = error.code
        reading.retry_at = self._now() + self._backoff_s
        if code in _STALE:
            reading.leave_replica()
            hint = data.current_leader
            if hint is not None and self._cluster.learn_leader(
                *partition, hint.leader_id, hint.leader_epoch, nodes
            ):
                self.learn_leaders()
            else:
                self._cluster.stale()
        elif code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range(reading, offset)
        elif code not in _PASSING:
            self._errors.append(error)

    def _out_of_range(self, reading: Reading, offset: int) -> None:
        if reading.leave_replica():
            reading.retry_at = 0.0
            return
        position = reading.position
        if position is None or position.offset != offset:
            return  # asked ahead of what was handed out; it is asked for again once that is
        if self._reset_to is not NONE:
            reading.reset(self._reset_to)
            return
        reading.retry_at = NEVER
        self._errors.append(
            NoOffset(
                f"{reading.partition} has no offset {offset}, and auto.offset.reset is none",
                hint="seek to an offset that exists, or set auto.offset.reset to earliest or latest",
            )
        )

    # The end

    async def close(self, *, politely: bool) -> None:
        """Stop fetching; tell brokers that their sessions are over, if there is time for that."""
        self._closed = True
        self._wake_at(NEVER)
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.shelf.clear()
        if politely:
            ended = [self._end(node, session) for node, session in self._sessions.items() if session.id]
            await asyncio.gather(*ended, return_exceptions=True)

    async def _end(self, node: int, session: FetchSession) -> None:
        # Not where fetches are sent: one that was under way would have to be answered first.
        links = self._cluster.links
        if links.is_connected(node):
            await links.ask(node, self._request(session.close()), FetchResponse, timeout_ms=_CLOSE_MS)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
