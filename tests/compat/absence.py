"""What this machine lacks: the tests that need it are skipped, and the end of the run says so."""

import shutil
from typing import NoReturn

import pytest

from tests.compat.clients import Client
from tests.peers import jars

REASONS: set[str] = set()


def skip_aloud(reason: str) -> NoReturn:
    """Skip this test, and have the reason named at the end of the run."""
    REASONS.add(reason)
    pytest.skip(reason)


def need(client: Client) -> None:
    """Skip the test where this client is not installed."""
    reason = client.absent()
    if reason is not None:
        skip_aloud(reason)


def kafka_absent() -> str | None:
    """Why Apache Kafka cannot be run, or nothing if it can."""
    try:
        jars.classpath()
    except jars.KafkaAbsent as absent:
        return f"Apache Kafka {jars.VERSION}: {absent}"
    return None


def need_kafka() -> None:
    """Skip the test where Apache Kafka cannot be run."""
    reason = kafka_absent()
    if reason is not None:
        skip_aloud(reason)


def need_go() -> None:
    """Skip the test where there is no Go."""
    if shutil.which("go") is None:
        skip_aloud("Go is not installed")
