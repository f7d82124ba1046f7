"""Fetch: whole batches, limits, isolation, waiting, sessions that say only what is news."""

import errno
import os
from types import SimpleNamespace

import pytest

from ottla.broker.api import Pending
from ottla.broker.apis import fetch
from ottla.broker.fetch_session import UNKNOWN_MAX
from ottla.wire.batch import scan
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.fetch import FetchRequest

Topic = FetchRequest.FetchTopic
Part = Topic.FetchPartition


def request(*wishes, version=12, **fields):
    """A fetch of (topic, partition, offset[, max bytes]) wishes."""
    topics = {}
    for topic, index, offset, *most in wishes:
        part = Part(partition=index, fetch_offset=offset, partition_max_bytes=most[0] if most else 1 << 20)
        key = topic if isinstance(topic, str) else bytes(topic)
        topics.setdefault(key, []).append(part)
    named = [
        Topic(topic=k, partitions=v) if isinstance(k, str) else Topic(topic_id=k, partitions=v)
        for k, v in topics.items()
    ]
    fields = {"max_wait_ms": 0, "min_bytes": 1, "session_epoch": -1} | fields
    return FetchRequest(topics=named, **fields)


def parts(response):
    return {(t.topic or t.topic_id, p.partition_index): p for t in response.responses for p in t.partitions}


def offsets(part):
    return [batch.base_offset for _, batch in scan(part.records)]


@pytest.mark.parametrize("version", fetch.API.versions)
def test_every_version_reads_what_was_written(station, version):
    topic = station.create("t")
    station.produce("t", count=3)
    station.produce("t", count=2)
    name = topic.id if version >= 13 else "t"
    response = station.ask(fetch.API, request((name, 0, 0)), version)
    part = parts(response)[name, 0]
    assert offsets(part) == [0, 3]
    assert (part.high_watermark, part.last_stable_offset, part.error_code) == (5, 5, 0)


def test_a_fetch_inside_a_batch_gets_the_whole_batch(station):
    station.create("t")
    station.produce("t", count=5)
    station.produce("t", count=5)
    part = parts(station.ask(fetch.API, request(("t", 0, 7)), 11))["t", 0]
    assert offsets(part) == [5]


def test_a_partition_that_is_named_often_is_read_once_as_it_was_named_last(station):
    station.create("t")
    station.produce("t", count=5)
    station.produce("t", count=5)
    response = station.ask(fetch.API, request(*[("t", 0, 0)] * 100, ("t", 0, 5)), 11)
    ((part,),) = [topic.partitions for topic in response.responses]
    assert offsets(part) == [5]


def test_unknown_places_and_offsets_are_refused_with_kafkas_codes(station):
    topic = station.create("t")
    station.produce("t", count=2)
    found = parts(station.ask(fetch.API, request(("t", 0, 9), ("t", 7, 0), ("u", 0, 0)), 12))
    assert found["t", 0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert found["t", 7].error_code == found["u", 0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    found = parts(station.ask(fetch.API, request((bytes(15) + b"x", 0, 0), (topic.id, 5, 0)), 13))
    assert found[bytes(15) + b"x", 0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert found[topic.id, 5].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_limits_hold_but_the_first_batch_always_comes(station):
    station.create("t", partitions=2)
    for index in (0, 1):
        for _ in range(3):
            station.produce("t", index, size=1000)
    found = parts(station.ask(fetch.API, request(("t", 0, 0, 10), ("t", 1, 0), max_bytes=100), 12))
    assert offsets(found["t", 0]) == [0]
    assert offsets(found["t", 1]) == []
    found = parts(station.ask(fetch.API, request(("t", 0, 0, 2500), ("t", 1, 0), max_bytes=3400), 12))
    assert offsets(found["t", 0]) == [0, 1]
    assert offsets(found["t", 1]) == [0]


def test_epochs_fence(station):
    station.create("t")
    wish = request(("t", 0, 0))
    wish.topics[0].partitions[0].current_leader_epoch = 9
    assert parts(station.ask(fetch.API, wish, 12))["t", 0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def pend(station, wish, version=12):
    reply = fetch.handle(wish, version, station.connection, station.broker)
    assert isinstance(reply, Pending)
    return reply


def test_a_fetch_waits_for_the_first_byte_and_wakes_with_it(station):
    station.create("t")
    pending = pend(station, request(("t", 0, 0), max_wait_ms=500))
    station.settle(400)
    assert pending._message is None
    station.produce("t")
    station.settle()
    assert offsets(parts(pending._message)["t", 0]) == [0]
    assert not station.table.by_name("t", 0).readers


def test_a_client_that_stays_leaves_no_callback_behind(station):
    station.create("t")
    for _ in range(3):
        pend(station, request(("t", 0, 0), max_wait_ms=500))
        assert len(station.connection.on_close) == 1
        station.settle(500)
        assert not station.connection.on_close


def test_a_client_that_goes_is_waited_for_no_longer(station):
    station.create("t")
    pend(station, request(("t", 0, 0), max_wait_ms=500))
    others, station.connection.on_close = station.connection.on_close, []
    for callback in others:
        callback()
    assert not station.table.by_name("t", 0).readers
    station.settle(500)


def test_a_fetch_waits_for_enough_bytes_over_all_its_partitions(station):
    station.create("t", partitions=2)
    pending = pend(station, request(("t", 0, 0), ("t", 1, 0), max_wait_ms=500, min_bytes=3000))
    for index in (0, 1):
        station.produce("t", index, size=1200)
    station.settle()
    assert pending._message is None
    station.produce("t", 0, size=1200)
    station.settle()
    assert {key: offsets(part) for key, part in parts(pending._message).items()} == {
        ("t", 0): [0, 1],
        ("t", 1): [0],
    }


def test_patience_ends_with_an_empty_answer(station):
    station.create("t")
    pending = pend(station, request(("t", 0, 0), max_wait_ms=500))
    station.settle(501)
    assert len(parts(pending._message)["t", 0].records) == 0
    assert not station.table.by_name("t", 0).readers


def test_a_burst_is_answered_once_with_all_of_it(station):
    station.create("t")
    pending = pend(station, request(("t", 0, 0), max_wait_ms=500))
    for _ in range(5):
        station.produce("t")
    station.settle()
    assert len(offsets(parts(pending._message)["t", 0])) == 5


def test_only_what_has_grown_is_read_again(station):
    station.create("t", partitions=3)
    pending = pend(station, request(("t", 0, 0), ("t", 1, 0), ("t", 2, 0), max_wait_ms=500))
    before = [station.table.by_name("t", index).fetch_requests for index in range(3)]
    station.produce("t", 1)
    station.produce("t", 2)
    station.settle()
    found = parts(pending._message)
    assert [offsets(found["t", index]) for index in range(3)] == [[], [0], [0]]
    assert [found["t", index].high_watermark for index in range(3)] == [0, 1, 1]
    after = [station.table.by_name("t", index).fetch_requests for index in range(3)]
    assert [now - then for now, then in zip(after, before, strict=True)] == [0, 1, 1]
    assert not any(station.table.by_name("t", index).readers for index in range(3))


def test_the_bytes_of_a_late_answer_are_limited_too(station):
    station.create("t", partitions=2)
    pending = pend(station, request(("t", 0, 0), ("t", 1, 0), max_wait_ms=500, max_bytes=1000))
    for index in (0, 1):
        station.produce("t", index, size=2000)
    station.settle()
    assert sorted(len(offsets(part)) for part in parts(pending._message).values()) == [0, 1]


def test_a_deleted_topic_wakes_its_readers(station):
    from ottla.wire.messages.delete_topics import DeleteTopicsRequest

    station.create("t")
    pending = pend(station, request(("t", 0, 0), max_wait_ms=500))
    wish = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="t")])
    station.quorum.submit(lambda controller, now: controller.delete_topics(wish, 6, now), lambda _: None)
    station.settle()
    assert parts(pending._message)["t", 0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Client:
    """A consumer with a session."""

    def __init__(self, station):
        self.station = station
        self.id, self.epoch = 0, 0

    def fetch(self, *wishes, forget=(), **fields):
        wish = request(*wishes, session_id=self.id, session_epoch=self.epoch, **fields)
        wish.forgotten_topics_data = [
            FetchRequest.ForgottenTopic(topic=topic, partitions=[index]) for topic, index in forget
        ]
        response = self.station.ask(fetch.API, wish, 12)
        if not response.error_code:
            self.id, self.epoch = response.session_id, self.epoch + 1
        return response


def test_a_session_tells_only_news(station):
    station.create("t", partitions=3)
    client = Client(station)
    first = client.fetch(("t", 0, 0), ("t", 1, 0), ("t", 2, 0))
    assert client.id and len(parts(first)) == 3
    assert parts(client.fetch()) == {}
    station.produce("t", 1)
    found = parts(client.fetch())
    assert {key: offsets(part) for key, part in found.items()} == {("t", 1): [0]}
    assert offsets(parts(client.fetch())["t", 1]) == [0], "told again until the client moves on"
    assert parts(client.fetch(("t", 1, 1))) == {}
    assert parts(client.fetch(forget=[("t", 1)])) == {}
    station.produce("t", 1)
    assert parts(client.fetch()) == {}


def test_a_session_does_not_remember_more_partitions_than_there_are(station):
    station.create("t", partitions=3)
    sessions, most = station.broker.fetch_sessions, UNKNOWN_MAX + 3
    client = Client(station)
    found = parts(client.fetch(*[("t", index, 0) for index in range(most + 1)]))
    assert len(found) == most + 1, "all of them are answered"
    assert found["t", 3].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert client.id == 0 and len(sessions) == 0
    client = Client(station)
    client.fetch(*[("t", index, 0) for index in range(most)])
    assert client.id and len(sessions) == 1
    grown = client.fetch(("t", most, 0), ("t", most + 1, 0))
    assert grown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND and len(sessions) == 0


def test_a_parked_session_wakes(station):
    station.create("t", partitions=2)
    client = Client(station)
    client.fetch(("t", 0, 0), ("t", 1, 0))
    pending = pend(station, request(session_id=client.id, session_epoch=1, max_wait_ms=500))
    station.produce("t", 1)
    station.settle()
    assert list(parts(pending._message)) == [("t", 1)]


def test_a_session_is_fair(station):
    station.create("t", partitions=3)
    for index in range(3):
        for _ in range(20):
            station.produce("t", index, size=500)
    client = Client(station)
    positions = dict.fromkeys(range(3), 0)
    wishes = [("t", index, 0) for index in range(3)]
    for _ in range(12):
        found = parts(client.fetch(*wishes, max_bytes=1200))
        wishes = []
        for (_, index), part in found.items():
            if part.records:
                positions[index] = offsets(part)[-1] + 1
                wishes.append(("t", index, positions[index]))
    assert max(positions.values()) - min(positions.values()) <= 4, positions


def test_sessions_are_checked(station):
    station.create("t")
    client = Client(station)
    client.fetch(("t", 0, 0))
    wrong = station.ask(fetch.API, request(session_id=client.id, session_epoch=9), 12)
    assert wrong.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    unknown = station.ask(fetch.API, request(session_id=client.id + 1, session_epoch=1), 12)
    assert unknown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    by_id = station.ask(fetch.API, request(session_id=client.id, session_epoch=1), 13)
    assert by_id.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    closed = station.ask(fetch.API, request(session_id=client.id, session_epoch=-1), 12)
    assert closed.error_code == 0 and closed.session_id == 0
    assert len(station.broker.fetch_sessions) == 0
    assert not station.table.by_name("t", 0).readers


def test_a_session_that_goes_on_at_an_earlier_version_hears_of_no_branch(station):
    station.create("t")
    station.produce("t", count=3)
    wish = request(("t", 0, 9), session_epoch=0)
    wish.topics[0].partitions[0].last_fetched_epoch = 0
    opened = station.ask(fetch.API, wish, 12)
    assert parts(opened)["t", 0].diverging_epoch is not None
    station.produce("t", count=1)
    answer = station.ask(fetch.API, request(session_id=opened.session_id, session_epoch=1), 9)
    assert parts(answer)["t", 0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert answer.encode(9)


def test_read_committed_stops_at_the_last_stable_offset(station):
    from ottla.wire.control import end_transaction_batch

    station.create("t")
    station.produce("t", count=2)
    partition = station.produce(
        "t", count=1, producer_id=9, producer_epoch=0, base_sequence=0, transactional=True
    )
    station.produce("t", count=1)
    read = request(("t", 0, 0), isolation_level=1)
    part = parts(station.ask(fetch.API, read, 12))["t", 0]
    assert (part.last_stable_offset, part.high_watermark, offsets(part)) == (2, 4, [0])
    assert offsets(parts(station.ask(fetch.API, request(("t", 0, 0)), 12))["t", 0]) == [0, 2, 3]
    marker = end_transaction_batch(
        commit=False, producer_id=9, producer_epoch=0, coordinator_epoch=0, timestamp_ms=station.clock.ms
    )
    partition.log.append(marker, 0, station.clock.ms, from_client=False)
    partition.advance(partition.log.end_offset)
    part = parts(station.ask(fetch.API, read, 12))["t", 0]
    assert (part.last_stable_offset, offsets(part)) == (5, [0, 2, 3, 4])
    assert [(a.producer_id, a.first_offset) for a in part.aborted_transactions] == [(9, 2)]


def test_whoever_reads_committed_waits_on_while_a_transaction_is_open(station):
    from ottla.wire.control import end_transaction_batch

    station.create("t")
    mine = pend(station, request(("t", 0, 0), max_wait_ms=500, isolation_level=1))
    theirs = pend(station, request(("t", 0, 0), max_wait_ms=500))
    partition = station.produce("t", producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    station.settle(100)
    assert offsets(parts(theirs._message)["t", 0]) == [0]
    assert mine._message is None
    marker = end_transaction_batch(
        commit=True, producer_id=9, producer_epoch=0, coordinator_epoch=0, timestamp_ms=station.clock.ms
    )
    partition.append_own(marker, station.clock.ms)
    station.settle()
    assert offsets(parts(mine._message)["t", 0]) == [0, 1]


def test_whoever_reads_committed_hears_of_another_epoch_all_the_same(station):
    station.create("t")
    partition = station.table.by_name("t", 0)
    wish = request(("t", 0, 0), max_wait_ms=500, isolation_level=1)
    wish.topics[0].partitions[0].current_leader_epoch = partition.leader_epoch
    waiting = pend(station, wish)
    partition.lead(partition.leader_epoch + 1)
    station.settle()
    assert parts(waiting._message)["t", 0].error_code == ErrorCode.FENCED_LEADER_EPOCH


INT_MIN = -(2**31)


@pytest.mark.parametrize("version", fetch.API.versions)
@pytest.mark.parametrize("size", [-1, -100_000, INT_MIN])
@pytest.mark.parametrize("older", [True, False], ids=["older", "tail"])
def test_a_negative_size_of_one_partition_is_answered_for_it_alone(station, version, size, older):
    topic = station.create("t", partitions=2)
    for index in (0, 1):
        station.produce("t", index, count=2)
        if older:
            log = station.table.by_name("t", index).log
            log.roll(log.end_offset)  # so that what was written is read from the file, by the index
        station.produce("t", index)
    name = topic.id if version >= 13 else "t"
    found = parts(station.ask(fetch.API, request((name, 0, 0, size), (name, 1, 0)), version))
    assert found[name, 0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert (found[name, 1].error_code, offsets(found[name, 1])) == (0, [0, 2][: 1 if older else 2])
    assert all(each.offline is None for each in station.directories)
    # At the end of the log nothing is read, and nothing refused, as in Kafka.
    found = parts(station.ask(fetch.API, request((name, 0, 3, size)), version))
    assert found[name, 0].error_code == 0


@pytest.mark.parametrize("size", [-1, INT_MIN])
def test_a_negative_size_of_a_request_is_answered_at_once_and_takes_nothing_offline(station, size):
    station.create("t", partitions=2)
    for index in (0, 1):
        station.produce("t", index, count=2)
        log = station.table.by_name("t", index).log
        log.roll(log.end_offset)
    wish = request(("t", 0, 0), ("t", 1, 0), max_bytes=size, max_wait_ms=500)
    found = parts(station.ask(fetch.API, wish, 12))
    assert found["t", 0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert offsets(found["t", 1]) == [0]  # as in Kafka, where the limit is then none but the first batch
    assert all(each.offline is None for each in station.directories)
    # min.bytes is never more than max.bytes: there is nothing to wait for.
    wish = request(("t", 0, 2), max_bytes=size, max_wait_ms=500)
    assert not isinstance(fetch.API.handle(wish, 12, station.connection, station.broker), Pending)


@pytest.mark.parametrize("offset", [-1, -(2**63), 2**63 - 1])
def test_an_offset_that_cannot_be_is_out_of_range(station, offset):
    station.create("t")
    station.produce("t", count=2)
    found = parts(station.ask(fetch.API, request(("t", 0, offset), min_bytes=INT_MIN, max_wait_ms=INT_MIN), 12))
    assert found["t", 0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("code", [errno.EINVAL, errno.EBADF, errno.ESPIPE, errno.EFAULT, errno.ENAMETOOLONG])
def test_an_error_that_our_own_argument_caused_takes_no_directory_offline(station, code, monkeypatch):
    station.create("t")
    station.produce("t", count=2)
    log = station.table.by_name("t", 0).log
    log.roll(log.end_offset)
    station.produce("t")

    def read(*_, **__):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(type(log._segments[0]), "read", read)
    found = parts(station.ask(fetch.API, request(("t", 0, 0)), 12))
    assert found["t", 0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert all(each.offline is None for each in station.directories)
    assert station.directories[0].bugs.total == 1
    assert any("test_fetch.py" in line for line in station.reports)  # with the way it came


@pytest.mark.parametrize("count", [1, 3])
def test_growth_of_a_partition_that_was_not_due_counts_from_what_stood_at_parking(station, count):
    station.create("t", partitions=3)
    client = Client(station)
    client.fetch(("t", 0, 0), ("t", 1, 0), ("t", 2, 0))
    client.fetch()
    wish = request(session_id=client.id, session_epoch=client.epoch, max_wait_ms=500, min_bytes=count * 1000)
    pending = pend(station, wish)
    for number in range(count):
        assert pending._message is None
        station.produce("t", number, size=1000)
        station.settle()
    assert sorted(parts(pending._message)) == [("t", number) for number in range(count)]


def test_what_was_read_before_parking_counts_once(station):
    station.create("t", partitions=2)
    station.produce("t", 0, size=1000)
    pending = pend(station, request(("t", 0, 0), ("t", 1, 0), max_wait_ms=500, min_bytes=3000))
    station.produce("t", 0, size=500)
    station.settle()
    assert pending._message is None
    station.produce("t", 1, size=1500)
    station.settle()
    assert sum(len(part.records) for part in parts(pending._message).values()) > 3000


def test_what_was_written_before_parking_and_is_committed_after_counts(station):
    station.create("t")
    partition = station.produce("t")
    flusher, partition._flusher = partition._flusher, SimpleNamespace(appended=lambda partition: None)
    station.produce("t", size=1000)  # which the disk does not have yet
    pending = pend(station, request(("t", 0, 1), max_wait_ms=500, min_bytes=1000))
    flusher.appended(partition)
    station.settle()
    assert offsets(parts(pending._message)["t", 0]) == [1]


def test_a_partition_that_grows_little_by_little_is_answered_when_there_is_enough(station):
    station.create("t")
    pending = pend(station, request(("t", 0, 0), max_wait_ms=500, min_bytes=5000))
    for _ in range(4):
        station.produce("t", size=1000)
        station.settle()
        assert pending._message is None
    station.produce("t", size=1000)
    station.settle()
    assert offsets(parts(pending._message)["t", 0]) == [0, 1, 2, 3, 4]


def test_a_reader_of_committed_records_hears_of_the_aborted_ones_among_those_it_gets(station):
    """It heard of every aborted transaction up to the last stable offset, with each Fetch of any size."""
    from ottla.wire.control import end_transaction_batch

    station.create("t")
    for sequence in range(10):
        partition = station.produce(
            "t", count=1, producer_id=9, producer_epoch=0, base_sequence=sequence, transactional=True
        )
        marker = end_transaction_batch(
            commit=False, producer_id=9, producer_epoch=0, coordinator_epoch=0, timestamp_ms=station.clock.ms
        )
        partition.log.append(marker, 0, station.clock.ms, from_client=False)
        partition.advance(partition.log.end_offset)
    read = request(("t", 0, 4), isolation_level=1, max_bytes=1)
    part = parts(station.ask(fetch.API, read, 12))["t", 0]
    assert (part.last_stable_offset, offsets(part)) == (20, [4])
    assert [(a.producer_id, a.first_offset) for a in part.aborted_transactions] == [(9, 4)]
