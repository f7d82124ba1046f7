"""Committed offsets: who may commit, fetch and delete them, as Kafka answers it."""

import pytest

from ottla.wire.errors import ErrorCode
from tests.compat.asking_groups import (
    AWAITING,
    CLASSIC,
    PREPARING,
    READ,
    STATIC,
    committing,
    fetching,
    forgetting,
)
from tests.compat.rows import UNKNOWN_ID, Row, Scenes
from tests.compat.scenes import commit

E = ErrorCode


@pytest.fixture
def scenes(group_scenes: Scenes) -> Scenes:
    return group_scenes


LONG = "n" * 5000
NO_TOPIC = {2: E.UNKNOWN_TOPIC_OR_PARTITION, 10: E.UNKNOWN_TOPIC_ID}

COMMITTING = [
    Row("no group", "OffsetCommit", E.NONE, committing("")),
    Row("no group with a generation", "OffsetCommit", E.UNKNOWN_MEMBER_ID, committing("", "who", 1)),
    Row("by hand", "OffsetCommit", E.NONE, committing("offsets")),
    Row("by hand, no note", "OffsetCommit", E.NONE, committing("offsets", note=None)),
    Row("by hand, with a member", "OffsetCommit", E.NONE, committing("offsets", "who")),
    Row("by hand, with a generation", "OffsetCommit", E.UNKNOWN_MEMBER_ID, committing("offsets", "who", 1)),
    Row("by hand, generation alone", "OffsetCommit", E.UNKNOWN_MEMBER_ID, committing("offsets", "", 1)),
    Row("absent group with a generation", "OffsetCommit", {2: E.ILLEGAL_GENERATION, 9: E.GROUP_ID_NOT_FOUND},
        committing("absent", "who", 1)),
    Row("absent group, generation nought", "OffsetCommit", {2: E.ILLEGAL_GENERATION, 9: E.GROUP_ID_NOT_FOUND},
        committing("absent", "", 0)),
    Row("absent topic", "OffsetCommit", NO_TOPIC, committing("offsets", topic="absent")),
    Row("absent partition", "OffsetCommit", E.UNKNOWN_TOPIC_OR_PARTITION, committing("offsets", partition=9)),
    Row("negative partition", "OffsetCommit", E.UNKNOWN_TOPIC_OR_PARTITION, committing("offsets", partition=-1)),
    Row("no topics", "OffsetCommit", E.NONE, {"group_id": "offsets", "topics": []}),
    Row("long note", "OffsetCommit", E.OFFSET_METADATA_TOO_LARGE, committing("offsets", note=LONG)),
    Row("a group with members, by hand", "OffsetCommit", E.UNKNOWN_MEMBER_ID, committing("classic")),
    Row("unknown member", "OffsetCommit", E.UNKNOWN_MEMBER_ID, committing("classic", "who", 1)),
    Row("generation behind", "OffsetCommit", E.ILLEGAL_GENERATION, committing("classic", CLASSIC, 0)),
    Row("generation ahead", "OffsetCommit", E.ILLEGAL_GENERATION, committing("classic", CLASSIC, 2)),
    Row("no generation", "OffsetCommit", E.ILLEGAL_GENERATION, committing("classic", CLASSIC, -1)),
    Row("a member", "OffsetCommit", E.NONE, committing("classic", CLASSIC, 1)),
    Row("while awaiting", "OffsetCommit", E.REBALANCE_IN_PROGRESS, committing("awaiting", AWAITING, 1)),
    Row("while preparing", "OffsetCommit", E.NONE, committing("preparing", PREPARING, 1)),
    Row("another's instance", "OffsetCommit", E.FENCED_INSTANCE_ID,
        committing("static", "who", 1, group_instance_id="i"), range(7, 11)),
    Row("an instance nobody has", "OffsetCommit", E.UNKNOWN_MEMBER_ID,
        committing("static", STATIC, 1, group_instance_id="j"), range(7, 11)),
    Row("absent topic and unknown member", "OffsetCommit", NO_TOPIC,
        committing("classic", "who", 1, topic="absent")),
    Row("consumer group", "OffsetCommit", {2: E.UNSUPPORTED_VERSION, 9: E.NONE},
        committing("consumer", "member-of-consumer", "epoch of consumer")),
    Row("consumer group by hand", "OffsetCommit", E.UNKNOWN_MEMBER_ID, committing("consumer")),
    Row("consumer group, unknown member", "OffsetCommit", E.UNKNOWN_MEMBER_ID, committing("consumer", "who", 1)),
    Row("consumer group, epoch behind", "OffsetCommit", {2: E.UNSUPPORTED_VERSION, 9: E.STALE_MEMBER_EPOCH},
        committing("consumer", "member-of-consumer", 0)),
    Row("consumer group, epoch ahead", "OffsetCommit", {2: E.UNSUPPORTED_VERSION, 9: E.STALE_MEMBER_EPOCH},
        committing("consumer", "member-of-consumer", 99)),
    Row("empty consumer group by hand", "OffsetCommit", E.NONE, committing("left")),
    Row("empty consumer group with a member", "OffsetCommit", E.UNKNOWN_MEMBER_ID, committing("left", "who", 1)),
    Row("share group", "OffsetCommit", E.GROUP_ID_NOT_FOUND, committing("share")),
    Row("share group with a member", "OffsetCommit", E.GROUP_ID_NOT_FOUND, committing("share", "member-of-share", 1)),
]  # fmt: skip

FETCHING = [
    Row("no group", "OffsetFetch", E.NONE, fetching("", READ)),
    Row("absent group", "OffsetFetch", E.NONE, fetching("absent", READ)),
    Row("absent group, everything", "OffsetFetch", E.NONE, fetching("absent", everything=True), range(2, 11)),
    Row("offsets", "OffsetFetch", E.NONE, fetching("offsets", READ)),
    Row("everything", "OffsetFetch", E.NONE, fetching("offsets", everything=True), range(2, 11)),
    Row("no topics", "OffsetFetch", E.NONE, fetching("offsets")),
    Row("absent topic", "OffsetFetch", {1: E.NONE, 10: E.UNKNOWN_TOPIC_ID}, fetching("offsets", ("absent", [0]))),
    Row("absent partition", "OffsetFetch", E.NONE, fetching("offsets", ("read", [9, -1]))),
    Row("require stable", "OffsetFetch", E.NONE, fetching("offsets", READ, stable=True), range(7, 11)),
    Row("consumer group", "OffsetFetch", E.NONE, fetching("consumer", READ)),
    Row("consumer group, epoch behind", "OffsetFetch", E.STALE_MEMBER_EPOCH,
        fetching("consumer", READ, member="member-of-consumer", epoch=0), (9, 10)),
    Row("consumer group, epoch ahead", "OffsetFetch", E.STALE_MEMBER_EPOCH,
        fetching("consumer", READ, member="member-of-consumer", epoch=99), (9, 10)),
    Row("consumer group, unknown member", "OffsetFetch", E.UNKNOWN_MEMBER_ID,
        fetching("consumer", READ, member="who", epoch=1), (9, 10)),
    Row("consumer group, its member", "OffsetFetch", E.NONE,
        fetching("consumer", READ, member="member-of-consumer", epoch="epoch of consumer"), (9, 10)),
    Row("absent group, a member", "OffsetFetch", E.NONE,
        fetching("absent", READ, member="who", epoch=1), (9, 10)),
    Row("classic group, a member", "OffsetFetch", E.NONE,
        fetching("classic", READ, member="who", epoch=1), (9, 10)),
    Row("share group", "OffsetFetch", E.NONE, fetching("share", READ)),
    Row("several groups", "OffsetFetch", E.NONE,
        {"groups": [{"group_id": g, "topics": [{"name": "read", "partition_indexes": [0]}]}
                    for g in ("offsets", "absent", "classic")]}, (8, 9)),
    Row("a group twice", "OffsetFetch", E.NONE,
        {"groups": [{"group_id": "offsets", "topics": [{"name": "read", "partition_indexes": [p]}]}
                    for p in (0, 1)]}, (8, 9)),
    Row("no groups", "OffsetFetch", E.NONE, {"groups": []}, (8, 9, 10)),
    Row("absent id", "OffsetFetch", E.UNKNOWN_TOPIC_ID,
        {"groups": [{"group_id": "offsets", "topics": [{"topic_id": UNKNOWN_ID, "partition_indexes": [0, 1]}]}]},
        (10,)),
    Row("no id", "OffsetFetch", E.UNKNOWN_TOPIC_ID,
        {"groups": [{"group_id": "offsets", "topics": [{"topic_id": bytes(16), "partition_indexes": [0]}]}]},
        (10,)),
]  # fmt: skip

DELETING = [
    Row("no group", "OffsetDelete", E.INVALID_GROUP_ID, forgetting("")),
    Row("absent group", "OffsetDelete", E.GROUP_ID_NOT_FOUND, forgetting("absent")),
    Row("subscribed", "OffsetDelete", E.GROUP_SUBSCRIBED_TO_TOPIC, forgetting("classic")),
    Row("subscribed, consumer group", "OffsetDelete", E.GROUP_SUBSCRIBED_TO_TOPIC, forgetting("consumer")),
    Row("not subscribed", "OffsetDelete", E.NONE, forgetting("classic", "unread")),
    Row("not subscribed, consumer group", "OffsetDelete", E.NONE, forgetting("consumer", "unread")),
    Row("members of another kind", "OffsetDelete", E.NON_EMPTY_GROUP, forgetting("connect")),
    Row("while preparing", "OffsetDelete", E.GROUP_SUBSCRIBED_TO_TOPIC, forgetting("preparing")),
    Row("absent topic", "OffsetDelete", E.UNKNOWN_TOPIC_OR_PARTITION, forgetting("offsets", "absent")),
    Row("absent partition", "OffsetDelete", E.UNKNOWN_TOPIC_OR_PARTITION, forgetting("offsets", "read", 9)),
    Row("no such offset", "OffsetDelete", E.NONE, forgetting("offsets", "unread")),
    Row("no topics", "OffsetDelete", E.NONE, {"group_id": "offsets", "topics": []}),
    Row("share group", "OffsetDelete", E.GROUP_ID_NOT_FOUND, forgetting("share")),
    Row("absent group", "DeleteGroups", E.GROUP_ID_NOT_FOUND, {"groups_names": ["absent"]}),
    Row("absent group twice", "DeleteGroups", E.GROUP_ID_NOT_FOUND, {"groups_names": ["absent", "absent"]}),
    Row("not empty", "DeleteGroups", E.NON_EMPTY_GROUP, {"groups_names": ["classic"]}),
    Row("awaiting", "DeleteGroups", E.NON_EMPTY_GROUP, {"groups_names": ["awaiting"]}),
    Row("preparing", "DeleteGroups", E.NON_EMPTY_GROUP, {"groups_names": ["preparing"]}),
    Row("not empty, consumer group", "DeleteGroups", E.NON_EMPTY_GROUP, {"groups_names": ["consumer"]}),
    Row("not empty, share group", "DeleteGroups", E.NON_EMPTY_GROUP, {"groups_names": ["share"]}),
    Row("nothing", "DeleteGroups", E.NONE, {"groups_names": []}),
]  # fmt: skip

ROWS = [*COMMITTING, *FETCHING, *DELETING]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_row(scenes: Scenes, row: Row) -> None:
    scenes.play(row)


@pytest.mark.parametrize("version", range(3))
def test_a_group_is_deleted_with_its_offsets(scenes: Scenes, version: int) -> None:
    group = f"deleted-v{version}"
    for scene in scenes:
        commit(scene, group, "read")
    scenes.ask("OffsetFetch", 9, E.NONE, fetching(group, everything=True))
    scenes.ask(
        "DeleteGroups",
        version,
        (E.GROUP_ID_NOT_FOUND, E.NON_EMPTY_GROUP),
        {"groups_names": [group, "classic", "none"]},
    )
    scenes.ask("DeleteGroups", version, E.GROUP_ID_NOT_FOUND, {"groups_names": [group]})
    scenes.ask("OffsetFetch", 9, E.NONE, fetching(group, everything=True))
    scenes.ask("OffsetFetch", 9, E.NONE, fetching(group, READ))


def test_the_group_of_no_name_holds_offsets_until_it_is_deleted(scenes: Scenes) -> None:
    scenes.ask("OffsetCommit", 9, E.NONE, committing(""))
    scenes.ask("OffsetFetch", 7, E.NONE, fetching("", READ))
    scenes.ask("DescribeGroups", 5, E.NONE, {"groups": [""]})
    scenes.ask("DeleteGroups", 2, E.NONE, {"groups_names": [""]})
    scenes.ask("DeleteGroups", 2, E.GROUP_ID_NOT_FOUND, {"groups_names": [""]})


def test_an_offset_is_deleted_once(scenes: Scenes) -> None:
    for scene in scenes:
        commit(scene, "forgets", "read")
        commit(scene, "forgets", "unread")
    scenes.ask("OffsetDelete", 0, E.NONE, forgetting("forgets"))
    scenes.ask("OffsetFetch", 9, E.NONE, fetching("forgets", everything=True))
    scenes.ask("OffsetDelete", 0, E.NONE, forgetting("forgets"))
    scenes.ask("OffsetDelete", 0, E.NONE, forgetting("forgets", "unread"))
    scenes.ask("OffsetFetch", 9, E.NONE, fetching("forgets", everything=True))
