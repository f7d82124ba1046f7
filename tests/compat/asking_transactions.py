"""Requests about transactions, and the transactional ids and groups they are asked of."""

from typing import Any

from ottla.wire.batch import build_batch
from ottla.wire.record import Record
from tests.compat.rows import Ask, Scene
from tests.compat.scenes import classic_group, commit, consumer_group, look_for_coordinators, share_group
from tests.peers.deadline import eventually

NOW_MS = 1_760_000_000_000
TIMEOUT_MS = 600_000
WRITTEN = ("written", [0])


def stage_transactions(scene: Scene) -> None:
    """Transactional ids in each state that lasts, and groups to commit offsets of; no row changes them."""
    scene.make_topic("read", 2)
    scene.make_topic("written", 3)
    look_for_coordinators(scene)
    for name in ("empty", "open", "committed", "aborted"):
        begin(scene, name)
    for _ in range(3):
        begin(scene, "twice")
    add(scene, "open", 0)
    add(scene, "committed", 0)
    add(scene, "aborted", 0)
    end(scene, "committed", committed=True)
    end(scene, "aborted", committed=False)
    classic_group(scene, "t-classic")
    classic_group(scene, "t-static", group_instance_id="i")
    classic_group(scene, "t-awaiting", synced=False)
    consumer_group(scene, "t-consumer")
    share_group(scene, "t-share")
    commit(scene, "t-offsets", "read")


def begin(scene: Scene, name: str, timeout_ms: int = TIMEOUT_MS) -> None:
    """Take a transactional id; its producer id and epoch get names."""
    answer = scene.do("InitProducerId", 4, transactional_id=name, transaction_timeout_ms=timeout_ms)
    scene.names[f"producer of {name}"] = answer.producer_id
    scene.names[f"epoch of {name}"] = answer.producer_epoch


def producer(scene: Scene, name: str) -> dict[str, Any]:
    return {
        "transactional_id": name,
        "producer_id": scene[f"producer of {name}"],
        "producer_epoch": scene[f"epoch of {name}"],
    }


def add(scene: Scene, name: str, *partitions: int, topic: str = "written") -> None:
    old = {f"v3_and_below_{key}": value for key, value in producer(scene, name).items()}
    scene.do(
        "AddPartitionsToTxn", 3, **old, v3_and_below_topics=[{"name": topic, "partitions": [*partitions]}]
    )


def end(scene: Scene, name: str, *, committed: bool) -> None:
    scene.do("EndTxn", 4, **producer(scene, name), committed=committed)
    settle(scene, name)


def settle(scene: Scene, name: str) -> None:
    """Wait until the markers of a transaction are written."""

    def settled() -> bool:
        found = scene.ask("DescribeTransactions", 0, transactional_ids=[name])
        return not found.transaction_states[0].transaction_state.startswith("Prepare")

    eventually(settled)


class By:
    """Who asks: a transactional id, with its own producer id and epoch unless told otherwise."""

    def __init__(self, name: str, *, epoch: int = 0, producer: int | str | None = None) -> None:
        self.name, self.epoch, self.producer = name, epoch, producer

    def fields(self, scene: Scene) -> dict[str, Any]:
        epoch = scene[f"epoch of {self.name}"]
        return {
            "transactional_id": self.name,
            "producer_id": scene[f"producer of {self.name}" if self.producer is None else self.producer],
            "producer_epoch": (epoch if isinstance(epoch, int) else 0) + self.epoch,
        }


def adding(by: By, *places: tuple[str, list[int]], verify: bool = False) -> Ask:
    def ask(scene: Scene, version: int) -> dict[str, Any]:
        topics = [{"name": topic, "partitions": partitions} for topic, partitions in places]
        if version < 4:
            old = {f"v3_and_below_{key}": value for key, value in by.fields(scene).items()}
            return {**old, "v3_and_below_topics": topics}
        return {"transactions": [{**by.fields(scene), "verify_only": verify, "topics": topics}]}

    return ask


def with_offsets(by: By, group: str = "t-offsets") -> Ask:
    return lambda scene, version: {**by.fields(scene), "group_id": group}


def ending(by: By, *, committed: bool = True) -> Ask:
    return lambda scene, version: {**by.fields(scene), "committed": committed}


def committing(
    by: By,
    group: str,
    member: str = "",
    generation: int | str = -1,
    *,
    topic: str = "read",
    partition: int = 0,
    note: str = "note",
    **more: Any,
) -> Ask:
    def ask(scene: Scene, version: int) -> dict[str, Any]:
        place = {"partition_index": partition, "committed_offset": 9, "committed_metadata": note}
        who = {"generation_id_or_member_epoch": scene[generation], "member_id": scene[member], **more}
        return {
            **by.fields(scene),
            "group_id": group,
            "topics": [{"name": topic, "partitions": [place]}],
            **(who if version >= 3 else {}),
        }

    return ask


def starting(by: By | None = None, **more: Any) -> Ask:
    def ask(scene: Scene, version: int) -> dict[str, Any]:
        fields: dict[str, Any] = {"transactional_id": "new", "transaction_timeout_ms": TIMEOUT_MS}
        if by is not None:
            fields |= by.fields(scene)
        return fields | more

    return ask


def producing(
    by: By,
    *,
    topic: str = "written",
    partition: int = 0,
    transactional: bool = True,
    named: bool = True,
    sequence: int = 0,
) -> Ask:
    def ask(scene: Scene, version: int) -> dict[str, Any]:
        who = by.fields(scene)
        batch = build_batch(
            [Record(0, NOW_MS, None, b"value", ())],
            producer_id=who["producer_id"],
            producer_epoch=who["producer_epoch"],
            base_sequence=sequence,
            transactional=transactional,
        )
        place = {"topic_id": scene.topic_id(topic)} if version >= 13 else {"name": topic}
        return {
            "transactional_id": who["transactional_id"] if named else None,
            "acks": -1,
            "timeout_ms": 5000,
            "topic_data": [{**place, "partition_data": [{"index": partition, "records": bytes(batch)}]}],
        }

    return ask


def marking(
    by: By, *, epoch: int = 0, committed: bool = True, topic: str = "written", partition: int = 2
) -> Ask:
    def ask(scene: Scene, version: int) -> dict[str, Any]:
        who = by.fields(scene)
        del who["transactional_id"]
        marker = {
            **who,
            "transaction_result": committed,
            "coordinator_epoch": epoch,
            "topics": [{"name": topic, "partition_indexes": [partition]}],
        }
        return {"markers": [marker]}

    return ask
