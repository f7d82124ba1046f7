"""Transactions: what is refused, with which code, at which version, as Kafka answers it."""

import pytest

from ottla.wire.errors import ErrorCode
from tests.compat.asking_transactions import (
    WRITTEN,
    By,
    adding,
    committing,
    ending,
    marking,
    producing,
    starting,
    with_offsets,
)
from tests.compat.rows import Row, Scenes

E = ErrorCode


@pytest.fixture
def scenes(transaction_scenes: Scenes) -> Scenes:
    return transaction_scenes


FENCED_ADD = {0: E.INVALID_PRODUCER_EPOCH, 2: E.PRODUCER_FENCED}
FENCED_INIT = {0: E.INVALID_PRODUCER_EPOCH, 4: E.PRODUCER_FENCED}
NOBODY = By("nobody", producer=77)
OPEN = By("open")

STARTING = [
    Row("no id", "InitProducerId", E.INVALID_REQUEST, starting(transactional_id="")),
    Row("no time", "InitProducerId", E.INVALID_TRANSACTION_TIMEOUT, starting(transaction_timeout_ms=0)),
    Row("negative time", "InitProducerId", E.INVALID_TRANSACTION_TIMEOUT, starting(transaction_timeout_ms=-1)),
    Row("too much time", "InitProducerId", E.INVALID_TRANSACTION_TIMEOUT, starting(transaction_timeout_ms=900_001)),
    Row("producer without epoch", "InitProducerId", E.INVALID_REQUEST, starting(producer_id=7), range(3, 6)),
    Row("epoch without producer", "InitProducerId", E.INVALID_REQUEST, starting(producer_epoch=7), range(3, 6)),
    Row("epoch ahead", "InitProducerId", FENCED_INIT, starting(By("empty", epoch=1)), range(3, 6)),
    Row("epoch behind", "InitProducerId", FENCED_INIT, starting(By("twice", epoch=-2)), range(3, 6)),
    Row("another producer", "InitProducerId", FENCED_INIT, starting(By("empty", producer=77)), range(3, 6)),
    Row("no id, no time", "InitProducerId", E.NONE,
        {"transactional_id": None, "transaction_timeout_ms": 0}, hide=("producer_id",)),
]  # fmt: skip

ADDING = [
    Row("no id", "AddPartitionsToTxn", E.INVALID_REQUEST, adding(By("", producer=77), WRITTEN)),
    Row("unknown id", "AddPartitionsToTxn", E.INVALID_PRODUCER_ID_MAPPING, adding(NOBODY, WRITTEN)),
    Row("another producer", "AddPartitionsToTxn", E.INVALID_PRODUCER_ID_MAPPING,
        adding(By("open", producer=77), WRITTEN)),
    Row("epoch ahead", "AddPartitionsToTxn", FENCED_ADD, adding(By("open", epoch=1), WRITTEN)),
    Row("epoch behind", "AddPartitionsToTxn", FENCED_ADD, adding(By("open", epoch=-1), WRITTEN)),
    Row("what is in it", "AddPartitionsToTxn", E.NONE, adding(By("open"), WRITTEN)),
    Row("nothing", "AddPartitionsToTxn", E.NONE, adding(By("open"))),
    Row("absent topic", "AddPartitionsToTxn", E.UNKNOWN_TOPIC_OR_PARTITION, adding(By("open"), ("absent", [0]))),
    Row("absent partition", "AddPartitionsToTxn", (E.OPERATION_NOT_ATTEMPTED, E.UNKNOWN_TOPIC_OR_PARTITION),
        adding(By("open"), ("written", [1, 9]))),
    Row("absent topic among others", "AddPartitionsToTxn",
        (E.UNKNOWN_TOPIC_OR_PARTITION, E.OPERATION_NOT_ATTEMPTED), adding(By("open"), WRITTEN, ("absent", [0]))),
    Row("to verify, there", "AddPartitionsToTxn", E.NONE, adding(By("open"), WRITTEN, verify=True), (4, 5)),
    Row("to verify, not there", "AddPartitionsToTxn", E.TRANSACTION_ABORTABLE,
        adding(By("open"), ("written", [1]), verify=True), (4, 5)),
    Row("to verify, some there", "AddPartitionsToTxn", E.TRANSACTION_ABORTABLE,
        adding(By("open"), ("written", [0, 1]), verify=True), (4, 5)),
    Row("to verify, nothing open", "AddPartitionsToTxn", E.TRANSACTION_ABORTABLE,
        adding(By("empty"), WRITTEN, verify=True), (4, 5)),
    Row("to verify, ended", "AddPartitionsToTxn", E.TRANSACTION_ABORTABLE,
        adding(By("committed"), WRITTEN, verify=True), (4, 5)),
    Row("to verify, unknown id", "AddPartitionsToTxn", E.INVALID_PRODUCER_ID_MAPPING,
        adding(NOBODY, WRITTEN, verify=True), (4, 5)),
    Row("to verify, epoch behind", "AddPartitionsToTxn", E.PRODUCER_FENCED,
        adding(By("open", epoch=-1), WRITTEN, verify=True), (4, 5)),
    Row("no id", "AddOffsetsToTxn", E.INVALID_REQUEST, with_offsets(By("", producer=77))),
    Row("unknown id", "AddOffsetsToTxn", E.INVALID_PRODUCER_ID_MAPPING, with_offsets(NOBODY)),
    Row("another producer", "AddOffsetsToTxn", E.INVALID_PRODUCER_ID_MAPPING,
        with_offsets(By("open", producer=77))),
    Row("epoch ahead", "AddOffsetsToTxn", FENCED_ADD, with_offsets(By("open", epoch=1))),
    Row("epoch behind", "AddOffsetsToTxn", FENCED_ADD, with_offsets(By("open", epoch=-1))),
]  # fmt: skip

ENDING = [
    Row("no id", "EndTxn", E.INVALID_REQUEST, ending(By("", producer=77))),
    Row("unknown id", "EndTxn", E.INVALID_PRODUCER_ID_MAPPING, ending(NOBODY)),
    Row("another producer", "EndTxn", E.INVALID_PRODUCER_ID_MAPPING, ending(By("open", producer=77))),
    Row("epoch ahead", "EndTxn", FENCED_ADD, ending(By("open", epoch=1))),
    Row("epoch behind", "EndTxn", FENCED_ADD, ending(By("open", epoch=-1))),
    Row("nothing open", "EndTxn", E.INVALID_TXN_STATE, ending(By("empty"))),
    Row("nothing open, aborted", "EndTxn", E.INVALID_TXN_STATE, ending(By("empty"), committed=False), range(5)),
    Row("again", "EndTxn", E.NONE, ending(By("committed")), range(5)),
    Row("again, aborted", "EndTxn", E.NONE, ending(By("aborted"), committed=False), range(5)),
    Row("the other way", "EndTxn", E.INVALID_TXN_STATE, ending(By("committed"), committed=False), range(5)),
    Row("the other way, aborted", "EndTxn", E.INVALID_TXN_STATE, ending(By("aborted")), range(5)),
]  # fmt: skip

COMMITTING = [
    Row("no group", "TxnOffsetCommit", E.INVALID_GROUP_ID, committing(OPEN, "")),
    Row("no id", "TxnOffsetCommit", E.INVALID_REQUEST, committing(By("", producer=77), "t-offsets")),
    Row("unknown id", "TxnOffsetCommit", E.INVALID_PRODUCER_ID_MAPPING, committing(NOBODY, "t-offsets")),
    Row("another producer", "TxnOffsetCommit", E.INVALID_PRODUCER_ID_MAPPING,
        committing(By("open", producer=77), "t-offsets")),
    Row("epoch ahead", "TxnOffsetCommit", E.INVALID_PRODUCER_EPOCH, committing(By("open", epoch=1), "t-offsets")),
    Row("epoch behind", "TxnOffsetCommit", E.INVALID_PRODUCER_EPOCH, committing(By("open", epoch=-1), "t-offsets")),
    Row("not added", "TxnOffsetCommit", {0: E.INVALID_TXN_STATE, 4: E.TRANSACTION_ABORTABLE},
        committing(OPEN, "t-offsets"), range(5)),
    Row("no topics", "TxnOffsetCommit", E.NONE,
        lambda scene, version: {**OPEN.fields(scene), "group_id": "t-offsets", "topics": []}, range(6)),
    Row("absent topic", "TxnOffsetCommit", E.UNKNOWN_TOPIC_OR_PARTITION,
        committing(OPEN, "t-offsets", topic="absent"), range(6)),
    Row("absent partition", "TxnOffsetCommit", E.UNKNOWN_TOPIC_OR_PARTITION,
        committing(OPEN, "t-offsets", partition=9), range(6)),
]  # fmt: skip

# The group is looked at once its offsets are in the transaction, which is the broker's own work from v5 on.
IN_GROUPS = [
    Row("long note", "TxnOffsetCommit", E.OFFSET_METADATA_TOO_LARGE,
        committing(OPEN, "t-offsets", note="n" * 5000), (5,)),
    Row("unknown member", "TxnOffsetCommit", E.UNKNOWN_MEMBER_ID, committing(OPEN, "t-classic", "who", 1), (5,)),
    Row("generation behind", "TxnOffsetCommit", E.ILLEGAL_GENERATION,
        committing(OPEN, "t-classic", "member of t-classic", 0), (5,)),
    Row("generation ahead", "TxnOffsetCommit", E.ILLEGAL_GENERATION,
        committing(OPEN, "t-classic", "member of t-classic", 2), (5,)),
    Row("another's instance", "TxnOffsetCommit", E.FENCED_INSTANCE_ID,
        committing(OPEN, "t-static", "who", 1, group_instance_id="i"), (5,)),
    Row("an instance nobody has", "TxnOffsetCommit", E.UNKNOWN_MEMBER_ID,
        committing(OPEN, "t-static", "member of t-static", 1, group_instance_id="j"), (5,)),
    Row("while awaiting", "TxnOffsetCommit", E.NONE, committing(OPEN, "t-awaiting", "member of t-awaiting", 1), (5,)),
    Row("no member", "TxnOffsetCommit", E.NONE, committing(OPEN, "t-classic"), (5,)),
    Row("absent group", "TxnOffsetCommit", E.ILLEGAL_GENERATION, committing(OPEN, "absent", "who", 1), (5,)),
    Row("consumer group, unknown member", "TxnOffsetCommit", E.UNKNOWN_MEMBER_ID,
        committing(OPEN, "t-consumer", "who", 1), (5,)),
    Row("consumer group, epoch behind", "TxnOffsetCommit", E.ILLEGAL_GENERATION,
        committing(OPEN, "t-consumer", "member-of-t-consumer", 0), (5,)),
    Row("consumer group, epoch ahead", "TxnOffsetCommit", E.ILLEGAL_GENERATION,
        committing(OPEN, "t-consumer", "member-of-t-consumer", 99), (5,)),
    Row("consumer group, no member", "TxnOffsetCommit", E.NONE, committing(OPEN, "t-consumer"), (5,)),
    Row("share group", "TxnOffsetCommit", E.GROUP_ID_NOT_FOUND, committing(OPEN, "t-share"), (5,)),
]  # fmt: skip

PRODUCING = [
    Row("not added", "Produce", {3: E.INVALID_TXN_STATE, 11: E.TRANSACTION_ABORTABLE},
        producing(OPEN, partition=1), range(3, 12)),
    Row("nothing open", "Produce", {3: E.INVALID_TXN_STATE, 11: E.TRANSACTION_ABORTABLE},
        producing(By("empty")), range(3, 12)),
    Row("ended", "Produce", {3: E.INVALID_TXN_STATE, 11: E.TRANSACTION_ABORTABLE},
        producing(By("committed")), range(3, 12)),
    Row("unknown id", "Produce", E.INVALID_PRODUCER_ID_MAPPING, producing(NOBODY), range(3, 14)),
    Row("another producer", "Produce", E.INVALID_PRODUCER_ID_MAPPING,
        producing(By("open", producer=77)), range(3, 14)),
    Row("epoch ahead", "Produce", E.INVALID_PRODUCER_EPOCH, producing(By("open", epoch=1)), range(3, 14)),
    Row("epoch behind", "Produce", E.INVALID_PRODUCER_EPOCH, producing(By("open", epoch=-1)), range(3, 14)),
    Row("no id", "Produce", E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        producing(OPEN, partition=1, named=False), range(3, 14)),
    Row("absent topic", "Produce", {3: E.UNKNOWN_TOPIC_OR_PARTITION, 13: E.UNKNOWN_TOPIC_ID},
        producing(OPEN, topic="absent"), range(3, 14)),
]  # fmt: skip

INTERNAL = [
    Row("transactional", "Produce", E.INVALID_TOPIC_EXCEPTION,
        producing(OPEN, topic="__consumer_offsets", transactional=True), (12, 13)),
    *(Row(topic, "Produce", E.INVALID_TOPIC_EXCEPTION,
          producing(By("none", producer=-1, epoch=-1), topic=topic, transactional=False, named=False, sequence=-1),
          range(3, 14))
      for topic in ("__consumer_offsets", "__transaction_state", "__share_group_state")),
]  # fmt: skip

MARKING = [
    Row("nothing", "WriteTxnMarkers", E.NONE, {"markers": []}),
    Row("absent topic", "WriteTxnMarkers", E.UNKNOWN_TOPIC_OR_PARTITION, marking(OPEN, topic="absent")),
    Row("absent partition", "WriteTxnMarkers", E.UNKNOWN_TOPIC_OR_PARTITION, marking(OPEN, partition=9)),
    Row("no topics", "WriteTxnMarkers", E.NONE,
        {"markers": [{"producer_id": 7, "producer_epoch": 0, "transaction_result": True, "topics": [],
                      "coordinator_epoch": 0}]}),
]  # fmt: skip

LOOKING = [
    Row("no id", "DescribeTransactions", E.INVALID_REQUEST, {"transactional_ids": [""]}),
    Row("unknown id", "DescribeTransactions", E.TRANSACTIONAL_ID_NOT_FOUND, {"transactional_ids": ["nobody"]}),
    Row("all states", "DescribeTransactions", E.NONE,
        {"transactional_ids": ["empty", "open", "committed", "aborted"]}, hide=("transaction_start_time_ms",)),
    Row("nothing", "DescribeTransactions", E.NONE, {"transactional_ids": []}),
    Row("everything", "ListTransactions", E.NONE, {}),
    Row("by state", "ListTransactions", E.NONE, {"state_filters": ["Ongoing", "CompleteCommit"]}),
    Row("unknown state", "ListTransactions", E.NONE, {"state_filters": ["Nowhere"]}),
    Row("unknown state among others", "ListTransactions", E.NONE, {"state_filters": ["Nowhere", "Ongoing", "ongoing"]}),
    Row("by producer", "ListTransactions", E.NONE,
        lambda scene, version: {"producer_id_filters": [scene["producer of open"], 77]}),
    Row("unknown producer", "ListTransactions", E.NONE, {"producer_id_filters": [77]}),
    Row("by age", "ListTransactions", E.NONE, {"duration_filter": 0}, (1, 2)),
    Row("by great age", "ListTransactions", E.NONE, {"duration_filter": 10**9}, (1, 2)),
    Row("by pattern", "ListTransactions", E.NONE, {"transactional_id_pattern": "co.*|op"}, (2,)),
    Row("by no pattern", "ListTransactions", E.NONE, {"transactional_id_pattern": ""}, (2,)),
    Row("bad pattern", "ListTransactions", E.INVALID_REGULAR_EXPRESSION, {"transactional_id_pattern": "(ab"}, (2,)),
    Row("no id", "FindCoordinator", E.NONE, {"key_type": 1, "coordinator_keys": [""]}, range(4, 7)),
]  # fmt: skip

ROWS = [*STARTING, *ADDING, *ENDING, *COMMITTING, *IN_GROUPS, *PRODUCING, *INTERNAL, *MARKING, *LOOKING]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_row(scenes: Scenes, row: Row) -> None:
    scenes.play(row)
