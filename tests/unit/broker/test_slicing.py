"""A long request is answered as if it were served at once, in its place, and breaks for its own client alone."""

import random
import struct
from types import SimpleNamespace

import pytest

from ottla.broker import long_requests
from ottla.broker.api import Api, Pending
from ottla.broker.apis import fetch, list_offsets, metadata
from ottla.broker.controller_face import CONTROLLER_TABLE
from ottla.broker.dispatch import Dispatcher
from ottla.broker.long_fetch import LongFetch
from ottla.broker.served import APIS
from ottla.broker.slicing import Cut, InSlices, slices
from ottla.wire.errors import ErrorCode
from ottla.wire.message import fields_of
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.list_offsets import ListOffsetsRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.piecewise import encode_piecewise, is_long
from tests.peers.connection import request_frame
from tests.unit.broker.conftest import Station

TABLE = {api.key: api for api in (*CONTROLLER_TABLE, *APIS)}
SLICED = {api.name: (api, api.long) for api in TABLE.values() if isinstance(api.long, InSlices)}
SLICED["Metadata"] = metadata.API, metadata._in_slices
SLICE = 3
TOPICS = 4


@pytest.fixture
def twins(tmp_path):
    """Two brokers that are alike."""
    made = []
    for name in ("whole", "sliced"):
        (tmp_path / name).mkdir()
        station = Station(tmp_path / name)
        for number in range(TOPICS):
            station.create(f"n{number}", partitions=3)
            station.produce(f"n{number}", 1, count=2)
        made.append(station)
    yield made
    for station in made:
        station.close()


def value(field, number, topic_ids, chance):
    """What an element of the given number has in a field."""
    kind = field.kind.name
    if kind == "string":
        return f"n{number}"
    if kind == "uuid":
        return topic_ids[number] if number < TOPICS else number.to_bytes(16, "big")
    if field.name == "resource_type":
        return 2
    if field.name == "timestamp":
        return chance.choice((-1, -2, 0))
    return number if "partition" in field.name or field.name == "index" else field.default or 0


def struct_of(cls, version, path, number, topic_ids, chance):
    """A request, or an element of one, with some elements at every level of a path."""
    values = {}
    for field in fields_of(cls):
        if version not in field.versions or field.tag is not None:
            continue
        if field.array:
            if not path or field.name != path[0]:
                continue
            # A marker that goes nowhere is not answered.
            count = chance.randrange(number is None or cls.__module__.endswith("write_txn_markers"), 9)
            values[field.name] = [
                struct_of(field.kind, version, path[1:], each, topic_ids, chance)
                if field.is_struct
                else value(field, each, topic_ids, chance)
                for each in chance.sample(range(9), count)
            ]
        elif not field.is_struct and number is not None:
            values[field.name] = value(field, number, topic_ids, chance)
        elif field.name in ("group_id", "transactional_id"):
            values[field.name] = "g"
    if {"name", "topic_id"} <= set(values) and len(path) == 0 and "num_partitions" not in values:
        values["name" if number % 2 else "topic_id"] = None if number % 2 else bytes(16)
    return cls(**values)


def served(station, api, request, version, *, sliced):
    """The answer, as a client would read it."""
    request = api.request.decode(request.encode(version), version)
    if sliced:
        steps = api.long(api.handle, request, version, station.connection, station.broker)
        turns = 0
        while True:
            try:
                next(steps)
                turns += 1
                station.settle()
            except StopIteration as end:
                reply = end.value
                break
    else:
        reply = api.handle(request, version, station.connection, station.broker)
    if isinstance(reply, Pending):
        station.settle(60_000)
        reply = reply._message
    return api.response.decode(reply.encode(version), version)


@pytest.mark.parametrize("name", sorted(SLICED))
def test_an_answer_in_slices_is_that_of_the_whole(name, twins, monkeypatch):
    api, in_slices = SLICED[name]
    monkeypatch.setattr(in_slices, "size", SLICE)
    chance = random.Random(name)
    whole, sliced = twins
    topic_ids = [whole.broker.image.topics.by_name[f"n{number}"].id for number in range(TOPICS)]
    assert topic_ids == [sliced.broker.image.topics.by_name[f"n{number}"].id for number in range(TOPICS)]
    for version in api.versions:
        cut = next((each for each in in_slices.cuts if _has(api, each.asked, version)), None)
        if cut is None:
            continue
        for _ in range(3):
            request = struct_of(api.request, version, cut.asked.split("."), None, topic_ids, chance)
            if name == "Metadata":
                request.allow_auto_topic_creation = version < 4
                whole.broker.settings = sliced.broker.settings = {
                    **whole.values,
                    "auto.create.topics.enable": False,
                }
            expected = served(whole, api, request, version, sliced=False)
            found = served(sliced, api, request, version, sliced=True)
            if "." not in cut.asked:  # each coordinator tells of its groups in turn
                for answer in (expected, found):
                    setattr(answer, cut.answered, sorted(getattr(answer, cut.answered), key=repr))
            assert found == expected, (version, request)


def _has(api, path, version):
    return any(
        field.name == path.split(".")[0] and version in field.versions for field in fields_of(api.request)
    )


def offsets_of(*topics):
    """A ListOffsets request of (name, indexes)."""
    topic = ListOffsetsRequest.ListOffsetsTopic
    return ListOffsetsRequest(
        topics=[
            topic(
                name=name,
                partitions=[topic.ListOffsetsPartition(partition_index=i, timestamp=-1) for i in indexes],
            )
            for name, indexes in topics
        ]
    )


def named(request):
    return [(topic.name, [part.partition_index for part in topic.partitions]) for topic in request.topics]


def test_a_topic_lies_across_borders():
    cut = Cut("topics.partitions", "topics.partitions")
    cuts = list(slices(offsets_of(("a", range(5)), ("b", []), ("c", [7])), cut, 3))
    assert [(named(part), continued) for part, continued in cuts] == [
        ([("a", [0, 1, 2])], 0),
        ([("a", [3, 4]), ("b", [])], 1),
        ([("c", [7])], 0),
    ]


def test_a_slice_ends_though_the_same_is_named_again_and_again():
    request = FindCoordinatorRequest(coordinator_keys=["same"] * 7)
    cuts = [part.coordinator_keys for part, _ in slices(request, Cut("coordinator_keys", "coordinators"), 3)]
    assert cuts == [["same"] * 3, ["same"] * 3, ["same"]]


def test_mentions_of_one_thing_are_in_one_slice_and_no_more_than_two():
    cut = Cut("topics.partitions", "topics.partitions", ("name", "partition_index"))
    cuts = [each for each in slices(offsets_of(("a", [1, 2, 1]), ("b", [1]), ("a", [3, 1])), cut, 1) if each]
    assert [named(part) for part, _ in cuts] == [[("a", [1, 1])], [("a", [2])], [("a", [3])], [("b", [1])]]


def test_what_is_named_twice_in_a_long_request_is_refused_as_in_a_short_one(station):
    station.create("t", partitions=8)
    request = offsets_of(("t", [0, 1, 2, 3, 4, 5, 0]))
    steps = InSlices(list_offsets.API.long.cuts, 2)(
        list_offsets.handle, request, 11, station.connection, station.broker
    )
    answer = finished(steps)
    codes = {part.partition_index: part.error_code for part in answer.topics[0].partitions}
    assert codes == {index: ErrorCode.INVALID_REQUEST if index == 0 else 0 for index in range(6)}


def finished(steps):
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


@pytest.mark.parametrize("version", MetadataResponse.versions)
@pytest.mark.parametrize("counts", [[1], [0, 0], [127], [128, 1, 300], [3] * 130, [1, 200, 0, 7, 129]])
def test_pieces_are_the_bytes_of_the_whole(version, counts):
    topic = MetadataResponse.MetadataResponseTopic
    part = topic.MetadataResponsePartition
    message = MetadataResponse(
        topics=[
            topic(
                name=f"n{count}",
                partitions=[part(partition_index=n, replica_nodes=[1, n]) for n in range(count)],
            )
            for count in counts
        ],
    )
    pieces = list(encode_piecewise(message, version, 7))
    assert b"".join(pieces) == message.encode(version)
    assert is_long(message, version, 7) == (sum(counts) + len(counts) > 7)
    one = max(len(encode_piecewise_of(part(partition_index=300, replica_nodes=[1, 300]), version)), 1)
    assert max(map(len, pieces)) < 16 * one + 100


def encode_piecewise_of(part, version):
    topic = MetadataResponse.MetadataResponseTopic(name="", partitions=[part])
    return MetadataResponse(topics=[topic]).encode(version)


def test_an_answer_without_arrays_is_not_long():
    assert not is_long(FindCoordinatorResponse(), 0, 0)
    assert not is_long(MetadataResponse(), 12, 0)


class Peer:
    """A connection as a dispatcher sees it."""

    def __init__(self, station):
        self.peer, self.listener, self.closed = "127.0.0.1", "PLAINTEXT", False
        self.session = SimpleNamespace(client_id=None)
        self.connections = station.connections
        self.on_close, self.owed, self.replies = [], [], []
        self.muted = self.pace = None
        self.held, self.is_corked = 0, False

    def reply(self, parts):
        self.replies.append(b"".join(map(bytes, parts)))

    def owe(self, reply):
        self.owed.append(reply)

    def settle(self, reply=None):
        while self.owed and self.owed[0].parts is not None:
            self.reply(self.owed.pop(0).parts)

    def mute(self):
        self.muted = True

    def unmute(self):
        self.muted = False

    def close(self):
        self.closed = True
        for callback in self.on_close:
            callback()


def test_a_long_request_is_answered_with_the_same_bytes_in_many_turns(station, monkeypatch):
    monkeypatch.setattr(long_requests, "PIECE", 3)
    for api in (metadata.API, list_offsets.API, TABLE[10]):
        dispatcher = Dispatcher((api,), station.broker, station.reports.append)
        if api is metadata.API:
            kind = MetadataRequest.MetadataRequestTopic
            request = MetadataRequest(
                topics=[kind(name=f"n{n}") for n in range(2000)], allow_auto_topic_creation=False
            )
        elif api is list_offsets.API:
            request = offsets_of(*((f"n{n}", range(3)) for n in range(700)))
        else:
            request = FindCoordinatorRequest(coordinator_keys=[f"group {n}" for n in range(1500)])
        version = api.versions[-1]
        frame = bytearray(request_frame(request, version, 9))
        long, short = Peer(station), Peer(station)
        dispatcher.serve(long, frame, 4, len(frame))
        assert long.muted and not long.replies and station.connections.requests.total
        station.settle()
        monkeypatch.setattr(dispatcher.routes[api.key << 16 | version], "long_bytes", 1 << 31)
        dispatcher.serve(short, frame, 4, len(frame))
        station.settle()
        assert long.replies == short.replies and len(long.replies) == 1
        assert not long.muted and not station.connections.requests.total and not len(dispatcher.long)
        assert struct.unpack_from(">ii", long.replies[0]) == (len(long.replies[0]) - 4, 9)


def sliced_api(handle, size=500):
    return Api(
        FindCoordinatorRequest,
        FindCoordinatorResponse,
        handle,
        long=InSlices((Cut("coordinator_keys", "coordinators"),), size),
    )


def long_frame(count=3000):
    request = FindCoordinatorRequest(coordinator_keys=[f"group {n}" for n in range(count)])
    return bytearray(request_frame(request, 6, 9))


def answer_to(request):
    return FindCoordinatorResponse(
        coordinators=[FindCoordinatorResponse.Coordinator(key=key) for key in request.coordinator_keys]
    )


def test_a_slice_may_be_answered_later_and_the_others_are_not_held_up(station):
    begun, waiting = [], []

    def handle(request, version, connection, broker):
        begun.append(len(request.coordinator_keys))
        if len(begun) != 2:
            return answer_to(request)
        pending = Pending()
        waiting.append((pending, answer_to(request)))
        return pending

    dispatcher = Dispatcher((sliced_api(handle),), station.broker, station.reports.append)
    peer, frame = Peer(station), long_frame()
    dispatcher.serve(peer, frame, 4, len(frame))
    station.settle()
    assert begun == [500] * 6 and not peer.replies and not len(dispatcher.long)
    [(pending, answer)] = waiting
    pending.resolve(answer)
    station.settle()
    [reply] = peer.replies
    found, _ = FindCoordinatorResponse.decoder(6)(bytearray(reply), 9, len(reply))
    assert [each.key for each in found.coordinators] == [f"group {n}" for n in range(3000)]


def test_what_breaks_in_the_middle_closes_its_own_connection(station):
    calls = []

    def handle(request, version, connection, broker):
        calls.append(connection)
        if calls.count(connection) == 3 and connection is broken:
            raise KeyError("ours")
        return answer_to(request)

    dispatcher = Dispatcher((sliced_api(handle),), station.broker, station.reports.append)
    broken, other, frame = Peer(station), Peer(station), long_frame()
    dispatcher.serve(broken, frame, 4, len(frame))
    dispatcher.serve(other, frame, 4, len(frame))
    station.settle()
    assert broken.closed and not broken.replies and calls.count(broken) == 3
    assert not other.closed and len(other.replies) == 1
    assert "KeyError('ours')" in station.reports[-1]


def test_a_failure_that_comes_later_closes_its_own_connection(station):
    pendings = []

    def handle(request, version, connection, broker):
        pendings.append(Pending())
        return pendings[-1]

    dispatcher = Dispatcher((sliced_api(handle),), station.broker, station.reports.append)
    peer, frame = Peer(station), long_frame()
    dispatcher.serve(peer, frame, 4, len(frame))
    station.settle()
    pendings[2].fail(KeyError("ours"))
    assert peer.closed and not peer.replies


def test_a_failure_while_others_begin_closes_its_own_connection(station):
    pendings = []

    def handle(request, version, connection, broker):
        pendings.append(Pending())
        if len(pendings) == 4:
            pendings[1].fail(KeyError("ours"))  # by somebody who is not to blame for it
        return pendings[-1]

    dispatcher = Dispatcher((sliced_api(handle),), station.broker, station.reports.append)
    peer, frame = Peer(station), long_frame()
    dispatcher.serve(peer, frame, 4, len(frame))
    station.settle()
    assert len(pendings) == 6 and peer.closed and not peer.replies


def test_nobody_goes_on_for_a_client_that_has_gone(station):
    calls = []

    def handle(request, version, connection, broker):
        calls.append(connection)
        if len(calls) == 2:
            connection.close()
        return answer_to(request)

    dispatcher = Dispatcher((sliced_api(handle),), station.broker, station.reports.append)
    gone, waiting, frame = Peer(station), [Peer(station) for _ in range(5)], long_frame()
    dispatcher.serve(gone, frame, 4, len(frame))
    for peer in waiting:
        dispatcher.serve(peer, frame, 4, len(frame))
        peer.close()
    assert station.connections.requests.total  # of the first
    station.settle()
    assert calls == [gone] * 2 and not station.connections.requests.total and not len(dispatcher.long)


def test_short_long_requests_come_before_longer_ones(station):
    served = []

    def handle(request, version, connection, broker):
        served.append(connection)
        return answer_to(request)

    dispatcher = Dispatcher((sliced_api(handle),), station.broker, station.reports.append)
    frames = [long_frame(20_000)] * 4 + [long_frame(1000)]
    peers = [Peer(station) for _ in frames]
    for peer, frame in zip(peers, frames, strict=True):
        dispatcher.serve(peer, frame, 4, len(frame))
    station.settle()
    assert all(peer.replies for peer in peers)
    assert served.index(peers[3]) > max(at for at, peer in enumerate(served) if peer is peers[4])


def test_bytes_that_are_no_request_close_the_connection(station):
    dispatcher = Dispatcher((sliced_api(None),), station.broker, station.reports.append)
    peer, frame = Peer(station), long_frame()[:-5]
    dispatcher.serve(peer, frame, 4, len(frame))
    station.settle()
    assert peer.closed and "malformed" in station.reports[-1]
    assert not station.connections.requests.total


def a_fetch(topic_id, count, *, wait_ms=0, min_bytes=1, unknown=0):
    topic = FetchRequest.FetchTopic
    parts = [
        topic.FetchPartition(partition=n, fetch_offset=0, partition_max_bytes=1 << 20)
        for n in range(count + unknown)
    ]
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 20,
        session_id=0,
        session_epoch=-1,
        topics=[topic(topic_id=topic_id, partitions=parts)],
    )


def long_fetch(station, request):
    """The steps of a long fetch, to be taken one by one."""
    return fetch.API.long(fetch.handle, request, fetch.API.versions[-1], station.connection, station.broker)


def test_a_long_fetch_reads_what_a_whole_one_reads(station):
    topic = station.create("t", partitions=3)
    station.produce("t", 2)
    request = a_fetch(topic.id, 3, unknown=1200)
    whole = fetch.handle(request, 18, station.connection, station.broker)
    steps = long_fetch(station, request)
    assert finished(steps) == whole
    assert sum(part.error_code != 0 for part in whole.responses[0].partitions) == 1200


def test_growth_while_others_are_read_is_not_missed(station):
    topic = station.create("t", partitions=600)
    steps = long_fetch(station, a_fetch(topic.id, 600, wait_ms=10_000))
    next(steps)
    station.produce("t", 3)  # which was read before
    answer = finished(steps)
    assert not isinstance(answer, Pending)
    assert [part.partition_index for part in answer.responses[0].partitions if part.records] == [3]


def test_a_long_fetch_waits_and_is_woken(station):
    topic = station.create("t", partitions=600)
    pending = finished(long_fetch(station, a_fetch(topic.id, 600, wait_ms=10_000)))
    assert isinstance(pending, Pending) and pending._message is None
    answers = []
    pending.then(answers.append)
    station.produce("t", 3)
    station.settle()
    assert [part.partition_index for part in answers[0].responses[0].partitions if part.records] == [3]


def test_ordinary_fetches_are_not_long(station):
    assert not issubclass(fetch.Fetch, LongFetch)
    topic = station.create("t", partitions=3)
    steps = long_fetch(station, a_fetch(topic.id, 3))
    with pytest.raises(StopIteration):
        next(steps)
