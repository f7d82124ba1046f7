"""Transactions and producers through the admin client."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer

from ottla.client.admin import Admin
from ottla.client.errors import Refused, SomeFailed
from ottla.client.record import TopicPartition
from ottla.wire.errors import ErrorCode
from tests.compat.chosen import MakeTopic


def opened(bootstrap: str, transactional_id: str, topic: str) -> Producer:
    """A producer with a transaction open, and a record in it."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 45_000,
            "log_level": 0,
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"x", partition=0)
    assert producer.flush(20) == 0
    return producer


def test_a_transaction_is_seen_and_fenced(bootstrap: str, topic: str, run: Callable[..., None]) -> None:
    name, key = f"{topic}-id", TopicPartition(topic, 0)
    producer = opened(bootstrap, name, topic)

    async def main() -> None:
        async with Admin(bootstrap) as admin:
            listed = (await admin.transactions.list())[name]
            assert (listed.state, listed.coordinator) == ("Ongoing", 1)
            for filters, seen in [
                ({"states": ["Ongoing"]}, True),
                ({"states": "CompleteCommit"}, False),
                ({"producer_ids": [listed.producer_id]}, True),
                ({"producer_ids": [listed.producer_id + 1000]}, False),
                ({"running_longer_than": 3_600}, False),
                ({"pattern": f"{topic}-.*"}, True),
                ({"pattern": "other.*"}, False),
            ]:
                asked: Any = filters
                assert (name in await admin.transactions.list(**asked)) is seen, filters
            with pytest.raises(Refused, match="no transaction state Confused"):
                await admin.transactions.list(states=["Confused"])
            found = (await admin.transactions.describe(name))[name]
            assert (found.state, found.timeout, found.partitions) == ("Ongoing", 45.0, {key})
            assert found.start_time_ms is not None and found.producer_id == listed.producer_id
            [state] = (await admin.producers.describe([key]))[key]
            assert state.producer_id == found.producer_id and state.transaction_start_offset == 0
            assert (await admin.producers.describe([key], broker=1))[key] == (state,)
            fenced = (await admin.transactions.fence(name))[name]
            assert fenced.producer_id >= found.producer_id
            assert (await admin.transactions.describe(name))[name].state in {"Empty", "CompleteAbort"}
            [state] = (await admin.producers.describe([key]))[key]
            assert state.transaction_start_offset is None

    run(main())
    with pytest.raises(Exception, match="fenced|newer producer"):
        producer.commit_transaction(20)


def test_a_transaction_is_aborted_in_a_partition(
    bootstrap: str, topic: str, run: Callable[..., None]
) -> None:
    name, key = f"{topic}-id", TopicPartition(topic, 0)
    opened(bootstrap, name, topic)

    async def main() -> None:
        async with Admin(bootstrap) as admin:
            [state] = (await admin.producers.describe([key]))[key]
            assert state.transaction_start_offset == 0
            await admin.transactions.abort(key, state)
            [state] = (await admin.producers.describe([key]))[key]
            assert state.transaction_start_offset is None
            await admin.transactions.fence(name)

    run(main())


def test_what_is_refused_says_so(bootstrap: str, make_topic: MakeTopic, run: Callable[..., None]) -> None:
    topic = make_topic()
    name = f"{topic}-id"

    async def main() -> None:
        async with Admin(bootstrap) as admin:
            with pytest.raises(Refused) as caught:
                await admin.transactions.describe(name)
            assert caught.value.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            fenced = await admin.transactions.fence([name, f"{name}-2"])
            assert fenced.keys() == {name, f"{name}-2"}
            described = await admin.transactions.describe([name, f"{name}-2"])
            assert {each.state for each in described.values()} == {"Empty"}
            with pytest.raises(SomeFailed) as several:
                await admin.transactions.describe([name, f"{name}-3"])
            assert several.value.results.keys() == {name}
            with pytest.raises(Refused) as caught:
                await admin.producers.describe([TopicPartition(topic, 9)], timeout=0.3)
            assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            with pytest.raises(Refused, match="no such broker"):
                await admin.producers.describe([TopicPartition(topic, 0)], broker=77)

    run(main())
