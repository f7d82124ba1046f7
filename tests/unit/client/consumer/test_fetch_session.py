"""Fetch sessions: what a request has to name, and what ends a session."""

import pytest

from ottla.client.consumer.fetch_session import NAMES_VERSION, FetchSessionHandler, WantedPartition
from ottla.client.record import TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.fetch import FetchResponse

A, B = b"a" * 16, b"b" * 16
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def wanted(offset=0, topic_id=A, epoch=1):
    return WantedPartition(topic_id, offset, epoch, 1000)


def named(topics):
    return {
        (topic.topic_id[:1], part.partition): part.fetch_offset
        for topic in topics
        for part in topic.partitions
    }


def answer(*partitions, session=7, error=0, version=18, throttle=0):
    kind = FetchResponse.FetchableTopicResponse
    responses = [
        kind(topic_id=topic_id, topic=name, partitions=[kind.PartitionData(partition_index=number)])
        for topic_id, name, number in partitions
    ]
    return FetchResponse(session_id=session, error_code=error, responses=responses, throttle_time_ms=throttle)


def begun():
    session = FetchSessionHandler()
    session.build_request({A0: wanted(), A1: wanted(5)})
    assert session.handle_response(answer((A, "", 0), (A, "", 1)), 18).keys() == {A0, A1}
    return session


def test_the_first_request_names_everything():
    session = FetchSessionHandler()
    ask = session.build_request({A0: wanted(), B0: wanted(3, B)})
    assert (ask.session_id, ask.epoch, ask.newest) == (0, 0, None)
    assert named(ask.topics) == {(b"a", 0): 0, (b"b", 0): 3}


def test_the_next_ones_name_what_has_changed():
    session = begun()
    ask = session.build_request({A0: wanted(), A1: wanted(9), B0: wanted(3, B)})
    assert (ask.session_id, ask.epoch) == (7, 1)
    assert named(ask.topics) == {(b"a", 1): 9, (b"b", 0): 3}
    assert ask.forgotten == []
    assert session.handle_response(answer((B, "", 0)), 18).keys() == {B0}
    assert session.build_request({A0: wanted(), A1: wanted(9), B0: wanted(3, B)}).topics == []
    assert session.epoch == 2


def test_what_is_not_wanted_is_forgotten():
    session = begun()
    ask = session.build_request({A1: wanted(5)})
    assert ask.topics == []
    assert [(each.topic_id, each.partitions) for each in ask.forgotten] == [(A, [0])]


def test_a_topic_made_anew_replaces_the_old_one():
    session = begun()
    ask = session.build_request({A0: wanted(topic_id=B), A1: wanted(5)})
    assert named(ask.topics) == {(b"b", 0): 0}
    assert [(each.topic_id, each.partitions) for each in ask.forgotten] == [(A, [0])]


def test_topics_without_an_id_go_by_name():
    session = FetchSessionHandler()
    ask = session.build_request({A0: wanted(topic_id=bytes(16)), B0: wanted(topic_id=B)})
    assert ask.newest == NAMES_VERSION
    found = session.handle_response(answer((bytes(16), "a", 0), (bytes(16), "b", 0)), NAMES_VERSION)
    assert found.keys() == {A0, B0}


def test_a_broker_without_sessions_is_asked_for_everything_each_time():
    session = FetchSessionHandler()
    session.build_request({A0: wanted()})
    assert session.handle_response(answer((A, "", 0), session=0), 18)
    assert named(session.build_request({A0: wanted()}).topics) == {(b"a", 0): 0}
    assert session.epoch == 0


def test_a_session_that_is_gone_is_begun_anew():
    session = begun()
    session.build_request({A0: wanted(), A1: wanted(5)})
    assert session.handle_response(answer(error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND), 18) is None
    ask = session.build_request({A0: wanted(), A1: wanted(5)})
    assert (ask.session_id, ask.epoch, len(named(ask.topics))) == (0, 0, 2)


@pytest.mark.parametrize(
    "bad",
    [answer(error=ErrorCode.INVALID_FETCH_SESSION_EPOCH), answer((B, "", 0)), answer((A, "", 5))],
    ids=["error", "unknown-topic", "unknown-partition"],
)
def test_what_looks_wrong_closes_the_session_and_begins_another(bad):
    session = begun()
    session.build_request({A0: wanted(), A1: wanted(5)})
    assert session.handle_response(bad, 18) is None
    ask = session.build_request({A0: wanted(), A1: wanted(5)})
    # Naming the old session tells the broker that it may drop it.
    assert (ask.session_id, ask.epoch, len(named(ask.topics))) == (7, 0, 2)


def test_a_broker_that_asks_for_patience_answers_with_nothing():
    session = FetchSessionHandler()
    session.build_request({A0: wanted()})
    assert session.handle_response(answer(throttle=100, session=0), 18) is None
    assert session.is_full
    session = begun()
    session.build_request({A0: wanted(), A1: wanted(5)})
    assert session.handle_response(answer(throttle=100), 18) == {}
    assert session.epoch == 2


def test_after_a_failure_everything_is_named():
    session = begun()
    session.failed()
    ask = session.build_request({A0: wanted()})
    assert (ask.session_id, ask.epoch) == (7, 0)
    assert named(ask.topics) == {(b"a", 0): 0}


def test_epochs_wrap_around():
    session = begun()
    session.epoch = 0x7FFF_FFFF
    session.build_request({A0: wanted(), A1: wanted(5)})
    session.handle_response(answer(), 18)
    assert session.epoch == 1


def test_closing_names_the_session_and_nothing_else():
    ask = begun().close()
    assert (ask.session_id, ask.epoch, ask.topics, ask.forgotten) == (7, -1, [], [])
