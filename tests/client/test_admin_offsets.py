"""Offsets of groups and of partitions through the admin client."""

import datetime
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from ottla.client.admin import (
    Admin,
    Isolation,
    Move,
    OffsetSpec,
    ShareOffset,
    ShiftBy,
    ToCurrent,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToTime,
)
from ottla.client.errors import NoOffset, Refused, SomeFailed, Unsupported
from ottla.client.record import OffsetAndMetadata, TopicPartition
from ottla.wire.errors import ErrorCode
from tests.client.test_admin_groups import member
from tests.compat.answers import Side
from tests.compat.chosen import MakeTopic
from tests.peers.server import Server

START_MS = 1_700_000_000_000


def fill(bootstrap: str, topic: str, records: int = 10, partition: int = 0) -> None:
    """Records a second apart."""
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(records):
        producer.produce(topic, b"x", partition=partition, timestamp=START_MS + 1000 * number)
    assert producer.flush(20) == 0


def test_offsets_are_committed_and_forgotten(
    bootstrap: str, make_topic: MakeTopic, run: Callable[..., None]
) -> None:
    topic = make_topic(3)
    keys = [TopicPartition(topic, number) for number in range(3)]
    one, two = f"{topic}-one", f"{topic}-two"

    async def main() -> None:
        async with Admin(bootstrap) as admin:
            assert await admin.offsets.committed(one) == {}
            await admin.offsets.alter(one, {keys[0]: 5, keys[1]: OffsetAndMetadata(6, "note", 0)})
            await admin.offsets.alter(two, {keys[2]: 7})
            first = {keys[0]: OffsetAndMetadata(5), keys[1]: OffsetAndMetadata(6, "note", 0)}
            second = {keys[2]: OffsetAndMetadata(7)}
            assert await admin.offsets.committed(one) == first
            assert await admin.offsets.committed(one, [keys[1], keys[2]]) == {keys[1]: first[keys[1]]}
            assert await admin.offsets.committed_by([one, two]) == {one: first, two: second}
            found = await admin.offsets.committed_by({one: [keys[0]], two: None}, require_stable=True)
            assert found == {one: {keys[0]: first[keys[0]]}, two: second}
            await admin.offsets.delete(one, [keys[0]])
            assert await admin.offsets.committed(one) == {keys[1]: first[keys[1]]}
            with pytest.raises(SomeFailed) as several:
                await admin.offsets.alter(one, {keys[0]: 1, TopicPartition(topic, 9): 1})
            error = several.value.errors[TopicPartition(topic, 9)]
            assert isinstance(error, Refused) and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            with pytest.raises(Refused) as caught:
                await admin.offsets.delete(f"{topic}-none", [keys[0]])
            assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND

    run(main())


def test_offsets_of_readers_are_theirs(server: Server, topic: str, run: Callable[..., None]) -> None:
    group, key = f"{topic}-group", TopicPartition(topic, 0)

    async def main() -> None:
        async with Admin(server.bootstrap) as admin:
            with member(server, group, topic):
                with pytest.raises(Refused) as caught:
                    await admin.offsets.alter(group, {key: 1})
                assert caught.value.code is ErrorCode.UNKNOWN_MEMBER_ID
                with pytest.raises(Refused) as caught:
                    await admin.offsets.delete(group, [key])
                assert caught.value.code is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC

    run(main())


def test_places_in_a_partition(bootstrap: str, make_topic: MakeTopic, run: Callable[..., None]) -> None:
    topic = make_topic(2)
    fill(bootstrap, topic)
    key, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)

    async def main() -> None:
        async with Admin(bootstrap) as admin:
            found = await admin.offsets.list({key: OffsetSpec.LATEST, empty: OffsetSpec.EARLIEST})
            assert (found[key].offset, found[key].leader_epoch, found[empty].offset) == (10, 0, 0)
            at = datetime.datetime.fromtimestamp(START_MS / 1000 + 2.5, datetime.UTC)
            for spec, offset, time in [
                (OffsetSpec.EARLIEST, 0, -1),
                (OffsetSpec.MAX_TIMESTAMP, 9, START_MS + 9000),
                (OffsetSpec.EARLIEST_LOCAL, 0, -1),
                (START_MS + 2000, 2, START_MS + 2000),
                (at, 3, START_MS + 3000),
                (START_MS + 60_000, -1, -1),
            ]:
                [listed] = (await admin.offsets.list({key: spec})).values()
                assert (listed.offset, listed.timestamp) == (offset, time), spec
            committed = await admin.offsets.list({key: OffsetSpec.LATEST}, isolation=Isolation.READ_COMMITTED)
            assert committed[key].offset == 10
            with pytest.raises(Refused) as caught:
                await admin.offsets.list({TopicPartition(f"{topic}-none", 0): OffsetSpec.LATEST}, timeout=0.3)
            assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run(main())


def test_a_group_is_reset(bootstrap: str, make_topic: MakeTopic, run: Callable[..., None]) -> None:
    topic = make_topic(2)
    fill(bootstrap, topic, 10)
    fill(bootstrap, topic, 4, partition=1)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    group = f"{topic}-group"

    async def main() -> None:
        async with Admin(bootstrap) as admin:
            assert await admin.offsets.plan_reset(group, ToEarliest()) == {}
            moves = await admin.offsets.reset(group, ToEarliest(), [topic])
            assert moves == {first: Move(None, 0), second: Move(None, 0)}
            await admin.offsets.alter(group, {first: 5, second: 2})
            for to, targets in [
                (ToLatest(), (10, 4)),
                (ToCurrent(), (5, 2)),
                (ShiftBy(-3), (2, 0)),
                (ShiftBy(3), (8, 4)),
                (ToOffset(7), (7, 4)),
                (ToOffset({first: 1, second: 3}), (1, 3)),
                (ToTime(START_MS + 2000), (2, 2)),
                (ToTime(START_MS + 5500), (6, 4)),
            ]:
                planned = await admin.offsets.plan_reset(group, to)
                assert planned == {first: Move(5, targets[0]), second: Move(2, targets[1])}, to
            assert (await admin.offsets.committed(group))[first].offset == 5, "a plan changes nothing"
            assert await admin.offsets.reset(group, ShiftBy(-1), [first]) == {first: Move(5, 4)}
            committed = await admin.offsets.committed(group)
            assert (committed[first].offset, committed[second].offset) == (4, 2)
            with pytest.raises(NoOffset):
                await admin.offsets.reset(f"{group}-none", ShiftBy(1), [first])

    run(main())


def test_where_share_groups_begin(server: Server, topic: str, run: Callable[..., None]) -> None:
    fill(server.bootstrap, topic)
    group, key = f"{topic}-group", TopicPartition(topic, 0)
    side = Side(server)
    joining = {"group_id": group, "member_id": "m" * 22, "member_epoch": 0, "subscribed_topic_names": [topic]}

    async def main() -> None:
        async with Admin(server.bootstrap) as admin:
            await admin.offsets.committed("nobody")
            with pytest.raises(Refused) as caught:
                await admin.share_offsets.delete(group, topic)
            assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND
            side.ask("ShareGroupHeartbeat", 1, joining)
            with pytest.raises(Refused) as caught:
                await admin.share_offsets.alter(group, {key: 4})
            assert caught.value.code is ErrorCode.NON_EMPTY_GROUP
            side.ask("ShareGroupHeartbeat", 1, {"group_id": group, "member_id": "m" * 22, "member_epoch": -1})
            await admin.share_offsets.alter(group, {key: 4})
            described = await admin.share_offsets.describe(group)
            assert described[group][key].start_offset == 4
            lag = described[group][key].lag
            assert lag is None or lag == 6
            assert isinstance(described[group][key], ShareOffset)
            assert await admin.share_offsets.describe({group: [key]}) == described
            await admin.share_offsets.delete(group, topic)
            assert (await admin.share_offsets.describe(group))[group] == {}

    run(main())


def test_an_old_broker_is_not_asked_for_new_places(
    bootstrap: str, topic: str, run: Callable[..., None]
) -> None:
    async def main() -> None:
        async with Admin(bootstrap) as admin:
            connections = admin._cluster.connections
            await connections.connected(1)
            connections._connections[1].versions[2] = range(1, 7)
            with pytest.raises(Unsupported, match="too old to look for the max timestamp offset"):
                await admin.offsets.list({TopicPartition(topic, 0): OffsetSpec.MAX_TIMESTAMP})

    run(main())
