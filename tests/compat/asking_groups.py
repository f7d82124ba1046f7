"""Requests about groups and their offsets, and the groups they are asked of."""

from typing import Any

from tests.compat.rows import Ask, Scene
from tests.compat.scenes import (
    PATIENCE_MS,
    classic_group,
    commit,
    consumer_group,
    heartbeat,
    joining,
    look_for_coordinators,
    share_group,
)
from tests.peers.deadline import eventually

NEWCOMER = {"rebalance_timeout_ms": PATIENCE_MS, "subscribed_topic_names": ["read"], "topic_partitions": []}
CLASSIC = "member of classic"
STATIC = "member of static"
AWAITING = "member of awaiting"
PREPARING = "member of preparing"
READ = ("read", [0, 1])


def stage_groups(scene: Scene) -> None:
    """Groups of each kind and state; no row changes them."""
    scene.make_topic("read", 2)
    scene.make_topic("unread", 2)
    look_for_coordinators(scene)
    classic_group(scene, "classic")
    classic_group(scene, "static", group_instance_id="i")
    classic_group(scene, "connect", protocol_type="connect", protocols=[{"name": "v1", "metadata": b"x"}])
    classic_group(scene, "awaiting", synced=False)
    classic_group(scene, "preparing")
    scene.send("JoinGroup", 3, **joining("preparing"))
    classic_group(scene, "crowded")
    scene.send("JoinGroup", 3, **joining("crowded"))
    eventually(lambda: state_of(scene, "crowded") == "PreparingRebalance")
    scene.do("JoinGroup", 3, **joining("crowded", scene["member of crowded"]))
    consumer_group(scene, "full")
    scene.do("ConsumerGroupHeartbeat", 1, **heartbeat("full", "second", 0, **NEWCOMER))
    commit(scene, "offsets", "read")
    commit(scene, "classic", "read", member_id=scene["member of classic"], generation_id_or_member_epoch=1)
    consumer_group(scene, "consumer")
    consumer_group(scene, "instance", instance_id="i")
    consumer_group(scene, "left")
    commit(
        scene,
        "left",
        "read",
        member_id="member-of-left",
        generation_id_or_member_epoch=scene["epoch of left"],
    )
    scene.do("ConsumerGroupHeartbeat", 1, **heartbeat("left", "member-of-left", -1))
    share_group(scene, "share")


def state_of(scene: Scene, group: str) -> str:
    found: str = scene.ask("DescribeGroups", 5, groups=[group]).groups[0].group_state
    return found


def join(group: str, member: str = "", **more: Any) -> Ask:
    return lambda scene, version: joining(group, scene[member], **more)


def sync(group: str, member: str = "", generation: int = 1, **more: Any) -> Ask:
    protocol = {"protocol_type": "consumer", "protocol_name": "range"}
    return lambda scene, version: {
        "group_id": group,
        "generation_id": generation,
        "member_id": scene[member],
        "assignments": [],
        **(protocol if version >= 5 else {}),
        **more,
    }


def beat(group: str, member: str = "", generation: int = 1, **more: Any) -> Ask:
    return lambda scene, version: {
        "group_id": group,
        "generation_id": generation,
        "member_id": scene[member],
        **more,
    }


def leave(group: str, member: str, instance: str | None = None) -> Ask:
    def ask(scene: Scene, version: int) -> dict[str, Any]:
        if version < 3:
            return {"group_id": group, "member_id": scene[member]}
        return {
            "group_id": group,
            "members": [{"member_id": scene[member], "group_instance_id": instance}],
        }

    return ask


def committing(
    group: str,
    member: str = "",
    generation: int | str = -1,
    *,
    topic: str = "read",
    partition: int = 0,
    note: str | None = "note",
    **more: Any,
) -> Ask:
    def ask(scene: Scene, version: int) -> dict[str, Any]:
        place = {"partition_index": partition, "committed_offset": 7, "committed_metadata": note}
        named = {"topic_id": scene.topic_id(topic)} if version >= 10 else {"name": topic}
        return {
            "group_id": group,
            "generation_id_or_member_epoch": scene[generation],
            "member_id": scene[member],
            "topics": [{**named, "partitions": [place]}],
            **more,
        }

    return ask


def fetching(
    group: str,
    *topics: tuple[str, list[int]],
    everything: bool = False,
    member: str | None = None,
    epoch: int | str = -1,
    stable: bool = False,
) -> Ask:
    def ask(scene: Scene, version: int) -> dict[str, Any]:
        def named(topic: str) -> dict[str, Any]:
            return {"topic_id": scene.topic_id(topic)} if version >= 10 else {"name": topic}

        listed = None if everything else [{**named(topic), "partition_indexes": p} for topic, p in topics]
        more = {"require_stable": True} if stable else {}
        if version < 8:
            return {"group_id": group, "topics": listed, **more}
        asked = {"group_id": group, "topics": listed, "member_id": member, "member_epoch": scene[epoch]}
        return {"groups": [asked], **more}

    return ask


def forgetting(group: str, topic: str = "read", partition: int = 0) -> dict[str, Any]:
    return {
        "group_id": group,
        "topics": [{"name": topic, "partitions": [{"partition_index": partition}]}],
    }


def epochs(group: str, member: str, epoch: int | str, **more: Any) -> Ask:
    return lambda scene, version: heartbeat(group, scene[member], scene[epoch], **more)


def fresh(group: str = "new", member: str = "who", **more: Any) -> Ask:
    """A member that would join, if it were let."""
    return lambda scene, version: heartbeat(group, member, 0, **(NEWCOMER | more))
