"""Batches that a thread looks through: order, and what may happen until it comes back."""

import struct
from dataclasses import replace

import pytest

from ottla.broker.apis import list_offsets, produce
from ottla.broker.share_begin import find_reset_offset
from ottla.log.lookup import Candidate
from ottla.log.validation import inspect_client_batch
from ottla.partition.copy import cut_to
from ottla.wire.batch import BATCH_HEADER_SIZE, Batch, assemble, build_batch
from ottla.wire.compression import Codec
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ottla.wire.messages.produce import ProduceRequest, ProduceResponse
from ottla.wire.record import Record
from tests.unit.broker.test_express import NOW, batch
from tests.unit.broker.test_lane import World, produced

LONG = build_batch([Record(0, NOW, b"key", bytes(400_000), ())], codec=Codec.GZIP)
KEYLESS = build_batch([Record(0, NOW, None, bytes(400_000), ())], codec=Codec.GZIP)


class HeldWorker:
    """A thread that works when it is told to."""

    def __init__(self):
        self.jobs = []

    def run(self, work, done):
        self.jobs.append((work, done))

    def work(self):
        jobs, self.jobs = self.jobs, []
        for work, done in jobs:
            try:
                result, error = work(), None
            except Exception as raised:  # noqa: BLE001  # the caller judges it
                result, error = None, raised
            done(result, error)

    def stop(self):
        """Nothing has to end."""


@pytest.fixture(params=[True, False], ids=["compiled", "python"])
def world(request, tmp_path):
    made = World(tmp_path, swift=request.param)
    made.station.broker.inspector = HeldWorker()
    made.station.broker.searcher = HeldWorker()
    yield made
    made.station.close()


def answers(world, client=0):
    """Correlation id, error code and offset of each answer that was written."""
    written, found = bytes(world.transports[client].written), []
    while written:
        size, correlation = struct.unpack_from(">ii", written)
        response = ProduceResponse.decode(written[9 : 4 + size], 13)
        part = response.responses[0].partition_responses[0]
        found.append((correlation, ErrorCode(part.error_code), part.base_offset))
        written = written[4 + size :]
    return found


def send(world, client, *batches, index=0, acks=-1):
    requests = [
        produced(world, 13, records, index=index, acks=acks, correlation=number)
        for number, records in enumerate(batches)
    ]
    world.send(client, *requests)
    world.station.settle()


def inspect(world):
    world.station.broker.inspector.work()
    world.station.settle()


def test_nothing_overtakes_a_batch_on_its_connection(world):
    send(world, 0, batch(), LONG, batch(), KEYLESS, LONG, batch())
    assert answers(world) == [(0, ErrorCode.NONE, 0)]
    send(world, 1, batch(), batch())
    assert answers(world, 1) == [(0, ErrorCode.NONE, 1), (1, ErrorCode.NONE, 2)], "others go on"
    assert not world.transports[0].reading
    for _ in range(3):
        assert len(world.station.broker.inspector.jobs) == 1
        inspect(world)
    assert answers(world) == [(0, ErrorCode.NONE, 0), *((n, ErrorCode.NONE, n + 2) for n in range(1, 6))]
    assert world.transports[0].reading
    assert not world.station.broker.inspecting
    send(world, 0, batch())
    assert answers(world)[-1] == (0, ErrorCode.NONE, 8)


def test_what_cannot_be_read_is_refused_by_the_thread_too(world):
    spoilt = LONG[BATCH_HEADER_SIZE:]
    spoilt[-1] ^= 1  # the checksum of gzip, at the very end
    send(world, 0, assemble(Batch.parse(LONG), spoilt), batch())
    inspect(world)
    assert answers(world) == [(0, ErrorCode.INVALID_RECORD, -1), (1, ErrorCode.NONE, 0)]


def test_a_connection_that_closes_meanwhile_leaves_nothing_behind(world):
    send(world, 0, LONG, batch())
    world.clients[0].connection_lost(None)
    inspect(world)
    assert world.partitions[0].log.end_offset == 1, "it was received whole, so it is stored, as in Kafka"
    assert not world.station.broker.inspecting
    assert answers(world) == []
    send(world, 1, LONG)
    inspect(world)
    assert answers(world, 1) == [(0, ErrorCode.NONE, 1)]


def test_without_acknowledgement_a_refusal_closes_the_connection(world):
    send(world, 0, KEYLESS[:-1] + b"\xff", acks=0)
    assert world.transports[0].closed, "a bad checksum is seen at once"
    spoilt = LONG[BATCH_HEADER_SIZE:]
    spoilt[-1] ^= 1
    send(world, 1, assemble(Batch.parse(LONG), spoilt), acks=0)
    assert not world.transports[1].closed
    inspect(world)
    assert world.transports[1].closed
    assert not world.station.broker.inspecting


def test_leadership_may_be_lost_meanwhile(world):
    send(world, 0, LONG, batch())
    world.partitions[0].follow(9)
    inspect(world)
    assert [each[1] for each in answers(world)] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
    assert world.partitions[0].log.end_offset == 0


def test_the_settings_may_change_meanwhile(world):
    """A topic that is compacted by then takes no record without a key, whatever was found before."""
    send(world, 0, KEYLESS, batch())
    log = world.partitions[0].log
    log.config = replace(log.config, cleanup_policy=frozenset({"compact"}))
    inspect(world)
    assert answers(world) == []
    inspect(world)
    assert answers(world) == [(0, ErrorCode.INVALID_RECORD, -1), (1, ErrorCode.NONE, 0)]


def test_an_error_of_our_own_is_told_and_holds_up_nobody(world, monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("out of order")

    send(world, 0, LONG, batch())
    monkeypatch.setattr("ottla.broker.apis.produce.inspect_client_batch", fails)
    inspect(world)
    assert answers(world) == [(0, ErrorCode.UNKNOWN_SERVER_ERROR, -1), (1, ErrorCode.NONE, 0)]
    assert isinstance(world.station.broker.last_failure, RuntimeError)


def to_many(world, batches, indexes=None):
    """Send a batch to each partition of a topic, in one request, and return what is told of them."""
    topic = world.station.create("many", partitions=len(batches))
    body = ProduceRequest.TopicProduceData.PartitionProduceData
    data = ProduceRequest.TopicProduceData(
        topic_id=topic.id,
        partition_data=[
            body(index=index, records=memoryview(bytearray(records)))
            for index, records in zip(indexes or range(len(batches)), batches, strict=True)
        ],
    )
    request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[data])
    return produce.API.handle(request, 13, world.clients[0], world.station.broker)


def stored(world):
    log = world.station.table.by_name
    count = len(world.station.broker.image.topics.by_name["many"].partitions)
    return [log("many", index).log.end_offset for index in range(count)]


SMALL_ZSTD = build_batch([Record(0, NOW, b"k", bytes(250_000), ())], codec=Codec.ZSTD)
MANY_RECORDS = build_batch([Record(number, NOW, None, b"", ()) for number in range(70_000)])


@pytest.mark.parametrize(("made", "on_loop"), [(SMALL_ZSTD, 17), (MANY_RECORDS, 4)])
def test_what_the_loop_looks_through_is_limited_for_a_request_too(world, made, on_loop):
    """Each of 160,000 batches of 98 bytes was little: together they took 12 s."""
    reply = to_many(world, [made] * 20)
    assert sum(map(bool, stored(world))) == on_loop
    assert not world.transports[0].reading
    while world.station.broker.inspector.jobs:
        inspect(world)
    assert all(stored(world))
    assert {part.error_code for part in reply._message.responses[0].partition_responses} == {ErrorCode.NONE}
    assert world.clients[0].connections.requests.queued == 0


def test_requests_as_producers_send_them_are_looked_through_on_the_loop(world):
    value = b"%064d" % 7 * 16
    records = [Record(number, NOW, b"k", value, ()) for number in range(50)]
    to_many(world, [build_batch(records, codec=codec) for codec in (Codec.NONE, Codec.LZ4) for _ in range(30)])
    assert all(stored(world))


def test_of_a_partition_that_is_named_twice_the_last_batch_counts(world):
    """As in Kafka, which keeps them by partition; here each was stored, as many as a request had room for."""
    two = build_batch([Record(number, NOW, b"k", b"v", ()) for number in range(2)])
    reply = to_many(world, [batch(), batch(), two], indexes=(0, 1, 0))
    assert stored(world) == [2, 1, 0]
    parts = reply.responses[0].partition_responses
    assert [(part.index, part.error_code, part.base_offset) for part in parts] == [(1, 0, 0), (0, 0, 0)]


def test_connections_take_turns_with_batches_too(world):
    """All batches of a request were looked through before the one of another."""
    broker = world.station.broker
    many = to_many(world, [LONG] * 20)
    send(world, 1, LONG)
    for _ in range(3):
        assert len(broker.inspector.jobs) == 1
        inspect(world)
    assert answers(world, 1) == [(0, ErrorCode.NONE, 0)]
    world.clients[0].connection_lost(None)
    while broker.inspector.jobs:
        inspect(world)
    parts = many._message.responses[0].partition_responses
    assert [(part.error_code, part.base_offset) for part in parts] == [(0, 0)] * 20
    assert not broker.inspecting


def test_batches_that_wait_count_in_the_budget_and_go_with_their_client_when_there_is_no_room(world):
    requests = world.clients[0].connections.requests
    for client in range(2):
        send(world, client, LONG)
    assert requests.queued == requests.total == 2 * len(LONG)
    requests.bytes_max = 2 * len(LONG)
    world.clients[1].connection_lost(None)
    assert requests.queued == len(LONG)
    inspect(world)
    assert answers(world) == [(0, ErrorCode.NONE, 0)]
    assert requests.queued == requests.total == 0 and not world.station.broker.inspecting
    assert world.partitions[0].log.end_offset == 1


def ask_time(world, timestamp, *indexes):
    """Ask for offsets by time, and return a function that says what was answered by now."""
    wanted = [
        ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(partition_index=index, timestamp=timestamp)
        for index in indexes
    ]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=wanted)]
    )
    reply = list_offsets.API.handle(request, 11, world.clients[0], world.station.broker)

    def told():
        while world.station.broker.searcher.jobs:
            world.station.broker.searcher.work()
        answer = reply if isinstance(reply, ListOffsetsResponse) else reply._message
        parts = answer.topics[0].partitions
        return [(ErrorCode(part.error_code), part.offset, part.timestamp) for part in parts]

    return told


@pytest.mark.parametrize("timestamp", [NOW, -3])
def test_a_search_by_time_may_outlive_a_leadership(world, timestamp):
    for index in (0, 1):
        send(world, 0, LONG, index=index)
        inspect(world)
    assert ask_time(world, timestamp, 0, 1)() == [(ErrorCode.NONE, 0, NOW)] * 2
    told = ask_time(world, timestamp, 0, 1)
    world.partitions[0].follow(9)
    assert told() == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1), (ErrorCode.NONE, 0, NOW)]


def test_a_search_over_many_headers_pauses(world):
    """Where very many batches have one time, the time index knows none of them: 10 M headers took seconds."""
    for _ in range(9_000 // 30):
        send(world, 0, *([batch()] * 30))
    later = build_batch([Record(0, NOW + 50, b"k", b"v", ())])
    send(world, 0, later)
    told = ask_time(world, NOW + 1, 0, 1)
    turns = len(world.station.timers.waiting)
    assert turns == 1
    world.station.settle()
    assert told() == [(ErrorCode.NONE, 9_000, NOW + 50), (ErrorCode.NONE, -1, -1)]
    told = ask_time(world, NOW + 1, 0)
    world.partitions[0].follow(9)
    world.station.settle()
    assert told() == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1)]


def test_a_search_that_pauses_may_find_the_log_cut(world):
    for _ in range(9_000 // 30):
        send(world, 0, *([batch()] * 30))
    send(world, 0, build_batch([Record(0, NOW + 50, b"k", b"v", ())]))
    told = ask_time(world, NOW + 1, 0)
    partition = world.partitions[0]
    cut_to(partition, 100)
    partition.log.append(build_batch([Record(0, NOW + 70, b"k", bytes(9_999), ())]), 0, NOW)
    partition.high_watermark = partition.log.end_offset
    world.station.settle()
    assert told() == [(ErrorCode.NONE, 100, NOW + 70)]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_where_a_share_group_begins_by_time(world, codec, monkeypatch):
    records = [Record(n, NOW + 10 * n, b"k", bytes(2_000), ()) for n in range(10)]
    log = world.partitions[0].log
    send(world, 0, batch(), build_batch(records, codec=codec))
    now = NOW + 10_000

    def reset_offset(partition, wish, now):
        found = []
        find_reset_offset(world.station.broker, partition, wish, now, found.append)
        world.station.settle()
        return found[0]

    assert reset_offset(world.partitions[0], "by_duration:PT9.95S", now) == 6
    assert reset_offset(world.partitions[0], "by_duration:PT1S", now) == 11
    monkeypatch.setattr("ottla.broker.share_begin._BATCH_BYTES_MAX", 5_000)
    assert reset_offset(world.partitions[0], "by_duration:PT9.95S", now) == 1, "its batch begins there"
    log.raise_start_offset(3)
    assert reset_offset(world.partitions[0], "by_duration:PT9.95S", now) == 3


@pytest.mark.parametrize("timestamp", [0, NOW, -3, -4, -5])
def test_a_search_in_a_partition_without_files_takes_nothing_offline(world, timestamp):
    """The age of a file that is not made yet was asked for, and taken for a failure of the disk."""
    offset = 0 if timestamp == -4 else -1
    assert world.partitions[0].log.is_nascent
    assert ask_time(world, timestamp, 0, 1)() == [(ErrorCode.NONE, offset, -1)] * 2
    assert all(directory.offline is None for directory in world.station.directories)


def asked_of(*places):
    wanted = ListOffsetsRequest.ListOffsetsTopic
    return ListOffsetsRequest(
        replica_id=-1,
        topics=[
            wanted(name=name, partitions=[wanted.ListOffsetsPartition(partition_index=index, timestamp=NOW)])
            for name, index in places
        ],
    )


def test_each_partition_is_answered_once_and_none_that_is_asked_for_twice(world):
    """A topic that was named a thousand times had its batch searched a thousand times."""
    for index in (0, 1):
        send(world, 0, LONG, index=index)
        inspect(world)
    request = asked_of(*[("t", 0)] * 1_000, ("t", 1), ("no", 0), ("no", 0))
    reply = list_offsets.API.handle(request, 11, world.clients[0], world.station.broker)
    world.station.broker.searcher.work()
    told = [
        (topic.name, part.partition_index, ErrorCode(part.error_code), part.offset)
        for topic in reply._message.topics
        for part in topic.partitions
    ]
    assert told == [
        ("t", 0, ErrorCode.INVALID_REQUEST, -1),
        ("t", 1, ErrorCode.NONE, 0),
        ("no", 0, ErrorCode.INVALID_REQUEST, -1),
    ]


def test_connections_take_turns_in_searches(world):
    """Three hundred searches of one connection were all done before the one of another."""
    broker = world.station.broker
    send(world, 0, LONG)
    inspect(world)
    many = [list_offsets.API.handle(asked_of(("t", 0)), 11, world.clients[0], broker) for _ in range(300)]
    one = list_offsets.API.handle(asked_of(("t", 0)), 11, world.clients[1], broker)
    for _ in range(3):
        broker.searcher.work()
    assert one._message is not None
    assert sum(reply._message is not None for reply in many) == 2, "one was in the thread, and one came before"
    world.clients[0].connection_lost(None)
    broker.searcher.work()
    assert not broker.searcher.jobs, "nobody waits for the others"
    assert not len(broker.searches)


def test_a_search_that_waits_holds_no_batch(world, monkeypatch):
    """Each held a copy of the batch it was to search: 2,000 of a megabyte."""
    broker = world.station.broker
    send(world, 0, LONG)
    inspect(world)
    reads = []
    read = Candidate.read
    monkeypatch.setattr(Candidate, "read", lambda candidate: reads.append(candidate) or read(candidate))
    replies = [list_offsets.API.handle(asked_of(("t", 0)), 11, world.clients[0], broker) for _ in range(20)]
    assert len(reads) == 1, "that of the one in the thread"
    world.partitions[0].follow(9)
    for _ in range(20):
        broker.searcher.work()
    codes = {reply._message.topics[0].partitions[0].error_code for reply in replies}
    assert codes == {ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert len(reads) == 1


def two_long(world, first, second):
    """A request with a long batch for each of two partitions, as a connection gets it."""
    body = ProduceRequest.TopicProduceData.PartitionProduceData
    data = ProduceRequest.TopicProduceData(
        topic_id=world.partitions[0].topic_id,
        partition_data=[
            body(index=index, records=memoryview(bytearray(records)))
            for index, records in enumerate((first, second))
        ],
    )
    request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[data])
    return produce.API.handle(request, 13, world.clients[0], world.station.broker)


def test_a_batch_that_is_dropped_before_another_is_done_takes_nothing_of_its_result(world):
    """The second was dropped while the first was in the thread, and was stored with what was found in the first."""
    spoilt = LONG[BATCH_HEADER_SIZE:]
    spoilt[-1] ^= 1
    unreadable = assemble(Batch.parse(LONG), spoilt)
    reply = two_long(world, LONG, unreadable)
    requests = world.clients[0].connections.requests
    requests.add_queued(requests.bytes_max)
    world.clients[0].connection_lost(None)
    inspect(world)
    parts = reply._message.responses[0].partition_responses
    assert [part.error_code for part in parts] == [ErrorCode.NONE, ErrorCode.NETWORK_EXCEPTION]
    assert [partition.log.end_offset for partition in world.partitions[:2]] == [1, 0]
    stored = world.partitions[0].log.read(0, 1 << 20, 1)
    assert bytes(stored)[BATCH_HEADER_SIZE:] == bytes(LONG)[BATCH_HEADER_SIZE:]


def test_what_was_found_in_one_batch_is_no_word_about_another(world):
    log = world.partitions[0].log
    found = inspect_client_batch(LONG, log.config, NOW)
    with pytest.raises(AssertionError):
        log.append(bytearray(KEYLESS), 0, NOW, inspected=found)
    assert log.end_offset == 0
    assert log.append(bytearray(LONG), 0, NOW, inspected=found).end_offset == 1


def test_a_batch_that_waits_for_the_thread_keeps_nothing_else_of_its_request(world):
    """It kept the frame it came in: 90 MB for each of some KB."""
    body = ProduceRequest.TopicProduceData.PartitionProduceData
    data = ProduceRequest.TopicProduceData(topic_id=world.partitions[0].topic_id)
    frame = bytearray(LONG) + bytes(1 << 20)
    view = memoryview(frame)
    data.partition_data = [
        body(index=0, records=view[: len(LONG)]),
        body(index=1, records=memoryview(batch())),
        body(index=99, records=view[len(LONG) :]),
        *(body(index=100 + number) for number in range(200)),
    ]
    request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[data])
    view.release()
    reply = produce.API.handle(request, 13, world.clients[0], world.station.broker)
    assert world.partitions[1].log.end_offset == 1
    assert sum(part.records is not None for part in data.partition_data) == 1
    frame.clear()  # nobody looks at it any more, or this would raise BufferError
    requests = world.clients[0].connections.requests
    assert requests.queued == len(LONG) + 103 * 512, "and the partitions that it names count, if they are many"
    inspect(world)
    parts = reply._message.responses[0].partition_responses
    assert [part.error_code for part in parts[:2]] == [ErrorCode.NONE] * 2 and parts[2].error_code
    assert requests.queued == 0
