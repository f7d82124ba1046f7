"""What each answer of a coordinator means for each errand."""

import pytest

from ottla.client.errors import CommitFailed, Fenced
from ottla.client.producer.offsets import GroupMember, OffsetsToCommit
from ottla.client.producer.reaction import Errand, Reaction, error_for, react
from ottla.client.producer.sequence import ProducerId
from ottla.client.record import OffsetAndMetadata, TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitResponse

COORDINATED = [errand for errand in Errand if errand is not Errand.FIND]


@pytest.mark.parametrize("errand", COORDINATED)
def test_what_holds_for_all(errand: Errand) -> None:
    assert react(errand, ErrorCode.NONE) is Reaction.DONE
    assert react(errand, ErrorCode.NOT_COORDINATOR) is Reaction.ELSEWHERE
    assert react(errand, ErrorCode.COORDINATOR_NOT_AVAILABLE) is Reaction.ELSEWHERE
    assert react(errand, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) is Reaction.AGAIN
    assert react(errand, ErrorCode.CONCURRENT_TRANSACTIONS) is Reaction.AGAIN
    assert react(errand, ErrorCode.PRODUCER_FENCED) is Reaction.DOOM
    assert react(errand, ErrorCode.INVALID_PRODUCER_EPOCH) is Reaction.DOOM


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
    assert {errand.name for errand in Errand if react(errand, code) is Reaction.ABORT} == set(
        expected.split()
    )


def test_the_rest() -> None:
    denied = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert react(Errand.INITIALIZE, denied) is Reaction.DENIED
    assert react(Errand.COMMIT, denied) is Reaction.DOOM
    assert react(Errand.COMMIT, ErrorCode.UNKNOWN_PRODUCER_ID) is Reaction.RENUMBER
    assert react(Errand.FIND, ErrorCode.COORDINATOR_NOT_AVAILABLE) is Reaction.AGAIN
    assert react(Errand.COMMIT_OFFSETS, ErrorCode.REQUEST_TIMED_OUT) is Reaction.ELSEWHERE
    assert isinstance(error_for(Errand.COMMIT, ErrorCode.INVALID_PRODUCER_EPOCH, "x"), Fenced)
    assert isinstance(error_for(Errand.COMMIT_OFFSETS, ErrorCode.UNKNOWN_MEMBER_ID, "x"), CommitFailed)


def test_offsets_are_asked_for_until_all_are_taken() -> None:
    places = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)]
    member = GroupMember("g", 4, "m", "i")
    left = OffsetsToCommit(
        "x", ProducerId(7, 2), member, {place: OffsetAndMetadata(5, "why", 3) for place in places}
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
