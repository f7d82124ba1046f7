"""Who waits for the newest record gets what the common road gives, to the byte, and that road where it must be."""

import struct
from collections import deque
from types import SimpleNamespace

import pytest

from ottla.broker import fetching
from ottla.broker.apis import fetch
from ottla.broker.dispatch import Dispatcher
from ottla.broker.newest import newest
from ottla.wire.batch import build_batch
from ottla.wire.control import end_transaction_batch
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.record import Record
from tests.unit.broker.test_fetch import request

BY_ID = [version for version in fetch.API.versions if version >= 13]


class Reader:
    """A client that is owed the answer to one fetch."""

    def __init__(self, station, *, short):
        self.station, self.short = station, short
        self.peer, self.listener, self.session = "client", "PLAINTEXT", SimpleNamespace(client_id=b"")
        self.closed, self.pace, self.on_close, self.owed, self.got = False, None, [], deque(), []
        self.held, self.is_corked = 0, False
        self.dispatcher = Dispatcher((fetch.API,), station.broker, self.got.append)

    def owe(self, reply):
        self.owed.append(reply)

    def settle(self, reply=None):
        self.got.append(b"".join(self.owed.popleft().parts))

    def reply(self, parts):
        self.got.append(b"".join(parts))

    def ask(self, wish, version):
        head = struct.pack(">hhih", 1, version, 77, 2) + b"me" + (b"\0" if version >= 12 else b"")
        frame = bytearray(head + wish.encode(version))
        self.dispatcher.serve(self, frame, 0, len(frame))


class Meeting:
    """Two clients that wait for the same, of whom only one may be answered the short way."""

    def __init__(self, station, monkeypatch):
        self.station = station
        self.topic_id = station.create("t", partitions=2).id
        self.readers = [Reader(station, short=True), Reader(station, short=False)]
        self.went = []

        def watched(wanted, partition, committed, pending, session_id=0):
            if not pending.connection.short:
                return None
            whole = newest(wanted, partition, committed, pending, session_id)
            self.went.append(whole is not None)
            return whole

        monkeypatch.setattr(fetching, "newest", watched)

    def wait(self, version, *, at=0, indexes=(0,), epoch=-1, fetched=-1, **fields):
        place = self.topic_id if version >= 13 else "t"
        wish = request(*((place, index, at) for index in indexes), max_wait_ms=500, **fields)
        for part in wish.topics[0].partitions:
            part.current_leader_epoch, part.last_fetched_epoch = epoch, fetched
        for reader in self.readers:
            reader.ask(wish, version)
            assert reader.owed and not reader.got, "it waits"

    def same(self):
        self.station.settle()
        (mine,), (theirs,) = (reader.got for reader in self.readers)
        assert mine == theirs
        assert not self.station.table.by_name("t", 0).readers
        return mine


@pytest.fixture
def meeting(station, monkeypatch):
    return Meeting(station, monkeypatch)


@pytest.mark.parametrize("version", BY_ID)
@pytest.mark.parametrize("isolation", [0, 1])
@pytest.mark.parametrize("size", [0, 10, 55, 56, 57, 58, 59, 60, 1000, 3900])
def test_the_short_way_gives_the_same_bytes(meeting, version, isolation, size):
    for _ in range(3):
        meeting.station.produce("t")
    meeting.wait(version, at=3, isolation_level=isolation)
    partition = meeting.station.produce("t", size=size)
    answer = meeting.same()
    assert meeting.went == [True]
    assert fetch.API.response.decode(answer[9:], version).responses[0].partitions[0].high_watermark == 4
    assert partition.fetch_requests == 4  # each waited and was answered
    assert partition.bytes_out % 2 == 0 and partition.bytes_out > 0


@pytest.mark.parametrize("version", [4, 11, 12])
def test_versions_that_name_topics_take_the_common_road(meeting, version):
    meeting.wait(version)
    meeting.station.produce("t")
    meeting.same()
    assert meeting.went == []


def test_so_do_readers_of_several_partitions(meeting):
    meeting.wait(16, indexes=(0, 1))
    meeting.station.produce("t")
    meeting.same()
    assert meeting.went == []


def told(meeting):
    """What each reader was told last, and in which session, which is its own."""
    meeting.station.settle()
    answers = [fetch.API.response.decode(reader.got.pop()[9:], 16) for reader in meeting.readers]
    sessions = [answer.session_id for answer in answers]
    for answer in answers:
        answer.session_id = 0
    assert answers[0] == answers[1]
    assert not any(reader.got for reader in meeting.readers)
    return answers[0], sessions


@pytest.mark.parametrize("isolation", [0, 1])
def test_sessions_in_which_one_partition_has_grown(meeting, isolation):
    how = {"isolation_level": isolation}
    for reader in meeting.readers:
        reader.ask(request((meeting.topic_id, 0, 0), (meeting.topic_id, 1, 0), session_epoch=0, **how), 16)
    _, sessions = told(meeting)

    def ask(epoch, *wishes):
        for reader, session in zip(meeting.readers, sessions, strict=True):
            reader.ask(request(*wishes, session_id=session, session_epoch=epoch, max_wait_ms=500, **how), 16)

    for count in range(3):
        ask(count + 1, *([(meeting.topic_id, 0, count)] if count else []))
        assert all(reader.owed for reader in meeting.readers), "they wait"
        meeting.station.produce("t", size=10 * count)
        answer, said = told(meeting)
        assert answer.responses[0].partitions[0].high_watermark == count + 1
        assert len(answer.responses[0].partitions) == 1
        assert said == sessions
    assert meeting.went == [True] * 3
    ask(4, (meeting.topic_id, 0, 3))
    for index in (0, 1):
        meeting.station.table.by_name("t", index).append(
            build_batch([Record(0, meeting.station.clock.ms, None, b"x", ())]), meeting.station.clock.ms
        )
    answer, _ = told(meeting)
    assert len(answer.responses[0].partitions) == 2
    assert meeting.went == [True] * 3, "both have grown"


def test_so_do_full_fetches_and_followers(meeting):
    meeting.wait(16, session_epoch=0)
    meeting.station.produce("t")
    meeting.station.settle()
    assert all(len(reader.got) == 1 for reader in meeting.readers)
    assert meeting.went == []
    state = FetchRequest.ReplicaState(replica_id=7, replica_epoch=1)
    meeting.readers[0].ask(request((meeting.topic_id, 0, 0), max_wait_ms=500, replica_state=state), 16)
    assert meeting.went == []


@pytest.mark.parametrize("isolation", [0, 1])
@pytest.mark.parametrize(
    ("what", "growth"),
    [
        ("two batches", [{}, {}]),
        ("a large batch", [{"size": 5000}]),
        ("a small one behind a large one", [{"size": 5000}, {}]),
    ],
)
def test_so_do_other_batches(meeting, isolation, what, growth):
    meeting.wait(16, isolation_level=isolation)
    for each in growth:
        meeting.station.produce("t", **each)
    meeting.same()
    assert meeting.went == [False], what


def test_so_does_whoever_might_see_a_transaction(meeting):
    station = meeting.station
    meeting.wait(16)
    partition = station.produce("t", producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    meeting.same()
    for reader in meeting.readers:
        reader.got.clear()
    meeting.wait(16, isolation_level=1)
    marker = end_transaction_batch(
        commit=False, producer_id=9, producer_epoch=0, coordinator_epoch=0, timestamp_ms=station.clock.ms
    )
    partition.append_own(marker, station.clock.ms)
    answer = fetch.API.response.decode(meeting.same()[9:], 16)
    assert [each.producer_id for each in answer.responses[0].partitions[0].aborted_transactions] == [9]
    assert meeting.went == [False, False]


def test_what_is_not_committed_yet_is_not_told(meeting):
    partition = meeting.station.table.by_name("t", 0)
    meeting.wait(16)
    meeting.station.produce("t")
    partition.high_watermark = 0
    meeting.same()
    assert meeting.went == [False]


@pytest.mark.parametrize("trouble", ["epoch", "refusal", "start"])
def test_what_has_changed_meanwhile_is_told(meeting, trouble):
    partition = meeting.station.table.by_name("t", 0)
    meeting.wait(16, epoch=partition.leader_epoch)
    meeting.station.produce("t")
    if trouble == "epoch":
        partition.leader_epoch += 1
    elif trouble == "refusal":
        partition.follow(partition.leader_epoch + 1)
    else:
        partition.log.start_offset = 1
    answer = fetch.API.response.decode(meeting.same()[9:], 16)
    assert answer.responses[0].partitions[0].error_code != 0
    assert meeting.went == [False]


def test_a_reader_that_says_what_it_has_is_checked(meeting):
    meeting.station.produce("t")
    meeting.wait(16, at=1, fetched=0)
    meeting.station.produce("t")
    meeting.same()
    assert meeting.went == [False]
