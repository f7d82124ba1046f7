"""Rows that go with a plan are what a task would have read, and are taken once; or they are left to a task."""

import io
import json

import pytest
from pyspark.serializers import read_int, write_int
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.datasource_internal import _SimpleStreamReaderWrapper
from pyspark.sql.streaming import python_streaming_source_runner as runner

from ottla.client.record import TopicPartition
from ottla.spark.source import reading
from ottla.spark.source.ahead import Ahead
from ottla.spark.source.bundle import bundled
from ottla.spark.source.columns import spark_schema
from ottla.spark.source.handing import HandingReader
from ottla.spark.source.offsets import Reached
from ottla.spark.source.task import Task
from tests.unit.client.consumer.broker import until
from tests.unit.spark.source.world import play

T0 = TopicPartition("t", 0)


class Reader(HandingReader):
    def __init__(self, options=None, planned=()):
        self._options = options
        self._planned = list(planned)

    def partitions(self, start, end):
        self._hand_over(self._options, self._planned)
        return self._planned

    def read(self, partition):
        raise AssertionError("rows were handed over")


def is_simple(reader):
    return isinstance(reader, _SimpleStreamReaderWrapper)


def with_rows(test, *values):
    """Run a test with a task for which the planner has fetched these records."""

    async def main(mini, connection, chosen):
        mini.append("t", 0, *values)
        connection.call = lambda work, *arguments: work(*arguments)
        ahead = Ahead(connection, chosen)
        ahead.begin(Reached({T0: 0}, {}), Reached({T0: len(values)}, {}))
        await until(lambda: all(feed.portions.qsize() for feed in ahead._feeds.values()))
        task = Task("t", 0, 0, len(values))
        ahead.give([task])
        test(chosen, task)

    play(main)


def test_rows_are_taken_once_and_the_reader_is_itself_before_and_after(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(reading, "connected")

    def test(chosen, task):
        reader = Reader(chosen, bundled([task], 10))
        assert not is_simple(reader)
        reader.partitions({}, {})
        assert is_simple(reader)
        assert isinstance(reader, DataSourceStreamReader)
        rows = [row["value"] for batch in reader.getCache({}, {}) for row in batch.to_pylist()]
        assert rows == [b"a", b"b"]
        assert not is_simple(reader)
        assert type(reader) is reader.__class__ is Reader
        assert task.portions == ()  # they need not travel twice

    with_rows(test, b"a", b"b")


def test_pyspark_takes_them():
    """If this fails with a new PySpark, it asks differently; rows are read by tasks then, only later."""

    def test(chosen, task):
        answer, asked = io.BytesIO(), io.BytesIO()
        for _ in range(2):
            text = json.dumps({}).encode()
            write_int(len(text), asked)
            asked.write(text)
        asked.seek(0)
        schema = spark_schema(chosen.columns)
        runner.partitions_func(Reader(chosen, [task]), None, schema, 1000, asked, answer)
        answer.seek(0)
        assert read_int(answer) == 1
        answer.read(read_int(answer))
        assert read_int(answer) == runner.NON_EMPTY_PYARROW_RECORD_BATCHES

    with_rows(test, b"a")


def test_what_was_not_fetched_whole_or_cannot_be_read_is_left_to_tasks(monkeypatch: pytest.MonkeyPatch):
    def test(chosen, task):
        for planned in ([task, task], [Task("t", 0, 0, 1)], []):
            reader = Reader(chosen, planned)
            reader.partitions({}, {})
            assert not is_simple(reader)

        def broken(*_):
            raise ValueError("a record that cannot be read")

        monkeypatch.setattr(reading, "read", broken)
        reader = Reader(chosen, [task])
        reader.partitions({}, {})
        assert not is_simple(reader)
        assert task.portions

    with_rows(test, b"a")
