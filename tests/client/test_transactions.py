"""Transactions of our producer, in both versions of the protocol, as other clients see them."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place

from ottla.client.connections import ClientConnections
from ottla.client.consumer.listener import GroupMetadata
from ottla.client.errors import (
    Aborted,
    ClientError,
    Fenced,
    MustAbort,
    RecordTooLarge,
    Refused,
    WrongState,
)
from ottla.client.producer import Producer
from ottla.client.record import OffsetAndMetadata, TopicPartition
from ottla.wire.errors import ErrorCode
from tests.client.readback import values
from tests.compat.chosen import MakeTopic

Run = Callable[..., Any]


@pytest.fixture(params=[2, 1], ids=["v2", "v1"])
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Which protocol is spoken: that of the cluster, or the one before it, which brokers speak, too."""
    if request.param == 1:
        monkeypatch.setattr(ClientConnections, "feature", lambda self, name: 0)
    return int(request.param)


@pytest.fixture
def name(topic_name: str) -> str:
    return f"producer-{topic_name}"


def committed(bootstrap: str, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    try:
        return int(consumer.committed([Place(topic, 0)], timeout=20)[0].offset)
    finally:
        consumer.close()


@pytest.mark.parametrize("uvloop", [False, True])
def test_all_or_nothing(bootstrap: str, topic: str, name: str, version: int, run: Run, uvloop: bool) -> None:
    async def main() -> Any:
        async with Producer(bootstrap, transactional_id=name) as producer:
            await producer.init_transactions()
            for number in range(6):
                producer.begin_transaction()
                await producer.send(topic, b"%d a" % number)
                await producer.send_and_wait(topic, b"%d b" % number)
                if number % 2:
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()
            return producer.statistics(), producer._identity.producer.epoch

    counts, epoch = run(main(), uvloop=uvloop)
    assert (counts.transactions_committed, counts.transactions_aborted) == (3, 3)
    assert values(bootstrap, topic, committed=True) == [b"0 a", b"0 b", b"2 a", b"2 b", b"4 a", b"4 b"]
    assert len(values(bootstrap, topic)) == 12
    # In version 2 every transaction has an epoch of its own.
    assert (epoch >= 6) == (version == 2)


def test_the_block(bootstrap: str, topic: str, name: str, version: int, run: Run) -> None:
    async def main() -> None:
        async with Producer(bootstrap, transactional_id=name) as producer:
            async with producer.transaction():
                await producer.send(topic, b"kept")
            with pytest.raises(ZeroDivisionError):
                await spoil(producer)
            async with producer.transaction():
                pass
            async with producer.transaction() as same:
                await same.send(topic, b"kept, too")
            doing = asyncio.create_task(spoil(producer, wait=True))
            await asyncio.sleep(0.2)
            doing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await doing
            async with producer.transaction():
                await producer.send(topic, b"last")

    async def spoil(producer: Producer, *, wait: bool = False) -> None:
        async with producer.transaction():
            await producer.send_and_wait(topic, b"dropped")
            await asyncio.sleep(20 if wait else 0)
            raise ZeroDivisionError

    run(main())
    assert values(bootstrap, topic, committed=True) == [b"kept", b"kept, too", b"last"]


def test_many_partitions_and_batches(
    bootstrap: str, make_topic: MakeTopic, name: str, version: int, run: Run
) -> None:
    first, second = make_topic(3, "-1"), make_topic(2, "-2")

    async def main() -> None:
        async with Producer(
            bootstrap, transactional_id=name, batch_size=500, compression_type="lz4"
        ) as producer:
            await producer.init_transactions()
            for turn in range(3):
                producer.begin_transaction()
                for number in range(200):
                    await producer.send(first, b"%d %d" % (turn, number), partition=number % 3)
                    await producer.send(second, b"%d %d" % (turn, number), partition=number % 2)
                if turn == 1:
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()

    run(main())
    for topic, count in (first, 3), (second, 2):
        for partition in range(count):
            expected = [
                b"%d %d" % (turn, number) for turn in (0, 2) for number in range(partition, 200, count)
            ]
            assert values(bootstrap, topic, partition, committed=True) == expected


def test_offsets_go_with_the_records(
    bootstrap: str, make_topic: MakeTopic, name: str, version: int, run: Run
) -> None:
    source, target = make_topic(suffix="-in"), make_topic(suffix="-out")
    group = f"group-{name}"
    place = TopicPartition(source, 0)

    async def main() -> None:
        async with Producer(bootstrap, transactional_id=name) as producer:
            await producer.init_transactions()
            producer.begin_transaction()
            await producer.send(target, b"1")
            await producer.send_offsets_to_transaction({place: OffsetAndMetadata(5, "five")}, group)
            await producer.commit_transaction()
            assert await asyncio.to_thread(committed, bootstrap, group, source) == 5
            producer.begin_transaction()
            await producer.send_offsets_to_transaction({place: 9}, GroupMetadata(group))
            await producer.abort_transaction()
            assert await asyncio.to_thread(committed, bootstrap, group, source) == 5
            # Offsets alone make a transaction, too.
            async with producer.transaction():
                await producer.send_offsets_to_transaction({place: 7}, group)
                await producer.send_offsets_to_transaction({}, group)
            assert await asyncio.to_thread(committed, bootstrap, group, source) == 7

    run(main())


def test_offsets_of_a_member_that_is_none(
    bootstrap: str, topic: str, name: str, version: int, run: Run
) -> None:
    async def main() -> None:
        async with Producer(bootstrap, transactional_id=name) as producer:
            await producer.init_transactions()
            producer.begin_transaction()
            await producer.send(topic, b"spoiled")
            stranger = GroupMetadata(f"group-{name}", 3, "nobody")
            with pytest.raises(MustAbort, match="moved on"):
                await producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, stranger)
            with pytest.raises(MustAbort):
                await producer.send(topic, b"more")
            with pytest.raises(MustAbort):
                await producer.commit_transaction()
            await producer.abort_transaction()
            async with producer.transaction():
                await producer.send(topic, b"good")

    run(main())
    assert values(bootstrap, topic, committed=True) == [b"good"]


def test_the_newer_of_two_producers_stays(
    bootstrap: str, topic: str, name: str, version: int, run: Run
) -> None:
    async def main() -> None:
        async with (
            Producer(bootstrap, transactional_id=name) as old,
            Producer(bootstrap, transactional_id=name) as new,
        ):
            await old.init_transactions()
            old.begin_transaction()
            await old.send_and_wait(topic, b"old")
            await new.init_transactions()
            async with new.transaction():
                await new.send(topic, b"new")
            with pytest.raises(ClientError):
                await old.send_and_wait(topic, b"old again")
            with pytest.raises((Fenced, MustAbort)):
                await old.commit_transaction()
            with pytest.raises(Fenced):
                await old.abort_transaction()
            with pytest.raises(ClientError) as told:
                old.begin_transaction()
            assert isinstance(told.value, Fenced)
            assert "close this one" in str(told.value)
            async with new.transaction():
                await new.send(topic, b"newer")

    run(main())
    assert values(bootstrap, topic, committed=True) == [b"new", b"newer"]


def test_a_record_that_cannot_be_written_spoils_the_transaction(
    bootstrap: str, make_topic: MakeTopic, name: str, version: int, run: Run
) -> None:
    topic = make_topic(max_message_bytes=1000)

    async def spoil(producer: Producer) -> None:
        async with producer.transaction():
            await producer.send(topic, b"small")
            await producer.send(topic, b"x" * 2000)

    async def main() -> None:
        async with Producer(bootstrap, transactional_id=name, linger_ms=0) as producer:
            with pytest.raises(MustAbort) as told:
                await spoil(producer)
            assert isinstance(told.value.__cause__, RecordTooLarge)
            for number in range(3):
                async with producer.transaction():
                    await producer.send(topic, b"%d" % number)

    run(main())
    assert values(bootstrap, topic, committed=True) == [b"0", b"1", b"2"]


def test_what_was_not_sent_is_aborted_at_once(
    bootstrap: str, topic: str, name: str, version: int, run: Run
) -> None:
    async def main() -> None:
        async with Producer(bootstrap, transactional_id=name, linger_ms=20_000) as producer:
            await producer.init_transactions()
            producer.begin_transaction()
            delivery = await producer.send(topic, b"never")
            await producer.abort_transaction()
            with pytest.raises(Aborted):
                await delivery
            assert producer.statistics().records_failed == 1
            producer.begin_transaction()
            last = await producer.send(topic, b"nor this")
        # Closing aborts what is open.
        assert isinstance(last.exception(), Aborted)

    run(main())
    assert values(bootstrap, topic) == []


def test_calls_out_of_order(bootstrap: str, topic: str, name: str, run: Run) -> None:
    async def main() -> None:
        async with Producer(bootstrap) as plain:
            with pytest.raises(WrongState, match=r"transactional\.id"):
                await plain.init_transactions()
            with pytest.raises(WrongState):
                plain.begin_transaction()
        async with Producer(bootstrap, transactional_id=name) as producer:
            for call in (producer.commit_transaction, producer.abort_transaction):
                with pytest.raises(WrongState, match="call init_transactions once"):
                    await call()
            with pytest.raises(WrongState, match="call init_transactions once"):
                await producer.send(topic, b"")
            await producer.init_transactions()
            with pytest.raises(WrongState, match="is in no transaction"):
                await producer.init_transactions()
            with pytest.raises(WrongState, match="call begin_transaction first"):
                await producer.send(topic, b"")
            with pytest.raises(WrongState, match="call begin_transaction first"):
                await producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, "g")
            producer.begin_transaction()
            with pytest.raises(WrongState, match="commit or abort"):
                producer.begin_transaction()
            await producer.abort_transaction()

    run(main())


def test_init_that_the_broker_refuses(bootstrap: str, name: str, run: Run) -> None:
    async def main() -> None:
        async with Producer(
            bootstrap, transactional_id=name, transaction_timeout_ms=2_000_000_000
        ) as producer:
            with pytest.raises(Refused) as told:
                await producer.init_transactions()
            assert told.value.code is ErrorCode.INVALID_TRANSACTION_TIMEOUT
            with pytest.raises(Refused):
                producer.begin_transaction()

    run(main())


def test_a_transaction_that_took_too_long(
    bootstrap: str, topic: str, name: str, version: int, run: Run
) -> None:
    async def main() -> None:
        async with Producer(bootstrap, transactional_id=name, transaction_timeout_ms=500) as producer:
            await producer.init_transactions()
            producer.begin_transaction()
            await producer.send_and_wait(topic, b"slow")
            # The broker looks for such transactions every ten seconds; another producer's arrival is as good.
            async with Producer(bootstrap, transactional_id=name) as other:
                await other.init_transactions()
            with pytest.raises((Fenced, MustAbort)):
                await producer.commit_transaction()

    run(main())
    assert values(bootstrap, topic, committed=True) == []


def test_giving_up_waiting_for_the_end(bootstrap: str, topic: str, name: str, version: int, run: Run) -> None:
    async def main() -> None:
        async with Producer(bootstrap, transactional_id=name, max_block_ms=20_000) as producer:
            await producer.init_transactions()
            producer.begin_transaction()
            await producer.send(topic, b"committed all the same")
            committing = asyncio.create_task(producer.commit_transaction())
            await asyncio.sleep(0)
            committing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await committing
            with pytest.raises(WrongState, match="call commit_transaction again"):
                producer.begin_transaction()
            await producer.commit_transaction()
            async with producer.transaction():
                await producer.send(topic, b"next")

    run(main())
    assert values(bootstrap, topic, committed=True) == [b"committed all the same", b"next"]


def test_two_phases_are_not_to_be_had(bootstrap: str, name: str, run: Run) -> None:
    async def main() -> None:
        async with Producer(
            bootstrap, transactional_id=name, transaction_two_phase_commit_enable=True
        ) as producer:
            with pytest.raises(ClientError, match=r"transaction\.two\.phase\.commit\.enable"):
                await producer.init_transactions()

    run(main())


def test_back_to_back_transactions_are_quick(
    bootstrap: str, topic: str, name: str, version: int, run: Run
) -> None:
    async def main() -> None:
        async with Producer(bootstrap, transactional_id=name, linger_ms=0) as producer:
            await producer.init_transactions()
            for number in range(30):
                async with producer.transaction():
                    await producer.send(topic, b"%d" % number)

    run(main(), seconds_max=15)
    assert values(bootstrap, topic, committed=True) == [b"%d" % number for number in range(30)]
