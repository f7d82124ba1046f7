"""A broker in memory that a consumer can live on: logs with epochs, fetch sessions, committed offsets, groups of one.

It does what it is told and keeps what it was asked; `refusals` are answered in place of the next answers.
"""

import asyncio
import contextlib
import struct

from ottla.client.consumer.assignors.protocol import encode_assignment
from ottla.client.consumer.consumer import Consumer
from ottla.client.record import TopicPartition
from ottla.client.system_interfaces import SystemInterfaces
from ottla.wire.apis import BY_KEY
from ottla.wire.batch import build_batch
from ottla.wire.errors import ErrorCode
from ottla.wire.header import read_request_header
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from ottla.wire.messages.fetch import FetchResponse
from ottla.wire.messages.find_coordinator import FindCoordinatorResponse
from ottla.wire.messages.heartbeat import HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupResponse
from ottla.wire.messages.list_offsets import ListOffsetsResponse
from ottla.wire.messages.metadata import MetadataResponse
from ottla.wire.messages.offset_commit import OffsetCommitResponse
from ottla.wire.messages.offset_fetch import OffsetFetchResponse
from ottla.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from ottla.wire.messages.sync_group import SyncGroupResponse
from ottla.wire.record import Record
from tests.unit.client.brokers import SILENCE, Brokers, Transport, broker, topic

QUICK = {
    "retry.backoff.ms": 5,
    "retry.backoff.max.ms": 20,
    "reconnect.backoff.ms": 1,
    "reconnect.backoff.max.ms": 5,
    "request.timeout.ms": 5_000,
    "default.api.timeout.ms": 2_000,
    "fetch.max.wait.ms": 30,
}


class PatientTransport(Transport):
    """Answers in order, some of them later."""

    def __init__(self, *parts):
        super().__init__(*parts)
        self.last = None

    def _serve(self, frame):
        key, version, number, _, pos = read_request_header(frame, 0, len(frame))
        api = BY_KEY[key]
        request = api.request.decode(frame[pos:], version)
        self.network.asked.append((self.address, api.name, version, request))
        self.last = asyncio.ensure_future(self._reply(self.last, api, version, number, request))
        self.network.tasks.add(self.last)
        self.last.add_done_callback(self.network.tasks.discard)

    async def _reply(self, before, api, version, number, request):
        answer = self.network.answer(self.address, api.name, request)
        if asyncio.iscoroutine(answer):
            answer = await answer
        if before is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await before
        if answer is SILENCE or self.closed:
            return
        tagged = api.response_header_version(version) > 0
        body = struct.pack(">i", number) + (b"\0" if tagged else b"") + answer.encode(version)
        self._feed(struct.pack(">i", len(body)) + body)


class Log:
    """A partition: batches, and where each epoch began."""

    def __init__(self, epoch=0):
        self.batches = []
        self.start = self.end = 0
        self.epoch = epoch
        self.epochs = [(epoch, 0)]
        self.stable = None
        self.aborted = []

    def append(self, *values, **options):
        records = [Record(self.end + n, 1_000 + self.end + n, None, value) for n, value in enumerate(values)]
        data = bytes(build_batch(records, base_offset=self.end, leader_epoch=self.epoch, **options))
        self.append_bytes(data, len(values))

    def append_bytes(self, data, count):
        self.batches.append((self.end, data))
        self.end += count

    def elect(self, epoch, truncate_to=None):
        if truncate_to is not None:
            self.batches = [each for each in self.batches if each[0] < truncate_to]
            self.end = truncate_to
        self.epoch = epoch
        self.epochs = [each for each in self.epochs if each[1] < self.end or not each[1]] + [
            (epoch, self.end)
        ]

    def read(self, offset, size_max):
        found, size = [], 0
        for place, (base, data) in enumerate(self.batches):
            after = self.batches[place + 1][0] if place + 1 < len(self.batches) else self.end
            if after > offset and (not found or size + len(data) <= size_max):
                found.append(data)
                size += len(data)
            assert base >= 0
        return b"".join(found)

    def end_of(self, epoch):
        for (known, _), following in zip(self.epochs, [*self.epochs[1:], (None, self.end)], strict=True):
            if known == epoch or (following[0] is not None and known < epoch < following[0]):
                return known, following[1]
        return (self.epochs[-1][0], self.end) if epoch > self.epochs[-1][0] else (-1, -1)


class MiniBroker(Brokers):
    """Node 1 at one:9092, and whatever else a test makes of it."""

    def __init__(self, **partitions):
        super().__init__()
        self.tasks = set()
        self.logs = {
            TopicPartition(name, number): Log()
            for name, count in partitions.items()
            for number in range(count)
        }
        self.leaders = dict.fromkeys(self.logs, 1)
        self.ids = {name: name.encode().ljust(16, b".") for name in partitions}
        self.nodes = {1: "one"}
        self.committed = {}
        self.sessions = {}
        self.refusals = {}
        self.moved = asyncio.Event()
        self.coordinator = 1
        self.generation = 0
        self.members = []
        self.target = None
        self.heartbeat_ms = 20
        self.epoch = 0
        self.session_ids = 0

    async def connect(self, host, port, protocol, **options):
        self.connects += 1
        address = f"{host}:{port}"
        await asyncio.sleep(0)
        if address in self.down:
            raise ConnectionRefusedError(111, "Connection refused")
        made = protocol()
        transport = PatientTransport(self, address, made)
        self.open.add(transport)
        made.connection_made(transport)
        return made

    def append(self, name, number, *values, **options):
        self.logs[TopicPartition(name, number)].append(*values, **options)
        self.moved.set()
        self.moved = asyncio.Event()

    def refuse(self, name, code, times=1):
        self.refusals.setdefault(name, []).extend([code] * times)

    def answer(self, address, name, request):
        handler = self.handlers.get((address, name)) or self.handlers.get(name)
        if handler is not None:
            return handler(request)
        if name == "ApiVersions":
            return super().answer(address, name, request)
        codes = self.refusals.get(name)
        code = codes.pop(0) if codes else 0
        return getattr(self, "_" + name)(request, code)

    def _node(self, address):
        return next(number for number, host in self.nodes.items() if f"{host}:9092" == address)

    def asked_for(self, name):
        return [request for _, api, _, request in self.asked if api == name]

    # Metadata

    def _Metadata(self, request, code):
        names = sorted({each.topic for each in self.logs})
        if request.topics is not None:
            by_id = {value: key for key, value in self.ids.items()}
            names = [each.name or by_id.get(each.topic_id, "?") for each in request.topics]
        topics = [
            topic(
                name,
                *[(self.leaders[each], log.epoch) for each, log in self.logs.items() if each.topic == name],
                id=self.ids.get(name, bytes(16)),
                error=0 if name in self.ids else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )
            for name in names
        ]
        for each in topics:
            for part in each.partitions:
                part.replica_nodes = part.isr_nodes = sorted(self.nodes)
        brokers = [broker(number, host) for number, host in self.nodes.items()]
        for each in brokers:
            each.rack = f"rack-{each.node_id}"
        return MetadataResponse(cluster_id="c", controller_id=1, brokers=brokers, topics=topics)

    # Records

    async def _Fetch(self, request, code):
        if code:
            return FetchResponse(error_code=code)
        if request.session_epoch == -1:
            self.sessions.pop(request.session_id, None)
            return FetchResponse()
        if request.session_epoch == 0:
            self.session_ids += 1
            number, wanted = self.session_ids, {}
        else:
            number = request.session_id
            if number not in self.sessions:
                return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            wanted = self.sessions[number]
        names = {value: key for key, value in self.ids.items()}
        for each in request.topics:
            for part in each.partitions:
                wanted[TopicPartition(names.get(each.topic_id, "?"), part.partition)] = part
        for each in request.forgotten_topics_data:
            for part in each.partitions:
                wanted.pop(TopicPartition(names[each.topic_id], part), None)
        self.sessions[number] = wanted
        found = self._data(wanted, request.isolation_level)
        if not any(each.records or each.error_code for each in found.values()):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(request.max_wait_ms / 1000):
                    await self.moved.wait()
            found = self._data(wanted, request.isolation_level)
        kind = FetchResponse.FetchableTopicResponse
        responses = [
            kind(topic_id=self.ids.get(partition.topic, bytes(16)), partitions=[data])
            for partition, data in found.items()
            if data.records
            or data.error_code
            or request.session_epoch == 0
            or data.preferred_read_replica >= 0
        ]
        return FetchResponse(session_id=number, responses=responses)

    def _data(self, wanted, isolation):
        kind = FetchResponse.FetchableTopicResponse.PartitionData
        found = {}
        for partition, part in wanted.items():
            log = self.logs.get(partition)
            if log is None:
                found[partition] = kind(
                    partition_index=partition.partition, error_code=ErrorCode.UNKNOWN_TOPIC_ID
                )
                continue
            data = found[partition] = kind(
                partition_index=partition.partition,
                high_watermark=log.end,
                last_stable_offset=log.end if log.stable is None else log.stable,
                log_start_offset=log.start,
                aborted_transactions=[
                    kind.AbortedTransaction(producer_id=a, first_offset=b) for a, b in log.aborted
                ]
                if isolation
                else None,
                records=b"",
            )
            if part.current_leader_epoch not in (-1, log.epoch):
                older = part.current_leader_epoch < log.epoch
                data.error_code = ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
            elif not log.start <= part.fetch_offset <= log.end:
                data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
            else:
                data.records = log.read(part.fetch_offset, part.partition_max_bytes)
        return found

    # Offsets

    def _ListOffsets(self, request, code):
        kind = ListOffsetsResponse.ListOffsetsTopicResponse
        topics = []
        for each in request.topics:
            parts = []
            for part in each.partitions:
                log = self.logs[TopicPartition(each.name, part.partition_index)]
                end = log.stable if log.stable is not None and request.isolation_level else log.end
                young = max(part.timestamp - 1_000, log.start)
                offset = {-1: end, -2: log.start}.get(part.timestamp, young if young < end else -1)
                parts.append(
                    kind.ListOffsetsPartitionResponse(
                        partition_index=part.partition_index,
                        error_code=code,
                        offset=-1 if code else offset,
                        timestamp=-1 if part.timestamp < 0 else 1_000 + offset,
                        leader_epoch=log.epoch,
                    )
                )
            topics.append(kind(name=each.name, partitions=parts))
        return ListOffsetsResponse(topics=topics)

    def _OffsetForLeaderEpoch(self, request, code):
        kind = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
        topics = []
        for each in request.topics:
            parts = []
            for part in each.partitions:
                epoch, end = self.logs[TopicPartition(each.topic, part.partition)].end_of(part.leader_epoch)
                parts.append(
                    kind.EpochEndOffset(
                        error_code=code, partition=part.partition, leader_epoch=epoch, end_offset=end
                    )
                )
            topics.append(kind(topic=each.topic, partitions=parts))
        return OffsetForLeaderEpochResponse(topics=topics)

    def _OffsetCommit(self, request, code):
        names = {value: key for key, value in self.ids.items()}
        kind = OffsetCommitResponse.OffsetCommitResponseTopic
        topics = []
        for each in request.topics:
            name = each.name or names[each.topic_id]
            for part in each.partitions:
                if not code:
                    self.committed[TopicPartition(name, part.partition_index)] = part.committed_offset
            topics.append(
                kind(
                    name=each.name,
                    topic_id=each.topic_id,
                    partitions=[
                        kind.OffsetCommitResponsePartition(partition_index=p.partition_index, error_code=code)
                        for p in each.partitions
                    ],
                )
            )
        return OffsetCommitResponse(topics=topics)

    def _OffsetFetch(self, request, code):
        [group] = request.groups
        names = {value: key for key, value in self.ids.items()}
        kind = OffsetFetchResponse.OffsetFetchResponseGroup
        topics = [
            kind.OffsetFetchResponseTopics(
                name=each.name,
                topic_id=each.topic_id,
                partitions=[
                    kind.OffsetFetchResponseTopics.OffsetFetchResponsePartitions(
                        partition_index=number,
                        committed_offset=self.committed.get(
                            TopicPartition(each.name or names[each.topic_id], number), -1
                        ),
                    )
                    for number in each.partition_indexes
                ],
            )
            for each in group.topics
        ]
        return OffsetFetchResponse(groups=[kind(group_id=group.group_id, topics=topics, error_code=code)])

    # Groups

    def _FindCoordinator(self, request, code):
        kind = FindCoordinatorResponse.Coordinator
        [key] = request.coordinator_keys
        return FindCoordinatorResponse(
            coordinators=[
                kind(
                    key=key,
                    node_id=self.coordinator,
                    host=self.nodes[self.coordinator],
                    port=9092,
                    error_code=code,
                )
            ]
        )

    def _JoinGroup(self, request, code):
        if not code and not request.member_id:
            return JoinGroupResponse(
                error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="me", protocol_name=""
            )
        if code:
            return JoinGroupResponse(error_code=code, protocol_name="")
        self.generation += 1
        kind = JoinGroupResponse.JoinGroupResponseMember
        chosen = request.protocols[0]
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=chosen.name,
            leader=request.member_id,
            member_id=request.member_id,
            members=[kind(member_id=request.member_id, metadata=chosen.metadata)],
        )

    def _SyncGroup(self, request, code):
        if code:
            return SyncGroupResponse(error_code=code)
        mine = [each.assignment for each in request.assignments if each.member_id == request.member_id]
        if self.target is not None:
            mine, self.target = [encode_assignment(self.target)], None
        return SyncGroupResponse(assignment=mine[0] if mine else b"")

    def _Heartbeat(self, request, code):
        return HeartbeatResponse(error_code=code)

    def _LeaveGroup(self, request, code):
        return LeaveGroupResponse(error_code=code)

    def _ConsumerGroupHeartbeat(self, request, code):
        if code:
            return ConsumerGroupHeartbeatResponse(error_code=code, error_message="told to")
        if request.member_epoch < 0:
            return ConsumerGroupHeartbeatResponse(member_epoch=request.member_epoch)
        kind = ConsumerGroupHeartbeatResponse
        assignment = None
        if request.member_epoch == 0 or self.target is not None:
            partitions = list(self.logs) if self.target is None else self.target
            self.target = None
            self.epoch += 1
            by_topic = {}
            for each in partitions:
                by_topic.setdefault(each.topic, []).append(each.partition)
            assignment = kind.Assignment(
                topic_partitions=[
                    kind.TopicPartitions(topic_id=self.ids[name], partitions=numbers)
                    for name, numbers in by_topic.items()
                ]
            )
        return kind(
            member_id=request.member_id,
            member_epoch=self.epoch,
            heartbeat_interval_ms=self.heartbeat_ms,
            assignment=assignment,
        )


def consumer_on(mini, settings=(), **keywords):
    """A consumer that lives on a broker in memory."""
    kind = type("Wired", (Consumer,), {"_interfaces": SystemInterfaces(network=mini)})
    given = {"auto.offset.reset": "earliest"} | QUICK | dict(settings)
    return kind("one:9092", given, **keywords)


def play(test, mini=None, seconds_max=10.0, **partitions):
    """Run a test on a broker in memory; no task and no connection may be left."""

    async def main():
        made = MiniBroker(**(partitions or {"t": 1})) if mini is None else mini
        async with asyncio.timeout(seconds_max):
            await test(made)
        for task in tuple(made.tasks):
            task.cancel()
        await asyncio.sleep(0.01)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left
        assert not made.open

    asyncio.run(main())


async def until(condition, seconds_max=3.0):
    deadline = asyncio.get_running_loop().time() + seconds_max
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "the condition did not come true in time"
        await asyncio.sleep(0.002)
