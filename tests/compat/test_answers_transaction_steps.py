"""Transactions step by step: ends that are repeated, epochs that rise, offsets that are pending, as in Kafka."""

import pytest

from ottla.wire.errors import ErrorCode
from tests.compat.asking_transactions import (
    WRITTEN,
    By,
    add,
    adding,
    begin,
    committing,
    ending,
    marking,
    producing,
    settle,
    starting,
    with_offsets,
)
from tests.compat.rows import Code, Scenes
from tests.compat.scenes import commit

E = ErrorCode


@pytest.fixture
def scenes(transaction_scenes: Scenes) -> Scenes:
    return transaction_scenes


def begun(scenes: Scenes, name: str, *partitions: int) -> By:
    """A transactional id of its own for a story, with partitions in its transaction."""
    for scene in scenes:
        begin(scene, name)
        if partitions:
            add(scene, name, *partitions)
    return By(name)


def settled(scenes: Scenes, name: str) -> None:
    for scene in scenes:
        settle(scene, name)


def shown(scenes: Scenes, name: str) -> None:
    """What is told of a transaction is the same on both sides."""
    fields = {"transactional_ids": [name]}
    scenes.ask("DescribeTransactions", 0, E.NONE, fields, "transaction_start_time_ms")


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "aborted"])
@pytest.mark.parametrize("version", range(5))
def test_an_end_is_repeated_before_the_epoch_rises(scenes: Scenes, version: int, committed: bool) -> None:
    by = begun(scenes, f"ends-v{version}-{committed}", 1)
    scenes.ask("EndTxn", version, E.NONE, ending(by, committed=committed))
    settled(scenes, by.name)
    scenes.ask("EndTxn", version, E.NONE, ending(by, committed=committed))
    scenes.ask("EndTxn", version, E.INVALID_TXN_STATE, ending(by, committed=not committed))
    shown(scenes, by.name)
    scenes.ask("AddPartitionsToTxn", version, E.NONE, adding(by, WRITTEN))
    scenes.ask("EndTxn", version, E.NONE, ending(by, committed=not committed))
    settled(scenes, by.name)
    shown(scenes, by.name)


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "aborted"])
def test_an_end_is_repeated_after_the_epoch_has_risen(scenes: Scenes, committed: bool) -> None:
    by = begun(scenes, f"ends-v5-{committed}", 1)
    scenes.ask("EndTxn", 5, E.NONE, ending(by, committed=committed))
    settled(scenes, by.name)
    scenes.ask("EndTxn", 5, E.NONE, ending(by, committed=committed))  # the answer was lost
    scenes.ask("EndTxn", 5, E.INVALID_TXN_STATE, ending(by, committed=not committed))
    shown(scenes, by.name)
    scenes.ask("AddPartitionsToTxn", 3, E.PRODUCER_FENCED, adding(by, WRITTEN))
    scenes.ask("Produce", 12, E.INVALID_PRODUCER_EPOCH, producing(by))
    risen = By(by.name, epoch=1)
    scenes.ask("EndTxn", 5, E.INVALID_TXN_STATE, ending(risen, committed=True))
    scenes.ask("EndTxn", 5, E.NONE, ending(risen, committed=False))  # aborts nothing, and has the epoch rise
    settled(scenes, by.name)
    shown(scenes, by.name)
    last = By(by.name, epoch=2)
    scenes.ask("Produce", 12, E.NONE, producing(last, partition=1))
    scenes.ask("EndTxn", 5, E.PRODUCER_FENCED, ending(By(by.name, epoch=1), committed=committed))
    scenes.ask("EndTxn", 5, E.PRODUCER_FENCED, ending(by, committed=committed))
    scenes.ask("EndTxn", 5, E.NONE, ending(last, committed=committed))
    settled(scenes, by.name)
    shown(scenes, by.name)


@pytest.mark.parametrize("version", range(6))
def test_a_new_producer_fences_the_old_one(scenes: Scenes, version: int) -> None:
    by = begun(scenes, f"fences-v{version}", 1)
    fields = starting(transactional_id=by.name)
    scenes.ask("InitProducerId", version, E.CONCURRENT_TRANSACTIONS, fields)
    settled(scenes, by.name)
    shown(scenes, by.name)
    scenes.ask("InitProducerId", version, E.NONE, fields)
    scenes.ask("AddPartitionsToTxn", 1, E.INVALID_PRODUCER_EPOCH, adding(by, WRITTEN))
    scenes.ask("AddPartitionsToTxn", 3, E.PRODUCER_FENCED, adding(by, WRITTEN))
    scenes.ask("AddOffsetsToTxn", 3, E.PRODUCER_FENCED, with_offsets(by))
    scenes.ask("EndTxn", 4, E.PRODUCER_FENCED, ending(by))
    scenes.ask("TxnOffsetCommit", 4, E.INVALID_PRODUCER_EPOCH, committing(by, "t-offsets"))
    scenes.ask("Produce", 11, E.INVALID_PRODUCER_EPOCH, producing(by, partition=1))
    scenes.ask("Produce", 12, E.INVALID_PRODUCER_EPOCH, producing(by, partition=1))
    shown(scenes, by.name)


@pytest.mark.parametrize("version", range(3, 6))
def test_a_producer_recovers_its_epoch(scenes: Scenes, version: int) -> None:
    """KIP-360: one that says which epoch it has is given the next, and again if the answer was lost."""
    fenced = E.PRODUCER_FENCED if version >= 4 else E.INVALID_PRODUCER_EPOCH
    by = begun(scenes, f"recovers-v{version}")
    scenes.ask("InitProducerId", version, E.NONE, starting(by))
    scenes.ask("InitProducerId", version, E.NONE, starting(by))
    scenes.ask("InitProducerId", version, E.NONE, starting(By(by.name, epoch=1)))
    scenes.ask("InitProducerId", version, fenced, starting(by))
    scenes.ask("InitProducerId", version, fenced, starting(By(by.name, epoch=5)))
    scenes.ask("InitProducerId", version, E.NONE, starting(transactional_id=by.name))
    scenes.ask("InitProducerId", version, fenced, starting(By(by.name, epoch=2)))
    scenes.ask("InitProducerId", version, fenced, starting(By(by.name, epoch=0, producer=77)))
    # An open transaction is aborted whatever the epoch, and only then is the epoch looked at.
    for scene in scenes:
        scene.names[f"epoch of {by.name}"] = 3
    scenes.ask("AddPartitionsToTxn", 3, E.NONE, adding(by, WRITTEN))
    scenes.ask("InitProducerId", version, E.CONCURRENT_TRANSACTIONS, starting(By(by.name, epoch=-1)))
    settled(scenes, by.name)
    shown(scenes, by.name)
    scenes.ask("InitProducerId", version, fenced, starting(By(by.name, epoch=-1)))
    scenes.ask("InitProducerId", version, E.NONE, starting(by))
    shown(scenes, by.name)


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "aborted"])
def test_offsets_of_an_open_transaction_are_unstable(scenes: Scenes, committed: bool) -> None:
    group = f"unstable-{committed}"
    by = begun(scenes, f"unstable-{committed}")
    for scene in scenes:
        commit(scene, group, "read", offset=5)
        commit(scene, group, "written", offset=5)

    def fetching(version: int, code: Code, *, stable: bool) -> None:
        places = [{"name": topic, "partition_indexes": [0]} for topic in ("read", "written")]
        more = {"require_stable": True} if stable else {}
        fields = (
            {"group_id": group, "topics": places}
            if version < 8
            else {"groups": [{"group_id": group, "topics": places}]}
        )
        scenes.ask("OffsetFetch", version, code, fields | more)

    scenes.ask("AddOffsetsToTxn", 3, E.NONE, with_offsets(by, group))
    scenes.ask("TxnOffsetCommit", 3, E.NONE, committing(by, group))
    for version in (7, 8, 9):
        fetching(version, E.UNSTABLE_OFFSET_COMMIT, stable=True)
        fetching(version, E.NONE, stable=False)
    fetching(6, E.NONE, stable=False)
    scenes.ask("EndTxn", 4, E.NONE, ending(by, committed=committed))
    settled(scenes, by.name)
    for version in (6, 7, 8, 9):
        fetching(version, E.NONE, stable=version > 6)


def test_offsets_of_an_open_transaction_and_their_group(scenes: Scenes) -> None:
    """A group with nothing but pending offsets can be deleted, and they with it."""
    by = begun(scenes, "holds")
    scenes.ask("TxnOffsetCommit", 5, E.NONE, committing(by, "held"))
    scenes.ask("DescribeGroups", 5, E.NONE, {"groups": ["held"]})
    scenes.ask(
        "OffsetDelete",
        0,
        E.NONE,
        {"group_id": "held", "topics": [{"name": "read", "partitions": [{"partition_index": 0}]}]},
    )
    scenes.ask("DeleteGroups", 2, E.NONE, {"groups_names": ["held"]})
    scenes.ask("EndTxn", 5, E.NONE, ending(by))
    settled(scenes, by.name)
    scenes.ask("OffsetFetch", 5, E.NONE, {"group_id": "held", "topics": None})


@pytest.mark.parametrize("version", [1, 2])
def test_markers_of_old_coordinators_and_producers(scenes: Scenes, version: int) -> None:
    """A partition takes no marker of an older coordinator, nor of an older epoch of the producer."""
    by = begun(scenes, f"marked-v{version}")
    for scene in scenes:
        begin(scene, by.name)
    scenes.ask("Produce", 12, E.NONE, producing(by, partition=2))
    scenes.ask("WriteTxnMarkers", version, E.INVALID_PRODUCER_EPOCH, marking(By(by.name, epoch=-1), epoch=7))
    scenes.ask("WriteTxnMarkers", version, E.NONE, marking(by, epoch=7))
    scenes.ask("WriteTxnMarkers", version, E.TRANSACTION_COORDINATOR_FENCED, marking(by, epoch=6))
    scenes.ask("WriteTxnMarkers", version, E.NONE, marking(by, epoch=7))
    scenes.ask(
        "DescribeProducers",
        0,
        E.NONE,
        {"topics": [{"name": "written", "partition_indexes": [2]}]},
        "last_timestamp",
        "active_producers",
    )


def test_a_producer_keeps_to_its_transaction(scenes: Scenes) -> None:
    by = begun(scenes, "keeps", 0)
    scenes.ask("Produce", 11, E.NONE, producing(by))
    scenes.ask(
        "Produce", 11, E.INVALID_TXN_STATE, producing(by, transactional=False, sequence=1), "error_message"
    )
    scenes.ask("Produce", 11, E.TRANSACTION_ABORTABLE, producing(by, partition=1))
    scenes.ask("Produce", 12, E.NONE, producing(by, partition=1))
    shown(scenes, by.name)
