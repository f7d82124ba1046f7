"""Fixtures of the source's tests. `place` is Ottla, and under `make compat`, where Java is, Apache Kafka as well."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.testing import Broker
from tests.spark.source_stage import SETTINGS, Place, Stream, Values

PLACES = ["ottla", pytest.param("kafka", marks=pytest.mark.long)]


@pytest.fixture(scope="session", params=PLACES)
def place(
    request: pytest.FixtureRequest, on_spark: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    if request.param == "kafka":
        from tests.compat.absence import need_kafka
        from tests.peers.kafka import KafkaServer

        need_kafka()
        with KafkaServer(tmp_path_factory.mktemp("kafka"), SETTINGS) as server:
            yield Place(server.bootstrap)
    else:
        with Broker(SETTINGS) as broker:
            yield Place(broker.bootstrap)


@pytest.fixture
def values(spark: Any, place: Place) -> Values:
    """Reads the values of a topic in a batch, as text, in the order of partitions and offsets."""

    def read(topic: str, **options: Any) -> list[Any]:
        frame = spark.read.format("ottla").options(**place.options(topic, **options)).load()
        rows = frame.selectExpr("partition", "offset", "cast(value as string) value").collect()
        return [row.value for row in sorted(rows, key=lambda row: (row.partition, row.offset))]

    return read


@pytest.fixture
def stream(spark: Any, place: Place, topic_name: str, tmp_path: Path) -> Iterator[Stream]:
    made = Stream(spark, place, topic_name, tmp_path / "checkpoint")
    before = {query.runId for query in spark.streams.active}
    yield made
    for query in spark.streams.active:
        if query.runId not in before:
            query.stop()
