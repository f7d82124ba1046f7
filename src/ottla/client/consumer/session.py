"""Incremental fetch sessions, seen from the client (KIP-227).

F1  A broker remembers what it was last asked for, so a request names only what has changed since: partitions that are
    new or have moved, and those that are no longer wanted.
F2  Epoch 0 begins a session, -1 closes one; in between each request has the next number.
F3  Whatever looks wrong ends the session, and the next request begins a new one. Nothing is lost by that but bytes.
F4  Topics go by their ids where all of them have one (version 13), else by their names.
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


class Wanted(NamedTuple):
    """What is asked of one partition."""

    topic_id: bytes
    offset: int
    leader_epoch: int
    bytes_max: int


class Ask(NamedTuple):
    """The part of a fetch request that a session has a say in."""

    session_id: int
    epoch: int
    topics: list[FetchRequest.FetchTopic]
    forgotten: list[FetchRequest.ForgottenTopic]
    newest: int | None  # the highest version that can express it, None for any


class FetchSession:
    """The session with one broker."""

    def __init__(self) -> None:
        self.id = NO_SESSION
        self.epoch = FIRST_EPOCH
        self.partitions: dict[TopicPartition, Wanted] = {}
        self._names: dict[bytes, str] = {}

    @property
    def is_full(self) -> bool:
        """Whether the next request has to name everything."""
        return self.epoch in (FIRST_EPOCH, FINAL_EPOCH)

    # Asking

    def ask(self, wanted: Mapping[TopicPartition, Wanted]) -> Ask:
        """Return what to say so that the broker has in mind what is wanted."""
        before = {} if self.is_full else self.partitions
        changed = {each: data for each, data in wanted.items() if before.get(each) != data}
        gone = {each: data.topic_id for each, data in before.items() if each not in wanted}
        by_id = NO_TOPIC_ID not in {data.topic_id for data in wanted.values()} | set(gone.values())
        if by_id:
            # A topic that was made anew under its old name has another id: the old one is to be forgotten.
            gone |= {
                each: before[each].topic_id
                for each, data in changed.items()
                if each in before and before[each].topic_id not in (NO_TOPIC_ID, data.topic_id)
            }
        # Those that come last in the request come last in the answer, too, and may find it full.
        self.partitions = dict(wanted)
        self._names = {data.topic_id: each.topic for each, data in wanted.items()} if by_id else {}
        return Ask(self.id, self.epoch, _topics(changed), _forgotten(gone), None if by_id else NAMES_VERSION)

    def close(self) -> Ask:
        """Return the request that ends the session at the broker."""
        self.partitions = {}
        return Ask(self.id, FINAL_EPOCH, [], [], None)

    # Answers

    def heard(self, answer: FetchResponse, version: int) -> dict[TopicPartition, PartitionData] | None:
        """Take an answer, and return what it says of which partition; None when nothing of it can be used."""
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
            # A broker that asks for patience answers with nothing (KIP-219); else it makes no sense.
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
        """Close the session, and begin another with the next request: what the broker has in mind is not known."""
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


def _topics(wanted: Mapping[TopicPartition, Wanted]) -> list[FetchRequest.FetchTopic]:
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
