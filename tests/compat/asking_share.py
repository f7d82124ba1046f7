"""Requests about share groups, and the groups and records they are asked of."""

from typing import Any

from ottla.wire.batch import build_batch
from ottla.wire.record import Record
from tests.compat.rows import Ask, Scene
from tests.compat.scenes import classic_group, consumer_group, look_for_coordinators
from tests.peers.deadline import eventually

NOW_MS = 1_760_000_000_000
RECORDS = 10
GROUP_RESOURCE = 32
# The groups that are handed records.
STORIES = ("delivers-v1", "delivers-v2", "renews")
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4


def stage_share(scene: Scene) -> None:
    """Share groups and others, and records for them; no row changes them."""
    scene.make_topic("read", 2)
    scene.make_topic("shared", 2)
    scene.make_topic("unshared", 2)
    # Long before a group reads: Kafka's broker hears of it some time after the answer.
    for group in STORIES:
        begin_at_the_beginning(scene, group)
    look_for_coordinators(scene)
    for partition in (0, 1):
        fill(scene, partition)
    reading(scene, "s-share")
    reading(scene, "s-full")
    reading(scene, "s-full", "second")
    reading(scene, "s-left")
    scene.do("ShareGroupHeartbeat", 1, group_id="s-left", member_id="one", member_epoch=-1)
    classic_group(scene, "s-classic")
    consumer_group(scene, "s-consumer")


def begin_at_the_beginning(scene: Scene, group: str) -> None:
    earliest = {"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": group, "configs": [earliest]}
    scene.do("IncrementalAlterConfigs", 1, resources=[resource])


def fill(scene: Scene, partition: int) -> None:
    records = [Record(n, NOW_MS, None, b"%d" % n, ()) for n in range(RECORDS)]
    part = {"index": partition, "records": bytes(build_batch(records))}
    scene.do(
        "Produce", 9, acks=-1, timeout_ms=5000, topic_data=[{"name": "shared", "partition_data": [part]}]
    )


def reading(scene: Scene, group: str, member: str = "one") -> None:
    """A member of a share group that reads `shared`, once it was told so."""
    epoch = 0

    def assigned() -> bool:
        nonlocal epoch
        who = {"group_id": group, "member_id": member, "member_epoch": epoch}
        beat = scene.do("ShareGroupHeartbeat", 1, **who, subscribed_topic_names=["shared"])
        epoch = scene.names[f"epoch of {group}"] = beat.member_epoch
        return beat.assignment is not None and bool(beat.assignment.topic_partitions)

    eventually(assigned)


def beating(group: str, member: str, epoch: int | str, **more: Any) -> Ask:
    return lambda scene, version: {
        "group_id": group,
        "member_id": member,
        "member_epoch": scene[epoch],
        **more,
    }


def fetching(
    group: str | None,
    member: str | None,
    epoch: int,
    *,
    topic: str | bytes | None = "shared",
    partition: int = 0,
    batches: list[dict[str, Any]] | None = None,
    wait_ms: int = 2000,
    **more: Any,
) -> Ask:
    def ask(scene: Scene, version: int) -> dict[str, Any]:
        topic_id = scene.topic_id(topic) if isinstance(topic, str) else topic
        part = {"partition_index": partition, "acknowledgement_batches": batches or []}
        return {
            "group_id": group,
            "member_id": member,
            "share_session_epoch": epoch,
            "max_wait_ms": wait_ms,
            "min_bytes": 1,
            "max_records": 500,
            "batch_size": 500,
            "topics": [] if topic_id is None else [{"topic_id": topic_id, "partitions": [part]}],
            **more,
        }

    return ask


def acknowledging(
    group: str | None,
    member: str | None,
    epoch: int,
    *batches: dict[str, Any],
    topic: str | bytes | None = "shared",
    partition: int = 0,
    **more: Any,
) -> Ask:
    def ask(scene: Scene, version: int) -> dict[str, Any]:
        topic_id = scene.topic_id(topic) if isinstance(topic, str) else topic
        part = {"partition_index": partition, "acknowledgement_batches": list(batches)}
        return {
            "group_id": group,
            "member_id": member,
            "share_session_epoch": epoch,
            "topics": [] if topic_id is None else [{"topic_id": topic_id, "partitions": [part]}],
            **more,
        }

    return ask


def batch(first: int, last: int, *types: int) -> dict[str, Any]:
    return {"first_offset": first, "last_offset": last, "acknowledge_types": list(types)}


def state(group: str, *, topic: str | bytes = "unshared", partition: int = 0, **fields: Any) -> Ask:
    def ask(scene: Scene, version: int) -> dict[str, Any]:
        topic_id = scene.topic_id(topic) if isinstance(topic, str) else topic
        parts = [{"partition": partition, **fields}]
        return {"group_id": group, "topics": [{"topic_id": topic_id, "partitions": parts}]}

    return ask


def offsets(group: str, topic: str = "shared", partition: int = 0, offset: int = 3) -> dict[str, Any]:
    place = {"partition_index": partition, "start_offset": offset}
    return {"group_id": group, "topics": [{"topic_name": topic, "partitions": [place]}]}


def described(group: str, *topics: str) -> dict[str, Any]:
    listed = [{"topic_name": topic, "partitions": [0, 1]} for topic in topics]
    return {"groups": [{"group_id": group, "topics": listed or None}]}


def forgotten(group: str, *topics: str) -> dict[str, Any]:
    return {"group_id": group, "topics": [{"topic_name": topic} for topic in topics]}
