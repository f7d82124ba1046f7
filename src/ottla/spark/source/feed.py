"""Fetches a range of a partition ahead of whoever makes rows of it.

F1  The next fetch leaves as soon as an answer is here, and is under way while that answer is looked into. Only so many
    answers wait that memory stays bounded.
F2  The range lies below the end that was planned, so what is in it is there, and a fetch need not wait for records. An
    answer without any says that nothing is left up to that end: compaction, or a transaction's marker, took it.
F3  What is below the start of the log, or beyond its end, is lost; what to do then is for `Losses` to say.
F4  A leader that moved, a broker that went away, an offset refused that is there: asked again, with pauses, until
    `kafkaConsumer.pollTimeoutMs` is up.

    start() --chunks, then an error or None--> the queue of the task's thread --took()--> room for more
"""

import asyncio
from queue import SimpleQueue

from ottla.client.cluster import NO_LEADER, NO_TOPIC_ID, TopicMetadata
from ottla.client.consumer.completed_fetch import end_of_last_batch
from ottla.client.consumer.fetch_session import FINAL_EPOCH, NAMES_VERSION, NO_SESSION, PartitionData
from ottla.client.consumer.fetched_batches import FetchedBatches
from ottla.client.consumer.offset_lookup import OffsetLookup
from ottla.client.errors import ClientError, Closed, Refused, TimedOut, refused
from ottla.client.record import TopicPartition
from ottla.spark.connection import Connection
from ottla.spark.source.options import SourceOptions
from ottla.spark.source.refusal import Losses
from ottla.spark.source.task import Portion, Task
from ottla.spark.source.whence import EARLIEST, LATEST
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.uuid import uuid_text

# One is looked into, one waits, one is under way: as many as a link has buffers for that are used again (ADR 0027).
_AT_ONCE = 3
# Kafka's default, 1 MB, is for consumers of many partitions; a task has one, and Spark likes larger batches.
_FETCH_BYTES = 4 << 20
# A topic that is gone may only be unknown to one broker for a moment.
_GONE_MS = 3000.0
# A guess of how much is left to fetch is taken so many times, and so many bytes more.
_GENEROUS, _SPARE_BYTES = 1.25, 1 << 16
_STALE = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)


class NotYet(ClientError):
    """The partition has not come as far as it was when the read was planned."""

    retriable = True


class Contradicted(ClientError):
    """A broker refuses an offset that it says it has: one that has just become the leader may, for a moment."""

    retriable = True


class Vanished(ClientError):
    """What was planned to be read is there no more."""


class Feed:
    """The fetches of one task. Made anywhere; everything but `portions` runs on the connection's loop."""

    def __init__(
        self, connection: Connection, options: SourceOptions, task: Task, *, bytes_max: int | None = None
    ) -> None:
        """With `bytes_max`, each fetch asks for no more."""
        self.portions: SimpleQueue[Portion | Exception | None] = SimpleQueue()
        self._cluster = connection.cluster
        self._links = connection.links
        self._finder = OffsetLookup(options.settings, connection.cluster)
        self._options = options
        self._losses = Losses(options.fails_on_data_loss)
        self._task = task
        self._where = task.topic_partition
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._running: asyncio.Task[None] | None = None
        self._replica = NO_LEADER
        self._bytes_max = (
            _fetch_bytes(options) if bytes_max is None else min(_fetch_bytes(options), bytes_max)
        )
        self._bytes_each = 0.0  # as the last answer had it

    # Life

    def start(self) -> None:
        """Begin to fetch."""
        self._running = asyncio.create_task(self._run())

    def took(self) -> None:
        """One portion less waits."""
        self._room.release()

    def stop(self) -> None:
        """Fetch no more."""
        if self._running is not None:
            self._running.cancel()

    async def _run(self) -> None:
        try:
            try:
                await self._feed()
            except Vanished as error:
                self._losses.report(*error.args, hint=error.hint)
        except Exception as error:  # noqa: BLE001  # whoever takes the portions raises it
            self.portions.put(error)
        else:
            self.portions.put(None)

    async def _feed(self) -> None:
        offset, end = self._task.start, self._task.end
        is_gone = False
        while offset < end:
            await self._room.acquire()
            data = await self._fetch(offset)
            if isinstance(data, int):
                offset = data
                self._room.release()
                continue
            last = end_of_last_batch(data.records) if data.records else (offset, -1)
            if last is None:
                # Not a whole batch: opening it says what is wrong, and there is nothing behind it to be had.
                self._hand_out(data, offset, offset)
                return
            if last[0] > offset:
                is_gone = False
                self._hand_out(data, offset, last[0])
                offset = last[0]
            elif is_gone:
                return
            else:
                # Once more: a broker may have had its reasons, and the end of a range is no place to be wrong.
                is_gone = True
                self._room.release()

    def _hand_out(self, data: PartitionData, offset: int, next_offset: int) -> None:
        assert data.records is not None
        aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
        checks: bool = self._options.settings["check.crcs"]
        if next_offset > offset:
            self._bytes_each = len(data.records) / (next_offset - offset)
        self.portions.put(
            Portion(FetchedBatches(*self._where, data.records, offset, aborted, checks), next_offset)
        )

    # Asking

    async def _fetch(self, offset: int) -> PartitionData | int:
        """Return what there is from an offset on, or the offset to go on from where there is nothing at this one."""

        async def attempt() -> PartitionData | int:
            try:
                return await self._try(offset)
            except Refused as error:
                if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                return await self._out_of_range(offset)

        try:
            return await self._cluster.retry_until(
                attempt, self._options.poll_timeout_ms, f"reading {self._where} at offset {offset}"
            )
        except TimedOut as error:
            if isinstance(error.__cause__, NotYet):
                raise Vanished(str(error.__cause__), hint=error.__cause__.hint) from None
            raise

    async def _try(self, offset: int) -> PartitionData:
        topic = await self._topic()
        leader = self._cluster.leader(*self._where)
        if leader is None:
            await self._cluster.refresh([self._task.topic], auto_create=False)
            leader = self._cluster.leader(*self._where)
            if leader is None:
                raise refused(ErrorCode.LEADER_NOT_AVAILABLE, about=str(self._where))
        node = leader.node if self._replica == NO_LEADER else self._replica
        request = self._request(topic, leader.epoch, offset)
        newest = NAMES_VERSION if topic.id == NO_TOPIC_ID else None
        try:
            answer = await self._links.ask(node, request, FetchResponse, newest=newest)
            data = _only(answer, self._where)
        except Closed:
            raise
        except ClientError as error:
            self._replica = NO_LEADER
            if error.retriable:
                self._cluster.request_refresh()
            raise
        if data.error_code:
            await self._refused(refused(data.error_code, about=f"reading {self._where} at offset {offset}"))
        if data.preferred_read_replica >= 0:
            self._replica = data.preferred_read_replica
            return await self._try(offset)
        if not data.records and not answer.throttle_time_ms:
            self._check_end(data)
        return data

    def _request(self, topic: TopicMetadata, leader_epoch: int, offset: int) -> FetchRequest:
        settings = self._options.settings
        kind = FetchRequest.FetchTopic
        part = kind.FetchPartition(
            partition=self._task.partition,
            current_leader_epoch=leader_epoch,
            fetch_offset=offset,
            partition_max_bytes=self._size(offset),
        )
        return FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=settings["fetch.max.bytes"],
            isolation_level=1 if self._options.is_committed_only else 0,
            session_id=NO_SESSION,
            session_epoch=FINAL_EPOCH,
            topics=[kind(topic=self._task.topic, topic_id=topic.id, partitions=[part])],
            rack_id=settings["client.rack"],
        )

    def _size(self, offset: int) -> int:
        """How many bytes to ask for: what the rest of the range may take, as far as can be told."""
        guess = int((self._task.end - offset) * self._bytes_each * _GENEROUS) + _SPARE_BYTES
        return min(self._bytes_max, guess) if self._bytes_each else self._bytes_max

    async def _topic(self) -> TopicMetadata:
        """The topic, if it is the one that the range was planned for."""
        name, wanted = self._task.topic, self._task.topic_id
        try:
            topic = await self._cluster.topic(name, _GONE_MS, auto_create=False)
            if wanted and topic.id != NO_TOPIC_ID and uuid_text(topic.id) != wanted:
                await self._cluster.refresh([name], auto_create=False)
                topic = await self._cluster.topic(name, _GONE_MS, auto_create=False)
        except Refused as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            raise Vanished(f"topic {name} was deleted before all of it was read") from None
        if wanted and topic.id != NO_TOPIC_ID and uuid_text(topic.id) != wanted:
            raise Vanished(f"topic {name} was deleted, and made anew, before all of it was read")
        return topic

    # What may come back

    async def _refused(self, error: Refused) -> None:
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            if self._replica != NO_LEADER:
                self._replica = NO_LEADER
                raise NotYet(str(error))
            raise error
        self._replica = NO_LEADER
        if error.code in _STALE:
            await self._cluster.refresh([self._task.topic], auto_create=False)
            raise NotYet(str(error))
        raise error

    def _check_end(self, data: PartitionData) -> None:
        """Let an answer without records stand only if all that was planned may be read."""
        end = data.last_stable_offset if self._options.is_committed_only else data.high_watermark
        if -1 < end < self._task.end:
            raise NotYet(
                f"{self._where} may be read up to offset {end} now, and could be up to {self._task.end} before",
                hint="its leader lost records: begin again with a new checkpoint",
            )

    async def _out_of_range(self, offset: int) -> int:
        """Return where to go on when there is nothing at an offset."""
        timeout_ms: float = self._options.settings["default.api.timeout.ms"]
        start, end = [
            (await self._finder.offsets({self._where: place}, timeout_ms))[self._where].offset
            for place in (EARLIEST, LATEST)
        ]
        if offset < start:
            lost = min(start, self._task.end)
            self._losses.report(
                f"{self._where} has lost the offsets from {offset} up to {lost} before they were read;"
                f" it begins at {start} now",
                hint="read more often, or raise retention.ms and retention.bytes of the topic",
            )
            return lost
        if offset > end:
            self._losses.report(
                f"{self._where} ends at offset {end} now, and was to be read from {offset} on",
                hint="its leader lost records, or the topic was made anew",
            )
            return self._task.end
        raise Contradicted(
            f"offset {offset} of {self._where} was refused as out of range, and the range is {start} to {end}"
        )


def _fetch_bytes(options: SourceOptions) -> int:
    settings = options.settings
    name = "max.partition.fetch.bytes"
    size: int = settings[name] if name in settings.given else _FETCH_BYTES
    return int(min(size, settings["fetch.max.bytes"]))


def _only(answer: FetchResponse, where: TopicPartition) -> PartitionData:
    if answer.error_code:
        raise refused(answer.error_code, about=f"reading {where}")
    try:
        return answer.responses[0].partitions[0]
    except IndexError:
        # A broker that asks for patience answers with nothing (KIP-219).
        raise NotYet(f"there was no answer about {where}") from None
