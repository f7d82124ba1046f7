"""Dead letters of share groups: which records they are about, where they go, and what holds when they cannot."""

import pytest

from ottla.broker import share_letters
from ottla.broker.apis import delete_groups, incremental_alter_configs
from ottla.broker.internal_topics import OFFSETS, make
from ottla.broker.share_letter import Originals
from ottla.metadata.config import ConfigType
from ottla.share.effects import Cause, DeadLetter
from ottla.share.key import ShareKey
from ottla.wire.batch import build_batch, read_records, scan
from ottla.wire.compression import Codec
from ottla.wire.control import end_transaction_batch
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.record import Record
from tests.unit.broker.test_share_groups import (
    ACCEPT,
    LOCK_MS,
    REJECT,
    RELEASE,
    Member,
    configure,
    with_share,
)

LETTERS = "errors.deadletterqueue.topic.name"
COPIES = "errors.deadletterqueue.copy.record.enable"
ALLOWED = {"errors_deadletterqueue_group_enable": "true"}


def alter(station, kind, resource, name, value):
    wish = IncrementalAlterConfigsRequest.AlterConfigsResource
    config = wish.AlterableConfig(name=name, config_operation=0, value=value)
    request = IncrementalAlterConfigsRequest(
        resources=[wish(resource_type=kind, resource_name=resource, configs=[config])]
    )
    answer = station.ask(incremental_alter_configs.API, request)
    assert answer.responses[0].error_code == 0, answer


@pytest.fixture
def office(station):
    """A broker with a topic `t` to read, and a topic for the letters of the group `g`."""
    with_share(station)
    make(station.broker, OFFSETS, lambda code: None)
    station.settle()
    station.create("t")
    station.create("dlq.g", **ALLOWED)
    configure(station, "g", "share.auto.offset.reset", "earliest")
    configure(station, "g", LETTERS, "dlq.g")
    return station


def letters(station, topic="dlq.g", index=0):
    """What a topic holds: the records, headers as a dict."""
    partition = station.table.by_name(topic, index)
    if not partition.log.end_offset:
        return []
    data = partition.log.read(0, 1 << 24, partition.high_watermark)
    return [
        record._replace(headers=dict(record.headers))
        for position, _ in scan(data)
        for record in read_records(data, position)
    ]


def told(station, topic="dlq.g", index=0):
    """The offsets that letters are about."""
    return [int(record.headers["__dlq.errors.offset"]) for record in letters(station, topic, index)]


def start_offset(station, group="g", topic="t", index=0):
    """Where the group is, as far as it is durable."""
    topic_id = station.broker.image.topics.by_name[topic].id
    states = {
        key: state
        for machine in station.broker.share.states.machines.machines
        for key, state in machine.states.items()
    }
    return states[ShareKey(group, topic_id, index)].start_offset


def reject_all(station, count, member=None):
    station.produce("t", count=count)
    member = member or Member(station).join("t")
    found = member.take()
    assert member.acknowledge(found[0][0], found[-1][1], REJECT) == 0
    return member


def test_rejected_records_become_letters(office):
    office.produce("t", count=4)
    member = Member(office).join("t")
    assert member.take() == [(0, 3, 1)]
    assert member.acknowledge(0, 3, REJECT, ACCEPT, REJECT, RELEASE) == 0
    first, second = letters(office)
    assert first.headers == {
        "__dlq.errors.topic": b"t",
        "__dlq.errors.partition": b"0",
        "__dlq.errors.offset": b"0",
        "__dlq.errors.group": b"g",
        "__dlq.errors.delivery.count": b"1",
        "__dlq.errors.message": b"Offset rejected by client.",
    }
    assert list(first.headers) == list(second.headers)
    assert (first.key, first.value, first.timestamp) == (None, None, office.clock.ms)
    assert second.headers["__dlq.errors.offset"] == b"2"
    assert member.take() == [(3, 3, 2)]
    assert office.reports == []


def test_records_tried_too_often_become_letters(office):
    configure(office, "g", "share.delivery.count.limit", "2")
    office.produce("t")
    member = Member(office).join("t")
    assert member.take() == [(0, 0, 1)]
    assert member.acknowledge(0, 0, RELEASE) == 0
    assert member.take() == [(0, 0, 2)]
    office.settle(LOCK_MS)
    (letter,) = letters(office)
    assert letter.headers["__dlq.errors.delivery.count"] == b"2"
    assert letter.headers["__dlq.errors.message"] == b"Offset delivery count exceeded the threshold."


def test_a_copy_has_all_of_the_original(office):
    configure(office, "g", COPIES, "true")
    originals = [
        Record(0, office.clock.ms, b"key", b"value", (("colour", b"red"), ("empty", None))),
        Record(1, office.clock.ms, None, b"other", ()),
        Record(2, office.clock.ms, b"gone", None, ()),
    ]
    office.table.by_name("t", 0).append(build_batch(originals, codec=Codec.GZIP), office.clock.ms)
    member = Member(office).join("t")
    assert member.take() == [(0, 2, 1)]
    assert member.acknowledge(0, 2, REJECT) == 0
    first, second, third = letters(office)
    assert (first.key, first.value) == (b"key", b"value")
    assert list(first.headers)[:3] == ["colour", "empty", "__dlq.errors.topic"]
    assert (first.headers["colour"], first.headers["empty"]) == (b"red", None)
    assert (second.key, second.value) == (None, b"other")
    assert (third.key, third.value) == (b"gone", None)


def test_a_copy_that_is_too_large_is_told_without(office):
    configure(office, "g", COPIES, "true")
    alter(office, ConfigType.TOPIC, "dlq.g", "max.message.bytes", "1000")
    office.produce("t", size=5)
    office.produce("t", size=2_000)
    member = Member(office).join("t")
    assert member.take() == [(0, 1, 1)]
    assert member.acknowledge(0, 1, REJECT) == 0
    assert [record.value and len(record.value) for record in letters(office)] == [5, None]


def test_what_the_log_no_longer_has_is_told_without(office):
    configure(office, "g", COPIES, "true")
    office.produce("t", count=2)
    member = Member(office).join("t")
    assert member.take() == [(0, 1, 1)]
    office.table.by_name("t", 0).log.raise_start_offset(1)
    assert member.acknowledge(0, 1, REJECT) == 0
    assert told(office) == [0, 1]
    assert [record.key for record in letters(office)] == [None, b"k1"]


def test_nothing_is_copied_out_of_a_bomb(office, monkeypatch):
    """The loop looks into a batch for a copy, so there is a limit to what that may cost."""
    partition = office.table.by_name("t", 0)
    large = [Record(0, office.clock.ms, b"k", bytes(20_000), ())]
    many = [Record(number, office.clock.ms, b"k", b"v", ()) for number in range(100)]
    for records in (large, many):
        partition.append(build_batch(records, codec=Codec.GZIP), office.clock.ms)
    letter = DeadLetter("g", partition.topic_id, 0, 0, 101, 1, Cause.REJECTED)
    assert Originals(office.table).find(letter, 0) is not None
    assert Originals(office.table).find(letter, 1) is not None
    monkeypatch.setattr("ottla.broker.share_letter._ORIGINAL_BYTES_MAX", 10_000)
    monkeypatch.setattr("ottla.broker.share_letter._ORIGINAL_RECORDS_MAX", 99)
    assert Originals(office.table).find(letter, 0) is None
    assert Originals(office.table).find(letter, 1) is None


def test_markers_are_nothing_to_copy(office):
    partition = office.table.by_name("t", 0)
    marker = end_transaction_batch(
        commit=True, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp_ms=office.clock.ms
    )
    office.produce("t", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    partition.append_own(marker, office.clock.ms)
    originals = Originals(office.table)
    letter = DeadLetter("g", partition.topic_id, 0, 0, 2, 1, Cause.REJECTED)
    assert originals.find(letter, 0).key == b"k0"
    assert originals.find(letter, 1) is None
    assert originals.find(letter, 0).key == b"k0"
    gone = DeadLetter("g", bytes(16), 0, 0, 2, 1, Cause.REJECTED)
    assert originals.find(gone, 0) is None


def test_many_letters_go_in_batches_of_their_topics_size(office):
    alter(office, ConfigType.TOPIC, "dlq.g", "max.message.bytes", "2000")
    member = reject_all(office, 40)
    assert told(office) == list(range(40))
    partition = office.table.by_name("dlq.g", 0)
    batches = [batch for _, batch in scan(partition.log.read(0, 1 << 24, 40))]
    assert len(batches) > 1
    assert all(batch.size <= 2_000 for batch in batches)
    assert member.take() == []
    assert office.broker.share.letters.counts["g"] == (40, len(batches), 0)


def test_letters_of_one_turn_share_a_batch(office):
    office.produce("t", count=6)
    member = Member(office).join("t")
    assert member.take() == [(0, 5, 1)]
    kinds = [REJECT, ACCEPT, REJECT, ACCEPT, REJECT, ACCEPT]
    assert member.acknowledge(0, 5, *kinds) == 0
    assert told(office) == [0, 2, 4]
    assert len(list(scan(office.table.by_name("dlq.g", 0).log.read(0, 1 << 20, 3)))) == 1


def test_a_letter_goes_to_the_partition_of_its_number(office):
    office.create("u", 3)
    office.create("dlq.two", 2, **ALLOWED)
    configure(office, "h", "share.auto.offset.reset", "earliest")
    configure(office, "h", LETTERS, "dlq.two")
    member = Member(office, "m1", "h").join("u")
    for index in range(3):
        office.produce("u", index, count=index + 1)
    member.fetch()
    for index in range(3):
        assert member.acknowledge(0, index, REJECT, index=index) == 0
    assert [record.headers["__dlq.errors.partition"] for record in letters(office, "dlq.two", 0)] == [
        b"0",
        b"2",
        b"2",
        b"2",
    ]
    assert told(office, "dlq.two", 1) == [0, 1]


def test_a_record_is_done_with_once_its_letter_is_durable(office):
    flusher = office.table.by_name("dlq.g", 0)._flusher
    held = []
    office.table.by_name("dlq.g", 0)._flusher = type("Held", (), {"appended": staticmethod(held.append)})
    member = reject_all(office, 2)
    assert start_offset(office) == 0
    states = next(
        state.batches
        for machine in office.broker.share.states.machines.machines
        for state in machine.states.values()
        if state.batches
    )
    assert [batch.delivery_state for batch in states] == [3]
    office.table.by_name("dlq.g", 0)._flusher = flusher
    for partition in held:
        partition.advance(partition.log.end_offset)
    office.settle()
    office.produce("t")
    assert member.take() == [(2, 2, 1)]
    assert member.acknowledge(2, 2, ACCEPT) == 0
    assert start_offset(office) == 2


def test_letters_that_never_went_go_after_a_restart(office):
    office.table.by_name("dlq.g", 0)._flusher = type("Held", (), {"appended": staticmethod(lambda _: None)})
    reject_all(office, 3)
    with_share(office)  # nobody remembers anything but the logs
    office.table.by_name("dlq.g", 0)._flusher = office.table.by_name("t", 0)._flusher
    again = Member(office, "m2").join("t")
    assert again.take() == []
    assert told(office) == [0, 1, 2, 0, 1, 2], "at least once"
    office.produce("t")
    assert again.take() == [(3, 3, 1)]


def test_a_group_that_stops_reading_has_its_letters_ended(office):
    held = []
    flusher = office.table.by_name("dlq.g", 0)._flusher
    office.table.by_name("dlq.g", 0)._flusher = type("Held", (), {"appended": staticmethod(held.append)})
    member = reject_all(office, 2)
    member.close()
    assert len(office.broker.share.partitions) == 1, "a letter is under way"
    office.table.by_name("dlq.g", 0)._flusher = flusher
    held[0].advance(2)
    office.settle()
    assert len(office.broker.share.partitions) == 0
    assert Member(office, "m2").join("t").take() == []
    assert told(office) == [0, 1], "once"


def test_a_member_that_hangs_up_on_the_last_try(office):
    configure(office, "g", "share.delivery.count.limit", "2")
    office.produce("t")
    for _ in range(2):
        member = Member(office, "m1").join("t")
        assert member.take() != []
        member.close()
    assert told(office) == [0]
    assert len(office.broker.share.partitions) == 0


@pytest.mark.parametrize(
    ("settings", "topic", "configs", "reason"),
    [
        ({}, "dlq.g", {}, "errors.deadletterqueue.group.enable=true"),
        ({}, "letters", ALLOWED, "begin with dlq."),
        ({}, None, {}, "there is no topic dlq.none"),
    ],
)
def test_letters_that_may_not_go_hold_up_nothing(make_station, settings, topic, configs, reason):
    station = with_share(make_station(**settings))
    make(station.broker, OFFSETS, lambda code: None)
    station.settle()
    station.create("t")
    if topic is not None:
        station.create(topic, **configs)
    configure(station, "g", "share.auto.offset.reset", "earliest")
    configure(station, "g", LETTERS, topic or "dlq.none")
    member = reject_all(station, 3)
    assert len(station.reports) == 1
    assert reason in station.reports[0]
    reject_all(station, 2, member)
    assert len(station.reports) == 1, "said once"
    station.produce("t")
    assert member.take() == [(5, 5, 1)]
    assert member.acknowledge(5, 5, ACCEPT) == 0
    assert start_offset(station) == 5
    if topic is not None:
        assert told(station, topic) == []
        alter(station, ConfigType.TOPIC, topic, "errors.deadletterqueue.group.enable", "true")
        alter(station, ConfigType.BROKER, "", "errors.deadletterqueue.topic.name.prefix", "")
        reject_all(station, 1, member)
        assert told(station, topic) == [6], "what operators change holds for the next letter"


def test_the_topic_is_made_where_that_is_allowed(office):
    alter(office, ConfigType.BROKER, "", "errors.deadletterqueue.auto.create.topics.enable", "true")
    configure(office, "g", LETTERS, "dlq.made")
    office.produce("t", count=4)
    member = Member(office).join("t")
    member.take()
    assert member.acknowledge(0, 3, REJECT, ACCEPT, REJECT, REJECT) == 0
    assert told(office, "dlq.made") == [0, 2, 3]
    configs = office.broker.image.configs.of(ConfigType.TOPIC, "dlq.made")
    assert configs == {
        "errors.deadletterqueue.group.enable": "true",
        "message.timestamp.type": "CreateTime",
    }


def test_a_name_that_is_none_is_given_up(office):
    alter(office, ConfigType.BROKER, "", "errors.deadletterqueue.auto.create.topics.enable", "true")
    configure(office, "g", LETTERS, "dlq.no/such")
    member = reject_all(office, 1)
    assert "could not be made" in office.reports[0]
    assert office.broker.share.letters.counts["g"].failures == 1
    office.produce("t")
    assert member.take() == [(1, 1, 1)]


def test_a_compacted_topic_takes_no_letters_without_keys(office):
    alter(office, ConfigType.TOPIC, "dlq.g", "cleanup.policy", "compact")
    member = reject_all(office, 1)
    assert "refused" in office.reports[0]
    office.produce("t")
    assert member.take() == [(1, 1, 1)]


def test_a_leader_that_is_not_known_yet_is_asked_again(office):
    partition = office.table.by_name("dlq.g", 0)
    partition.refusal = BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    reject_all(office, 1)
    office.settle(999)
    assert told(office) == []
    partition.refusal = None
    office.settle(1)
    assert told(office) == [0]
    partition.refusal = BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    reject_all(office, 1, Member(office, "m2").join("t"))
    for _ in range(5):
        office.settle(8_000)
    partition.refusal = None
    office.settle(60_000)
    assert told(office) == [0]
    assert office.broker.share.letters.counts["g"].failures == 1


def test_a_group_without_a_topic_gives_up_as_ever(office):
    configure(office, "g", LETTERS, "")
    member = reject_all(office, 2)
    assert told(office) == []
    assert office.reports == []
    office.produce("t")
    assert member.take() == [(2, 2, 1)]
    assert member.acknowledge(2, 2, ACCEPT) == 0
    assert start_offset(office) == 2


def test_a_deleted_group_is_counted_no_more(office):
    member = reject_all(office, 1)
    assert office.broker.share.letters.counts["g"].records == 1
    member.beat(epoch=-1)
    member.close()
    answer = office.ask(delete_groups.API, DeleteGroupsRequest(groups_names=["g"]))
    assert answer.results[0].error_code == 0
    assert office.broker.share.letters.counts == {}


def test_a_batch_that_is_long_to_compress_is_written_as_well(office):
    alter(office, ConfigType.TOPIC, "dlq.g", "compression.type", "zstd")
    configure(office, "g", COPIES, "true")
    for _ in range(3):
        office.produce("t", size=10_000)
    member = Member(office).join("t")
    assert member.take() == [(0, 2, 1)]
    assert member.acknowledge(0, 2, REJECT) == 0
    office.settle()
    assert told(office) == [0, 1, 2]
    assert not office.broker.share.letters._boxes


@pytest.mark.parametrize("where", ["pack", "build_batch", "effective_topic"])
def test_whatever_breaks_takes_one_letter_along_and_no_other(office, monkeypatch, where):
    office.produce("t", count=1)
    office.produce("t", count=1)
    member = Member(office).join("t")
    assert member.take() == [(0, 1, 1)]
    real, calls = getattr(share_letters, where), []

    def breaks(*arguments, **keywords):
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("unforeseen")
        return real(*arguments, **keywords)

    monkeypatch.setattr(share_letters, where, breaks)
    assert member.acknowledge(0, 0, REJECT) == 0
    assert member.acknowledge(1, 1, REJECT) == 0
    office.settle(5_000)
    assert told(office) == [1]
    office.produce("t")
    assert member.take() == [(2, 2, 1)]
    assert member.acknowledge(2, 2, ACCEPT) == 0
    assert start_offset(office) == 2, "neither is held up"
    assert "unforeseen" in office.reports[-1]
    assert not office.broker.share.letters._boxes
