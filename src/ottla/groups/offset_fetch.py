"""OffsetFetch: how far a group has come.

Before version 8 a request asks for one group, in fields of its own; here every version looks like the newest.
"""

from collections.abc import Sequence

from ottla.groups.offset_ledger import Ledger
from ottla.groups.offset_records import Committed, Place
from ottla.groups.shelf import Shelf
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from ottla.wire.uuid import ZERO_UUID

Asked = OffsetFetchRequest.OffsetFetchRequestGroup
AskedTopic = Asked.OffsetFetchRequestTopics
Found = OffsetFetchResponse.OffsetFetchResponseGroup
FoundTopic = Found.OffsetFetchResponseTopics
FoundPartition = FoundTopic.OffsetFetchResponsePartitions

_GROUP_ERROR_SINCE = 2
_BATCH_SINCE = 8
_TOPIC_IDS_SINCE = 10


def asked_groups(request: OffsetFetchRequest, version: int) -> list[Asked]:
    """Return the groups that a request asks for, each of which goes to its own coordinator."""
    if version >= _BATCH_SINCE:
        return request.groups
    topics = None
    if request.topics is not None:
        topics = [
            AskedTopic(name=each.name, partition_indexes=each.partition_indexes) for each in request.topics
        ]
    return [Asked(group_id=request.group_id, topics=topics)]


def fetch_response(groups: Sequence[Found], version: int) -> OffsetFetchResponse:
    """Return the answer made of those for each group."""
    if version >= _BATCH_SINCE:
        return OffsetFetchResponse(groups=list(groups))
    (group,) = groups
    topics = [
        OffsetFetchResponse.OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponse.OffsetFetchResponseTopic.OffsetFetchResponsePartition(
                    partition_index=each.partition_index,
                    committed_offset=each.committed_offset,
                    committed_leader_epoch=each.committed_leader_epoch,
                    metadata=each.metadata,
                    error_code=each.error_code,
                )
                for each in topic.partitions
            ],
        )
        for topic in group.topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=group.error_code)


def refused_fetch(asked: Asked, code: ErrorCode, version: int) -> Found:
    """Refuse to answer for a group; version 1 says so of each partition."""
    if version >= _GROUP_ERROR_SINCE:
        return Found(group_id=asked.group_id, topics=[], error_code=code)
    topics = [_refused_topic(topic, code) for topic in asked.topics or ()]
    return Found(group_id=asked.group_id, topics=topics)


def fetch(shelf: Shelf, ledger: Ledger, asked: Asked, version: int, *, require_stable: bool) -> Found:
    """Answer for one group."""
    group = shelf.groups.get(asked.group_id)
    known = group is not None
    if group is not None:
        try:
            group.check_fetch(asked.member_id, asked.member_epoch)
        except BrokerError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                return refused_fetch(asked, error.code, version)
            # To one who asks how far, a group without offsets and no group are the same.
            known = False
    by_id = version >= _TOPIC_IDS_SINCE
    topics = asked.topics
    if topics is None:
        topics = all_topics(shelf, ledger, asked.group_id, version) if known else []
    found = []
    for topic in topics:
        name = topic.name
        if by_id:
            facts = shelf.topics.by_id(topic.topic_id)
            if facts is None:
                found.append(_refused_topic(topic, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
            name = facts.name
        committed = ledger.topics(asked.group_id).get(name, {}) if known else {}
        partitions = []
        for index in topic.partition_indexes:
            if require_stable and ledger.is_open(Place(asked.group_id, name, index)):
                partitions.append(_partition(index, None, ErrorCode.UNSTABLE_OFFSET_COMMIT))
            else:
                expected = ZERO_UUID if asked.topics is None else topic.topic_id
                partitions.append(_partition(index, _of_topic(committed.get(index), expected)))
        found.append(FoundTopic(name=name, topic_id=topic.topic_id, partitions=partitions))
    return Found(group_id=asked.group_id, topics=found)


def all_topics(shelf: Shelf, ledger: Ledger, group_id: str, version: int) -> list[AskedTopic]:
    """Return every topic with an offset; asked by id, those that are gone have none to be told under."""
    by_id = version >= _TOPIC_IDS_SINCE
    found = []
    for name, partitions in ledger.topics(group_id).items():
        facts = shelf.topics.find(name) if by_id else None
        if facts is not None or not by_id:
            topic_id = ZERO_UUID if facts is None else facts.id
            found.append(AskedTopic(name=name, topic_id=topic_id, partition_indexes=list(partitions)))
    return found


def _of_topic(committed: Committed | None, topic_id: bytes) -> Committed | None:
    """Pass over an offset of an earlier topic of the same name."""
    if committed is None or topic_id == ZERO_UUID or committed.topic_id in (ZERO_UUID, topic_id):
        return committed
    return None


def _refused_topic(topic: AskedTopic, code: ErrorCode) -> FoundTopic:
    partitions = [_partition(index, None, code) for index in topic.partition_indexes]
    return FoundTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _partition(index: int, committed: Committed | None, code: ErrorCode = ErrorCode.NONE) -> FoundPartition:
    if committed is None:
        return FoundPartition(partition_index=index, committed_offset=-1, metadata="", error_code=code)
    return FoundPartition(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )
