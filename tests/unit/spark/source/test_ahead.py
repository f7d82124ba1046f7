"""What the planner fetches ahead is what the task would have read, or it is not there."""

import asyncio
import pickle

import pytest

from ottla.client.record import TopicPartition
from ottla.spark.source import reading
from ottla.spark.source.ahead import Ahead
from ottla.spark.source.offsets import Reached
from ottla.spark.source.task import Task
from ottla.wire.errors import ErrorCode
from tests.unit.client.consumer.broker import until
from tests.unit.spark.source.world import drain, options, play

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def ahead_of(connection, chosen):
    connection.call = lambda work, *arguments: work(*arguments)
    return Ahead(connection, chosen)


def between(start, end, ids=None):
    return Reached(start, ids or {}), Reached(end, ids or {})


async def fetched(ahead, count=1):
    """Wait until so many answers of each range have been looked at."""
    await until(lambda: all(feed.portions.qsize() >= count for feed in ahead._feeds.values()))


def rows(task, chosen):
    return [row["value"] for batch in reading.read(chosen, task) for row in batch.to_pylist()]


def test_a_small_range_travels_with_its_task(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(reading, "connected")  # a task that has everything needs no connection

    async def test(mini, connection, chosen):
        for number in range(4):
            mini.append("t", 0, b"%d" % number)
            mini.append("t", 1, b"other %d" % number)
        ahead = ahead_of(connection, chosen)
        ahead.begin(*between({T0: 1, T1: 4}, {T0: 3, T1: 4}))
        await fetched(ahead)
        task = Task("t", 0, 1, 3)
        ahead.give([task])
        assert len(mini.asked_for("Fetch")) == 1  # of the partition that has something
        assert rows(pickle.loads(pickle.dumps(task)), chosen) == [b"1", b"2"]

    play(test, t=2)


def test_another_range_than_was_fetched_is_left_to_the_task():
    async def test(mini, connection, chosen):
        mini.append("t", 0, b"0", b"1", b"2")
        ahead = ahead_of(connection, chosen)
        ahead.begin(*between({T0: 0}, {T0: 3}))
        await fetched(ahead)
        task = Task("t", 0, 0, 2)
        ahead.give([task])
        assert task.portions == ()
        assert [value for _, value in await drain(connection, chosen, task)] == [b"0", b"1"]

    play(test)


def test_many_offsets_are_not_fetched():
    async def test(mini, connection, chosen):
        mini.append("t", 0, *[b"x"] * 501)
        ahead = ahead_of(connection, chosen)
        ahead.begin(*between({T0: 0}, {T0: 501}))
        await asyncio.sleep(0.02)
        assert not mini.asked_for("Fetch")

    play(test)


def test_what_does_not_come_at_once_is_left_to_the_task():
    async def test(mini, connection, chosen):
        for _ in range(8):
            mini.append("t", 0, bytes(40_000))
        ahead = ahead_of(connection, chosen)
        ahead.begin(*between({T0: 0}, {T0: 8}))
        await fetched(ahead, 3)  # as many as a feed has room for
        task = Task("t", 0, 0, 8)
        ahead.give([task])
        assert task.portions == ()
        assert {each.topics[0].partitions[0].partition_max_bytes for each in mini.asked_for("Fetch")} == {
            64 << 10
        }

    play(test)


def test_what_is_lost_or_refused_is_left_to_the_task():
    async def test(mini, connection, chosen):
        mini.append("t", 0, b"0", b"1", b"2")
        mini.refuse("Fetch", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        ahead = ahead_of(connection, chosen)
        ahead.begin(*between({T0: 0}, {T0: 3}))
        await fetched(ahead)
        task = Task("t", 0, 0, 3)
        ahead.give([task])
        assert task.portions == ()

    play(test, options(failOnDataLoss="false"))


def test_a_topic_made_anew_is_not_fetched_by_the_offsets_of_the_old_one():
    async def test(mini, connection, chosen):
        mini.append("t", 0, b"0", b"1", b"2")
        ahead = ahead_of(connection, chosen)
        ahead.begin(Reached({T0: 1}, {"t": "old"}), Reached({T0: 3}, {"t": "new"}))
        await asyncio.sleep(0.02)
        assert not mini.asked_for("Fetch")

    play(test)


def test_ranges_that_are_cut_for_more_tasks_are_not_fetched():
    async def test(mini, connection, chosen):
        mini.append("t", 0, b"0", b"1", b"2")
        ahead = ahead_of(connection, chosen)
        ahead.begin(*between({T0: 0}, {T0: 3}))
        await asyncio.sleep(0.02)
        assert not mini.asked_for("Fetch")

    play(test, options(minPartitions=8))
