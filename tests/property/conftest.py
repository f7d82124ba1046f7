"""What several property tests need."""

import pytest

from tests.peers import jars


@pytest.fixture(scope="session")
def kafka_jars() -> str:
    """The class path of Apache Kafka, where it can be had."""
    try:
        return jars.classpath()
    except jars.KafkaAbsent as absent:
        pytest.skip(str(absent))
