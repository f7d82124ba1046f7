"""Share groups: what is refused, with which code, at which version, as Kafka answers it."""

from typing import Any

import pytest

from ottla.wire.errors import ErrorCode
from tests.compat.asking_share import (
    ACCEPT,
    acknowledging,
    batch,
    beating,
    described,
    fetching,
    forgotten,
    offsets,
    state,
)
from tests.compat.rows import UNKNOWN_ID, Row, Scenes

E = ErrorCode


@pytest.fixture
def scenes(share_scenes: Scenes) -> Scenes:
    return share_scenes


TOPICS = {"subscribed_topic_names": ["shared"]}
BEATING = [
    Row("no group", "ShareGroupHeartbeat", E.INVALID_REQUEST, beating("", "one", 0, **TOPICS)),
    Row("blank group", "ShareGroupHeartbeat", E.INVALID_REQUEST, beating(" ", "one", 0, **TOPICS)),
    Row("no member", "ShareGroupHeartbeat", E.INVALID_REQUEST, beating("new", "", 0, **TOPICS)),
    Row("no rack", "ShareGroupHeartbeat", E.INVALID_REQUEST, beating("new", "one", 0, rack_id="", **TOPICS)),
    Row("no subscription", "ShareGroupHeartbeat", E.INVALID_REQUEST, beating("new", "one", 0)),
    Row("subscription to nothing", "ShareGroupHeartbeat", E.INVALID_REQUEST,
        beating("new", "one", 0, subscribed_topic_names=[])),
    Row("epoch below all", "ShareGroupHeartbeat", E.INVALID_REQUEST, beating("s-share", "one", -2, **TOPICS)),
    Row("absent group", "ShareGroupHeartbeat", E.GROUP_ID_NOT_FOUND, beating("absent", "one", 1)),
    Row("absent group, leaving", "ShareGroupHeartbeat", E.GROUP_ID_NOT_FOUND, beating("absent", "one", -1)),
    Row("unknown member", "ShareGroupHeartbeat", E.UNKNOWN_MEMBER_ID, beating("s-share", "who", 1)),
    Row("unknown member, leaving", "ShareGroupHeartbeat", E.UNKNOWN_MEMBER_ID, beating("s-share", "who", -1)),
    Row("epoch ahead", "ShareGroupHeartbeat", E.FENCED_MEMBER_EPOCH, beating("s-share", "one", 99)),
    Row("steady", "ShareGroupHeartbeat", E.NONE, beating("s-share", "one", "epoch of s-share")),
    Row("full group", "ShareGroupHeartbeat", E.GROUP_MAX_SIZE_REACHED, beating("s-full", "third", 0, **TOPICS)),
    Row("classic group", "ShareGroupHeartbeat", E.GROUP_ID_NOT_FOUND, beating("s-classic", "one", 0, **TOPICS)),
    Row("consumer group", "ShareGroupHeartbeat", E.GROUP_ID_NOT_FOUND, beating("s-consumer", "one", 0, **TOPICS)),
    Row("no group", "ShareGroupDescribe", E.INVALID_GROUP_ID, {"group_ids": [""]}),
    Row("absent group", "ShareGroupDescribe", E.GROUP_ID_NOT_FOUND, {"group_ids": ["absent"]}),
    Row("classic group", "ShareGroupDescribe", E.GROUP_ID_NOT_FOUND, {"group_ids": ["s-classic"]}),
    Row("share groups", "ShareGroupDescribe", E.NONE, {"group_ids": ["s-share", "s-left"]}),
    Row("operations", "ShareGroupDescribe", E.NONE,
        {"group_ids": ["s-left"], "include_authorized_operations": True}),
]  # fmt: skip

SESSIONS = [
    Row("no group", "ShareFetch", E.INVALID_REQUEST, fetching(None, "one", 0)),
    Row("no member", "ShareFetch", E.INVALID_REQUEST, fetching("s-share", None, 0)),
    Row("empty member", "ShareFetch", E.INVALID_REQUEST, fetching("s-share", "", 0)),
    Row("long member", "ShareFetch", E.INVALID_REQUEST, fetching("s-share", "m" * 37, 0)),
    Row("no session", "ShareFetch", E.SHARE_SESSION_NOT_FOUND, fetching("s-share", "who", 1)),
    Row("no session, at the end", "ShareFetch", E.SHARE_SESSION_NOT_FOUND, fetching("s-share", "who", -1)),
    Row("acknowledged at first", "ShareFetch", E.INVALID_REQUEST,
        fetching("s-share", "who", 0, batches=[batch(0, 1, ACCEPT)])),
    Row("absent partition", "ShareFetch", E.UNKNOWN_TOPIC_OR_PARTITION, fetching("s-share", "absent", 0, partition=9)),
    Row("renewed with limits", "ShareFetch", E.INVALID_REQUEST,
        fetching("s-share", "who", 1, is_renew_ack=True), (2,)),
    Row("no group", "ShareAcknowledge", E.INVALID_REQUEST, acknowledging(None, "one", 1)),
    Row("no member", "ShareAcknowledge", E.INVALID_REQUEST, acknowledging("s-share", None, 1)),
    Row("empty member", "ShareAcknowledge", E.INVALID_REQUEST, acknowledging("s-share", "", 1)),
    Row("no session", "ShareAcknowledge", E.SHARE_SESSION_NOT_FOUND, acknowledging("s-share", "who", 1)),
    Row("no session, at the end", "ShareAcknowledge", E.SHARE_SESSION_NOT_FOUND,
        acknowledging("s-share", "who", -1)),
    Row("at first", "ShareAcknowledge", E.INVALID_SHARE_SESSION_EPOCH, acknowledging("s-share", "who", 0)),
]  # fmt: skip

# What each of the state APIs is asked, for state that nobody has made.
STATE_APIS: dict[str, dict[str, Any]] = {
    "InitializeShareGroupState": {"state_epoch": 1, "start_offset": 0},
    "ReadShareGroupState": {"leader_epoch": 0},
    "WriteShareGroupState": {"state_epoch": 1, "leader_epoch": 0, "start_offset": 0, "state_batches": []},
    "DeleteShareGroupState": {},
    "ReadShareGroupStateSummary": {"leader_epoch": 0},
}
MUST_EXIST = {"ReadShareGroupState", "WriteShareGroupState"}
STATES = [
    row
    for api, fields in STATE_APIS.items()
    for absent in [E.INVALID_REQUEST if api in MUST_EXIST else E.UNKNOWN_TOPIC_OR_PARTITION]
    for row in (
        Row("absent topic", api, absent, state("g", topic=UNKNOWN_ID, **fields)),
        Row("no topic", api, absent, state("g", topic=bytes(16), **fields)),
        Row("absent partition", api, absent, state("g", partition=9, **fields)),
        Row("negative partition", api, E.INVALID_REQUEST, state("g", partition=-1, **fields)),
        Row(
            "nothing there", api, E.INVALID_REQUEST if api in MUST_EXIST else E.NONE, state("none", **fields)
        ),
        Row("no topics", api, E.NONE, {"group_id": "g", "topics": []}),
    )
    if not (api == "InitializeShareGroupState" and row.what == "nothing there")
]

OFFSETS = [
    Row("no group", "AlterShareGroupOffsets", E.INVALID_GROUP_ID, offsets("")),
    Row("not empty", "AlterShareGroupOffsets", E.NON_EMPTY_GROUP, offsets("s-share")),
    Row("classic group", "AlterShareGroupOffsets", E.GROUP_ID_NOT_FOUND, offsets("s-classic")),
    Row("absent topic", "AlterShareGroupOffsets", E.UNKNOWN_TOPIC_OR_PARTITION, offsets("s-left", "absent")),
    Row("absent partition", "AlterShareGroupOffsets", E.UNKNOWN_TOPIC_OR_PARTITION, offsets("s-left", "shared", 9)),
    Row("no topics", "AlterShareGroupOffsets", E.NONE, {"group_id": "s-left", "topics": []}),
    Row("absent group", "DeleteShareGroupOffsets", E.GROUP_ID_NOT_FOUND, forgotten("nobody", "shared")),
    Row("no group", "DeleteShareGroupOffsets", E.INVALID_GROUP_ID, forgotten("", "shared")),
    Row("not empty", "DeleteShareGroupOffsets", E.NON_EMPTY_GROUP, forgotten("s-share", "shared")),
    Row("consumer group", "DeleteShareGroupOffsets", E.GROUP_ID_NOT_FOUND, forgotten("s-consumer", "shared")),
    Row("absent topic", "DeleteShareGroupOffsets", E.UNKNOWN_TOPIC_OR_PARTITION, forgotten("s-left", "absent")),
    Row("topic without offsets", "DeleteShareGroupOffsets", E.UNKNOWN_TOPIC_OR_PARTITION,
        forgotten("s-left", "unshared")),
    Row("no topics", "DeleteShareGroupOffsets", E.NONE, forgotten("s-left")),
    Row("absent group", "DescribeShareGroupOffsets", E.NONE, described("absent", "shared")),
    Row("absent group, everything", "DescribeShareGroupOffsets", E.NONE, described("absent")),
    Row("classic group", "DescribeShareGroupOffsets", E.NONE, described("s-classic", "shared")),
    Row("offsets", "DescribeShareGroupOffsets", E.NONE, described("s-left", "shared")),
    Row("everything", "DescribeShareGroupOffsets", E.NONE, described("s-left")),
    Row("topic without offsets", "DescribeShareGroupOffsets", E.NONE, described("s-left", "unshared")),
    Row("absent topic", "DescribeShareGroupOffsets", E.NONE, described("s-left", "absent")),
    Row("no groups", "DescribeShareGroupOffsets", E.NONE, {"groups": []}),
]  # fmt: skip

ROWS = [*BEATING, *SESSIONS, *STATES, *OFFSETS]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_row(scenes: Scenes, row: Row) -> None:
    scenes.play(row)
