"""The share consumer: records for one of many, acknowledged, released, rejected, renewed, and delivered again."""

import asyncio
import json
import time

import pytest

from ottla.client import AcknowledgeType, Admin, ShareConsumer, TopicPartition
from ottla.client.admin.configs import Resource
from ottla.client.errors import ClientError, Closed, Refused, SerializationFailed, WrongState
from tests.client.writing import write, write_transaction

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
EXPLICIT = {"share.acknowledgement.mode": "explicit"}


@pytest.fixture
def group(bootstrap, topic_name, run):
    """A share group that begins where its topics begin."""

    async def main():
        async with Admin(bootstrap) as admin:
            await admin.configs.alter({Resource.group(topic_name): {"share.auto.offset.reset": "earliest"}})

    run(main())
    return topic_name


async def read(consumer, count, seconds_max=20, kind=None):
    """Poll until so many records have come, acknowledging them if told how."""
    found = []
    async with asyncio.timeout(seconds_max):
        while len(found) < count:
            records = await consumer.poll(timeout=0.5)
            found += records
            for record in records if kind is not None else ():
                consumer.acknowledge(record, kind)
    return found


def values(records):
    return [record.value for record in records]


@pytest.mark.parametrize("uvloop", [False, True])
def test_what_was_handed_out_is_accepted_by_the_next_poll(bootstrap, make_topic, group, run, uvloop):
    name = make_topic(2)
    for number in (0, 1):
        write(bootstrap, name, [b"%d %d" % (number, n) for n in range(100)], number)

    async def main():
        heard = []
        async with ShareConsumer(bootstrap, group_id=group) as consumer:
            consumer.set_acknowledgement_callback(lambda offsets, error: heard.append((offsets, error)))
            await consumer.subscribe([name])
            assert consumer.subscription == {name}
            found = await read(consumer, 200)
            assert {record.delivery_count for record in found} == {1}
            # What is accepted rides with a fetch, and is answered when that is.
            assert await consumer.poll(timeout=1.0) == []
            assert consumer.acquisition_lock_timeout == 5.0
            statistics = consumer.statistics()
            assert statistics["records"] == statistics["acknowledged"] == 200
        assert all(error is None for _, error in heard)
        assert sum(len(each) for offsets, _ in heard for each in offsets.values()) == 200
        async with ShareConsumer(bootstrap, group_id=group) as consumer:
            await consumer.subscribe([name])
            await asyncio.to_thread(write, bootstrap, name, [b"new"], 1)
            assert values(await read(consumer, 1)) == [b"new"]
        return values(found)

    found = run(main(), uvloop=uvloop)
    for number in (b"0", b"1"):
        assert [v for v in found if v.startswith(number)] == [b"%s %d" % (number, n) for n in range(100)]


def test_a_callback_that_fails_comes_out_of_poll_and_nothing_is_left_undone(
    bootstrap, make_topic, group, run
):
    name = make_topic(2)
    for number in (0, 1):
        write(bootstrap, name, [b"x"] * 10, number)

    async def main():
        heard = []

        def failing(offsets, error):
            heard.extend(offsets)
            if len(heard) == 1:
                raise ZeroDivisionError

        # Both partitions come with one poll.
        patient = {"fetch.min.bytes": 1_000_000, "fetch.max.wait.ms": 1_000}
        async with ShareConsumer(bootstrap, patient, group_id=group) as consumer:
            consumer.set_acknowledgement_callback(failing)
            await consumer.subscribe([name])
            assert len(await consumer.poll(timeout=10.0)) == 20
            outcome = await consumer.commit()
            places = {TopicPartition(name, 0), TopicPartition(name, 1)}
            assert outcome == dict.fromkeys(places)
            assert set(heard) == places
            assert consumer.statistics()["acknowledged"] == 20
            with pytest.raises(ZeroDivisionError):
                await consumer.poll(timeout=1.0)
            assert await consumer.poll(timeout=0.1) == []

    run(main())


def test_what_was_not_acknowledged_goes_to_others_when_its_consumer_closes(bootstrap, topic, group, run):
    write(bootstrap, topic, [b"%d" % n for n in range(10)])

    async def main():
        async with ShareConsumer(bootstrap, group_id=group) as consumer:
            await consumer.subscribe([topic])
            assert len(await read(consumer, 10)) == 10
        async with ShareConsumer(bootstrap, group_id=group) as consumer:
            await consumer.subscribe([topic])
            found = await read(consumer, 10)
            assert [record.delivery_count for record in found] == [2] * 10
            assert await consumer.commit() == {TopicPartition(topic, 0): None}
        async with ShareConsumer(bootstrap, group_id=group) as consumer:
            await consumer.subscribe([topic])
            assert await consumer.poll(timeout=0.7) == []

    run(main())


def test_each_record_by_itself(bootstrap, topic, group, run):
    write(bootstrap, topic, [b"%d" % n for n in range(6)])

    async def main():
        async with ShareConsumer(bootstrap, EXPLICIT, group_id=group) as consumer:
            await consumer.subscribe([topic])
            found = await read(consumer, 6)
            with pytest.raises(WrongState, match="not all records"):
                await consumer.poll(timeout=0.1)
            for record, kind in zip(found, [ACCEPT, RELEASE, REJECT, ACCEPT, RELEASE, ACCEPT], strict=True):
                consumer.acknowledge(record, kind)
            again = await read(consumer, 2)
            assert [(record.value, record.delivery_count) for record in again] == [(b"1", 2), (b"4", 2)]
            consumer.acknowledge(again[0])
            consumer.acknowledge((topic, 0, again[1].offset), REJECT)
            assert await consumer.commit() == {TopicPartition(topic, 0): None}
            with pytest.raises(WrongState, match="not there to be acknowledged"):
                consumer.acknowledge(found[0])
            assert await consumer.poll(timeout=0.3) == []

    run(main())


def test_a_lock_that_is_renewed_lasts(bootstrap, topic, group, run):
    write(bootstrap, topic, [b"long"])

    async def main():
        async with ShareConsumer(bootstrap, EXPLICIT, group_id=group) as consumer:
            await consumer.subscribe([topic])
            [record] = await read(consumer, 1)
            for _ in range(3):
                consumer.acknowledge(record, RENEW)
                [again] = await read(consumer, 1)
                assert again == record
            consumer.acknowledge(record)
            assert await consumer.commit() == {TopicPartition(topic, 0): None}
            assert await consumer.poll(timeout=0.2) == []

    run(main())


def test_a_lock_that_ends_lets_its_record_go(bootstrap, topic, group, run):
    write(bootstrap, topic, [b"slow"])

    async def main():
        async with Admin(bootstrap) as admin:
            await admin.configs.alter({Resource.group(group): {"share.record.lock.duration.ms": "1000"}})
        async with ShareConsumer(bootstrap, EXPLICIT, group_id=group) as consumer:
            await consumer.subscribe([topic])
            [record] = await read(consumer, 1)
            await asyncio.sleep(1.3)
            consumer.acknowledge(record)
            outcome = await consumer.commit()
            assert isinstance(outcome[TopicPartition(topic, 0)], Refused)
            [again] = await read(consumer, 1)
            assert (again.value, again.delivery_count) == (b"slow", 2)
            consumer.acknowledge(again)

    run(main())


def test_many_consumers_share_one_partition(bootstrap, topic, group, run):
    async def work(number, found, ready):
        settings = {"share.acquire.mode": "record_limit", "max.poll.records": 20}
        async with ShareConsumer(bootstrap, settings, group_id=group) as consumer:
            await consumer.subscribe([topic])
            while not consumer.statistics()["partitions"]:
                assert not await consumer.poll(timeout=0.05)
            # Records come when all three have the partition, or the first would have them all.
            if await ready.wait() == 0:
                await asyncio.to_thread(
                    write, bootstrap, topic, [b"%d" % n for n in range(400)], batch_size=200
                )
            mine = 0
            while len(found) < 400:
                records = await consumer.poll(timeout=0.2)
                assert len(records) <= 20
                found += values(records)
                mine += len(records)
                await asyncio.sleep(0.005)
            # Or the records of the last poll would go to another when this one closes.
            await consumer.commit()
            return mine

    async def main():
        found, ready = [], asyncio.Barrier(3)
        async with asyncio.timeout(30):
            counts = await asyncio.gather(*(work(number, found, ready) for number in range(3)))
        assert sorted(found, key=int) == [b"%d" % n for n in range(400)]
        assert sum(1 for count in counts if count) > 1

    run(main())


def test_a_record_that_cannot_be_deserialized_is_released(bootstrap, topic, group, run):
    write(bootstrap, topic, [b"1", b"nonsense", b"3"])

    async def main():
        async with ShareConsumer(
            bootstrap, EXPLICIT, group_id=group, value_deserializer=json.loads
        ) as consumer:
            await consumer.subscribe([topic])
            assert values(await read(consumer, 1, kind=ACCEPT)) == [1]
            with pytest.raises(SerializationFailed, match="offset 1"):
                await consumer.poll(timeout=5.0)
            # Our word on it was to release it; the application knows better.
            consumer.acknowledge((topic, 0, 1), REJECT)
            assert values(await read(consumer, 1, kind=ACCEPT)) == [3]
            assert await consumer.poll(timeout=0.3) == []

    run(main())


def test_what_is_not_for_applications_is_passed_over(bootstrap, topic, topic_name, group, run):
    write_transaction(bootstrap, topic, [b"a", b"b"], commit=True, name=topic_name)
    write(bootstrap, topic, [b"c"])

    async def main():
        async with ShareConsumer(bootstrap, EXPLICIT, group_id=group) as consumer:
            await consumer.subscribe([topic])
            assert values(await read(consumer, 3, kind=ACCEPT)) == [b"a", b"b", b"c"]
            assert await consumer.poll(timeout=0.3) == []

    run(main())


def test_words_that_do_not_fit(bootstrap, topic, group, run):
    async def main():
        async with ShareConsumer(bootstrap, group_id=group) as consumer:
            with pytest.raises(WrongState, match="nothing to read"):
                await consumer.poll()
            with pytest.raises(WrongState, match="explicit"):
                consumer.acknowledge((topic, 0, 0))
            with pytest.raises(WrongState, match="list of topics"):
                await consumer.subscribe(topic)
            assert await consumer.commit() == {}
            await consumer.subscribe([topic])
            await consumer.poll(timeout=0.05)
            await consumer.subscribe([])
            assert consumer.subscription == frozenset()
        with pytest.raises(Closed):
            await consumer.poll()

    run(main())


def test_a_cancelled_poll_loses_nothing(bootstrap, topic, group, run):
    write(bootstrap, topic, [b"%d" % n for n in range(300)], batch_size=300)

    async def main():
        found = []
        settings = {"share.acquire.mode": "record_limit", "max.poll.records": 10}
        async with ShareConsumer(bootstrap, settings, group_id=group) as consumer:
            await consumer.subscribe([topic])
            turn = 0
            async with asyncio.timeout(30):
                while len(found) < 300:
                    turn += 1
                    polling = asyncio.create_task(consumer.poll(timeout=2.0))
                    if turn % 2:
                        await asyncio.sleep(0.001 * (turn % 5))
                        polling.cancel()
                    [outcome] = await asyncio.gather(polling, return_exceptions=True)
                    if isinstance(outcome, list):
                        found += values(outcome)
        assert found == [b"%d" % n for n in range(300)]

    run(main())


def test_closing_is_quick(bootstrap, topic, group, run):
    async def main():
        consumer = ShareConsumer(bootstrap, group_id=group)
        await consumer.open()
        await consumer.subscribe([topic])
        polling = asyncio.create_task(consumer.poll(timeout=None))
        await asyncio.sleep(0.3)
        began = time.monotonic()
        await consumer.close()
        with pytest.raises(ClientError):
            await polling
        assert time.monotonic() - began < 2

    run(main())
