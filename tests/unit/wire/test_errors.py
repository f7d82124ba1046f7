import os
from pathlib import Path

import pytest

from ottla.wire.errors import BrokerError, ErrorCode

BESIDE = Path(__file__).parents[3].parent / "shared" / "kafka-facts"
FACTS = Path(os.environ.get("OTTLA_KAFKA_FACTS", BESIDE)) / "errors.tsv"


@pytest.mark.skipif(not FACTS.is_file(), reason=f"no {FACTS}; set OTTLA_KAFKA_FACTS")
def test_every_code_of_kafka_is_there() -> None:
    rows = [line.split("\t") for line in FACTS.read_text().splitlines()[1:]]
    assert {(code.value, code.name, code.retriable) for code in ErrorCode} == {
        (int(value), name, retriable == "true") for value, name, retriable in rows
    }


def test_a_broker_error_speaks() -> None:
    error = BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, "a topic needs a name")
    assert str(error) == "INVALID_TOPIC_EXCEPTION: a topic needs a name"
    assert (error.code, error.message) == (17, "a topic needs a name")
    assert str(BrokerError(ErrorCode.NOT_COORDINATOR)) == "NOT_COORDINATOR"


def test_a_code_of_a_newer_peer_is_unknown():
    assert ErrorCode(9_999) is ErrorCode(-2) is ErrorCode.UNKNOWN_SERVER_ERROR
