"""A commit's journey: those that arrive together are one batch of the log, and each is answered on its own."""

from collections.abc import Iterator

import pytest

from ottla.wire.batch import scan
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from tests.compat.chosen import CHOSEN
from tests.journeys.traveller import Traveller
from tests.peers.connection import Connection, request_frame
from tests.peers.deadline import eventually

COMMIT, FETCH, FIND = 9, 9, 4
GROUP = "commuters"


def commit_request(topic: str, partition: int, offset: int, metadata: str = "") -> OffsetCommitRequest:
    wanted = OffsetCommitRequest.OffsetCommitRequestTopic
    place = wanted.OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=metadata
    )
    return OffsetCommitRequest(group_id=GROUP, member_id="", topics=[wanted(name=topic, partitions=[place])])


def fetch_request(topic: str, *partitions: int) -> OffsetFetchRequest:
    group = OffsetFetchRequest.OffsetFetchRequestGroup
    topics = [group.OffsetFetchRequestTopics(name=topic, partition_indexes=list(partitions))]
    return OffsetFetchRequest(groups=[group(group_id=GROUP, topics=topics)])


def code(answer: OffsetCommitResponse) -> ErrorCode:
    return ErrorCode(answer.topics[0].partitions[0].error_code)


@pytest.fixture
def line(traveller: Traveller, topic: str) -> Iterator[Connection]:
    """A connection to the group's coordinator, which has answered once."""
    asked = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
    eventually(
        lambda: (
            traveller.line.ask(asked, FindCoordinatorResponse, FIND).coordinators[0].error_code == 0
            and code(traveller.line.ask(commit_request(topic, 2, 0), OffsetCommitResponse, COMMIT)) == 0
        )
    )
    return traveller.line


def batches(traveller: Traveller) -> list[int]:
    """How many records each batch of the group's log has."""
    counts = []
    for path in sorted(traveller.server.log_dir.glob("__consumer_offsets-*/*.log")):
        counts += [batch.record_count for _, batch in scan(path.read_bytes())]
    return counts


@pytest.mark.skipif(CHOSEN == "kafka", reason="Apache Kafka gathers them by time")
def test_those_that_arrive_together_are_written_together(
    traveller: Traveller, line: Connection, topic: str
) -> None:
    before = batches(traveller)
    requests = [commit_request(topic, number % 3, number) for number in range(30)]
    line.send_bytes(b"".join(request_frame(each, COMMIT, n) for n, each in enumerate(requests)))
    answers = [line.receive(OffsetCommitResponse, COMMIT, number) for number in range(30)]
    assert [code(answer) for answer in answers] == [ErrorCode.NONE] * 30
    added = batches(traveller)[len(before) :]
    assert sum(added) == 30
    assert len(added) <= 3  # a read may end within the thirty


def test_who_asks_behind_them_sees_them_and_a_bad_one_harms_none(line: Connection, topic: str) -> None:
    sent = [
        (commit_request(topic, 0, 11), COMMIT),
        (commit_request(topic, 1, 12, metadata="x" * 5000), COMMIT),
        (commit_request(topic, 1, 13), COMMIT),
        (commit_request(topic, 99, 14), COMMIT),
        (fetch_request(topic, 0, 1), FETCH),
        (commit_request(topic, 0, 15), COMMIT),
    ]
    line.send_bytes(b"".join(request_frame(each, version, n) for n, (each, version) in enumerate(sent)))
    said = [code(line.receive(OffsetCommitResponse, COMMIT, number)) for number in range(4)]
    found = line.receive(OffsetFetchResponse, FETCH, 4).groups[0].topics[0].partitions
    assert said == [
        ErrorCode.NONE,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert [(each.partition_index, each.committed_offset) for each in found] == [(0, 11), (1, 13)]
    assert code(line.receive(OffsetCommitResponse, COMMIT, 5)) is ErrorCode.NONE
