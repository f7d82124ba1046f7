"""A share group's offsets, as far as the group itself knows them: which share partitions there are.

The offsets are with the share coordinators. What is asked of those is an effect, and whoever asked waits until they
have answered.

O1  Offsets are moved or forgotten only while nobody is in the group.
"""

from collections.abc import Mapping

from ottla.groups.share import records
from ottla.groups.share.desk import Desk
from ottla.groups.share.effects import DeleteState, InitializeState
from ottla.groups.share.heartbeat import initialize_request
from ottla.groups.share.progress import Progress, Topic, Topics
from ottla.replicated.decision import Decision, Effect
from ottla.replicated.keyed import Answer, KeyedRecord
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from ottla.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from ottla.wire.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)
from ottla.wire.messages.initialize_share_group_state import InitializeShareGroupStateResponse

Alter = AlterShareGroupOffsetsRequest
Altered = AlterShareGroupOffsetsResponse
Delete = DeleteShareGroupOffsetsRequest
Deleted = DeleteShareGroupOffsetsResponse
_AlteredTopic = Altered.AlterShareGroupOffsetsResponseTopic
_AlteredPartition = _AlteredTopic.AlterShareGroupOffsetsResponsePartition
_DeletedTopic = Deleted.DeleteShareGroupOffsetsResponseTopic
_StateData = DeleteShareGroupStateRequest.DeleteStateData

_NO_TOPIC = "there is no such topic or partition"


class Offsets:
    """The commands, and the answers that wait for a share coordinator."""

    __slots__ = ("_altered", "_deleted", "_desk")

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._altered: dict[int, Altered] = {}
        self._deleted: dict[int, Deleted] = {}

    def alter(self, token: int, request: Alter, now: int) -> Decision[None]:
        """Begin share partitions anew at given offsets; a group that is not there is made."""
        group = self._desk.find_or_new(request.group_id)
        group.check_delete()
        reply = Altered()
        offsets: dict[bytes, dict[int, int]] = {}
        topics: Topics = {}
        for asked in request.topics:
            facts = self._desk.shelf.topics.find(asked.topic_name)
            count = 0 if facts is None else facts.partitions
            answers = []
            for wish in asked.partitions:
                answers.append(_AlteredPartition(partition_index=wish.partition_index))
                if not 0 <= wish.partition_index < count:
                    answers[-1].error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    answers[-1].error_message = _NO_TOPIC
                elif facts is not None:
                    offsets.setdefault(facts.id, {})[wish.partition_index] = wish.start_offset
            answer = _AlteredTopic(topic_name=asked.topic_name, partitions=answers)
            if facts is not None:
                answer.topic_id = facts.id
            reply.responses.append(answer)
            if facts is not None and facts.id in offsets:
                topics[facts.id] = Topic(facts.name, frozenset(offsets[facts.id]))
        if not topics:
            return Decision(None, (), (Answer(token, reply),))
        for topic_id in topics:
            self._desk.asked(group.id, topic_id, now)
        self._altered[token] = reply
        effect = InitializeState(initialize_request(group.id, group.epoch, offsets), token)
        made = (group.progress or Progress()).begun(topics)
        return Decision(None, (records.progress(group.id, made),), (effect,))

    def delete(self, token: int, request: Delete) -> Decision[None]:
        """Forget the offsets of topics."""
        group = self._desk.find(request.group_id)
        group.check_delete()
        progress = group.progress
        reply = Deleted()
        if progress is None:
            return Decision(None, (), (Answer(token, reply),))
        going: dict[bytes, str] = {}
        asked: dict[bytes, frozenset[int]] = {}
        for topic in request.topics:
            facts = self._desk.shelf.topics.find(topic.topic_name)
            if facts is not None and facts.id in progress.initialized:
                going[facts.id] = facts.name
                asked[facts.id] = progress.initialized[facts.id].partitions
            elif facts is not None and facts.id in progress.deleting:
                asked[facts.id] = frozenset(range(facts.partitions))
            else:
                message = _NO_TOPIC if facts is None else "There is no offset information to delete."
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                reply.responses.append(
                    _DeletedTopic(topic_name=topic.topic_name, error_code=code, error_message=message)
                )
        record = records.progress(group.id, progress.deletion_begun(going))
        if not asked:
            return Decision(None, (record,), (Answer(token, reply),))
        self._deleted[token] = reply
        return Decision(None, (record,), (DeleteState(delete_request(group.id, asked), token),))

    def initialized(
        self, group_id: str, response: InitializeShareGroupStateResponse, token: int | None, now: int
    ) -> Decision[None]:
        """Learn what became of an `InitializeState`: all of it is there, or all of it is to be asked for again."""
        partitions = {
            each.topic_id: frozenset(part.partition for part in each.partitions) for each in response.results
        }
        errors = {
            (each.topic_id, part.partition): part
            for each in response.results
            for part in each.partitions
            if part.error_code
        }
        for topic_id in partitions:
            self._desk.forget(group_id, topic_id)
        reply = None if token is None else self._altered.pop(token, None)
        answers: tuple[Effect, ...] = ()
        if token is not None and reply is not None:
            for topic in reply.responses:
                for answer in topic.partitions:
                    error = errors.get((topic.topic_id, answer.partition_index))
                    if error is not None:
                        answer.error_code, answer.error_message = error.error_code, error.error_message
            answers = (Answer(token, reply),)
        settled = self._settled(group_id, partitions, failed=bool(errors))
        return Decision(None, settled, answers, any_length=True)

    def deleted(self, group_id: str, response: DeleteShareGroupStateResponse, token: int) -> Decision[None]:
        """Learn what became of a `DeleteState`; a topic of which a partition is left stays on the way out."""
        reply = self._deleted.pop(token, Deleted())
        done = []
        for result in response.results:
            error = next((part for part in result.partitions if part.error_code), None)
            topic = _DeletedTopic(topic_id=result.topic_id, topic_name=self._desk.name(result.topic_id))
            if error is None:
                done.append(result.topic_id)
            else:
                topic.error_code, topic.error_message = error.error_code, error.error_message
            reply.responses.append(topic)
        answer = (Answer(token, reply),)
        group = self._desk.find(group_id)
        if not done or group.progress is None:
            return Decision(None, (), answer)
        record = records.progress(group_id, group.progress.deletion_done(done))
        return Decision(None, (record,), answer, any_length=True)

    def delete_all(self, group_id: str) -> Decision[DeleteShareGroupStateRequest | None]:
        """Return what has to be deleted at the share coordinators before the group may be; None when nothing has."""
        group = self._desk.find(group_id)
        group.check_delete()
        if group.progress is None:
            return Decision(None)
        again: Topics = {}
        for topic_id in group.progress.deleting:
            facts = self._desk.shelf.topics.by_id(topic_id)
            if facts is not None:
                again[topic_id] = Topic(facts.name, frozenset(range(facts.partitions)))
        progress, topics = group.progress.all_deleting(again)
        partitions = {topic_id: topic.partitions for topic_id, topic in topics.items()}
        request = delete_request(group_id, partitions) if partitions else None
        return Decision(request, (records.progress(group_id, progress),), any_length=True)

    def forget(self, token: int) -> None:
        """Let an answer that nobody waits for any more go."""
        self._altered.pop(token, None)
        self._deleted.pop(token, None)

    def _settled(
        self, group_id: str, partitions: Mapping[bytes, frozenset[int]], *, failed: bool
    ) -> tuple[KeyedRecord, ...]:
        try:
            group = self._desk.find(group_id)
        except BrokerError:
            return ()  # It was deleted meanwhile.
        progress = group.progress or Progress()
        if failed:
            if not progress.initializing:
                return ()
            return (records.progress(group_id, progress.failed(partitions)),)
        return (
            (records.progress(group_id, progress.done(self._desk.named(partitions))),) if partitions else ()
        )


def delete_request(group_id: str, partitions: Mapping[bytes, frozenset[int]]) -> DeleteShareGroupStateRequest:
    """Return the request that deletes the state of share partitions."""
    part = _StateData.PartitionData
    return DeleteShareGroupStateRequest(
        group_id=group_id,
        topics=[
            _StateData(
                topic_id=each, partitions=[part(partition=number) for number in sorted(partitions[each])]
            )
            for each in sorted(partitions)
        ],
    )
