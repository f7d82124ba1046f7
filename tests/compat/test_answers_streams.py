"""Streams groups: each step of a group's life, and what is refused, as Kafka answers it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.compat.answers import Answer, Fields, Pair, Side, agreement
from tests.peers.deadline import eventually

PATIENCE_MS = 60_000
NOTHING: Fields = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
ZERO = {"epoch": 0}


@pytest.fixture
def streams(pair: Pair) -> Iterator[Pair]:
    """Both servers, with coordinators for groups."""
    wanted = {"key_type": 0, "coordinator_keys": ["any"]}
    for side in (pair.kafka, pair.other):

        def found(side: Side = side) -> bool:
            answer: Any = side.ask("FindCoordinator", 6, wanted)
            return answer.coordinators[0].error_code == 0

        eventually(found, 30)
    with agreement(pair):
        yield pair


def hurry(pair: Pair, *groups: str, **more: int) -> None:
    """Let groups be assigned at once."""
    settings = {"streams.initial.rebalance.delay.ms": 0, "streams.assignment.interval.ms": 0, **more}
    configs = [{"name": name, "config_operation": 0, "value": str(value)} for name, value in settings.items()]
    resources = [{"resource_type": 32, "resource_name": group, "configs": configs} for group in groups]
    pair.same("IncrementalAlterConfigs", 1, {"resources": resources})


def part(name: str, *sources: str, **more: Any) -> Fields:
    return {"subtopology_id": name, "source_topics": list(sources), **more}


def topology(*parts: Fields, epoch: int = 0) -> Fields:
    return {"epoch": epoch, "subtopologies": list(parts)}


def beat(group: str, member: str, epoch: int, **more: Any) -> Fields:
    return {"group_id": group, "member_id": member, "member_epoch": epoch, **more}


def join(group: str, member: str, brings: Fields, **more: Any) -> Fields:
    said = {"topology": brings, "process_id": f"process of {member}", "rebalance_timeout_ms": PATIENCE_MS}
    return beat(group, member, 0, **{**said, **NOTHING, **more})


def runs(*active: tuple[str, list[int]], standby: tuple[tuple[str, list[int]], ...] = ()) -> Fields:
    """What a member says that it runs."""
    return {
        "active_tasks": [{"subtopology_id": name, "partitions": numbers} for name, numbers in active],
        "standby_tasks": [{"subtopology_id": name, "partitions": numbers} for name, numbers in standby],
        "warmup_tasks": [],
    }


def in_order(answer: Answer) -> Answer:
    """Sort what has no order: tasks by subtopology, members by name, statuses by code."""
    for name in ("active_tasks", "standby_tasks", "warmup_tasks"):
        if answer.get(name):
            answer[name].sort(key=lambda each: each["subtopology_id"])
    for group in sorted(answer.pop("groups", ()), key=lambda each: each["group_id"]):
        answer.setdefault("groups", []).append(group)
        group["members"].sort(key=lambda each: each["member_id"])
        for member in group["members"]:
            in_order(member["assignment"])
            in_order(member["target_assignment"])
    for where in answer.get("partitions_by_user_endpoint") or ():
        for name in ("active_partitions", "standby_partitions"):
            where[name].sort(key=lambda each: each["topic"])
    return answer


class Life:
    """One group on both servers, step by step."""

    def __init__(self, pair: Pair, group: str) -> None:
        self.pair = pair
        self.group = group

    def join(self, member: str, brings: Fields, **more: Any) -> None:
        self.pair.same("StreamsGroupHeartbeat", 0, join(self.group, member, brings, **more), drop=in_order)

    def beat(self, member: str, epoch: int, **more: Any) -> None:
        self.pair.same("StreamsGroupHeartbeat", 0, beat(self.group, member, epoch, **more), drop=in_order)

    def look(self) -> None:
        asked = {"group_ids": [self.group], "include_authorized_operations": True}
        self.pair.same("StreamsGroupDescribe", 0, asked, drop=in_order)
        for filters in ({"types_filter": ["streams"]}, {"states_filter": ["NotReady", "reconciling"]}):
            self.pair.same("ListGroups", 5, filters, drop=self._listed)

    def _listed(self, answer: Answer) -> Answer:
        return [each for each in answer["groups"] if each["group_id"] == self.group]


def test_refusals(streams: Pair) -> None:
    streams.make_topic("refused-lines", 2)
    streams.make_topic("refused-other", 3)
    fine = topology(part("0", "refused-lines"))
    Life(streams, "refusals").join("a", fine)

    def refused(fields: Fields) -> None:
        streams.same("StreamsGroupHeartbeat", 0, fields)

    for more in (
        {"instance_id": "i"},
        {"rack_id": ""},
        {"task_offsets": []},
        {"task_end_offsets": []},
        {"warmup_tasks": [{"subtopology_id": "0", "partitions": [0]}]},
        {"rebalance_timeout_ms": -1},
        {"active_tasks": None},
        {"standby_tasks": None, "warmup_tasks": None},
        {"active_tasks": [{"subtopology_id": "0", "partitions": [0]}]},
        {"topology": None},
        {"member_id": ""},
        {"member_id": " "},
        {"group_id": " "},
        {"group_id": ""},
    ):
        refused(join("refusals", "b", fine) | more)
    info: Fields = {"name": "refused-store", "partitions": 0, "replication_factor": 0, "topic_configs": []}
    for brings in (
        topology(part("0", "refused-lines"), epoch=1),
        topology(part("1", "refused-lines")),
        topology(part("0", "refused-lines", source_topic_regex=["r.*"])),
        topology(part("0", "__consumer_offsets")),
        topology(part("0", "not so")),
        topology(part("0", "refused-lines", state_changelog_topics=[info | {"partitions": 3}])),
        topology(part("0", "refused-lines", state_changelog_topics=[info | {"name": ".."}])),
    ):
        refused(join("refusals", "b", brings))
    for number, brings in enumerate(
        (
            topology(part("0", repartition_source_topics=[info], repartition_sink_topics=["refused-store"])),
            topology(part("0", "refused-lines"), part("1", repartition_source_topics=[info])),
            topology(part("0")),
            topology(),
            topology(part("0", "refused-absent", "refused-lines")),
            topology(part("0", "refused-lines"), part("0", "refused-lines")),
            topology(part("0", "refused-lines"), epoch=-1),
            topology(part("0", "refused-lines", copartition_groups=[{"source_topics": [3]}])),
            topology(part("0", "refused-lines", copartition_groups=[{"source_topics": [0]}])),
            topology(part("0", "refused-lines", "refused-other")),
            topology(
                part("0", "refused-lines", "refused-other", copartition_groups=[{"source_topics": [0, 1]}])
            ),
            topology(
                part("0", "refused-lines", repartition_sink_topics=["refused-store"]),
                part("1", repartition_source_topics=[info | {"partitions": -2}]),
            ),
            topology(part("0", "refused-lines", state_changelog_topics=[info | {"name": "refused-other"}])),
            topology(
                part("0", "refused-lines", repartition_sink_topics=["refused-store"]),
                part(
                    "1",
                    "refused-other",
                    repartition_source_topics=[info | {"partitions": 5}],
                    copartition_groups=[{"source_topics": [0], "repartition_source_topics": [0]}],
                ),
            ),
        )
    ):
        refused(join(f"refusals-{number}", "a", brings))
    for fields in (
        beat("refusals", "a", 1),
        beat("refusals", "a", 7),
        beat("refusals", "a", -2),
        beat("refusals", "a", -3),
        beat("refusals", "nobody", 1),
        beat("refusals", "nobody", -1),
        beat("nowhere", "a", 1),
        beat("nowhere", "a", -1),
        beat("refusals", "a", 1, topology=fine),
        beat("refusals", "a", 1, active_tasks=[]),
    ):
        refused(fields)
    streams.same("StreamsGroupDescribe", 0, {"group_ids": ["nowhere", ""]}, drop=in_order)


def test_a_life(streams: Pair) -> None:
    streams.make_topic("life-lines", 4)
    streams.make_topic("life-words", 2)
    streams.make_topic("life-store", 2)
    hurry(streams, "life")
    words: Fields = {"name": "life-words", "partitions": 2, "replication_factor": 1, "topic_configs": []}
    store: Fields = {"name": "life-store", "partitions": 0, "replication_factor": 0, "topic_configs": []}
    brings = topology(
        part("0", "life-lines", repartition_sink_topics=["life-words"]),
        part("1", repartition_source_topics=[words], state_changelog_topics=[store]),
    )
    life = Life(streams, "life")
    life.join("a", brings, user_endpoint={"host": "here", "port": 1}, rack_id="r")
    life.look()
    every = (("0", [0, 1, 2, 3]), ("1", [0, 1]))
    life.beat("a", 2, **runs(*every), endpoint_information_epoch=0)
    life.beat("a", 2, **runs(*every), client_tags=[{"key": "zone", "value": "x"}])
    life.beat("a", 3, **runs(("7", [0])))
    life.beat("a", 3, **runs(("0", [4])))
    life.beat("a", 1)
    life.join("b", brings)
    life.look()
    life.beat("a", 3)
    life.look()
    life.beat("b", 4, **NOTHING)
    life.beat("a", 3, **runs(("0", [0, 1]), ("1", [0])))
    life.beat("b", 4, **NOTHING)
    life.look()
    life.beat("a", 4, **runs(("0", [0, 1]), ("1", [0])))
    commits(streams)
    hurry(streams, "life", **{"streams.num.standby.replicas": 1})
    life.beat("a", 4, **runs(("0", [0, 1]), ("1", [0])))
    life.beat("b", 4, **runs(("0", [2, 3]), ("1", [1])))
    life.beat("a", 5, shutdown_application=True)
    life.beat("b", 5)
    life.look()
    outsiders(streams)
    life.beat("a", -1)
    life.beat("b", 5)
    life.look()
    life.beat("b", -1)
    life.look()
    commits(streams)
    streams.same("OffsetDelete", 0, deletion("life-lines"))
    streams.same("DeleteGroups", 2, {"groups_names": ["life"]})
    life.look()


def committing(member: str, epoch: int, partition: int, topic: str = "life-lines") -> Fields:
    place = {"partition_index": partition, "committed_offset": 5, "committed_metadata": ""}
    topics = [{"name": topic, "partitions": [place]}]
    return {
        "group_id": "life",
        "member_id": member,
        "generation_id_or_member_epoch": epoch,
        "topics": topics,
    }


def deletion(topic: str) -> Fields:
    return {"group_id": "life", "topics": [{"name": topic, "partitions": [{"partition_index": 0}]}]}


def commits(pair: Pair) -> None:
    for member, epoch, partition in (
        ("a", 4, 0),
        ("a", 4, 3),
        ("a", 2, 0),
        ("a", 1, 0),
        ("a", 2, 2),
        ("a", 9, 0),
        ("nobody", 4, 0),
        ("", -1, 0),
        ("a", -1, 0),
    ):
        pair.same("OffsetCommit", (8, 9), committing(member, epoch, partition))
    pair.same("OffsetCommit", 9, committing("a", 2, 0, "life-store"))
    for member, epoch in (("a", 4), ("a", 3), ("nobody", 4), (None, -1)):
        topics = [{"name": "life-lines", "partition_indexes": [0, 2]}]
        group = {"group_id": "life", "member_id": member, "member_epoch": epoch, "topics": topics}
        pair.same("OffsetFetch", 9, {"groups": [group]})


def outsiders(pair: Pair) -> None:
    """What is not of the protocol, asked of a group with members."""
    joining = {"group_id": "life", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000}
    protocols = [{"name": "stream", "metadata": b"m"}]
    pair.same("JoinGroup", 9, joining | {"protocol_type": "consumer", "protocols": protocols})
    pair.same("SyncGroup", 5, {"group_id": "life", "member_id": "a", "generation_id": 5})
    pair.same("Heartbeat", 4, {"group_id": "life", "member_id": "a", "generation_id": 5})
    pair.same("LeaveGroup", 5, {"group_id": "life", "members": [{"member_id": "a"}]})
    consumer = {
        "rebalance_timeout_ms": 5_000,
        "subscribed_topic_names": ["life-lines"],
        "topic_partitions": [],
    }
    pair.same("ConsumerGroupHeartbeat", 1, beat("life", "c", 0, **consumer))
    pair.same("ShareGroupHeartbeat", 1, beat("life", "c", 0, subscribed_topic_names=["life-lines"]))
    pair.same("DescribeGroups", (5, 6), {"groups": ["life"]})
    pair.same("ConsumerGroupDescribe", 1, {"group_ids": ["life"]})
    pair.same("OffsetDelete", 0, deletion("life-lines"))
    pair.same("OffsetDelete", 0, deletion("life-store"))
    pair.same("DeleteGroups", 2, {"groups_names": ["life"]})


def test_topics_are_made(streams: Pair) -> None:
    streams.make_topic("made-lines", 3)
    hurry(streams, "made")
    configs = [{"key": "cleanup.policy", "value": "compact"}]
    store = {"name": "made-store", "partitions": 0, "replication_factor": 1, "topic_configs": configs}
    wrong = {"name": "made-wrong", "partitions": 0, "replication_factor": 9, "topic_configs": []}
    good, bad = (part("0", "made-lines", state_changelog_topics=[each]) for each in (store, wrong))
    Life(streams, "made").join("a", topology(good))
    streams.wait_for("made-store", 3)
    asked = {"resource_type": 2, "resource_name": "made-store", "configuration_keys": ["cleanup.policy"]}
    streams.same("DescribeConfigs", 4, {"resources": [asked]})
    for side in (streams.kafka, streams.other):

        def ready(side: Side = side) -> bool:
            answer: Any = side.ask("StreamsGroupHeartbeat", 0, join("made", "a", topology(good)))
            return not answer.status and answer.active_tasks[0].partitions == [0, 1, 2]

        eventually(ready, 20)
    for side in (streams.kafka, streams.other):

        def told(side: Side = side) -> bool:
            answer: Any = side.ask("StreamsGroupHeartbeat", 0, join("unmade", "a", topology(bad)))
            return any("Creation failed: made-wrong (" in each.status_detail for each in answer.status)

        eventually(told, 20)
