"""Options: Spark's names and defaults, and one clear refusal for what cannot be."""

import logging
import pickle

import pytest

from ottla.client.record import TopicPartition
from ottla.spark.source.choice import Assigned, Matching, Subscribed
from ottla.spark.source.options import ALL_COLUMNS, NAMES, parse
from ottla.spark.source.refusal import OptionError
from ottla.spark.source.whence import EARLIEST, GROUP, LATEST, AtOffsets, AtTime, AtTimes, Everywhere

BASE = {"kafka.bootstrap.servers": "one:9092", "subscribe": "orders"}


def check(found):
    found.check_batch()
    found.check_stream()


def refusal(**given):
    with pytest.raises(OptionError) as raised:
        check(parse(BASE | given))
    assert raised.value.hint, raised.value
    return str(raised.value)


def test_what_is_there_when_nothing_is_said():
    found = parse(BASE)
    assert found.choice == Subscribed(("orders",))
    assert found.starting is None and found.ending is None and found.group is None
    assert found.fails_on_data_loss and found.is_committed_only
    assert found.columns == ALL_COLUMNS[:-1]
    assert (found.partitions_min, found.records_per_partition_max) == (None, None)
    assert found.records_per_partition_min == 200
    assert (found.offsets_per_trigger_max, found.offsets_per_trigger_min) == (None, None)
    assert found.trigger_delay_max_ms == 15 * 60 * 1000
    assert (found.offset_tries, found.offset_retry_ms, found.poll_timeout_ms) == (3, 1000, 120_000)


def test_names_may_be_written_small():
    given = {
        name.lower(): "1" for name in ("minPartitions", "maxOffsetsPerTrigger", "maxRecordsPerPartition")
    }
    found = parse(BASE | given)
    assert (found.partitions_min, found.offsets_per_trigger_max, found.records_per_partition_max) == (1, 1, 1)


def test_options_travel_to_tasks():
    found = parse(BASE | {"kafka.max.partition.fetch.bytes": "77"})
    again = pickle.loads(pickle.dumps(found))
    assert again.choice == found.choice
    assert dict(again.settings) == dict(found.settings)


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        ({"subscribe": " a, b,,a "}, Subscribed(("a", "b"))),
        ({"subscribePattern": " or.* "}, Matching("or.*")),
        ({"assign": '{"a": [2, 0]}'}, Assigned((TopicPartition("a", 2), TopicPartition("a", 0)))),
    ],
)
def test_what_to_read(given, choice):
    assert parse({"kafka.bootstrap.servers": "one:9092"} | given).choice == choice


def test_a_pattern_may_match_anywhere():
    assert Matching("rde").match("orders")
    assert not Matching("^rde").match("orders")


@pytest.mark.parametrize(
    ("given", "start", "end"),
    [
        ({"startingOffsets": "Earliest"}, Everywhere(EARLIEST), None),
        ({"startingOffsets": "latest"}, Everywhere(LATEST), None),
        ({"startingOffsets": "group", "groupId": "g"}, Everywhere(GROUP), None),
        (
            {"startingOffsets": '{"a": {"0": 5, "1": -2, "2": -1, "3": "group"}}', "groupId": "g"},
            AtOffsets({TopicPartition("a", n): offset for n, offset in enumerate((5, -2, -1, -3))}),
            None,
        ),
        ({"startingTimestamp": "17", "startingOffsets": "latest"}, AtTime(17, False), None),
        (
            {
                "startingOffsetsByTimestamp": '{"a": {"0": 17}}',
                "startingOffsetsByTimestampStrategy": "LATEST",
            },
            AtTimes({TopicPartition("a", 0): 17}, True),
            None,
        ),
        ({"endingTimestamp": "9"}, None, AtTime(9, True)),
        ({"endingOffsets": '{"a": {"0": 7}}'}, None, AtOffsets({TopicPartition("a", 0): 7})),
    ],
)
def test_where_to_begin_and_end(given, start, end):
    found = parse(BASE | given)
    assert (found.starting, found.ending) == (start, end)


@pytest.mark.parametrize(
    ("text", "delay_ms"), [("500", 500), ("500ms", 500), ("2s", 2000), ("15m", 900_000), ("1h", 3_600_000)]
)
def test_times_as_spark_writes_them(text, delay_ms):
    assert parse(BASE | {"maxTriggerDelay": text}).trigger_delay_max_ms == delay_ms


def test_isolation():
    assert not parse(BASE | {"isolation": "read_uncommitted"}).is_committed_only
    assert not parse(BASE | {"kafka.isolation.level": "read_uncommitted"}).is_committed_only
    assert "contradict" in refusal(
        **{"kafka.isolation.level": "read_uncommitted", "isolation": "read_committed"}
    )


def test_columns():
    assert parse(BASE | {"includeHeaders": "true"}).columns == ALL_COLUMNS
    assert parse(BASE | {"columns": " Value , timestamptype"}).columns == ("value", "timestampType")
    assert "did you mean value?" in refusal(columns="valeu")
    assert "twice" in refusal(columns="value,value")
    assert "headers" in refusal(columns="value", includeHeaders="true")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"subscribePattern": "x"}, "subscribe and subscribePattern contradict each other"),
        ({"subscribe": " , "}, "names no topic"),
        ({"startingOffset": "earliest"}, "did you mean startingOffsets?"),
        ({"maxoffsetpertrigger": "1"}, "did you mean maxOffsetsPerTrigger?"),
        ({"session.timeout.ms": "1"}, "kafka.session.timeout.ms"),
        ({"path": "/x"}, "no option path"),
        ({"groupIdPrefix": "x"}, "no option groupIdPrefix"),
        ({"kafka.group.id": "g"}, "groupId"),
        ({"kafka.auto.offset.reset": "latest"}, "startingOffsets"),
        ({"kafka.enable.auto.commit": "true"}, "groupId"),
        ({"kafka.value.deserializer": "x"}, "bytes"),
        ({"kafka.interceptor.classes": "x"}, "functions"),
        ({"kafka.fetch.max.byte": "1"}, "did you mean fetch.max.bytes?"),
        ({"kafka.fetch.max.bytes": "many"}, "kafka.fetch.max.bytes"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers is missing"),
        ({"startingOffsets": "begin"}, "cannot be read"),
        ({"startingOffsets": '{"a": {"0": 1.5}}'}, "cannot be read"),
        ({"startingOffsets": '{"a": {"0": true}}'}, "cannot be read"),
        ({"startingOffsets": '{"a": [1]}'}, "cannot be read"),
        ({"startingOffsets": '{"a": {"0": -4}}'}, "-4"),
        ({"startingOffsets": "group"}, "groupId"),
        ({"startingTimestamp": "today"}, "milliseconds"),
        ({"startingOffsetsByTimestampStrategy": "earliest"}, "error or latest"),
        ({"failOnDataLoss": "yes"}, "true or false"),
        ({"minPartitions": "0"}, "1 or more"),
        ({"maxRecordsPerPartition": "x"}, "1 or more"),
        ({"maxTriggerDelay": "soon"}, "15m"),
        ({"minOffsetsPerTrigger": "10", "maxOffsetsPerTrigger": "9"}, "minOffsetsPerTrigger (10)"),
        ({"isolation": "serializable"}, "read_committed"),
        ({"startingOffsets": "latest"}, "cannot begin at the end"),
        ({"startingOffsets": '{"orders": {"0": -1}}'}, "cannot begin at the end"),
        ({"endingOffsets": "earliest"}, "cannot end at the beginning"),
        ({"endingOffsets": "latest"}, "a stream has no end"),
    ],
)
def test_what_cannot_be(given, words):
    assert words in refusal(**given)


def test_nothing_to_read():
    with pytest.raises(OptionError, match="nothing says what to read"):
        parse({"kafka.bootstrap.servers": "one:9092"})


@pytest.mark.parametrize("text", ["{}", "[]", "x", '{"a": 1}', '{"a": ["0"]}', '{"a": [-1]}', '{"a": []}'])
def test_partitions_that_are_none(text):
    with pytest.raises(OptionError, match="names no partitions"):
        parse({"kafka.bootstrap.servers": "one:9092", "assign": text})


def test_a_pattern_that_is_none():
    with pytest.raises(OptionError, match="no regular expression"):
        parse({"kafka.bootstrap.servers": "one:9092", "subscribePattern": "("})


def test_what_has_no_effect_is_said(caplog):
    with caplog.at_level(logging.WARNING):
        parse(BASE | {"kafka.max.poll.records": "7"})
        parse(BASE | {"maxOffsetsPerTrigger": "7"}).check_batch()
    assert "kafka.max.poll.records" in caplog.text
    assert "without effect in a batch: maxOffsetsPerTrigger" in caplog.text


def test_every_option_is_known():
    assert {"subscribe", "assign", "failOnDataLoss", "groupId", "columns", "isolation"} <= set(NAMES)
    assert len({name.lower() for name in NAMES}) == len(NAMES)


def test_what_is_refused_is_refused_with_what_to_do_about_it():
    for given in ({"kafka.foo": "1"}, {"subscribePattern": "("}):
        base = BASE if "kafka.foo" in given else {"kafka.bootstrap.servers": "one:9092"}
        with pytest.raises(OptionError) as raised:
            parse(base | given)
        assert raised.value.hint
        assert "brokers said" not in raised.value.hint
