"""Topics through the admin client."""

from collections.abc import Callable

import pytest

from ottla.client.admin import Admin, NewPartitions, NewTopic, Operation
from ottla.client.errors import Refused, SomeFailed
from ottla.wire.errors import ErrorCode
from tests.compat.chosen import MakeTopic


def test_a_topic_from_its_making_to_its_end(
    bootstrap: str, topic_name: str, run: Callable[..., None]
) -> None:
    async def main() -> None:
        async with Admin(bootstrap) as admin:
            made = await admin.topics.create(topic_name, partitions=3, configs={"retention.ms": 60_000})
            created = made[topic_name]
            assert (created.name, created.partitions, created.replication_factor) == (topic_name, 3, 1)
            assert created.configs is not None and created.configs["retention.ms"] == "60000"
            listed = (await admin.topics.list())[topic_name]
            assert (listed.id, listed.partitions, listed.is_internal) == (created.id, 3, False)
            described = (await admin.topics.describe(topic_name))[topic_name]
            assert described.id == created.id and described.operations is None
            assert [each.partition for each in described.partitions] == [0, 1, 2]
            for each in described.partitions:
                assert each.leader == 1 and each.replicas == each.in_sync == (1,) and each.offline == ()
                assert each.leader_epoch == 0
            await admin.topics.add_partitions({topic_name: 5})
            await admin.topics.add_partitions({topic_name: NewPartitions(6, [[1]])})
            described = (await admin.topics.describe(topic_name, operations=True))[topic_name]
            assert len(described.partitions) == 6
            assert described.operations is not None and Operation.READ in described.operations
            by_id = (await admin.topics.describe(ids=created.id))[created.id]
            assert by_id.name == topic_name and len(by_id.partitions) == 6
            await admin.topics.delete(ids=[created.id])
            assert topic_name not in await admin.topics.list()

    run(main())


def test_several_topics_in_pages(bootstrap: str, topic_name: str, run: Callable[..., None]) -> None:
    names = [f"{topic_name}-{letter}" for letter in "cab"]

    async def main() -> None:
        async with Admin(bootstrap) as admin:
            await admin.topics.create([NewTopic(name, 7) for name in names])
            for page in (1, 5, 7, 8, 2000):
                described = await admin.topics.describe(names, page=page)
                assert {name: len(each.partitions) for name, each in described.items()} == dict.fromkeys(
                    names, 7
                )
            await admin.topics.delete(names)

    run(main())


def test_an_assignment_and_a_trial(bootstrap: str, topic_name: str, run: Callable[..., None]) -> None:
    async def main() -> None:
        async with Admin(bootstrap) as admin:
            tried = await admin.topics.create(topic_name, partitions=2, validate_only=True)
            assert tried[topic_name].partitions == 2
            assert topic_name not in await admin.topics.list()
            await admin.topics.create(NewTopic(topic_name, assignment={0: [1], 1: [1]}))
            assert (await admin.topics.list())[topic_name].partitions == 2

    run(main())


def test_internal_topics_are_listed_when_asked_for(bootstrap: str, run: Callable[..., None]) -> None:
    async def main() -> None:
        async with Admin(bootstrap) as admin:
            # The first to ask for a group's coordinator has the topic made.
            await admin.offsets.committed("nobody")
            assert "__consumer_offsets" not in await admin.topics.list()
            assert (await admin.topics.list(internal=True))["__consumer_offsets"].is_internal

    run(main())


def test_what_is_refused_says_so(
    bootstrap: str, topic_name: str, make_topic: MakeTopic, run: Callable[..., None]
) -> None:
    there = make_topic(2)

    async def main() -> None:
        async with Admin(bootstrap) as admin:
            with pytest.raises(Refused) as caught:
                await admin.topics.create(there)
            assert caught.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
            assert there in str(caught.value)
            with pytest.raises(Refused) as caught:
                await admin.topics.create("no such/name")
            assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
            with pytest.raises(Refused) as caught:
                await admin.topics.create(f"{there}-x", configs={"retention.ms": "soon"})
            assert caught.value.code is ErrorCode.INVALID_CONFIG
            with pytest.raises(Refused) as caught:
                await admin.topics.delete(f"{there}-x")
            assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            with pytest.raises(Refused) as caught:
                await admin.topics.describe(f"{there}-x")
            assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            with pytest.raises(Refused) as caught:
                await admin.topics.describe(ids="AAAAAAAAAAAAAAAAAAAAZQ")
            assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_ID
            with pytest.raises(Refused) as caught:
                await admin.topics.add_partitions({there: 1})
            assert caught.value.code is ErrorCode.INVALID_PARTITIONS

    run(main())


def test_some_may_fail_while_others_succeed(
    bootstrap: str, topic: str, topic_name: str, run: Callable[..., None]
) -> None:
    async def main() -> None:
        async with Admin(bootstrap) as admin:
            with pytest.raises(SomeFailed) as caught:
                await admin.topics.create([topic, f"{topic}-new"], partitions=1)
            failed = caught.value
            assert failed.errors.keys() == {topic}
            assert isinstance(failed.errors[topic], Refused)
            assert failed.results[f"{topic}-new"].partitions == 1
            assert "1 of 2 failed" in str(failed) and not failed.retriable
            with pytest.raises(SomeFailed) as caught:
                await admin.topics.describe([topic, f"{topic}-none"])
            assert caught.value.results.keys() == {topic}
            await admin.topics.delete([topic, f"{topic}-new"])

    run(main())
