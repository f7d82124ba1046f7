"""Groups of the new protocol (KIP-848): what is refused, with which code, at which version, as Kafka answers it."""

from typing import Any

import pytest

from ottla.wire.errors import ErrorCode
from tests.compat.asking_groups import beat, committing, epochs, fresh, join, leave, sync
from tests.compat.rows import UNKNOWN_ID, Row, Scene, Scenes
from tests.compat.scenes import classic_group, consumer_group, heartbeat

E = ErrorCode


@pytest.fixture
def scenes(group_scenes: Scenes) -> Scenes:
    return group_scenes


ROWS = [
    Row("no group", "ConsumerGroupHeartbeat", E.INVALID_REQUEST, fresh("")),
    Row("blank group", "ConsumerGroupHeartbeat", E.INVALID_REQUEST, fresh(" ")),
    Row("no member", "ConsumerGroupHeartbeat", {0: E.INVALID_REQUEST, 1: E.INVALID_REQUEST},
        epochs("consumer", "", 1)),
    Row("no member at first", "ConsumerGroupHeartbeat", E.INVALID_REQUEST, fresh(member=""), (1,)),
    Row("no instance", "ConsumerGroupHeartbeat", E.INVALID_REQUEST, fresh(instance_id="")),
    Row("no rack", "ConsumerGroupHeartbeat", E.INVALID_REQUEST, fresh(rack_id="")),
    Row("no timeout", "ConsumerGroupHeartbeat", E.INVALID_REQUEST, fresh(rebalance_timeout_ms=-1)),
    Row("no assignment", "ConsumerGroupHeartbeat", E.INVALID_REQUEST, fresh(topic_partitions=None)),
    Row("owned at first", "ConsumerGroupHeartbeat", E.INVALID_REQUEST,
        fresh(topic_partitions=[{"topic_id": UNKNOWN_ID, "partitions": [0]}])),
    Row("no subscription", "ConsumerGroupHeartbeat", E.INVALID_REQUEST, fresh(subscribed_topic_names=None)),
    Row("unknown assignor", "ConsumerGroupHeartbeat", E.UNSUPPORTED_ASSIGNOR, fresh(server_assignor="mine")),
    Row("no assignor", "ConsumerGroupHeartbeat", E.UNSUPPORTED_ASSIGNOR, fresh(server_assignor="")),
    Row("epoch below all", "ConsumerGroupHeartbeat", E.INVALID_REQUEST, epochs("new", "who", -3)),
    Row("static leave without instance", "ConsumerGroupHeartbeat", E.INVALID_REQUEST, epochs("new", "who", -2)),
    Row("bad pattern", "ConsumerGroupHeartbeat", E.INVALID_REGULAR_EXPRESSION,
        fresh(subscribed_topic_names=[], subscribed_topic_regex="["), (1,)),
    Row("bad pattern, later", "ConsumerGroupHeartbeat", E.INVALID_REGULAR_EXPRESSION,
        epochs("consumer", "member-of-consumer", "epoch of consumer", subscribed_topic_regex="("), (1,)),
    Row("absent group", "ConsumerGroupHeartbeat", E.GROUP_ID_NOT_FOUND, epochs("absent", "who", 1)),
    Row("absent group, leaving", "ConsumerGroupHeartbeat", E.GROUP_ID_NOT_FOUND, epochs("absent", "who", -1)),
    Row("unknown member", "ConsumerGroupHeartbeat", E.UNKNOWN_MEMBER_ID, epochs("consumer", "who", 1)),
    Row("unknown member, leaving", "ConsumerGroupHeartbeat", E.UNKNOWN_MEMBER_ID, epochs("consumer", "who", -1)),
    Row("epoch ahead", "ConsumerGroupHeartbeat", E.FENCED_MEMBER_EPOCH,
        epochs("consumer", "member-of-consumer", 99)),
    Row("full group", "ConsumerGroupHeartbeat", E.GROUP_MAX_SIZE_REACHED, fresh("full")),
    Row("instance in use", "ConsumerGroupHeartbeat", E.UNRELEASED_INSTANCE_ID, fresh("instance", instance_id="i")),
    Row("instance of another", "ConsumerGroupHeartbeat", E.FENCED_INSTANCE_ID,
        epochs("instance", "who", "epoch of instance", instance_id="i")),
    Row("instance nobody has", "ConsumerGroupHeartbeat", E.UNKNOWN_MEMBER_ID,
        epochs("instance", "who", "epoch of instance", instance_id="j")),
    Row("instance of another, leaving", "ConsumerGroupHeartbeat", E.FENCED_INSTANCE_ID,
        epochs("instance", "who", -2, instance_id="i")),
    Row("epoch ahead with instance", "ConsumerGroupHeartbeat", E.FENCED_MEMBER_EPOCH,
        epochs("instance", "member-of-instance", 99, instance_id="i")),
    Row("share group", "ConsumerGroupHeartbeat", E.GROUP_ID_NOT_FOUND, fresh("share")),
    Row("classic group that cannot change", "ConsumerGroupHeartbeat", E.GROUP_ID_NOT_FOUND, fresh("connect")),
    Row("classic group, later epoch", "ConsumerGroupHeartbeat", E.GROUP_ID_NOT_FOUND, epochs("connect", "who", 1)),
    Row("steady", "ConsumerGroupHeartbeat", E.NONE, epochs("consumer", "member-of-consumer", "epoch of consumer")),
    Row("not a share group", "ShareGroupHeartbeat", E.GROUP_ID_NOT_FOUND,
        {"group_id": "classic", "member_id": "who", "member_epoch": 0, "subscribed_topic_names": ["read"]}),
    Row("not a share group", "ShareGroupHeartbeat", E.GROUP_ID_NOT_FOUND,
        {"group_id": "consumer", "member_id": "who", "member_epoch": 0, "subscribed_topic_names": ["read"]}),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_row(scenes: Scenes, row: Row) -> None:
    scenes.play(row)


@pytest.mark.parametrize("version", [0, 1])
def test_the_epochs_of_a_consumer_group(scenes: Scenes, version: int) -> None:
    """One member owns all, another comes, the first gives up its half; old epochs are fenced, the last is not."""
    group = f"epochs-v{version}"

    def step(code: ErrorCode, member: str, epoch: int, *partitions: int, silent: bool = False) -> None:
        def fields(scene: Scene, _: int) -> dict[str, Any]:
            held = [{"topic_id": scene.topic_id("read"), "partitions": [*partitions]}] if partitions else []
            return heartbeat(group, member, epoch, topic_partitions=None if silent else held)

        scenes.ask("ConsumerGroupHeartbeat", version, code, fields)

    scenes.ask("ConsumerGroupHeartbeat", version, E.NONE, fresh(group, "one"))
    step(E.NONE, "one", 2, 0, 1)
    step(E.FENCED_MEMBER_EPOCH, "one", 1, 0, 1)
    step(E.FENCED_MEMBER_EPOCH, "one", 3, 0, 1)
    scenes.ask("ConsumerGroupHeartbeat", version, E.NONE, fresh(group, "two"))
    scenes.ask("ConsumerGroupHeartbeat", version, E.GROUP_MAX_SIZE_REACHED, fresh(group, "three"))
    step(E.NONE, "one", 2, silent=True)
    step(E.NONE, "one", 2, 0, 1)
    step(E.NONE, "two", 3)
    scenes.ask("ConsumerGroupDescribe", version, E.NONE, {"group_ids": [group]})
    step(E.NONE, "one", 2, 0)
    step(E.NONE, "one", 2, 0)  # the answer was lost
    step(E.FENCED_MEMBER_EPOCH, "one", 2, 0, 1)
    step(E.NONE, "two", 3)
    scenes.ask("OffsetCommit", 9, E.STALE_MEMBER_EPOCH, committing(group, "one", 99))
    scenes.ask("OffsetCommit", 9, E.NONE, committing(group, "one", 3))
    scenes.ask("ConsumerGroupDescribe", version, E.NONE, {"group_ids": [group]})
    step(E.NONE, "one", -1)
    step(E.UNKNOWN_MEMBER_ID, "one", 3, 0)
    step(E.UNKNOWN_MEMBER_ID, "one", -1)
    step(E.NONE, "two", 3, silent=True)
    step(E.NONE, "two", -1)
    scenes.ask("ConsumerGroupDescribe", version, E.NONE, {"group_ids": [group]})
    scenes.ask("DeleteGroups", 2, E.NONE, {"groups_names": [group]})


def test_an_instance_goes_for_a_while_and_comes_back(scenes: Scenes) -> None:
    first = fresh("returns", "one", instance_id="i")
    scenes.ask("ConsumerGroupHeartbeat", 1, E.NONE, first)
    scenes.ask(
        "ConsumerGroupHeartbeat", 1, E.UNRELEASED_INSTANCE_ID, fresh("returns", "two", instance_id="i")
    )
    scenes.ask("ConsumerGroupHeartbeat", 1, E.NONE, epochs("returns", "one", -2, instance_id="i"))
    scenes.ask("ConsumerGroupHeartbeat", 1, E.NONE, fresh("returns", "two", instance_id="i"))
    scenes.ask(
        "ConsumerGroupHeartbeat", 1, E.FENCED_INSTANCE_ID, epochs("returns", "one", 2, instance_id="i")
    )
    scenes.ask("ConsumerGroupHeartbeat", 1, E.UNKNOWN_MEMBER_ID, epochs("returns", "one", 2))
    scenes.ask("ConsumerGroupDescribe", 1, E.NONE, {"group_ids": ["returns"]})
    scenes.ask("ConsumerGroupHeartbeat", 1, E.NONE, epochs("returns", "two", -1, instance_id="i"))


@pytest.mark.parametrize("version", [0, 3, 5, 9])
def test_a_classic_member_in_a_consumer_group(scenes: Scenes, version: int) -> None:
    group = f"mixed-v{version}"
    for scene in scenes:
        consumer_group(scene, group)
    scenes.ask("JoinGroup", version, E.NONE, join(group, "who"))
    scenes.ask("SyncGroup", 5, E.INCONSISTENT_GROUP_PROTOCOL, sync(group, "who", 3, protocol_name="sticky"))
    scenes.ask("SyncGroup", 5, E.NONE, sync(group, "who", 3))
    scenes.ask("SyncGroup", 5, E.ILLEGAL_GENERATION, sync(group, "who", 2))
    scenes.ask("Heartbeat", 4, E.ILLEGAL_GENERATION, beat(group, "who", 2))
    scenes.ask("Heartbeat", 4, E.NONE, beat(group, "who", 3))
    scenes.ask("OffsetCommit", 8, E.NONE, committing(group, "who", 3))
    scenes.ask("OffsetCommit", 8, E.ILLEGAL_GENERATION, committing(group, "who", 2))
    scenes.ask("OffsetCommit", 9, E.ILLEGAL_GENERATION, committing(group, "who", 2))
    scenes.ask("ConsumerGroupHeartbeat", 1, E.FENCED_MEMBER_EPOCH, epochs(group, "who", 2))
    scenes.ask("ConsumerGroupDescribe", 1, E.NONE, {"group_ids": [group]})
    scenes.ask("LeaveGroup", 2, E.NONE, leave(group, "who"))
    scenes.ask("LeaveGroup", 3, E.UNKNOWN_MEMBER_ID, leave(group, "who"))
    scenes.ask("LeaveGroup", 3, E.NONE, leave(group, f"member-of-{group}"))
    scenes.ask("ConsumerGroupDescribe", 1, E.NONE, {"group_ids": [group]})


def test_a_classic_group_is_upgraded_by_its_first_new_member(scenes: Scenes) -> None:
    for scene in scenes:
        classic_group(scene, "upgraded")
    old = "member of upgraded"
    scenes.ask("ConsumerGroupHeartbeat", 1, E.NONE, fresh("upgraded"))
    scenes.ask("Heartbeat", 4, E.REBALANCE_IN_PROGRESS, beat("upgraded", old))
    scenes.ask("OffsetCommit", 9, E.NONE, committing("upgraded", old, 1))
    scenes.ask("ConsumerGroupDescribe", 1, E.NONE, {"group_ids": ["upgraded"]})
    scenes.ask("JoinGroup", 9, E.NONE, join("upgraded", old))
    scenes.ask("ConsumerGroupDescribe", 1, E.NONE, {"group_ids": ["upgraded"]})
    scenes.ask("ConsumerGroupHeartbeat", 1, E.NONE, epochs("upgraded", "who", -1))
    scenes.ask("DescribeGroups", 6, E.NONE, {"groups": ["upgraded"]})
