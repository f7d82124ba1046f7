"""What OffsetCommit and TxnOffsetCommit have in common: the topics they name, and the errors they answer with."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ottla.groups.topics import TopicFacts, TopicsView
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

Topic = OffsetCommitRequest.OffsetCommitRequestTopic | TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
Partition = (
    OffsetCommitRequest.OffsetCommitRequestTopic.OffsetCommitRequestPartition
    | TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic.TxnOffsetCommitRequestPartition
)
# The code of each partition of each topic, in the order of the request.
Codes = list[list[ErrorCode]]


class Wish(NamedTuple):
    """An offset to be committed in a partition that exists; `at` is its place in the request."""

    at: tuple[int, int]
    topic: TopicFacts
    partition: Partition


def wishes(
    topics: Sequence[Topic],
    known: TopicsView,
    codes: Codes,
    *,
    by_id: bool,
) -> Iterator[Wish]:
    """Return what may be committed as far as the topics go; the codes of what may not go to `codes`."""
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for number, topic in enumerate(topics):
        facts = known.by_id(topic.topic_id) if by_id else known.find(topic.name)
        codes.append([ErrorCode.NONE if facts else unknown] * len(topic.partitions))
        if facts is None:
            continue
        partitions: Sequence[Partition] = topic.partitions
        for index, partition in enumerate(partitions):
            if 0 <= partition.partition_index < facts.partitions:
                yield Wish((number, index), facts, partition)
            else:
                codes[number][index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def is_too_long(metadata: str | None, size_max: int) -> bool:
    """Whether a note is longer than allowed; Kafka counts as Java does, in units of two bytes."""
    if metadata is None or 2 * len(metadata) <= size_max:
        return False
    return len(metadata.encode("utf-16-le")) // 2 > size_max


def commit_response(request: OffsetCommitRequest, codes: Codes) -> OffsetCommitResponse:
    """Return the answer with a code for each partition."""
    made = OffsetCommitResponse.OffsetCommitResponseTopic
    return OffsetCommitResponse(
        topics=[
            made(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    made.OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                    for each, code in zip(topic.partitions, row, strict=True)
                ],
            )
            for topic, row in zip(request.topics, codes, strict=True)
        ]
    )


def transactional_response(request: TxnOffsetCommitRequest, codes: Codes) -> TxnOffsetCommitResponse:
    """Return the answer with a code for each partition."""
    made = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
    return TxnOffsetCommitResponse(
        topics=[
            made(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    made.TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=code
                    )
                    for each, code in zip(topic.partitions, row, strict=True)
                ],
            )
            for topic, row in zip(request.topics, codes, strict=True)
        ]
    )


def refused_commit(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    """Refuse all of a request, as when its group is coordinated elsewhere."""
    return commit_response(request, [[code] * len(topic.partitions) for topic in request.topics])


def refused_transactional(request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    """Refuse all of a request, as when its group is coordinated elsewhere."""
    return transactional_response(request, [[code] * len(topic.partitions) for topic in request.topics])
