"""Topics and partitions as values: what is the same is shared."""

from ottla.metadata.delta import Delta
from ottla.metadata.frame import decode, encode
from ottla.metadata.image import EMPTY, Image
from ottla.metadata.topics import PartitionState
from ottla.wire.message import Message
from ottla.wire.records.metadata import PartitionChangeRecord, PartitionRecord, TopicRecord

DIRECTORIES = [bytes([100 + broker] * 16) for broker in (1, 2, 3)]


def partition(topic_id: bytes, index: int, isr: list[int]) -> PartitionRecord:
    record = PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=[1, 2, 3],
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        directories=DIRECTORIES,
    )
    read = decode(encode(record))
    assert isinstance(read, PartitionRecord)
    return read


def image_of(topics: int) -> Image:
    delta = Delta(EMPTY)
    records: list[Message] = []
    for number in range(1, topics + 1):
        topic_id = number.to_bytes(16)
        records.append(TopicRecord(name=f"t{number}", topic_id=topic_id))
        records += [partition(topic_id, index, [1, 2, 3]) for index in range(4)]
    for record in records:
        delta.apply(record)
    return delta.image()


def test_partitions_share_what_is_the_same_in_them() -> None:
    one, other = (PartitionState.of(partition(bytes(16), index, [1, 2, 3])) for index in range(2))
    assert one.isr is one.replicas
    assert [id(each) for each in one.directories] == [id(each) for each in other.directories]
    shrunk = one.changed_by(PartitionChangeRecord(isr=[1, 3]))
    assert (shrunk.isr, shrunk.replicas, shrunk.directories) == ((1, 3), one.replicas, one.directories)
    assert shrunk.changed_by(PartitionChangeRecord(isr=[1, 2, 3])).isr is one.replicas
    assert shrunk.changed_by(PartitionChangeRecord(isr=[3, 1, 2])).isr == (3, 1, 2)


def test_the_image_after_a_change_shares_all_that_did_not_change() -> None:
    before = image_of(topics=20)
    delta = Delta(before)
    changed = (7).to_bytes(16)
    delta.apply(PartitionChangeRecord(topic_id=changed, partition_id=2, leader=2))
    after = delta.image()
    assert list(delta.topics) == [changed]
    assert list(delta.topics[changed].partitions) == [2]
    for topic_id, topic in after.topics.by_id.items():
        assert (topic is before.topics.by_id[topic_id]) == (topic_id != changed)
        assert after.topics.by_name[topic.name] is topic
    old, new = before.topics.by_id[changed].partitions, after.topics.by_id[changed].partitions
    assert {index for index in new if new[index] is not old[index]} == {2}
    assert (new[2].leader, new[2].leader_epoch) == (2, 1)
