"""Streams: every record once, in limits, from where the last run was, and a clear word when something is gone."""

import json
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from ottla.spark import SparkFailure
from ottla.spark.source.offsets import lag
from ottla.testing import Broker
from tests.peers.deadline import eventually
from tests.spark.source_stage import Place, Stream

pytest_plugins = ["tests.spark.source_fixtures"]

EARLY = {"startingOffsets": "earliest"}


def test_limits_progress_and_the_group(place: Place, stream: Stream, topic_name: str) -> None:
    place.make(topic_name, 2)
    place.write(topic_name, *range(10))
    place.write(topic_name, "x", "y", partition=1)
    options = {"groupId": f"{topic_name}-group", "maxOffsetsPerTrigger": 5, **EARLY}
    query = stream.run(**options)
    assert [len(batch) for batch in stream.batches] == [5, 5, 2]
    assert sorted(stream.values) == sorted([*map(str, range(10)), "x", "y"])
    assert place.committed(options["groupId"], topic_name) == {0: 10, 1: 2}
    reports = [report["sources"][0] for report in query.recentProgress if report["numInputRows"]]
    assert [report["numInputRows"] for report in reports] == [5, 5, 2]
    assert all(json.loads(report["latestOffset"]) == {topic_name: {"0": 10, "1": 2}} for report in reports)
    behind = [sum(lag(report["endOffset"], report["latestOffset"]).values()) for report in reports]
    assert behind == [7, 2, 0]
    # It goes on where it was, and a new query goes on where the group was.
    place.write(topic_name, "z", partition=1)
    stream.run(**options)
    assert stream.batches[3:] == [["z"]]


def test_a_new_query_goes_on_where_the_group_was(
    spark: Any,
    place: Place,
    stream: Stream,
    topic_name: str,
    tmp_path: Any,
) -> None:
    place.make(topic_name)
    place.write(topic_name, "a", "b")
    stream.run(groupId=f"{topic_name}-group", **EARLY)
    place.write(topic_name, "c")
    another = Stream(spark, place, topic_name, tmp_path / "another")
    another.run(groupId=f"{topic_name}-group", startingOffsets="group")
    assert another.values == ["c"]


def test_records_as_they_come(place: Place, stream: Stream, topic_name: str) -> None:
    place.make(topic_name)
    place.write(topic_name, "before")
    query = stream.start(partition__metadata__cache__ttl__ms="50")
    eventually(lambda: len(stream.batches) == 1, seconds_max=60)
    place.write(topic_name, "a")
    stream.wait_for("a")
    # A partition that comes later is read from its beginning.
    place.grow(topic_name, 2)
    place.write(topic_name, "b", partition=1)
    stream.wait_for("a", "b")
    query.processAllAvailable()  # a batch that is not finished would come again
    query.stop()
    # What comes while nobody reads is read by the next run.
    place.write(topic_name, "c", partition=1)
    stream.start()
    stream.wait_for("a", "b", "c")


def test_a_stream_that_begins_at_the_end_misses_nothing_while_it_is_down(
    place: Place,
    stream: Stream,
    topic_name: str,
) -> None:
    place.make(topic_name)
    place.write(topic_name, "before")
    stream.run()
    place.write(topic_name, "between")
    stream.run()
    assert stream.values == ["between"]


def test_open_transactions_hold_it_up(place: Place, stream: Stream, topic_name: str) -> None:
    place.make(topic_name)
    producer = place.producer(transactional_id=topic_name)
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic_name, "a")
    producer.flush()
    place.write(topic_name, "b")
    stream.run(**EARLY)
    assert stream.values == []
    producer.commit_transaction()
    stream.run()
    assert stream.values == ["a", "b"]
    producer.begin_transaction()
    producer.produce(topic_name, "c")
    producer.flush()
    producer.abort_transaction()
    # Nothing but markers and what they hide.
    stream.run()
    assert stream.values == ["a", "b"]


def test_what_retention_took(place: Place, stream: Stream, topic_name: str) -> None:
    place.make(topic_name)
    place.write(topic_name, "a", "b")
    stream.run(**EARLY)
    place.write(topic_name, "c", "d")
    place.forget(topic_name, 0, 3)
    with pytest.raises(SparkFailure, match=r"lost the offsets from 2 up to 3"):
        stream.run()
    stream.run(failOnDataLoss="false")
    assert stream.values == ["a", "b", "d"]


def test_a_topic_made_anew(place: Place, stream: Stream, topic_name: str) -> None:
    place.make(topic_name)
    place.write(topic_name, "a")
    stream.run(**EARLY)
    place.delete(topic_name)
    with pytest.raises(SparkFailure, match="does not exist"):
        stream.run()
    place.make(topic_name)
    # As many records as before: offsets alone would not give it away.
    place.write(topic_name, "x", "y")
    with pytest.raises(SparkFailure, match="was deleted and made anew"):
        stream.run()
    stream.run(failOnDataLoss="false")
    assert stream.values == ["a", "x", "y"]


def test_a_task_finds_out_that_records_are_gone(
    spark: Any,
    place: Place,
    topic_name: str,
) -> None:
    """What goes between the planning of a batch and its tasks: the plan is made, and run later."""
    place.make(topic_name)
    place.write(topic_name, *range(10))
    frame = spark.read.format("ottla").options(**place.options(topic_name)).load()
    frame.rdd.getNumPartitions()  # which plans it
    planned = frame.rdd
    planned.getNumPartitions()
    place.forget(topic_name, 0, 5)
    with pytest.raises(Exception, match="lost the offsets from 0 up to 5"):
        planned.count()


def test_options_of_batches_are_refused(place: Place, stream: Stream) -> None:
    with pytest.raises(SparkFailure, match="a stream has no end"):
        stream.run(endingOffsets="latest")


def test_a_broker_that_comes_back(spark: Any, topic_name: str, tmp_path: Any) -> None:
    """Planner and tasks wait for it, and the query goes on."""
    with Broker() as broker:
        own = Place(broker.bootstrap)
        own.make(topic_name)
        stream = Stream(spark, own, topic_name, tmp_path / "checkpoint")
        query = stream.start(**EARLY)
        own.write(topic_name, "a")
        stream.wait_for("a")
        broker.kill()
        broker.start()
        own.write(topic_name, "b")
        stream.wait_for("a", "b")
        query.stop()
