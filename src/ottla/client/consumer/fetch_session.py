"""The client side of incremental fetch sessions (KIP-227).

F1  The broker remembers the partitions of a session, so a request names only changes: new partitions, partitions with
    another offset, and partitions to forget.
F2  Epoch 0 starts a session, -1 closes it. In between, each request has the next epoch.
F3  An unexpected response ends the session, and the next request starts a new one. No record is lost by that.
F4  Requests use topic ids if all topics have one (version 13), or else topic names.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.client.record import TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.fetch import FetchRequest, FetchResponse

NO_SESSION = 0
FIRST_EPOCH = 0
FINAL_EPOCH = -1
NO_TOPIC_ID = bytes(16)
NAMES_VERSION = 12
_EPOCH_MAX = 0x7FFF_FFFF

PartitionData = FetchResponse.FetchableTopicResponse.PartitionData


class WantedPartition(NamedTuple):
    """The fetch parameters of one partition."""

    topic_id: bytes
    offset: int
    leader_epoch: int
    bytes_max: int


class FetchSessionRequest(NamedTuple):
    """The part of a fetch request that the session determines."""

    session_id: int
    epoch: int
    topics: list[FetchRequest.FetchTopic]
    forgotten: list[FetchRequest.ForgottenTopic]
    newest: int | None  # the highest possible version, None for any


class FetchSessionHandler:
    """The session with one broker."""

    def __init__(self) -> None:
        self.id = NO_SESSION
        self.epoch = FIRST_EPOCH
        self.partitions: dict[TopicPartition, WantedPartition] = {}
        self._names: dict[bytes, str] = {}

    @property
    def is_full(self) -> bool:
        """Whether the next request has to name all partitions."""
        return self.epoch in (FIRST_EPOCH, FINAL_EPOCH)

    # Asking

    def build_request(self, wanted: Mapping[TopicPartition, WantedPartition]) -> FetchSessionRequest:
        """Return a request after which the session has the wanted partitions."""
        before = {} if self.is_full else self.partitions
        changed = {each: data for each, data in wanted.items() if before.get(each) != data}
        gone = {each: data.topic_id for each, data in before.items() if each not in wanted}
        by_id = NO_TOPIC_ID not in {data.topic_id for data in wanted.values()} | set(gone.values())
        if by_id:
            # A topic that was created again has another id: the session has to forget the old id.
            gone |= {
                each: before[each].topic_id
                for each, data in changed.items()
                if each in before and before[each].topic_id not in (NO_TOPIC_ID, data.topic_id)
            }
        # The order matters: the last partitions may find the response full.
        self.partitions = dict(wanted)
        self._names = {data.topic_id: each.topic for each, data in wanted.items()} if by_id else {}
        return FetchSessionRequest(
            self.id, self.epoch, _topics(changed), _forgotten(gone), None if by_id else NAMES_VERSION
        )

    def close(self) -> FetchSessionRequest:
        """Return the request that ends the session at the broker."""
        self.partitions = {}
        return FetchSessionRequest(self.id, FINAL_EPOCH, [], [], None)

    # Answers

    def handle_response(
        self, answer: FetchResponse, version: int
    ) -> dict[TopicPartition, PartitionData] | None:
        """Handle a response. Return the data of each partition, or None if the response cannot be used."""
        if answer.error_code:
            if answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._begin_anew()
            else:
                self.failed()
            return None
        found = self._resolve(answer, version)
        if found is None or not found.keys() <= self.partitions.keys():
            self.failed()
            return None
        if self.is_full and len(found) < len(self.partitions):
            # A broker that throttles answers without partitions (KIP-219). Otherwise this is an invalid response.
            self._begin_anew()
            return None
        if answer.session_id == NO_SESSION:
            self._begin_anew()
        elif self.is_full:
            self.id, self.epoch = answer.session_id, 1
        else:
            self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1
        return found

    def failed(self) -> None:
        """Start a new session with the next request, because the state at the broker is not known."""
        self.epoch = FIRST_EPOCH

    def _begin_anew(self) -> None:
        self.id, self.epoch = NO_SESSION, FIRST_EPOCH

    def _resolve(self, answer: FetchResponse, version: int) -> dict[TopicPartition, PartitionData] | None:
        found: dict[TopicPartition, PartitionData] = {}
        for topic in answer.responses:
            name = self._names.get(topic.topic_id) if version > NAMES_VERSION else topic.topic
            if name is None:
                return None
            for data in topic.partitions:
                found[TopicPartition(name, data.partition_index)] = data
        return found


_topic = FetchRequest.FetchTopic
_partition = FetchRequest.FetchTopic.FetchPartition


def _topics(wanted: Mapping[TopicPartition, WantedPartition]) -> list[FetchRequest.FetchTopic]:
    topics: dict[tuple[str, bytes], FetchRequest.FetchTopic] = {}
    for (name, number), (topic_id, offset, leader_epoch, bytes_max) in wanted.items():
        topic = topics.get((name, topic_id))
        if topic is None:
            topic = topics[name, topic_id] = _topic(topic=name, topic_id=topic_id, partitions=[])
        topic.partitions.append(
            _partition(
                partition=number,
                current_leader_epoch=leader_epoch,
                fetch_offset=offset,
                partition_max_bytes=bytes_max,
            )
        )
    return list(topics.values())


def _forgotten(gone: Mapping[TopicPartition, bytes]) -> list[FetchRequest.ForgottenTopic]:
    topics: dict[tuple[str, bytes], FetchRequest.ForgottenTopic] = {}
    for (name, number), topic_id in gone.items():
        topic = topics.get((name, topic_id))
        if topic is None:
            topic = topics[name, topic_id] = FetchRequest.ForgottenTopic(
                topic=name, topic_id=topic_id, partitions=[]
            )
        topic.partitions.append(number)
    return list(topics.values())
