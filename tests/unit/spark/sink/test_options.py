"""What may be said about a write."""

import logging
import pickle

import pytest

from ottla.spark.sink.options import Guarantee, SinkOptions
from ottla.spark.sink.refusal import OptionError

WHERE = {"kafka.bootstrap.servers": "localhost:9092"}


def test_what_holds_when_nothing_is_said() -> None:
    options = SinkOptions.of(WHERE)
    assert options.guarantee is Guarantee.EXACTLY_ONCE
    assert not options.is_portable
    assert options.timeout_ms == 60_000
    assert options.batch_bytes == 900_000
    assert options.settings("me")["transactional.id"] == "me"
    assert options.settings()["transactional.id"] is None


def test_options_travel() -> None:
    options = SinkOptions.of({**WHERE, "topic": "out", "kafka.compression.type": "lz4"})
    assert pickle.loads(pickle.dumps(options)) == options


def test_names_in_any_case() -> None:
    options = SinkOptions.of(
        {
            **WHERE,
            "transactionalid": "me",
            "TRANSACTIONTIMEOUT": "5m",
            "checkpointLocation": "/c",
            "queryName": "q",
        }
    )
    assert (options.transactional_id, options.timeout_ms, options.checkpoint) == ("me", 300_000, "/c")


@pytest.mark.parametrize(
    ("text", "expected"), [("1500", 1500), ("500ms", 500), ("90s", 90_000), ("1 h", 3_600_000)]
)
def test_times(text: str, expected: int) -> None:
    assert SinkOptions.of({**WHERE, "transactionTimeout": text}).timeout_ms == expected


def test_a_size_of_batches_that_was_chosen() -> None:
    assert SinkOptions.of({**WHERE, "kafka.batch.size": "5000"}).batch_bytes == 5000
    assert SinkOptions.of({**WHERE, "kafka.max.request.size": "5000"}).batch_bytes == 5000


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"topik": "out"}, "no option topik\nhint: did you mean topic?"),
        (
            {"compression.type": "lz4"},
            "no option compression.type\nhint: did you mean kafka.compression.type?",
        ),
        ({"kafka.compresion.type": "lz4"}, "compresion.type\nhint: did you mean compression.type?"),
        ({"kafka.compression.type": "brotli"}, "compression.type"),
        (
            {"kafka.transactional.id": "x"},
            "does not take kafka.transactional.id\nhint: set the option transactionalId",
        ),
        ({"kafka.acks": "1"}, "a transaction needs kafka.acks=all\nhint: leave it out"),
        ({"kafka.enable.idempotence": "false"}, "a transaction needs kafka.enable.idempotence=true"),
        ({"kafka.key.serializer": "x"}, "does not take kafka.key.serializer\nhint: keys are columns"),
        ({"guarantee": "once"}, "guarantee is 'once'\nhint: it is exactly-once or at-least-once"),
        ({"portable": "yes"}, "portable is 'yes'\nhint: it is true or false"),
        ({"transactionTimeout": "soon"}, "transactionTimeout is 'soon'\nhint: it is a time such as"),
        ({"transactionTimeout": "0"}, "transactionTimeout is '0'"),
        ({"batchId": "-1"}, "batchId is '-1'"),
        ({"guarantee": "at-least-once", "transactionalId": "x"}, "transactionalId is for transactions"),
        ({"guarantee": "at-least-once", "portable": "true"}, "portable is for transactions"),
    ],
)
def test_what_cannot_be(given: dict[str, str], complaint: str) -> None:
    with pytest.raises(OptionError) as raised:
        SinkOptions.of({**WHERE, **given})
    assert complaint in str(raised.value)


def test_nowhere_to_write() -> None:
    with pytest.raises(OptionError, match="kafka.bootstrap.servers is missing\nhint: give the address"):
        SinkOptions.of({"topic": "out"})


def test_at_least_once_may_do_without_idempotence() -> None:
    options = SinkOptions.of({**WHERE, "guarantee": "at-least-once", "kafka.enable.idempotence": "false"})
    assert not options.is_exactly_once


def test_what_has_no_effect_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "ottla.spark"):
        SinkOptions.of({**WHERE, "kafka.linger.ms": "5"})
    assert "without effect in Spark: kafka.linger.ms" in caplog.text


@pytest.mark.parametrize("text", ["fail", "write", "write:3", "skip:17", " Skip:17 "])
def test_what_to_do_without_a_marker(text: str) -> None:
    assert SinkOptions.of({**WHERE, "missingMarker": text}).missing_marker == text.strip().lower()


@pytest.mark.parametrize("text", ["skip", "skip:", "write:x", "fail:1", "", "write:-1"])
def test_what_cannot_be_done_without_a_marker(text: str) -> None:
    with pytest.raises(OptionError, match="option missingMarker is .*\nhint: it is fail or write"):
        SinkOptions.of({**WHERE, "missingMarker": text})


def test_a_time_that_is_none() -> None:
    with pytest.raises(OptionError, match="option plannedMs is 'soon'"):
        SinkOptions.of({**WHERE, "plannedMs": "soon"})


def test_an_unknown_setting_says_where_they_are_described() -> None:
    with pytest.raises(OptionError) as refused:
        SinkOptions.of({**WHERE, "kafka.foo": "1"}).check()
    assert refused.value.hint == "docs/reference/client-settings.md lists all there are"
