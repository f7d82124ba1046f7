"""Share sessions, seen from the client.

S1  As with fetch sessions, a broker remembers what is wanted, and a request names what has changed. A session goes by
    the member's name; epoch 0 begins it, -1 ends it, and each request in between has the next number.
S2  The request that begins a session cannot acknowledge: whatever was acquired before is not of this session.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.consumer.share.acknowledgement import Acks, Tip, batches_of
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


class ShareAsk(NamedTuple):
    """The part of a share fetch that a session has a say in."""

    epoch: int
    topics: list[ShareFetchRequest.FetchTopic]
    forgotten: list[ShareFetchRequest.ForgottenTopic]

    @property
    def is_empty(self) -> bool:
        """Whether it changes and acknowledges nothing."""
        return not self.topics and not self.forgotten


class ShareSession:
    """The session with one broker."""

    def __init__(self) -> None:
        self.epoch = FIRST_EPOCH
        self.partitions: dict[Tip, None] = {}

    @property
    def is_new(self) -> bool:
        """Whether the next request begins it."""
        return self.epoch == FIRST_EPOCH

    def fetch(self, wanted: Iterable[Tip], acks: Mapping[Tip, Acks]) -> ShareAsk:
        """Return what to say so that the broker has in mind what is wanted, with acknowledgements on top."""
        wanted = dict.fromkeys(wanted)
        before = {} if self.is_new else self.partitions
        added = [each for each in wanted if each not in before]
        gone = [each for each in before if each not in wanted]
        self.partitions = wanted
        topics: dict[bytes, ShareFetchRequest.FetchTopic] = {}
        kind = ShareFetchRequest.FetchTopic
        for tip in dict.fromkeys([*added, *acks]):
            topic = topics.setdefault(tip.topic_id, kind(topic_id=tip.topic_id, partitions=[]))
            topic.partitions.append(
                kind.FetchPartition(
                    partition_index=tip.partition,
                    acknowledgement_batches=[
                        kind.FetchPartition.AcknowledgementBatch(
                            first_offset=each.first_offset,
                            last_offset=each.last_offset,
                            acknowledge_types=each.types,
                        )
                        for each in batches_of(acks.get(tip, {}))
                    ],
                )
            )
        forgotten: dict[bytes, ShareFetchRequest.ForgottenTopic] = {}
        for tip in gone:
            old = forgotten.setdefault(
                tip.topic_id, ShareFetchRequest.ForgottenTopic(topic_id=tip.topic_id, partitions=[])
            )
            old.partitions.append(tip.partition)
        return ShareAsk(self.epoch, list(topics.values()), list(forgotten.values()))

    @staticmethod
    def acknowledge(acks: Mapping[Tip, Acks]) -> list[ShareAcknowledgeRequest.AcknowledgeTopic]:
        """Return acknowledgements on their own."""
        kind = ShareAcknowledgeRequest.AcknowledgeTopic
        topics: dict[bytes, ShareAcknowledgeRequest.AcknowledgeTopic] = {}
        for tip, each in acks.items():
            topic = topics.setdefault(tip.topic_id, kind(topic_id=tip.topic_id, partitions=[]))
            topic.partitions.append(
                kind.AcknowledgePartition(
                    partition_index=tip.partition,
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

    def heard(self, code: int) -> bool:
        """Take an answer's error code; whether the answer can be used."""
        if code in _LOST:
            self.failed()
        else:
            self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1
        return not code

    def failed(self) -> None:
        """Begin another session with the next request."""
        self.epoch = FIRST_EPOCH
