"""The offsets of share groups are described, moved and forgotten, with the share coordinator's help."""

import pytest

from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from ottla.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from ottla.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from ottla.wire.messages.read_share_group_state_summary import ReadShareGroupStateSummaryResponse
from tests.unit.groups.share_stage import GROUP, Stage, assigned, topic_id

Asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
AskedTopic = Asked.DescribeShareGroupOffsetsRequestTopic
Summary = ReadShareGroupStateSummaryResponse.ReadStateSummaryResult


def alter(stage, token, **offsets):
    topic = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
    part = topic.AlterShareGroupOffsetsRequestPartition
    request = AlterShareGroupOffsetsRequest(
        group_id=GROUP,
        topics=[
            topic(
                topic_name=name,
                partitions=[
                    part(partition_index=index, start_offset=offset) for index, offset in parts.items()
                ],
            )
            for name, parts in offsets.items()
        ],
    )
    stage.ask(stage.shares.alter_offsets, token, request)


def delete(stage, token, *names):
    topic = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic
    request = DeleteShareGroupOffsetsRequest(
        group_id=GROUP, topics=[topic(topic_name=name) for name in names]
    )
    stage.ask(stage.shares.delete_offsets, token, request)


def codes(response):
    return {
        (topic.topic_name, part.partition_index): part.error_code
        for topic in response.responses
        for part in topic.partitions
    }


def test_offsets_are_moved_in_a_group_that_is_made_for_it() -> None:
    stage = Stage(a=2)
    alter(stage, 1, a={0: 5, 1: 7, 2: 9}, none={0: 1})
    assert stage.answers == {}
    (request,) = stage.coordinate()
    assert [(each.partition, each.state_epoch, each.start_offset) for each in request.topics[0].partitions] == [
        (0, 1, 5), (1, 1, 7),
    ]  # fmt: skip
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(stage.answers[1]) == {("a", 0): 0, ("a", 1): 0, ("a", 2): unknown, ("none", 0): unknown}
    assert stage.group.progress.initialized[topic_id("a")].partitions == {0, 1}
    # Its first member begins at once.
    assert assigned(stage.beat("m1", 0, ["a"])) == {"a": [0, 1]}
    assert stage.refusal(alter, stage, 2, a={0: 1}) is ErrorCode.NON_EMPTY_GROUP


def test_the_coordinators_refusal_is_passed_on() -> None:
    stage = Stage(a=1)
    alter(stage, 1, a={0: 5})
    stage.coordinate(ErrorCode.FENCED_STATE_EPOCH)
    assert codes(stage.answers[1]) == {("a", 0): ErrorCode.FENCED_STATE_EPOCH}
    assert stage.group.progress.initializing == {}


def test_nothing_to_move_is_answered_at_once() -> None:
    stage = Stage(a=1)
    alter(stage, 1, none={0: 5})
    assert codes(stage.answers[1]) == {("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert GROUP not in stage.machine.shelf.groups


def test_offsets_are_forgotten() -> None:
    stage = Stage(a=2, b=1)
    assert stage.refusal(delete, stage, 1, "a") is ErrorCode.GROUP_ID_NOT_FOUND
    alter(stage, 2, a={0: 5, 1: 5})
    stage.coordinate()
    delete(stage, 3, "a", "b", "none")
    assert stage.group.progress.deleting == {topic_id("a"): "a"}
    assert stage.group.progress.initialized == {}
    (request,) = stage.coordinate()
    assert [each.partition for each in request.topics[0].partitions] == [0, 1]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    found = {each.topic_name: each.error_code for each in stage.answers[3].responses}
    assert found == {"a": 0, "b": unknown, "none": unknown}
    assert stage.group.progress.deleting == {}
    assert stage.fresh().shelf.groups[GROUP].progress == stage.group.progress


def test_a_deletion_that_failed_is_tried_again() -> None:
    stage = Stage(a=2)
    alter(stage, 1, a={0: 5})
    stage.coordinate()
    delete(stage, 2, "a")
    stage.coordinate(ErrorCode.NOT_COORDINATOR)
    assert stage.answers[2].responses[0].error_code == ErrorCode.NOT_COORDINATOR
    assert stage.group.progress.deleting == {topic_id("a"): "a"}
    delete(stage, 3, "a")
    (request,) = stage.coordinate()
    assert [each.partition for each in request.topics[0].partitions] == [0, 1]
    assert stage.group.progress.deleting == {}


def test_a_group_goes_after_its_state() -> None:
    stage = Stage(a=1)
    stage.settle("m1", ["a"])
    assert stage.refusal(stage.shares.delete_state, GROUP) is ErrorCode.NON_EMPTY_GROUP
    with pytest.raises(BrokerError):
        stage.group.check_delete()
    stage.beat("m1", -1)
    request = stage.ask(stage.shares.delete_state, GROUP)
    assert [topic.topic_id for topic in request.topics] == [topic_id("a")]
    assert stage.group.progress.deleting == {topic_id("a"): "a"}
    # Asked again, it asks again.
    assert stage.ask(stage.shares.delete_state, GROUP) == request
    stage.group.check_delete()
    for record in stage.group.tombstones():
        stage.log.append(("record", record))
        stage.machine.apply(0, record)
    assert stage.machine.shelf.groups == {}
    assert stage.fresh().shelf.groups == {}


def test_a_share_group_has_no_committed_offsets() -> None:
    stage = Stage(a=1)
    stage.beat("m1", 0, ["a"])
    group = stage.group
    for check in (
        lambda: group.check_commit("m1", None, 2, 9, transactional=False),
        lambda: group.check_fetch("m1", 2),
    ):
        with pytest.raises(BrokerError) as refused:
            check()
        assert refused.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert group.subscribes_to("a")
    assert not group.subscribes_to("b")


def test_offsets_are_described() -> None:
    stage = Stage(a=2)
    asked = Asked(group_id=GROUP, topics=[
        AskedTopic(topic_name="a", partitions=[0, 1]), AskedTopic(topic_name="none", partitions=[4]),
    ])  # fmt: skip
    request = stage.ask(stage.shares.summary_request, asked)
    assert [(topic.topic_id, len(topic.partitions)) for topic in request.topics] == [(topic_id("a"), 2)]
    result = Summary(topic_id=topic_id("a"), partitions=[
        Summary.PartitionResult(partition=0, start_offset=10, delivery_complete_count=3, leader_epoch=4),
        Summary.PartitionResult(partition=1, error_code=ErrorCode.NOT_COORDINATOR, start_offset=8),
    ])  # fmt: skip
    response = ReadShareGroupStateSummaryResponse(results=[result])
    reply = stage.ask(stage.shares.offsets_described, asked, response, {(topic_id("a"), 0): 25})
    known, none = reply.topics
    first, second = known.partitions
    assert (first.start_offset, first.leader_epoch, first.lag, first.error_code) == (10, 4, 12, 0)
    assert (second.start_offset, second.leader_epoch, second.lag, second.error_code) == (-1, 0, -1, 0)
    assert (none.topic_name, none.partitions[0].start_offset) == ("none", -1)
    failed = {(topic_id("a"), 0): BrokerError(ErrorCode.LEADER_NOT_AVAILABLE)}
    reply = stage.ask(stage.shares.offsets_described, asked, response, failed)
    assert reply.topics[0].partitions[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("start", "complete", "lag"), [(-(1 << 63), 0, (1 << 63) - 1), ((1 << 63) - 1, 1 << 30, -(1 << 63))]
)
def test_a_lag_of_states_that_hold_any_number_fits_into_the_answer(start, complete, lag) -> None:
    stage = Stage(a=1)
    asked = Asked(group_id=GROUP, topics=[AskedTopic(topic_name="a", partitions=[0])])
    found = Summary.PartitionResult(partition=0, start_offset=start, delivery_complete_count=complete)
    result = Summary(topic_id=topic_id("a"), partitions=[found])
    response = ReadShareGroupStateSummaryResponse(results=[result])
    reply = stage.ask(stage.shares.offsets_described, asked, response, {(topic_id("a"), 0): 25})
    assert reply.topics[0].partitions[0].lag == lag


def test_all_offsets_are_those_with_state() -> None:
    stage = Stage(a=2, b=1)
    everything = Asked(group_id=GROUP, topics=None)
    assert stage.ask(stage.shares.summary_request, everything).topics == []
    stage.settle("m1", ["a"])
    request = stage.ask(stage.shares.summary_request, everything)
    assert [(topic.topic_id, len(topic.partitions)) for topic in request.topics] == [(topic_id("a"), 2)]


def test_a_topic_begun_anew_is_no_longer_going() -> None:
    stage = Stage(a=1)
    alter(stage, 1, a={0: 5})
    stage.coordinate()
    delete(stage, 2, "a")
    stage.coordinate(ErrorCode.NOT_COORDINATOR)
    alter(stage, 3, a={0: 6})
    assert stage.group.progress.deleting == {}
    stage.coordinate()
    assert stage.group.progress.initialized[topic_id("a")].partitions == {0}
