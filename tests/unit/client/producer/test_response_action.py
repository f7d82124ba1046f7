"""What each answer of a coordinator means for each errand."""

import pytest

from ottla.client.errors import CommitFailed, Fenced
from ottla.client.producer.response_action import CoordinatorCall, ResponseAction, action_for, error_for
from ottla.client.producer.sequence import ProducerId
from ottla.client.producer.transaction_offsets import GroupMember, OffsetsToCommit
from ottla.client.record import OffsetAndMetadata, TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitResponse

COORDINATED = [call for call in CoordinatorCall if call is not CoordinatorCall.FIND]


@pytest.mark.parametrize("call", COORDINATED)
def test_what_holds_for_all(call: CoordinatorCall) -> None:
    assert action_for(call, ErrorCode.NONE) is ResponseAction.DONE
    assert action_for(call, ErrorCode.NOT_COORDINATOR) is ResponseAction.FIND_COORDINATOR
    assert action_for(call, ErrorCode.COORDINATOR_NOT_AVAILABLE) is ResponseAction.FIND_COORDINATOR
    assert action_for(call, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) is ResponseAction.RETRY
    assert action_for(call, ErrorCode.CONCURRENT_TRANSACTIONS) is ResponseAction.RETRY
    assert action_for(call, ErrorCode.PRODUCER_FENCED) is ResponseAction.FAIL
    assert action_for(call, ErrorCode.INVALID_PRODUCER_EPOCH) is ResponseAction.FAIL


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, "FIND INITIALIZE ADD_PARTITIONS ADD_OFFSETS COMMIT_OFFSETS COMMIT"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "FIND ADD_PARTITIONS ADD_OFFSETS COMMIT_OFFSETS"),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "ADD_PARTITIONS"),
        (ErrorCode.ILLEGAL_GENERATION, "ADD_PARTITIONS COMMIT_OFFSETS"),
        (ErrorCode.FENCED_INSTANCE_ID, "ADD_PARTITIONS COMMIT_OFFSETS"),
        (ErrorCode.INVALID_TXN_STATE, ""),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, ""),
    ],
)
def test_what_can_be_aborted(code: ErrorCode, expected: str) -> None:
    assert {call.name for call in CoordinatorCall if action_for(call, code) is ResponseAction.ABORT} == set(
        expected.split()
    )


def test_the_rest() -> None:
    denied = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert action_for(CoordinatorCall.INITIALIZE, denied) is ResponseAction.NOT_ALLOWED
    assert action_for(CoordinatorCall.COMMIT, denied) is ResponseAction.FAIL
    assert action_for(CoordinatorCall.COMMIT, ErrorCode.UNKNOWN_PRODUCER_ID) is ResponseAction.BUMP_EPOCH
    assert action_for(CoordinatorCall.FIND, ErrorCode.COORDINATOR_NOT_AVAILABLE) is ResponseAction.RETRY
    assert (
        action_for(CoordinatorCall.COMMIT_OFFSETS, ErrorCode.REQUEST_TIMED_OUT)
        is ResponseAction.FIND_COORDINATOR
    )
    assert isinstance(error_for(CoordinatorCall.COMMIT, ErrorCode.INVALID_PRODUCER_EPOCH, "x"), Fenced)
    assert isinstance(
        error_for(CoordinatorCall.COMMIT_OFFSETS, ErrorCode.UNKNOWN_MEMBER_ID, "x"), CommitFailed
    )


def test_offsets_are_asked_for_until_all_are_taken() -> None:
    places = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)]
    member = GroupMember("g", 4, "m", "i")
    left = OffsetsToCommit(
        "x", ProducerId(7, 2), member, {index: OffsetAndMetadata(5, "why", 3) for index in places}
    )
    request = left.request()
    assert [(each.name, len(each.partitions)) for each in request.topics] == [("a", 2), ("b", 1)]
    assert (request.group_id, request.generation_id_or_member_epoch, request.member_id) == ("g", 4, "m")
    assert (request.producer_id, request.producer_epoch, request.group_instance_id) == (7, 2, "i")
    topic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic

    def answer(*codes: tuple[str, int, ErrorCode]) -> TxnOffsetCommitResponse:
        return TxnOffsetCommitResponse(
            topics=[
                topic(
                    name=name,
                    partitions=[
                        topic.TxnOffsetCommitResponsePartition(partition_index=number, error_code=code)
                    ],
                )
                for name, number, code in codes
            ]
        )

    loading, moved = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR
    assert left.take(answer(("a", 0, ErrorCode.NONE), ("a", 1, moved), ("b", 0, loading))) == moved
    assert [(each.name, len(each.partitions)) for each in left.request().topics] == [("a", 1), ("b", 1)]
    assert (
        left.take(answer(("a", 1, ErrorCode.ILLEGAL_GENERATION), ("b", 0, moved)))
        == ErrorCode.ILLEGAL_GENERATION
    )
    assert left.take(answer(("a", 1, ErrorCode.NONE), ("b", 0, ErrorCode.NONE))) == ErrorCode.NONE
    assert left.request().topics == []
    assert GroupMember.of("alone") == GroupMember("alone", -1, "", None)
