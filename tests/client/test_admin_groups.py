"""Groups of every kind through the admin client."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer

from ottla.client.admin import Admin, GroupKind, Operation, Resource
from ottla.client.errors import Refused, SomeFailed
from ottla.client.record import TopicPartition
from ottla.wire.errors import ErrorCode
from tests.client.waiting import until
from tests.compat.answers import Side
from tests.compat.chosen import MakeTopic
from tests.peers.deadline import eventually
from tests.peers.server import Server


@contextmanager
def member(server: Server, group: str, topic: str, **settings: Any) -> Iterator[Consumer]:
    """A member of a group that has its partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": group,
            "client.id": "reader",
            "auto.offset.reset": "earliest",
            "log_level": 0,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
    )
    consumer.subscribe([topic])
    try:

        def assigned() -> bool:
            consumer.poll(0.1)
            return bool(consumer.assignment())

        eventually(assigned, 40)
        yield consumer
    finally:
        consumer.close()


def test_a_classic_group(server: Server, make_topic: MakeTopic, run: Callable[..., None]) -> None:
    topic = make_topic(2)
    group = f"{topic}-group"

    async def main() -> None:
        async with Admin(server.bootstrap) as admin:
            with member(server, group, topic, group_instance_id="anchor"):
                listed = (await admin.groups.list())[group]
                assert (listed.kind, listed.state, listed.protocol_type, listed.coordinator) == (
                    GroupKind.CLASSIC,
                    "Stable",
                    "consumer",
                    1,
                )
                assert group not in await admin.groups.list(kinds=[GroupKind.SHARE])
                assert group not in await admin.groups.list(states="Empty")
                described = (await admin.groups.describe(group, operations=True))[group]
                assert (described.kind, described.state, described.assignor) == (
                    GroupKind.CLASSIC,
                    "Stable",
                    "range",
                )
                assert described.operations is not None and Operation.READ in described.operations
                [only] = described.members
                assert (only.client_id, only.instance_id) == ("reader", "anchor")
                assert only.assignment == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
                with pytest.raises(Refused) as caught:
                    await admin.groups.delete(group)
                assert caught.value.code is ErrorCode.NON_EMPTY_GROUP
                with pytest.raises(Refused) as caught:
                    await admin.groups.remove_members(group, instances=["stranger"])
                assert caught.value.code is ErrorCode.UNKNOWN_MEMBER_ID
            # A static member does not leave by itself.
            await admin.groups.remove_members(group)
            assert (await admin.groups.describe(group))[group].members == ()
            await admin.groups.delete(group)
            assert group not in await admin.groups.list()

    run(main())


def test_a_consumer_group(server: Server, make_topic: MakeTopic, run: Callable[..., None]) -> None:
    topic = make_topic(2)
    group = f"{topic}-group"

    async def main() -> None:
        async with Admin(server.bootstrap) as admin:
            with member(server, group, topic, group_protocol="consumer"):
                listed = (await admin.groups.list(kinds=[GroupKind.CONSUMER], states=["Stable"]))[group]
                assert listed.kind is GroupKind.CONSUMER
                described = (await admin.groups.describe(group))[group]
                assert (described.kind, described.state, described.assignor) == (
                    GroupKind.CONSUMER,
                    "Stable",
                    "uniform",
                )
                assert described.epoch == described.assignment_epoch
                assert described.epoch is not None and described.epoch > 0
                [only] = described.members
                assert (only.client_id, only.topics, only.epoch) == ("reader", (topic,), described.epoch)
                wanted = {TopicPartition(topic, 0), TopicPartition(topic, 1)}
                assert only.assignment == only.target == wanted and only.speaks_classic is False
            await until(lambda: admin.groups.describe(group), lambda found: found[group].state == "Empty")
            await admin.groups.delete(group)

    run(main())


def test_a_share_group(server: Server, topic: str, run: Callable[..., None]) -> None:
    group = f"{topic}-group"
    side = Side(server)
    joining = {"group_id": group, "member_id": "m" * 22, "member_epoch": 0, "subscribed_topic_names": [topic]}

    async def main() -> None:
        async with Admin(server.bootstrap) as admin:
            await admin.offsets.committed("nobody")
            answer: Any = side.ask("ShareGroupHeartbeat", 1, joining)
            assert answer.error_code == 0, answer

            async def described() -> Any:
                # A member that has nothing new to say says so.
                side.ask("ShareGroupHeartbeat", 1, {**joining, "member_epoch": answer.member_epoch})
                return (await admin.groups.describe(group))[group]

            found = await until(described, lambda each: bool(each.members[0].assignment))
            assert (found.kind, found.state, found.assignor) == (GroupKind.SHARE, "Stable", "simple")
            assert found.members[0].topics == (topic,)
            assert found.members[0].assignment == {TopicPartition(topic, 0)}
            assert (await admin.groups.list(kinds=[GroupKind.SHARE]))[group].kind is GroupKind.SHARE
            side.ask("ShareGroupHeartbeat", 1, {"group_id": group, "member_id": "m" * 22, "member_epoch": -1})
            await admin.groups.delete(group)

    run(main())


def test_a_streams_group(server: Server, topic: str, run: Callable[..., None]) -> None:
    group = f"{topic}-group"
    side = Side(server)
    tasks: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    joining: dict[str, Any] = {
        "group_id": group,
        "member_id": "member",
        "member_epoch": 0,
        "rebalance_timeout_ms": 60_000,
        "process_id": "process",
        "topology": {"epoch": 3, "subtopologies": [{"subtopology_id": "0", "source_topics": [topic]}]},
        **tasks,
    }

    async def main() -> None:
        async with Admin(server.bootstrap) as admin:
            settings = {"streams.initial.rebalance.delay.ms": 0}
            await admin.configs.alter({Resource.group(group): settings})
            await admin.offsets.committed("nobody")
            answer: Any = side.ask("StreamsGroupHeartbeat", 0, joining)
            assert answer.error_code == 0, answer

            async def described() -> Any:
                nonlocal answer
                if answer.active_tasks:
                    tasks["active_tasks"] = [{"subtopology_id": "0", "partitions": [0]}]
                beat = {"group_id": group, "member_id": "member", "member_epoch": answer.member_epoch}
                answer = side.ask("StreamsGroupHeartbeat", 0, {**beat, **tasks})
                return (await admin.groups.describe(group))[group]

            found = await until(
                described,
                lambda each: each.members[0].tasks is not None and bool(each.members[0].tasks.active),
            )
            assert (found.kind, found.topology_epoch) == (GroupKind.STREAMS, 3)
            assert [(each.id, each.source_topics) for each in found.subtopologies] == [("0", (topic,))]
            assert found.members[0].process_id == "process"
            assert (await admin.groups.list(kinds=[GroupKind.STREAMS])).keys() >= {group}
            side.ask(
                "StreamsGroupHeartbeat", 0, {"group_id": group, "member_id": "member", "member_epoch": -1}
            )
            await admin.groups.delete(group)

    run(main())


def test_groups_of_several_kinds_at_once(
    server: Server, make_topic: MakeTopic, run: Callable[..., None]
) -> None:
    topic = make_topic()
    classic, modern, missing = f"{topic}-classic", f"{topic}-modern", f"{topic}-missing"

    async def main() -> None:
        async with Admin(server.bootstrap) as admin:
            await admin.offsets.alter(classic, {TopicPartition(topic, 0): 0})
            with member(server, modern, topic, group_protocol="consumer"):
                described = await admin.groups.describe([classic, modern])
                assert {name: each.kind for name, each in described.items()} == {
                    classic: GroupKind.CLASSIC,
                    modern: GroupKind.CONSUMER,
                }
                assert described[classic].is_simple and not described[modern].is_simple
                with pytest.raises(SomeFailed) as several:
                    await admin.groups.describe([classic, modern, missing])
                assert several.value.results.keys() == {classic, modern}
                error = several.value.errors[missing]
                assert isinstance(error, Refused) and error.code is ErrorCode.GROUP_ID_NOT_FOUND
            with pytest.raises(Refused) as caught:
                await admin.groups.describe(missing, kind=GroupKind.CONSUMER)
            assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND
            with pytest.raises(SomeFailed) as several:
                await admin.groups.delete([classic, missing])
            assert several.value.errors.keys() == {missing}

    run(main())
