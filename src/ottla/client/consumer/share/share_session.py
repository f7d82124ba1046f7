"""The client side of share sessions.

S1  As in fetch sessions, the broker remembers the partitions, and a request names the changes. The member id identifies
    the session. Epoch 0 starts it, -1 ends it, and each request in between has the next epoch.
S2  The first request of a session cannot acknowledge, because earlier records are not part of the session.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.consumer.share.acknowledgement import Acks, TopicIdPartition, batches_of
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from ottla.wire.messages.share_fetch import ShareFetchRequest

FIRST_EPOCH = 0
FINAL_EPOCH = -1
_EPOCH_MAX = 0x7FFF_FFFF
_LOST = frozenset(
    {
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)


class ShareSessionRequest(NamedTuple):
    """The part of a share fetch that the session determines."""

    epoch: int
    topics: list[ShareFetchRequest.FetchTopic]
    forgotten: list[ShareFetchRequest.ForgottenTopic]

    @property
    def is_empty(self) -> bool:
        """Whether it changes and acknowledges nothing."""
        return not self.topics and not self.forgotten


class ShareSessionHandler:
    """The session with one broker."""

    def __init__(self) -> None:
        self.epoch = FIRST_EPOCH
        self.partitions: dict[TopicIdPartition, None] = {}

    @property
    def is_new(self) -> bool:
        """Whether the next request begins it."""
        return self.epoch == FIRST_EPOCH

    def fetch(
        self, wanted: Iterable[TopicIdPartition], acks: Mapping[TopicIdPartition, Acks]
    ) -> ShareSessionRequest:
        """Return a request after which the session has the wanted partitions, with acknowledgements."""
        wanted = dict.fromkeys(wanted)
        before = {} if self.is_new else self.partitions
        added = [each for each in wanted if each not in before]
        gone = [each for each in before if each not in wanted]
        self.partitions = wanted
        topics: dict[bytes, ShareFetchRequest.FetchTopic] = {}
        kind = ShareFetchRequest.FetchTopic
        for partition in dict.fromkeys([*added, *acks]):
            topic = topics.setdefault(partition.topic_id, kind(topic_id=partition.topic_id, partitions=[]))
            topic.partitions.append(
                kind.FetchPartition(
                    partition_index=partition.partition,
                    acknowledgement_batches=[
                        kind.FetchPartition.AcknowledgementBatch(
                            first_offset=each.first_offset,
                            last_offset=each.last_offset,
                            acknowledge_types=each.types,
                        )
                        for each in batches_of(acks.get(partition, {}))
                    ],
                )
            )
        forgotten: dict[bytes, ShareFetchRequest.ForgottenTopic] = {}
        for partition in gone:
            old = forgotten.setdefault(
                partition.topic_id,
                ShareFetchRequest.ForgottenTopic(topic_id=partition.topic_id, partitions=[]),
            )
            old.partitions.append(partition.partition)
        return ShareSessionRequest(self.epoch, list(topics.values()), list(forgotten.values()))

    @staticmethod
    def acknowledge(acks: Mapping[TopicIdPartition, Acks]) -> list[ShareAcknowledgeRequest.AcknowledgeTopic]:
        """Return acknowledgements for a request without a fetch."""
        kind = ShareAcknowledgeRequest.AcknowledgeTopic
        topics: dict[bytes, ShareAcknowledgeRequest.AcknowledgeTopic] = {}
        for partition, each in acks.items():
            topic = topics.setdefault(partition.topic_id, kind(topic_id=partition.topic_id, partitions=[]))
            topic.partitions.append(
                kind.AcknowledgePartition(
                    partition_index=partition.partition,
                    acknowledgement_batches=[
                        kind.AcknowledgePartition.AcknowledgementBatch(
                            first_offset=batch.first_offset,
                            last_offset=batch.last_offset,
                            acknowledge_types=batch.types,
                        )
                        for batch in batches_of(each)
                    ],
                )
            )
        return list(topics.values())

    def handle_response(self, code: int) -> bool:
        """Handle the error code of a response. Return whether the response can be used."""
        if code in _LOST:
            self.failed()
        else:
            self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1
        return not code

    def failed(self) -> None:
        """Start a new session with the next request."""
        self.epoch = FIRST_EPOCH
