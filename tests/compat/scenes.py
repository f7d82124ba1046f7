"""What the rows about groups and transactions are asked of: groups of each kind and state, made on each side alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from tests.compat.rows import Scene

# Nobody is to be taken for gone while a module runs.
PATIENCE_MS = 300_000
ASSIGNED = b"\0\0" + ConsumerProtocolAssignment(
    assigned_partitions=[ConsumerProtocolAssignment.TopicPartition(topic="read", partitions=[0, 1])]
).encode(0)


def look_for_coordinators(scene: Scene) -> None:
    """Have the topics made in which coordinators keep their state, as every client does by looking for them."""
    for key_type, key in enumerate(("any", "any", "any:AAAAAAAAAAAAAAAAAAAAAQ:0")):
        scene.ask("FindCoordinator", 6, key_type=key_type, coordinator_keys=[key])


def subscription(*topics: str) -> bytes:
    """What a classic consumer says of itself."""
    return b"\0\0" + ConsumerProtocolSubscription(topics=list(topics)).encode(0)


def joining(
    group: str, member: str = "", *, topics: Iterable[str] = ("read",), **more: Any
) -> dict[str, Any]:
    """A JoinGroup request of a consumer."""
    return {
        "group_id": group,
        "session_timeout_ms": PATIENCE_MS,
        "rebalance_timeout_ms": PATIENCE_MS,
        "member_id": member,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": subscription(*topics)}],
        **more,
    }


def classic_group(scene: Scene, group: str, *, synced: bool = True, **more: Any) -> str:
    """A group with one member, whose name is that of the group; it waits for its assignment unless `synced`."""
    reason_free = joining(group, **more)
    if "group_instance_id" in more:
        joined = scene.do("JoinGroup", 9, **reason_free)
    else:
        joined = scene.do("JoinGroup", 3, **reason_free)
    scene.names[f"member of {group}"] = joined.member_id
    if synced:
        scene.do(
            "SyncGroup",
            4,
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=more.get("group_instance_id"),
            assignments=[{"member_id": joined.member_id, "assignment": ASSIGNED}],
        )
    return group


def heartbeat(group: str, member: str, epoch: int, **more: Any) -> dict[str, Any]:
    """A ConsumerGroupHeartbeat that changes nothing unless told to."""
    return {"group_id": group, "member_id": member, "member_epoch": epoch, **more}


def consumer_group(scene: Scene, group: str, **more: Any) -> str:
    """A group of the new protocol with one member that owns all of the topic `read`."""
    member = f"member-of-{group}"
    first = heartbeat(
        group,
        member,
        0,
        rebalance_timeout_ms=PATIENCE_MS,
        subscribed_topic_names=["read"],
        topic_partitions=[],
        **more,
    )
    epoch = scene.do("ConsumerGroupHeartbeat", 1, **first).member_epoch
    owned = [{"topic_id": scene.topic_id("read"), "partitions": [0, 1]}]
    scene.do("ConsumerGroupHeartbeat", 1, **heartbeat(group, member, epoch, topic_partitions=owned, **more))
    scene.names[f"epoch of {group}"] = epoch
    return group


def share_group(scene: Scene, group: str, topic: str = "read") -> str:
    """A share group with one member that reads a topic."""
    first = {"group_id": group, "member_id": f"member-of-{group}", "member_epoch": 0}
    joined = scene.do("ShareGroupHeartbeat", 1, **first, subscribed_topic_names=[topic])
    scene.names[f"epoch of {group}"] = joined.member_epoch
    return group


def commit(scene: Scene, group: str, topic: str, offset: int = 5, **more: Any) -> None:
    """Commit an offset by hand."""
    place = {"partition_index": 0, "committed_offset": offset, "committed_metadata": "noted"}
    scene.do("OffsetCommit", 9, group_id=group, topics=[{"name": topic, "partitions": [place]}], **more)
