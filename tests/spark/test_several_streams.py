"""Streams that a program runs side by side, in threads of its own."""

import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from ottla.spark import register


def test_a_query_can_be_started_in_a_thread(spark: Any, broker: Any, topic_name: str, tmp_path: Path) -> None:
    """Spark looks for the format of a sink in the session of the thread, and a new thread has none."""
    found: list[object] = []

    def start() -> None:
        try:
            register(spark)
            rows = spark.readStream.format("rate").load().selectExpr("cast(value as string) as value")
            options = {"topic": topic_name, "kafka.bootstrap.servers": broker.bootstrap}
            writer = rows.writeStream.format("ottla").options(**options)
            query = writer.option("checkpointLocation", str(tmp_path)).start()
            found.append(query.id)
            query.stop()
        except Exception as error:  # noqa: BLE001 - it is looked at below
            found.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert isinstance(found[0], str), found


def test_streams_that_start_at_once_do_not_spoil_what_they_share(spark: Any) -> None:
    """What Spark puts into the variables of a format when a stream starts is there already, so the map never grows."""
    manager = spark._jsparkSession.sessionState().dataSourceManager()
    variables = manager.lookupDataSource("ottla").dataSourceCls().envVars()
    before = set(variables.keySet())
    options = {"kafka.bootstrap.servers": "127.0.0.1:9", "subscribe": "none"}
    query = (
        spark.readStream.format("ottla")
        .options(**options, **{"kafka.default.api.timeout.ms": "500"})
        .load()
        .writeStream.format("noop")
        .start()
    )
    with pytest.raises(Exception, match="127.0.0.1:9"):
        query.awaitTermination()
    assert set(variables.keySet()) == before
