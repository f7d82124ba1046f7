"""The asking end: questions in a row, answers in the same order, and every question ends."""

import struct
import tracemalloc

import pytest

from ottla.channel.link import Link, LinkLost
from ottla.wire.errors import ErrorCode, ProtocolError
from ottla.wire.header import read_request_header
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse


class Transport:
    def __init__(self):
        self.written = bytearray()
        self.aborted = False

    def writelines(self, parts):
        for part in parts:
            self.written += part

    def abort(self):
        self.aborted = True


class Line:
    """A link with a transport that writes nowhere, and what became of its questions."""

    def __init__(self):
        self.lost = []
        self.link = Link("me", lambda link, reason: self.lost.append(reason))
        self.transport = Transport()
        self.link.connection_made(self.transport)
        self.answers = []

    def beat(self, group="g", version=4):
        self.link.ask(HeartbeatRequest(group_id=group), HeartbeatResponse, version, self.answers.append)

    def requests(self):
        """(key, version, number, client, body) of every request written."""
        found, pos, data = [], 0, bytes(self.transport.written)
        while pos < len(data):
            [size] = struct.unpack_from(">i", data, pos)
            key, version, number, client, body = read_request_header(data, pos + 4, pos + 4 + size)
            found.append((key, version, number, client, data[body : pos + 4 + size]))
            pos += 4 + size
        return found

    def feed(self, data, step=None):
        step = step or len(data)
        for start in range(0, len(data), step):
            piece = data[start : start + step]
            while piece:
                room = self.link.get_buffer(-1)
                taken = min(len(room), len(piece))
                room[:taken] = piece[:taken]
                self.link.buffer_updated(taken)
                piece = piece[taken:]


def answer(number, body, *, tagged):
    frame = struct.pack(">i", number) + (b"\0" if tagged else b"") + body
    return struct.pack(">i", len(frame)) + frame


def beaten(number, code=0, version=4):
    return answer(number, HeartbeatResponse(error_code=code).encode(version), tagged=version >= 4)


@pytest.mark.parametrize("version", [0, 3, 4])
def test_a_request_says_who_asks_what_in_which_version(version):
    line = Line()
    line.beat("group", version)
    [(key, asked, number, client, body)] = line.requests()
    assert (key, asked, number, client) == (12, version, 1, "me")
    assert HeartbeatRequest.decode(body, version).group_id == "group"


@pytest.mark.parametrize("step", [1, 3, 7, None])
def test_answers_come_in_the_order_of_the_questions_however_they_are_cut(step):
    line = Line()
    for _ in range(50):
        line.beat()
    line.feed(b"".join(beaten(n, n % 7) for n in range(1, 51)), step)
    assert [each.error_code for each in line.answers] == [n % 7 for n in range(1, 51)]
    assert line.link.in_flight == 0


@pytest.mark.parametrize("step", [1000, 65536, None])
def test_an_answer_larger_than_the_buffer_is_received_in_one_of_its_own(step):
    line = Line()
    records = bytes(range(256)) * 1000
    data = FetchResponse.FetchableTopicResponse.PartitionData(partition_index=0, records=records)
    response = FetchResponse(responses=[FetchResponse.FetchableTopicResponse(partitions=[data])])
    line.link.ask(FetchRequest(), FetchResponse, 12, line.answers.append)
    line.beat()
    line.feed(answer(1, response.encode(12), tagged=True) + beaten(2), step)
    assert bytes(line.answers[0].responses[0].partitions[0].records) == records
    assert line.answers[1] == HeartbeatResponse()


def test_what_is_kept_of_one_answer_is_not_overwritten_by_the_next():
    line = Line()
    part = FetchResponse.FetchableTopicResponse.PartitionData
    for number in (1, 2):
        line.link.ask(FetchRequest(), FetchResponse, 12, line.answers.append)
        data = part(partition_index=0, records=bytes([number]) * 100)
        response = FetchResponse(responses=[FetchResponse.FetchableTopicResponse(partitions=[data])])
        line.feed(answer(number, response.encode(12), tagged=True))
    assert [bytes(each.responses[0].partitions[0].records)[0] for each in line.answers] == [1, 2]


def test_every_open_question_ends_with_the_connection_and_then_the_owner_is_told():
    line = Line()
    for _ in range(3):
        line.beat()
    line.link.connection_lost(ConnectionResetError("reset by peer"))
    assert [type(each) for each in line.answers] == [LinkLost] * 3
    assert "reset by peer" in str(line.lost[0])
    assert not line.link.is_open
    line.beat()
    assert isinstance(line.answers[3], LinkLost)


def test_every_question_ends_though_whoever_asked_one_fails():
    line = Line()
    line.beat("a")
    line.link.ask(HeartbeatRequest(group_id="b"), HeartbeatResponse, 4, lambda _: 1 / 0)
    line.beat("c")
    with pytest.raises(ZeroDivisionError):
        line.link.connection_lost(None)
    assert [type(each) for each in line.answers] == [LinkLost] * 2
    assert len(line.lost) == 1, "the owner is told all the same"


@pytest.mark.parametrize(
    "bytes_",
    [
        beaten(2),
        struct.pack(">i", -1),
        struct.pack(">i", 3) + b"abc",
        answer(1, b"", tagged=True),
    ],
    ids=["wrong number", "negative size", "no room for a number", "cut off"],
)
def test_nonsense_ends_the_connection(bytes_):
    line = Line()
    line.beat()
    line.feed(bytes_)
    assert line.transport.aborted
    line.link.connection_lost(None)
    assert len(line.answers) == 1
    assert isinstance(line.answers[0], ProtocolError)


def test_who_is_no_broker_gets_no_buffer_for_what_looks_like_a_size():
    """`HTTP` as a size is 1.2 GB."""
    line = Line()
    line.beat()
    tracemalloc.start()
    try:
        line.feed(b"HTTP/1.1 400 Bad Request\r\n", step=7)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert line.transport.aborted


@pytest.mark.parametrize("asks", ["heartbeat", "fetch"])
def test_a_buffer_grows_with_what_comes(asks, monkeypatch):
    monkeypatch.setattr("ottla.channel.link._PLAIN_BYTES_AT_ONCE", 100_000)
    monkeypatch.setattr("ottla.channel.link._LARGE_BYTES_AT_ONCE", 300_000)
    line = Line()
    if asks == "fetch":
        part = FetchResponse.FetchableTopicResponse.PartitionData(records=bytes(900_000))
        topic = FetchResponse.FetchableTopicResponse(partitions=[part])
        line.link.ask(FetchRequest(), FetchResponse, 12, line.answers.append)
        frame = answer(1, FetchResponse(responses=[topic]).encode(12), tagged=True)
    else:
        line.link.ask(MetadataRequest(), MetadataResponse, 12, line.answers.append)
        brokers = [MetadataResponse.MetadataResponseBroker(host="h" * 1000) for _ in range(900)]
        frame = answer(1, MetadataResponse(brokers=brokers).encode(12), tagged=True)
    line.feed(frame[:200])
    line.feed(frame[200:70_000])
    assert len(line.link._frame) == (300_000 if asks == "fetch" else 100_000)
    line.feed(frame[70_000:], step=33_333)
    [got] = line.answers
    size = len(got.responses[0].partitions[0].records) if asks == "fetch" else sum(len(b.host) for b in got.brokers)
    assert size == 900_000
    line.beat()
    line.feed(beaten(2))
    assert line.answers[1].error_code == 0


def test_an_answer_that_no_question_could_have_is_not_received():
    line = Line()
    line.beat()
    line.feed(struct.pack(">ii", 1 << 30, 1) + bytes(70_000))
    assert line.transport.aborted


def test_an_answer_to_no_question_ends_the_connection():
    line = Line()
    line.feed(beaten(1))
    assert line.transport.aborted


def test_unknown_tags_of_a_response_header_are_passed_over():
    line = Line()
    line.beat()
    frame = struct.pack(">i", 1) + b"\x01\x09\x03abc" + HeartbeatResponse(error_code=27).encode(4)
    line.feed(struct.pack(">i", len(frame)) + frame)
    assert line.answers[0].error_code == 27


def test_an_old_broker_says_in_version_0_that_it_does_not_know_ours():
    line = Line()
    line.link.ask(ApiVersionsRequest(), ApiVersionsResponse, 5, line.answers.append)
    known = ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=2)
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[known])
    line.feed(answer(1, refusal.encode(0), tagged=False))
    assert line.answers[0].api_keys == [known]


def test_a_told_request_has_no_answer():
    line = Line()
    line.link.tell(HeartbeatRequest(), 4)
    line.beat()
    assert [number for _, _, number, _, _ in line.requests()] == [1, 2]
    line.feed(beaten(2))
    assert line.answers == [HeartbeatResponse()]


def test_a_buffer_is_used_again_once_nobody_looks_at_it():
    line = Line()
    part = FetchResponse.FetchableTopicResponse.PartitionData

    def fetched(number, letter, size):
        line.link.ask(FetchRequest(), FetchResponse, 12, line.answers.append)
        data = part(partition_index=0, records=letter * size)
        response = FetchResponse(responses=[FetchResponse.FetchableTopicResponse(partitions=[data])])
        line.feed(answer(number, response.encode(12), tagged=True))
        return line.answers.pop().responses[0].partitions[0].records

    first = fetched(1, b"a", 200_000)
    second = fetched(2, b"b", 100_000)
    assert (bytes(first), bytes(second)) == (b"a" * 200_000, b"b" * 100_000)
    kept = [id(each) for each in line.link._spares]
    assert len(kept) == 2
    del second
    third = fetched(3, b"c", 90_000)
    assert [id(each) for each in line.link._spares] == kept, "the second buffer was free"
    assert (bytes(first), bytes(third)) == (b"a" * 200_000, b"c" * 90_000)
    held = [first, third, *(fetched(n, b"%d" % n, 150_000) for n in range(4, 9))]
    assert len(line.link._spares) == 3
    assert [bytes(each[:1]) for each in held] == [b"a", b"c", b"4", b"5", b"6", b"7", b"8"]
