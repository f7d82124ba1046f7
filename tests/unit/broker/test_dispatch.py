"""A frame is read within its own bytes, and a fault of ours is told however much nonsense clients send."""

import struct
from types import SimpleNamespace

import pytest

from ottla.broker.api import Api, Pending
from ottla.broker.apis import api_versions, describe_configs, fetch, metadata, metadata_fetch
from ottla.broker.dispatch import Dispatcher
from ottla.broker.pace import Pace
from ottla.broker.session import Session
from ottla.channel.connection import Connection
from ottla.wire.apis import BY_KEY
from ottla.wire.messages.describe_configs import DescribeConfigsRequest
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.wire.messages.metadata import MetadataRequest
from tests.peers.connection import request_frame
from tests.unit.broker.conftest import ConnectionStandIn
from tests.unit.channel.test_connection import Transport, feed


class Peer:
    """A connection as a dispatcher sees it."""

    def __init__(self):
        self.peer, self.listener = "127.0.0.1", "CONTROLLER"
        self.session = SimpleNamespace(client_id=None)
        self.replies = []
        self.owed = []
        self.closed = False

    def reply(self, parts):
        self.replies.append(b"".join(map(bytes, parts)))

    def close(self):
        self.closed = True

    def owe(self, reply):
        self.owed.append(reply)

    def settle(self, reply=None):
        self.replies += [b"".join(map(bytes, each.parts)) for each in self.owed if each.parts]


def broken(request, version, connection, broker):
    raise KeyError("ours")


@pytest.fixture
def dispatcher(station):
    told = []
    apis = (api_versions.API, Api(ListGroupsRequest, ListGroupsResponse, broken), metadata_fetch.API)
    made = Dispatcher(apis, station.broker, told.append)
    made.told = told
    return made


@pytest.mark.parametrize("size", range(12))
@pytest.mark.parametrize("version", [3, 99])
def test_a_frame_shorter_than_its_header_is_refused_whatever_lies_behind_it(dispatcher, size, version):
    """The buffer is shared: behind a frame lie the bytes of whoever was read before."""
    whole = struct.pack(">hhih", 18, version, 0x5EC12E7, -1) + b"\0\1\1\0\0\0\0"
    shortest = 10 if version == 99 else 11
    peer = Peer()
    dispatcher.serve(peer, bytearray(whole), 0, size)
    if size < shortest:
        assert peer.closed and not peer.replies
    else:
        assert not peer.closed or version == 3  # the header is whole: the rest is the decoder's


def test_a_broken_handler_is_told_behind_a_flood_of_bad_frames(dispatcher):
    for _ in range(1000):
        dispatcher.serve(Peer(), bytearray(5), 0, 5)
    frame = request_frame(ListGroupsRequest(), 0, 1)
    dispatcher.serve(Peer(), bytearray(frame), 4, len(frame))
    [line] = [line for line in dispatcher.told if "failed" in line]
    assert "ListGroups v0 failed: KeyError('ours')" in line
    assert "test_dispatch.py:" in line
    assert dispatcher._broker.last_failure.__traceback__ is None


@pytest.mark.parametrize("version", BY_KEY[1].stable_versions)
def test_the_metadata_log_is_fetched_at_every_version(dispatcher, version):
    """Before v12 there is no room for what replicas of the quorum tell each other."""
    topic = FetchRequest.FetchTopic(topic="__cluster_metadata", topic_id=bytes(15) + b"\1")
    topic.partitions = [topic.FetchPartition(partition=0, fetch_offset=1 << 40, last_fetched_epoch=-1)]
    request = FetchRequest(replica_id=-1, max_wait_ms=0, topics=[topic])
    if version >= 13:
        topic.topic = ""
    else:
        topic.topic_id = bytes(16)
    frame = request_frame(request, version, 1)
    peer = Peer()
    dispatcher.serve(peer, bytearray(frame), 4, len(frame))
    assert not peer.closed, dispatcher.told
    [answer] = peer.replies
    FetchResponse.decode(answer[8 + (version >= 12) :], version)


@pytest.mark.parametrize("is_late", [False, True])
def test_a_reply_that_breaks_while_it_is_waited_for_costs_its_client_the_connection(station, is_late):
    pending, told = Pending(), []

    def handle(request, version, connection, broker):
        if not is_late:
            pending.fail(KeyError("ours"))
        return pending

    dispatcher = Dispatcher((Api(ListGroupsRequest, ListGroupsResponse, handle),), station.broker, told.append)
    frame, peer = request_frame(ListGroupsRequest(), 0, 1), Peer()
    dispatcher.serve(peer, bytearray(frame), 4, len(frame))
    if is_late:
        assert not peer.closed
        pending.fail(KeyError("ours"))
    assert peer.closed
    assert ["ListGroups v0 failed: KeyError('ours')" in line for line in told] == [True]


def test_large_answers_that_nobody_takes_stop_other_large_answers_and_not_those_of_modest_size(station):
    dispatcher = Dispatcher((metadata.API, describe_configs.API), station.broker, lambda _: None)
    answers, put_off = station.broker.connections.answers, []

    def served(message, version):
        peer = Peer()
        peer.wait_for_room = put_off.append
        frame = request_frame(message, version, 1)
        dispatcher.serve(peer, bytearray(frame), 4, len(frame))
        return len(peer.replies)

    holder = Peer()
    answers.hold(holder, answers.bytes_max)
    assert answers.is_full
    assert served(MetadataRequest(topics=[]), 9) == 1 and not put_off
    assert served(DescribeConfigsRequest(resources=[]), 4) == 0 and len(put_off) == 1
    answers.hold(holder, answers.modest_max)  # the room of these is used up as well
    assert served(MetadataRequest(topics=[]), 9) == 0 and len(put_off) == 2
    answers.forget(holder)


def test_what_a_request_that_was_put_off_holds_is_given_back(station):
    """A fetch waits for room, is served, and its answer waits for the pace of its reader."""
    station.create("t")
    for _ in range(20):
        station.produce("t", size=100_000)
    connections = station.connections
    connection = Connection(connections, "PLAINTEXT", Dispatcher((fetch.API,), station.broker, print).serve)
    transport = Transport()
    connection.connection_made(transport)
    connection.session = Session("PLAINTEXT")
    pace = connection.pace = Pace(station.clock.monotonic() * 1000)
    pace.rate, pace._due = 10_000.0, station.clock.ms + 100.0
    wanted = FetchRequest.FetchTopic
    part = wanted.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, topics=[wanted(topic="t", partitions=[part])]
    )
    other = ConnectionStandIn(taken_bytes=lambda: 0, abort=lambda: None)
    connections.answers.hold(other, connections.answers.bytes_max)
    feed(connection, request_frame(request, 12, 7))
    station.settle()
    assert not transport.written
    connections.answers.hold(other, 0)
    station.settle()
    assert connection.held > 900_000 and not transport.written, "it waits for its reader"
    station.settle(1_000)
    assert len(transport.written) > 900_000
    assert connection.held == connections.answers.total == 0
    assert transport.reading and not connection.owed


@pytest.mark.parametrize("is_ready", [True, False])
def test_the_time_that_a_request_has_taken_counts_whether_it_is_answered_or_not(station, is_ready):
    served = []

    def handle(request, version, connection, broker):
        served.append(1)
        broker.clock.ms += 30
        return ListGroupsResponse() if is_ready else Pending()

    made = Dispatcher((Api(ListGroupsRequest, ListGroupsResponse, handle),), station.broker, print)
    connection = Connection(station.connections, "A", made.serve)
    connection.session = Session("A")
    transport = Transport()
    connection.connection_made(transport)
    feed(connection, request_frame(ListGroupsRequest(), 0, 1) * 10)
    assert len(served) == 1 and not transport.reading
    station.settle()
    assert len(served) == 10 and transport.reading
