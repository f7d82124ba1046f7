"""The log of consumer groups: bytes there and back, and logs of earlier releases."""

from ottla.groups.consumer.records import KINDS
from ottla.replicated.keyed import KeyedRecord, decode
from ottla.wire.records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)
from tests.unit.groups.consumer_stage import GROUP, Stage, durable, make_machine, settle


def test_a_log_read_back_from_bytes_gives_the_same_groups():
    stage = Stage(foo=5, bar=2)
    members = [stage.consumer("a"), stage.consumer("b", subscribed_topic_regex=".*", instance_id="i")]
    settle(members, 2)
    stage.pass_time(0)
    settle(members)
    stage.beat(member_id="a", member_epoch=-1)
    fresh = make_machine(stage.topics, stage.settings)
    for record in stage.records:
        fresh.apply(0, decode(KINDS, *record.encode()))
    assert durable(fresh) == durable(stage.machine)
    assert set(fresh.shelf.groups[GROUP].members) == {"b"}


def test_every_type_of_record_is_known():
    assert set(KINDS) == {3, 4, 5, 6, 7, 8, 16}
    assert all(key.api_key == value.api_key == kind for kind, (key, value) in KINDS.items())


def test_a_tombstone_of_what_is_not_there_is_nothing():
    machine = Stage().machine
    for key in (
        ConsumerGroupMetadataKey(group_id="g"),
        ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"),
        ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m"),
    ):
        machine.apply(0, KeyedRecord(key, None))
    assert not machine.shelf.groups


def test_what_releases_before_4_1_kept_of_topics_is_removed():
    stage = Stage(foo=1)
    stage.beat(member_id="a")
    key = ConsumerGroupPartitionMetadataKey(group_id=GROUP)
    stage.machine.apply(0, KeyedRecord(key, ConsumerGroupPartitionMetadataValue(topics=[])))
    stage.topics.put("foo", 2)
    stage.beat(member_id="a", member_epoch=2)
    assert KeyedRecord(key, None) in stage.records
    assert not stage.group.has_topics_record


def test_partitions_kept_without_epochs_have_that_of_the_member():
    stage = Stage(foo=1)
    stage.beat(member_id="a")
    topic = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions(topic_id=bytes(16), partitions=[3])
    value = ConsumerGroupCurrentMemberAssignmentValue(member_epoch=7, assigned_partitions=[topic])
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="a")
    stage.machine.apply(0, decode(KINDS, *KeyedRecord(key, value).encode()))
    assert stage.group.members["a"].assigned == {bytes(16): {3: 7}}
