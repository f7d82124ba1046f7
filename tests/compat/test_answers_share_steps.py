"""Share groups step by step: state that is fenced, records that are handed out and acknowledged, as in Kafka."""

from typing import Any

import pytest

from ottla.wire.errors import ErrorCode
from tests.compat.asking_share import (
    ACCEPT,
    REJECT,
    RELEASE,
    RENEW,
    acknowledging,
    batch,
    described,
    fetching,
    forgotten,
    offsets,
    reading,
    state,
)
from tests.compat.rows import UNKNOWN_ID, Scenes

E = ErrorCode


@pytest.fixture
def scenes(share_scenes: Scenes) -> Scenes:
    return share_scenes


AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


def held(first: int, last: int, state: int, count: int = 1) -> dict[str, int]:
    return {"first_offset": first, "last_offset": last, "delivery_state": state, "delivery_count": count}


@pytest.mark.parametrize("version", [0, 1])
def test_the_state_of_a_share_partition_is_fenced(scenes: Scenes, version: int) -> None:
    group = f"state-v{version}"

    def initialize(code: ErrorCode, epoch: int, start: int = 5) -> None:
        scenes.ask("InitializeShareGroupState", 0, code, state(group, state_epoch=epoch, start_offset=start))

    def write(code: ErrorCode, epoch: int, leader: int, start: int, *batches: dict[str, int]) -> None:
        more = {"delivery_complete_count": 2} if version else {}
        fields = {
            "state_epoch": epoch,
            "leader_epoch": leader,
            "start_offset": start,
            "state_batches": [*batches],
        }
        scenes.ask("WriteShareGroupState", version, code, state(group, **fields, **more))

    def read(code: ErrorCode, leader: int) -> None:
        scenes.ask("ReadShareGroupState", 0, code, state(group, leader_epoch=leader))
        scenes.ask("ReadShareGroupStateSummary", version, E.NONE, state(group, leader_epoch=leader))

    initialize(E.NONE, 2)
    initialize(E.FENCED_STATE_EPOCH, 1)
    initialize(E.NONE, 2, 7)
    read(E.NONE, 3)
    read(E.FENCED_LEADER_EPOCH, 2)
    write(E.FENCED_LEADER_EPOCH, 2, 2, 7)
    write(E.FENCED_STATE_EPOCH, 1, 3, 7)
    write(E.FENCED_LEADER_EPOCH, 1, 2, 7)
    write(E.NONE, 2, 3, 7, held(7, 9, ACKNOWLEDGED), held(10, 19, AVAILABLE))
    read(E.NONE, 3)
    write(E.NONE, 2, 3, -1, held(12, 13, ACKNOWLEDGED, 2), held(20, 20, ARCHIVED, 5))
    read(E.NONE, 3)
    write(E.NONE, 2, 3, 10)
    read(E.NONE, -1)
    read(E.NONE, 4)
    write(E.FENCED_LEADER_EPOCH, 2, 3, 11)
    initialize(E.NONE, 3, -1)
    read(E.NONE, 4)
    scenes.ask("DeleteShareGroupState", 0, E.NONE, state(group))
    scenes.ask("DeleteShareGroupState", 0, E.NONE, state(group))
    scenes.ask("ReadShareGroupState", 0, E.INVALID_REQUEST, state(group, leader_epoch=4))
    initialize(E.NONE, 0, 0)


@pytest.mark.parametrize("version", [1, 2])
def test_records_are_handed_out_acknowledged_and_handed_out_again(scenes: Scenes, version: int) -> None:
    group = f"delivers-v{version}"
    for scene in scenes:
        reading(scene, group)

    def fetch(code: Any, epoch: int, *batches: dict[str, Any], member: str = "one", **more: Any) -> None:
        asked = fetching(group, member, epoch, batches=list(batches), **more)
        scenes.ask("ShareFetch", version, code, asked)

    def acknowledge(
        code: Any, epoch: int, *batches: dict[str, Any], member: str = "one", **more: Any
    ) -> None:
        scenes.ask("ShareAcknowledge", version, code, acknowledging(group, member, epoch, *batches, **more))

    fetch(E.NONE, 0)
    fetch(E.INVALID_SHARE_SESSION_EPOCH, 2)
    fetch(E.INVALID_SHARE_SESSION_EPOCH, -2)
    acknowledge(E.INVALID_SHARE_SESSION_EPOCH, 0)
    acknowledge(E.INVALID_SHARE_SESSION_EPOCH, 3)
    acknowledge(E.NONE, 1, batch(0, 2, ACCEPT))
    acknowledge(E.NONE, 2, batch(0, 2, ACCEPT))  # what lies below the start is done, whoever says so
    acknowledge(E.INVALID_REQUEST, 3, batch(5, 4, ACCEPT))
    acknowledge(E.INVALID_REQUEST, 4, batch(3, 4, ACCEPT, ACCEPT, ACCEPT))
    acknowledge(E.INVALID_REQUEST, 5, batch(3, 4))
    acknowledge(E.INVALID_REQUEST, 6, batch(3, 4, 9))
    acknowledge(E.INVALID_REQUEST, 7, batch(3, 4, -1))
    acknowledge(E.INVALID_REQUEST, 8, batch(3, 5, ACCEPT), batch(4, 6, ACCEPT))
    acknowledge(E.INVALID_REQUEST, 9, batch(6, 7, ACCEPT), batch(3, 4, ACCEPT))
    acknowledge(E.INVALID_REQUEST, 10, batch(3, 4, RENEW))
    acknowledge(E.INVALID_REQUEST, 11, batch(50, 60, ACCEPT))
    acknowledge(E.INVALID_REQUEST, 12, batch(3, 50, ACCEPT))
    acknowledge(E.UNKNOWN_TOPIC_ID, 13, batch(3, 3, ACCEPT), topic=UNKNOWN_ID)
    acknowledge(E.UNKNOWN_TOPIC_OR_PARTITION, 14, batch(3, 3, ACCEPT), partition=9)
    acknowledge(E.UNKNOWN_TOPIC_OR_PARTITION, 15, batch(3, 3, ACCEPT), partition=1)
    acknowledge(E.NONE, 16)
    acknowledge(E.NONE, 17, topic=None)
    # Another member can neither acknowledge what it was not given, nor be given what is held.
    fetch(E.NONE, 0, member="two", wait_ms=0)
    acknowledge(E.INVALID_RECORD_STATE, 1, batch(3, 3, ACCEPT), member="two")
    acknowledge(E.NONE, 18, batch(3, 5, RELEASE), batch(6, 7, 0, REJECT))
    fetch(E.NONE, 2, member="two")
    acknowledge(E.INVALID_RECORD_STATE, 19, batch(3, 5, ACCEPT))
    acknowledge(E.NONE, 3, batch(4, 5, ACCEPT), member="two")
    acknowledge(E.NONE, 4, batch(3, 3, ACCEPT), member="two")
    fetch(E.NONE, 20, batch(8, 8, ACCEPT), wait_ms=0)
    fetch(E.INVALID_REQUEST, 21, batch(9, 9, 9), wait_ms=0)
    fetch(E.UNKNOWN_TOPIC_OR_PARTITION, 22, partition=9, wait_ms=0)
    fetch(E.UNKNOWN_TOPIC_OR_PARTITION, 23, topic=None, wait_ms=0)
    fetch(E.NONE, -1, topic=None, wait_ms=0)
    fetch(E.SHARE_SESSION_NOT_FOUND, 25)
    acknowledge(E.SHARE_SESSION_NOT_FOUND, -1)
    # What a session held when it ended is handed out to whoever asks next.
    fetch(E.NONE, 5, member="two")
    acknowledge(E.NONE, -1, member="two")
    fetch(E.NONE, 0, member="three")
    acknowledge(E.NONE, 1, batch(9, 9, ACCEPT), member="three")
    acknowledge(E.NONE, -1, member="three")
    for scene in scenes:
        scene.do("ShareGroupHeartbeat", 1, group_id=group, member_id="one", member_epoch=-1)
    scenes.ask("DescribeShareGroupOffsets", 1, E.NONE, described(group, "shared"))


def test_locks_are_renewed(scenes: Scenes) -> None:
    for scene in scenes:
        reading(scene, "renews")
    quiet = {"is_renew_ack": True, "max_bytes": 0, "min_bytes": 0, "max_records": 0, "wait_ms": 0}
    scenes.ask("ShareFetch", 2, E.NONE, fetching("renews", "one", 0))
    scenes.ask("ShareFetch", 2, E.NONE, fetching("renews", "one", 1, batches=[batch(0, 4, RENEW)], **quiet))
    scenes.ask(
        "ShareFetch",
        2,
        E.INVALID_REQUEST,
        fetching("renews", "one", 2, batches=[batch(50, 51, RENEW)], **quiet),
    )
    renewed = acknowledging("renews", "one", 3, batch(0, 1, RENEW), batch(2, 3, ACCEPT), is_renew_ack=True)
    scenes.ask("ShareAcknowledge", 2, E.NONE, renewed)
    scenes.ask(
        "ShareAcknowledge", 2, E.INVALID_REQUEST, acknowledging("renews", "one", 4, batch(0, 1, RENEW))
    )
    scenes.ask(
        "ShareAcknowledge", 1, E.INVALID_REQUEST, acknowledging("renews", "one", 5, batch(0, 1, RENEW))
    )
    scenes.ask(
        "ShareAcknowledge",
        2,
        E.INVALID_RECORD_STATE,
        acknowledging("renews", "one", 6, batch(2, 3, RENEW), is_renew_ack=True),
    )
    scenes.ask("ShareFetch", 2, E.NONE, fetching("renews", "one", -1, topic=None, wait_ms=0))


def test_the_offsets_of_an_empty_share_group_are_moved_and_forgotten(scenes: Scenes) -> None:
    for scene in scenes:
        reading(scene, "moves")
    scenes.ask("AlterShareGroupOffsets", 0, E.NON_EMPTY_GROUP, offsets("moves"))
    scenes.ask("DeleteGroups", 2, E.NON_EMPTY_GROUP, {"groups_names": ["moves"]})
    for scene in scenes:
        scene.do("ShareGroupHeartbeat", 1, group_id="moves", member_id="one", member_epoch=-1)
    scenes.ask("AlterShareGroupOffsets", 0, E.NONE, offsets("moves"))
    scenes.ask("AlterShareGroupOffsets", 0, E.NONE, offsets("moves", "unshared", 1))
    scenes.ask("DescribeShareGroupOffsets", 1, E.NONE, described("moves"))
    scenes.ask(
        "DeleteShareGroupOffsets", 0, E.UNKNOWN_TOPIC_OR_PARTITION, forgotten("moves", "unshared", "absent")
    )
    scenes.ask("DescribeShareGroupOffsets", 1, E.NONE, described("moves"))
    scenes.ask("ShareGroupDescribe", 1, E.NONE, {"group_ids": ["moves"]})
    scenes.ask("DeleteGroups", 2, E.NONE, {"groups_names": ["moves"]})
    scenes.ask("DeleteGroups", 2, E.GROUP_ID_NOT_FOUND, {"groups_names": ["moves"]})
    scenes.ask("ShareGroupDescribe", 1, E.GROUP_ID_NOT_FOUND, {"group_ids": ["moves"]})
    # To move the offsets of a group that is not there makes it.
    scenes.ask("AlterShareGroupOffsets", 0, E.NONE, offsets("moves"))
    scenes.ask("ShareGroupDescribe", 1, E.NONE, {"group_ids": ["moves"]})
