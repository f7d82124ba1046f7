"""A share consumer's parts: acknowledgements on the wire, sessions, deliveries, and what is made of a fetch."""

import json

import pytest

from ottla.client.consumer.completed_fetch import deserialization
from ottla.client.consumer.fetched_batches import FetchedBatches
from ottla.client.consumer.share.acknowledgement import (
    GAP,
    AckBatch,
    AcknowledgeType,
    TopicIdPartition,
    batches_of,
    renews,
)
from ottla.client.consumer.share.acquired_records import acquired_records_of
from ottla.client.consumer.share.in_flight_records import InFlightRecords
from ottla.client.consumer.share.share_session import ShareSessionHandler
from ottla.client.errors import Malformed, SerializationFailed, WrongState
from ottla.client.record import Record
from ottla.client.serializer import SerializerCall
from ottla.wire.batch import build_batch
from ottla.wire.control import end_transaction_batch
from ottla.wire.errors import ErrorCode
from ottla.wire.record import Record as WireRecord

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
A0, A1, B0 = (
    TopicIdPartition(b"a" * 16, "a", 0),
    TopicIdPartition(b"a" * 16, "a", 1),
    TopicIdPartition(b"b" * 16, "b", 0),
)


# On the wire


@pytest.mark.parametrize(
    ("acks", "batches"),
    [
        ({}, []),
        ({5: 1}, [(5, 5, [1])]),
        ({5: 1, 6: 1, 7: 1}, [(5, 7, [1])]),
        ({5: 1, 6: 2, 7: 0}, [(5, 7, [1, 2, 0])]),
        ({5: 1, 7: 1}, [(5, 5, [1]), (7, 7, [1])]),
        ({7: 2, 5: 1, 6: 1}, [(5, 7, [1, 1, 2])]),
        (dict.fromkeys(range(100), 1), [(0, 99, [1])]),
        ({0: 2, **dict.fromkeys(range(1, 12), 1), 12: 3}, [(0, 0, [2]), (1, 11, [1]), (12, 12, [3])]),
        ({0: 2, **dict.fromkeys(range(1, 11), 1), 11: 3}, [(0, 11, [2, *[1] * 10, 3])]),
    ],
)
def test_neighbours_go_together(acks, batches):
    assert batches_of(acks) == [AckBatch(*each) for each in batches]


def test_renewals_are_noticed():
    assert not renews([{1: ACCEPT}, {2: GAP}])
    assert renews([{1: ACCEPT}, {2: RENEW}])


# Sessions


def named(topics):
    return [(topic.topic_id[:1], part.partition_index) for topic in topics for part in topic.partitions]


def test_a_share_session_names_what_has_changed():
    session = ShareSessionHandler()
    assert session.is_new
    ask = session.fetch([A0, A1], {})
    assert (ask.epoch, named(ask.topics)) == (0, [(b"a", 0), (b"a", 1)])
    assert session.handle_response(0)
    ask = session.fetch([A1, B0], {})
    assert (ask.epoch, named(ask.topics)) == (1, [(b"b", 0)])
    assert [(each.topic_id[:1], each.partitions) for each in ask.forgotten] == [(b"a", [0])]
    session.handle_response(0)
    assert session.fetch([A1, B0], {}).is_empty


def test_acknowledgements_ride_along():
    session = ShareSessionHandler()
    session.fetch([A0], {})
    session.handle_response(0)
    ask = session.fetch([A0], {A0: {3: 1, 4: 1}})
    [batch] = ask.topics[0].partitions[0].acknowledgement_batches
    assert (batch.first_offset, batch.last_offset, batch.acknowledge_types) == (3, 4, [1])
    assert not ask.is_empty
    [topic] = session.acknowledge({A0: {3: 2}})
    assert topic.partitions[0].acknowledgement_batches[0].acknowledge_types == [2]


@pytest.mark.parametrize("code", [ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH])
def test_a_lost_share_session_is_begun_anew(code):
    session = ShareSessionHandler()
    session.fetch([A0], {})
    session.handle_response(0)
    assert not session.handle_response(code)
    assert session.is_new
    assert named(session.fetch([A0], {}).topics) == [(b"a", 0)]


def test_another_error_counts_as_a_request():
    session = ShareSessionHandler()
    session.fetch([A0], {})
    session.handle_response(0)
    assert not session.handle_response(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert session.epoch == 2


# Deliveries


def record(offset, topic="a", partition=0):
    return Record(topic, partition, offset, 0, None, b"v")


def test_what_was_handed_out_is_accepted_when_nothing_else_is_said():
    held = InFlightRecords()
    held.add(A0, 1, [record(3), record(4)], {5: GAP})
    assert held.is_open
    held.accept_all()
    assert not held.is_open
    assert held.take_acks() == {1: {A0: {3: ACCEPT, 4: ACCEPT, 5: GAP}}}
    assert held.take_acks() == {}


def test_each_record_is_acknowledged_by_itself_and_the_last_word_counts():
    held = InFlightRecords()
    held.add(A0, 1, [record(3), record(4)], {})
    held.add(A1, 2, [record(0, partition=1)], {})
    held.acknowledge("a", 0, 3, ACCEPT)
    held.acknowledge("a", 0, 3, REJECT)
    held.acknowledge("a", 1, 0, RELEASE)
    assert held.is_open
    assert held.take_acks() == {1: {A0: {3: REJECT}}, 2: {A1: {0: RELEASE}}}
    held.acknowledge("a", 0, 4, ACCEPT)
    for place in [("a", 0, 3), ("a", 1, 0), ("a", 0, 9), ("b", 0, 4)]:
        with pytest.raises(WrongState, match="not there to be acknowledged"):
            held.acknowledge(*place, ACCEPT)


def test_our_word_on_a_record_that_was_not_handed_out_can_be_changed():
    held = InFlightRecords()
    held.add(A0, 1, [], {3: int(RELEASE), 4: GAP})
    held.acknowledge("a", 0, 3, REJECT)
    with pytest.raises(WrongState):
        held.acknowledge("a", 0, 4, REJECT)
    assert held.take_acks() == {1: {A0: {3: REJECT, 4: GAP}}}


def test_a_renewed_record_is_handed_out_again():
    held = InFlightRecords()
    held.add(A0, 1, [record(3), record(4), record(5)], {})
    held.acknowledge("a", 0, 3, RENEW)
    held.acknowledge("a", 0, 4, RENEW)
    held.acknowledge("a", 0, 5, ACCEPT)
    acks = held.take_acks()[1][A0]
    assert held.renew
    assert held.take_renewed() == []
    held.sent(A0, 1, {3: acks[3], 5: acks[5]}, succeeded=True)
    held.sent(A0, 1, {4: acks[4]}, succeeded=False)
    assert held.take_renewed() == [record(3)]
    assert held.is_open
    held.acknowledge("a", 0, 3, ACCEPT)
    assert held.take_acks() == {1: {A0: {3: ACCEPT}}}
    assert not held.renew


# Fetches


def batch(first, count, value=b"%d"):
    records = [WireRecord(n, 0, None, value % n) for n in range(first, first + count)]
    return bytes(build_batch(records, base_offset=first))


def acquired_records(data, acquired, decode=None):
    return [
        (
            [(each.offset, each.delivery_count) for each in acquired_part.records],
            acquired_part.acks,
            type(acquired_part.fault),
        )
        for acquired_part in acquired_records_of(FetchedBatches("a", 0, data, 0), acquired, decode)
    ]


NO_FAULT = type(None)


def test_only_what_was_acquired_is_handed_out_with_its_count():
    found = acquired_records(batch(0, 10), [(2, 3, 1), (5, 5, 4)])
    assert found == [([(2, 1), (3, 1), (5, 4)], {}, NO_FAULT)]


def test_offsets_without_a_record_are_gaps():
    marker = bytes(
        end_transaction_batch(
            commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp_ms=0, base_offset=3
        )
    )
    found = acquired_records(batch(0, 3) + marker, [(1, 5, 1)])
    assert found == [([(1, 1), (2, 1)], {}, NO_FAULT), ([], {3: 0, 4: 0, 5: 0}, NO_FAULT)]
    assert acquired_records(b"", [(1, 2, 1)]) == [([], {1: 0, 2: 0}, NO_FAULT)]


def test_a_broken_batch_is_rejected_and_the_others_are_read():
    bad = bytearray(batch(3, 3))
    bad[-1] ^= 1
    found = acquired_records(batch(0, 3) + bytes(bad) + batch(6, 2), [(1, 4, 2), (6, 7, 1)])
    assert found == [
        ([(1, 2), (2, 2)], {}, NO_FAULT),
        ([], {3: REJECT, 4: REJECT}, Malformed),
        ([(6, 1), (7, 1)], {}, NO_FAULT),
    ]


def test_a_record_that_cannot_be_deserialized_is_released_in_its_place():
    def fussy(data):
        return json.loads(data) if data != b"1" else 1 // 0

    found = acquired_records(batch(0, 3), [(0, 2, 1)], deserialization(None, SerializerCall(fussy)))
    assert found == [
        ([(0, 1)], {}, NO_FAULT),
        ([], {1: RELEASE}, SerializationFailed),
        ([(2, 1)], {}, NO_FAULT),
    ]
