"""ConsumerGroupDescribe."""

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from tests.unit.groups.consumer_stage import Stage, settle


def test_a_group_is_described_with_what_members_have_and_shall_have():
    stage = Stage(foo=4)
    a, b = stage.consumer("a", rack_id="r"), stage.consumer("b", instance_id="i")
    a.step()
    b.step()
    a.beat()
    (group,) = stage.describe()
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Reconciling", 3, 3)
    assert (group.assignor_name, group.error_code) == ("uniform", 0)
    first, second = group.members
    assert (first.member_id, first.member_epoch, first.rack_id, first.member_type) == ("a", 2, "r", 1)
    assert first.assignment.topic_partitions[0].partitions == [0, 1, 2, 3], "it has yet to give up two"
    assert len(first.target_assignment.topic_partitions[0].partitions) == 2
    assert first.target_assignment.topic_partitions[0].topic_name == "foo"
    assert (second.instance_id, second.assignment.topic_partitions) == ("i", [])
    assert (second.client_id, second.client_host) == ("client", "/127.0.0.1")
    settle([a, b])
    assert stage.describe()[0].group_state == "Stable"


@pytest.mark.parametrize("version", [0, 1])
def test_the_answer_can_be_written_at_every_version(version):
    stage = Stage(foo=2)
    stage.consumer("a").step()
    response = ConsumerGroupDescribeResponse(groups=stage.describe())
    read = ConsumerGroupDescribeResponse.decode(response.encode(version), version)
    assert read.groups[0].members[0].member_type == (1 if version else -1)


def test_what_can_not_be_described():
    stage = Stage()
    stage.consumer("a").step()
    unknown, empty, known = stage.describe("other", "", "group")
    assert ErrorCode(unknown.error_code) is ErrorCode.GROUP_ID_NOT_FOUND
    assert unknown.error_message == "Group other not found."
    assert ErrorCode(empty.error_code) is ErrorCode.INVALID_GROUP_ID
    assert known.error_code == 0
