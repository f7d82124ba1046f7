"""Classic groups: what is refused, with which code, at which version, as Kafka answers it."""

import pytest

from ottla.wire.errors import ErrorCode
from tests.compat.asking_groups import (
    AWAITING,
    CLASSIC,
    PREPARING,
    READ,
    STATIC,
    beat,
    committing,
    epochs,
    fetching,
    fresh,
    join,
    leave,
    sync,
)
from tests.compat.rows import Row, Scenes
from tests.compat.scenes import classic_group, commit, joining, subscription

E = ErrorCode


@pytest.fixture
def scenes(group_scenes: Scenes) -> Scenes:
    return group_scenes


JOINING = [
    Row("no group", "JoinGroup", E.INVALID_GROUP_ID, join("")),
    Row("session too short", "JoinGroup", E.INVALID_SESSION_TIMEOUT, join("new", session_timeout_ms=5999)),
    Row("session too long", "JoinGroup", E.INVALID_SESSION_TIMEOUT, join("new", session_timeout_ms=1_800_001)),
    Row("session negative", "JoinGroup", E.INVALID_SESSION_TIMEOUT, join("new", session_timeout_ms=-1)),
    Row("member of no group", "JoinGroup", E.UNKNOWN_MEMBER_ID, join("new", "who")),
    Row("unknown member", "JoinGroup", E.UNKNOWN_MEMBER_ID, join("classic", "who")),
    Row("id required", "JoinGroup", E.MEMBER_ID_REQUIRED, join("connect-not", group_instance_id=None), range(4, 10)),
    Row("no protocols", "JoinGroup", E.INCONSISTENT_GROUP_PROTOCOL, join("new", protocols=[])),
    Row("no protocol type", "JoinGroup", E.INCONSISTENT_GROUP_PROTOCOL, join("new", protocol_type="")),
    Row("another type", "JoinGroup", E.INCONSISTENT_GROUP_PROTOCOL, join("connect")),
    Row("another protocol", "JoinGroup", E.INCONSISTENT_GROUP_PROTOCOL,
        join("classic", protocols=[{"name": "sticky", "metadata": subscription("read")}])),
    Row("another's instance", "JoinGroup", E.FENCED_INSTANCE_ID,
        join("static", "who", group_instance_id="i"), range(5, 10)),
    Row("an instance nobody has", "JoinGroup", E.UNKNOWN_MEMBER_ID,
        join("static", "who", group_instance_id="j"), range(5, 10)),
    Row("full group", "JoinGroup", E.GROUP_MAX_SIZE_REACHED, join("crowded")),
    Row("full group, unknown member", "JoinGroup", E.GROUP_MAX_SIZE_REACHED, join("crowded", "who")),
    Row("full consumer group", "JoinGroup", E.GROUP_MAX_SIZE_REACHED, join("full")),
    Row("a share group", "JoinGroup", E.INCONSISTENT_GROUP_PROTOCOL, join("share")),
    Row("a consumer group, another type", "JoinGroup", E.INCONSISTENT_GROUP_PROTOCOL,
        join("consumer", protocol_type="connect")),
    Row("a consumer group, no subscription", "JoinGroup", {0: E.UNKNOWN_SERVER_ERROR, 4: E.MEMBER_ID_REQUIRED},
        join("consumer", protocols=[{"name": "range", "metadata": b""}])),
]  # fmt: skip

SYNCING = [
    Row("no group", "SyncGroup", E.INVALID_GROUP_ID, sync("")),
    Row("absent group", "SyncGroup", E.UNKNOWN_MEMBER_ID, sync("absent", "who")),
    Row("unknown member", "SyncGroup", E.UNKNOWN_MEMBER_ID, sync("classic", "who")),
    Row("no member", "SyncGroup", E.UNKNOWN_MEMBER_ID, sync("classic")),
    Row("generation behind", "SyncGroup", E.ILLEGAL_GENERATION, sync("classic", CLASSIC, 0)),
    Row("generation ahead", "SyncGroup", E.ILLEGAL_GENERATION, sync("classic", CLASSIC, 2)),
    Row("rebalancing", "SyncGroup", E.REBALANCE_IN_PROGRESS, sync("preparing", PREPARING)),
    Row("empty group", "SyncGroup", E.UNKNOWN_MEMBER_ID, sync("offsets", "who")),
    Row("another type", "SyncGroup", E.INCONSISTENT_GROUP_PROTOCOL,
        sync("classic", CLASSIC, protocol_type="connect", protocol_name="range"), (5,)),
    Row("another protocol", "SyncGroup", E.INCONSISTENT_GROUP_PROTOCOL,
        sync("classic", CLASSIC, protocol_type="consumer", protocol_name="sticky"), (5,)),
    Row("no type", "SyncGroup", E.INCONSISTENT_GROUP_PROTOCOL, sync("classic", CLASSIC, protocol_type=None), (5,)),
    Row("no name", "SyncGroup", E.INCONSISTENT_GROUP_PROTOCOL, sync("classic", CLASSIC, protocol_name=None), (5,)),
    Row("the same again", "SyncGroup", E.NONE, sync("classic", CLASSIC)),
    Row("another's instance", "SyncGroup", E.FENCED_INSTANCE_ID,
        sync("static", "who", group_instance_id="i"), range(3, 6)),
    Row("an instance nobody has", "SyncGroup", E.UNKNOWN_MEMBER_ID,
        sync("static", STATIC, group_instance_id="j"), range(3, 6)),
    Row("a share group", "SyncGroup", E.UNKNOWN_MEMBER_ID, sync("share", "member-of-share")),
    Row("a consumer group", "SyncGroup", E.UNKNOWN_MEMBER_ID, sync("consumer", "member-of-consumer")),
    Row("a consumer group, unknown member", "SyncGroup", E.UNKNOWN_MEMBER_ID, sync("consumer", "who")),
]  # fmt: skip

BEATING = [
    Row("no group", "Heartbeat", E.INVALID_GROUP_ID, beat("")),
    Row("absent group", "Heartbeat", E.UNKNOWN_MEMBER_ID, beat("absent", "who")),
    Row("empty group", "Heartbeat", E.UNKNOWN_MEMBER_ID, beat("offsets", "who")),
    Row("unknown member", "Heartbeat", E.UNKNOWN_MEMBER_ID, beat("classic", "who")),
    Row("generation behind", "Heartbeat", E.ILLEGAL_GENERATION, beat("classic", CLASSIC, 0)),
    Row("generation ahead", "Heartbeat", E.ILLEGAL_GENERATION, beat("classic", CLASSIC, 2)),
    Row("no generation", "Heartbeat", E.ILLEGAL_GENERATION, beat("classic", CLASSIC, -1)),
    Row("rebalancing", "Heartbeat", E.REBALANCE_IN_PROGRESS, beat("preparing", PREPARING)),
    Row("awaiting", "Heartbeat", E.NONE, beat("awaiting", AWAITING)),
    Row("another's instance", "Heartbeat", E.FENCED_INSTANCE_ID,
        beat("static", "who", group_instance_id="i"), (3, 4)),
    Row("an instance nobody has", "Heartbeat", E.UNKNOWN_MEMBER_ID,
        beat("static", STATIC, group_instance_id="j"), (3, 4)),
    Row("a static member", "Heartbeat", E.NONE, beat("static", STATIC, group_instance_id="i"), (3, 4)),
    Row("a share group", "Heartbeat", E.UNKNOWN_MEMBER_ID, beat("share", "member-of-share")),
    Row("a consumer group", "Heartbeat", E.UNKNOWN_MEMBER_ID, beat("consumer", "member-of-consumer")),
]  # fmt: skip

LEAVING = [
    Row("no group", "LeaveGroup", E.INVALID_GROUP_ID, leave("", "who")),
    Row("absent group", "LeaveGroup", E.UNKNOWN_MEMBER_ID, leave("absent", "who")),
    Row("empty group", "LeaveGroup", E.UNKNOWN_MEMBER_ID, leave("offsets", "who")),
    Row("unknown member", "LeaveGroup", E.UNKNOWN_MEMBER_ID, leave("classic", "who")),
    Row("no member", "LeaveGroup", E.UNKNOWN_MEMBER_ID, leave("classic", "")),
    Row("another's instance", "LeaveGroup", E.FENCED_INSTANCE_ID, leave("static", "who", "i"), range(3, 6)),
    Row("an instance nobody has", "LeaveGroup", E.UNKNOWN_MEMBER_ID, leave("static", "", "j"), range(3, 6)),
    Row("two strangers", "LeaveGroup", (E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID),
        {"group_id": "static", "members": [{"member_id": "who"}, {"member_id": "who", "group_instance_id": "i"}]},
        range(3, 6)),
    Row("nobody", "LeaveGroup", E.NONE, {"group_id": "classic", "members": []}, range(3, 6)),
    Row("nobody, absent group", "LeaveGroup", E.NONE, {"group_id": "absent", "members": []},
        range(3, 6)),
    Row("a share group", "LeaveGroup", E.UNKNOWN_MEMBER_ID, leave("share", "member-of-share")),
    Row("a consumer group, unknown member", "LeaveGroup", E.UNKNOWN_MEMBER_ID, leave("consumer", "who")),
]  # fmt: skip

DESCRIBING = [
    Row("absent group", "DescribeGroups", {0: E.NONE, 6: E.GROUP_ID_NOT_FOUND}, {"groups": ["absent"]}),
    Row("consumer group", "DescribeGroups", {0: E.NONE, 6: E.GROUP_ID_NOT_FOUND}, {"groups": ["consumer"]}),
    Row("share group", "DescribeGroups", {0: E.NONE, 6: E.GROUP_ID_NOT_FOUND}, {"groups": ["share"]}),
    Row("classic group", "DescribeGroups", E.NONE, {"groups": ["classic", "offsets", "awaiting"]}),
    Row("static and connect", "DescribeGroups", E.NONE, {"groups": ["static", "connect"]}),
    Row("a group twice", "DescribeGroups", E.NONE, {"groups": ["offsets", "offsets"]}),
    Row("operations", "DescribeGroups", E.NONE,
        {"groups": ["offsets"], "include_authorized_operations": True}, range(3, 7)),
    Row("no group", "ConsumerGroupDescribe", E.INVALID_GROUP_ID, {"group_ids": [""]}),
    Row("absent group", "ConsumerGroupDescribe", E.GROUP_ID_NOT_FOUND, {"group_ids": ["absent"]}),
    Row("classic group", "ConsumerGroupDescribe", E.GROUP_ID_NOT_FOUND, {"group_ids": ["classic"]}),
    Row("share group", "ConsumerGroupDescribe", E.GROUP_ID_NOT_FOUND, {"group_ids": ["share"]}),
    Row("consumer groups", "ConsumerGroupDescribe", E.NONE, {"group_ids": ["consumer", "instance", "left"]}),
    Row("absent group", "ShareGroupDescribe", E.GROUP_ID_NOT_FOUND, {"group_ids": ["absent"]}),
    Row("consumer group", "ShareGroupDescribe", E.GROUP_ID_NOT_FOUND, {"group_ids": ["consumer"]}),
    Row("unknown type", "FindCoordinator", E.INVALID_REQUEST, {"key_type": 9, "key": "g"}, range(1, 4)),
    Row("unknown type", "FindCoordinator", E.INVALID_REQUEST,
        {"key_type": 9, "coordinator_keys": ["g"]}, range(4, 7)),
    Row("share, too early", "FindCoordinator", E.INVALID_REQUEST,
        {"key_type": 2, "coordinator_keys": ["g:AAAAAAAAAAAAAAAAAAAAAQ:0"]}, (4, 5)),
    Row("share, no key", "FindCoordinator", E.INVALID_REQUEST, {"key_type": 2, "coordinator_keys": ["g"]}, (6,)),
    Row("share, key with more", "FindCoordinator", E.INVALID_REQUEST,
        {"key_type": 2, "coordinator_keys": ["g:AAAAAAAAAAAAAAAAAAAAAQ:0:1"]}, (6,)),
    Row("share, group with colons", "FindCoordinator", E.NONE,
        {"key_type": 2, "coordinator_keys": ["a:group:AAAAAAAAAAAAAAAAAAAAAQ:0"]}, (6,)),
    Row("share, partition with a blank", "FindCoordinator", E.INVALID_REQUEST,
        {"key_type": 2, "coordinator_keys": ["g:AAAAAAAAAAAAAAAAAAAAAQ: 0"]}, (6,)),
    Row("share, negative partition", "FindCoordinator", E.NONE,
        {"key_type": 2, "coordinator_keys": ["g:AAAAAAAAAAAAAAAAAAAAAQ:-1"]}, (6,)),
    Row("share, no group", "FindCoordinator", E.INVALID_REQUEST,
        {"key_type": 2, "coordinator_keys": [":AAAAAAAAAAAAAAAAAAAAAQ:0"]}, (6,)),
    Row("no group", "FindCoordinator", E.NONE, {"key_type": 0, "coordinator_keys": [""]}, range(4, 7)),
    Row("no keys", "FindCoordinator", E.NONE, {"key_type": 0, "coordinator_keys": []}, range(4, 7)),
    Row("unknown state", "ListGroups", E.NONE, {"states_filter": ["Nowhere"]}, (4, 5)),
    Row("unknown type", "ListGroups", E.NONE, {"types_filter": ["nothing"]}, (5,)),
]  # fmt: skip

ROWS = [*JOINING, *SYNCING, *BEATING, *LEAVING, *DESCRIBING]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_row(scenes: Scenes, row: Row) -> None:
    scenes.play(row)


def test_a_static_member_is_replaced_and_the_old_one_fenced(scenes: Scenes) -> None:
    for scene in scenes:
        classic_group(scene, "replaced", group_instance_id="i")
    old = "member of replaced"
    scenes.ask("JoinGroup", 9, E.NONE, join("replaced", group_instance_id="i"))
    for version in range(3, 5):
        scenes.ask("Heartbeat", version, E.FENCED_INSTANCE_ID, beat("replaced", old, group_instance_id="i"))
        scenes.ask("Heartbeat", version, E.UNKNOWN_MEMBER_ID, beat("replaced", old))
    for version in range(7, 11):
        scenes.ask(
            "OffsetCommit",
            version,
            E.FENCED_INSTANCE_ID,
            committing("replaced", old, 1, group_instance_id="i"),
        )
    scenes.ask("SyncGroup", 3, E.FENCED_INSTANCE_ID, sync("replaced", old, group_instance_id="i"))
    scenes.ask("LeaveGroup", 5, E.FENCED_INSTANCE_ID, leave("replaced", old, "i"))
    scenes.ask("LeaveGroup", 5, E.NONE, leave("replaced", "", "i"))
    scenes.ask("DescribeGroups", 6, E.NONE, {"groups": ["replaced"]})


@pytest.mark.parametrize("version", range(10))
def test_a_classic_member_comes_and_goes(scenes: Scenes, version: int) -> None:
    group = f"came-v{version}"
    for scene in scenes:
        answer = scene.ask("JoinGroup", version, **joining(group))
        if version >= 4:
            assert answer.error_code == E.MEMBER_ID_REQUIRED
            scene.names["came"] = answer.member_id
        else:
            scene.names["came"] = answer.member_id
            scene.ask("LeaveGroup", 0, group_id=group, member_id=answer.member_id)
    scenes.ask("JoinGroup", version, E.NONE if version >= 4 else E.UNKNOWN_MEMBER_ID, join(group, "came"))
    scenes.ask("DescribeGroups", 5, E.NONE, {"groups": [group]})
    scenes.ask("Heartbeat", 2, E.NONE if version >= 4 else E.UNKNOWN_MEMBER_ID, beat(group, "came"))
    scenes.ask("LeaveGroup", 1, E.NONE if version >= 4 else E.UNKNOWN_MEMBER_ID, leave(group, "came"))
    scenes.ask("LeaveGroup", 1, E.UNKNOWN_MEMBER_ID, leave(group, "came"))
    scenes.ask("DeleteGroups", 2, E.NONE, {"groups_names": [group]})


def test_an_empty_group_becomes_one_of_the_other_kind(scenes: Scenes) -> None:
    for scene in scenes:
        commit(scene, "turns", "read")
    scenes.ask("ConsumerGroupHeartbeat", 1, E.GROUP_ID_NOT_FOUND, epochs("turns", "who", 1))
    scenes.ask("ConsumerGroupHeartbeat", 1, E.NONE, fresh("turns"))
    scenes.ask("DescribeGroups", 6, E.GROUP_ID_NOT_FOUND, {"groups": ["turns"]})
    scenes.ask("OffsetFetch", 9, E.NONE, fetching("turns", READ))
    scenes.ask("ConsumerGroupHeartbeat", 1, E.NONE, epochs("turns", "who", -1))
    scenes.ask("JoinGroup", 3, E.NONE, join("turns"))
    scenes.ask("ConsumerGroupDescribe", 1, E.GROUP_ID_NOT_FOUND, {"group_ids": ["turns"]})
    scenes.ask("OffsetFetch", 9, E.NONE, fetching("turns", READ))
