import pytest

from ottla.broker.apis.delete_records import API
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.delete_records import DeleteRecordsRequest


def delete(station, topic, offset, index=0, version=2):
    kind = DeleteRecordsRequest.DeleteRecordsTopic
    part = kind.DeleteRecordsPartition(partition_index=index, offset=offset)
    response = station.ask(API, DeleteRecordsRequest(topics=[kind(name=topic, partitions=[part])]), version)
    (answer,) = response.topics[0].partitions
    assert (response.topics[0].name, answer.partition_index) == (topic, index)
    return answer.error_code, answer.low_watermark


@pytest.mark.parametrize("version", API.versions)
def test_the_log_begins_where_it_was_told_to(station, version):
    station.create("t")
    partition = station.produce("t", count=10)
    assert delete(station, "t", 4, version=version) == (0, 4)
    assert partition.log.start_offset == 4


def test_minus_one_stands_for_the_high_watermark(station):
    station.create("t")
    partition = station.produce("t", count=10)
    assert delete(station, "t", -1) == (0, 10)
    assert (partition.log.start_offset, partition.log.end_offset) == (10, 10)


def test_going_back_changes_nothing(station):
    station.create("t")
    station.produce("t", count=10)
    assert delete(station, "t", 4) == (0, 4)
    assert delete(station, "t", 2) == (0, 4)
    assert delete(station, "t", 0) == (0, 4)


@pytest.mark.parametrize("offset", [11, -2])
def test_offsets_out_of_range(station, offset):
    station.create("t")
    partition = station.produce("t", count=10)
    assert delete(station, "t", offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert partition.log.start_offset == 0


def test_records_that_are_not_committed_cannot_be_deleted(station):
    station.create("t")
    partition = station.produce("t", count=10)
    partition.high_watermark = 5
    assert delete(station, "t", 6)[0] == ErrorCode.OFFSET_OUT_OF_RANGE
    assert delete(station, "t", -1) == (0, 5)


@pytest.mark.parametrize(
    ("policy", "code"), [("compact", ErrorCode.POLICY_VIOLATION), ("compact,delete", ErrorCode.NONE)]
)
def test_a_topic_that_is_only_compacted_keeps_its_records(station, policy, code):
    station.create("t", cleanup_policy=policy)
    station.produce("t", count=10)
    assert delete(station, "t", 4)[0] == code


def test_internal_topics_keep_their_records(station):
    station.create("__consumer_offsets")
    station.produce("__consumer_offsets", count=3)
    assert delete(station, "__consumer_offsets", 1) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)


def test_partitions_that_are_not_there(station):
    station.create("t")
    assert delete(station, "u", 0) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert delete(station, "t", 0, index=1) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
