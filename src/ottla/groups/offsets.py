"""Committed offsets of one partition of `__consumer_offsets`: who may commit, fetch and delete them.

X1  Offsets of a group that does not exist make one, an empty classic group that merely holds them.
X2  A commit needs topics and partitions that exist, and a member in its current generation or epoch; without either
    member or generation, an empty group.
X3  A commit by a classic member counts as a heartbeat, unless the members wait for their assignment.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from ottla.groups.classic.group import ClassicGroup, Phase
from ottla.groups.classic.groups import ClassicGroups
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.group import Group, Kind
from ottla.groups.offset_commit import (
    Codes,
    Wish,
    commit_response,
    is_too_long,
    refused_transactional,
    transactional_response,
    wishes,
)
from ottla.groups.offset_expiry import Expiry
from ottla.groups.offset_fetch import Asked, AskedTopic, Found, all_topics, fetch
from ottla.groups.offset_ledger import Ledger
from ottla.groups.offset_records import Committed, Place, commit_record, committed_of, place_of, tombstone
from ottla.groups.shelf import Shelf, TimerKey
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.topics import TopicFacts
from ottla.replicated.decision import Decision
from ottla.replicated.keyed import KeyedRecord
from ottla.replicated.steps import Piece, Steps, cost_of, in_steps
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from ottla.wire.uuid import ZERO_UUID

_TOPIC_IDS_SINCE = 10
_TRANSACTIONAL_TOPIC_IDS_SINCE = 6
_GROUP_ID_NOT_FOUND_SINCE = 9
_NO_RETENTION = -1
# For who asks for more time than a record can say.
_TIMESTAMP_MAX = (1 << 63) - 1

# Raises BrokerError unless a partition may be committed.
_Check = Callable[[TopicFacts, int], None]


class Offsets:
    """The offsets of all groups of a partition."""

    __slots__ = ("_classic", "_expiry", "_last_at", "_ledger", "_shelf")

    def __init__(self, shelf: Shelf, classic: ClassicGroups) -> None:
        self._shelf = shelf
        self._classic = classic
        self._ledger = Ledger()
        self._last_at = -1
        self._expiry = Expiry(shelf, self._ledger)

    # Commands

    def commit(self, request: OffsetCommitRequest, version: int, now: int) -> Decision[OffsetCommitResponse]:
        """Serve OffsetCommit, versions 2 to 10."""
        codes: Codes = []
        by_id = version >= _TOPIC_IDS_SINCE
        wished = list(wishes(request.topics, self._shelf.topics, codes, by_id=by_id))
        records: list[KeyedRecord] = []
        if wished:
            try:
                check = self._check_commit(request, version, now)
                expire_timestamp = None
                if request.retention_time_ms != _NO_RETENTION:
                    expire_timestamp = min(now + request.retention_time_ms, _TIMESTAMP_MAX)
                for wish in self._short(wished, codes):
                    if check is not None:
                        check(wish.topic, wish.partition.partition_index)
                    records.append(_record(request.group_id, wish, now, wish.topic.id, expire_timestamp))
            except BrokerError as error:
                _refuse(wished, codes, error.code)
                return Decision(commit_response(request, codes), is_refusal=True)
        self._shelf.tally.commits += len(records)
        return Decision(commit_response(request, codes), tuple(records))

    def commit_transactional(
        self, request: TxnOffsetCommitRequest, version: int, now: int
    ) -> Decision[TxnOffsetCommitResponse]:
        """Serve TxnOffsetCommit, versions 0 to 6; that the transaction is open is for the host to see to."""
        if not request.group_id:
            return Decision(refused_transactional(request, ErrorCode.INVALID_GROUP_ID))
        codes: Codes = []
        by_id = version >= _TRANSACTIONAL_TOPIC_IDS_SINCE
        wished = list(wishes(request.topics, self._shelf.topics, codes, by_id=by_id))
        records: list[KeyedRecord] = []
        if wished:
            try:
                check = self._check_transactional(request, version)
                for wish in self._short(wished, codes):
                    if check is not None:
                        check(wish.topic, wish.partition.partition_index)
                    records.append(_record(request.group_id, wish, now, ZERO_UUID, None))
            except BrokerError as error:
                stale = error.code is ErrorCode.STALE_MEMBER_EPOCH
                _refuse(wished, codes, ErrorCode.ILLEGAL_GENERATION if stale else error.code)
                return Decision(transactional_response(request, codes), is_refusal=True)
        self._shelf.tally.commits += len(records)
        response = transactional_response(request, codes)
        producer = (request.producer_id, request.producer_epoch)
        return Decision(response, tuple(records), transactional=producer if records else None)

    def fetch(self, asked: Asked, version: int, *, require_stable: bool) -> Decision[Found]:
        """Serve one group of an OffsetFetch, versions 1 to 10; see `offset_fetch` for the whole of it."""
        return Decision(fetch(self._shelf, self._ledger, asked, version, require_stable=require_stable))

    def delete(self, request: OffsetDeleteRequest) -> Decision[OffsetDeleteResponse]:
        """Serve OffsetDelete, version 0."""
        if not request.group_id:
            return Decision(OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        try:
            group = self._group_to_delete_from(request.group_id)
        except BrokerError as error:
            return Decision(OffsetDeleteResponse(error_code=error.code))
        records: list[KeyedRecord] = []
        made = OffsetDeleteResponse.OffsetDeleteResponseTopic
        topics = []
        for topic in request.topics:
            facts = self._shelf.topics.find(topic.name)
            partitions = []
            for each in topic.partitions:
                place = Place(request.group_id, topic.name, each.partition_index)
                code = _delete_code(group, facts, place)
                if code is ErrorCode.NONE and self._is_known(place):
                    records.append(tombstone(place))
                partitions.append(
                    made.OffsetDeleteResponsePartition(partition_index=place.partition, error_code=code)
                )
            topics.append(made(name=topic.name, partitions=partitions))
        self._shelf.tally.deletions += len(records)
        return Decision(OffsetDeleteResponse(topics=topics), tuple(records))

    @property
    def last_at(self) -> int:
        """The offset of the last record of a commit that was taken in."""
        return self._last_at

    def forget_topics(self, deleted: Mapping[str, bytes], last_at: int | None = None) -> Steps:
        """Remove the offsets of topics that were deleted, given by name and id.

        An offset that a newer topic of the same name has got meanwhile stays: by its id, or, where a commit names none,
        by its record, which is later than `last_at`.
        """
        return in_steps(self._of_deleted(deleted, self._last_at if last_at is None else last_at))

    def forget_gone(self) -> Steps:
        """Remove the offsets of topics that are no more, or no more the same."""
        return in_steps(self._gone())

    def _of_deleted(self, deleted: Mapping[str, bytes], last_at: int) -> Iterator[Piece]:
        ledger = self._ledger

        def goes(place: Place, committed: Committed | None) -> bool:
            if committed is None or committed.at > last_at:
                return False
            return committed.topic_id in (ZERO_UUID, deleted[place.topic])

        for group in ledger.groups():
            topics = ledger.topics(group)
            names = list(topics) if len(topics) < len(deleted) else list(deleted)
            yield 1 + len(names), ()
            for name in names:
                if name in deleted:
                    for partition in tuple(ledger.topics(group).get(name, ())):
                        place = Place(group, name, partition)
                        yield cost_of(group), (tombstone(place),) if goes(place, ledger.find(place)) else ()
        for place, committed in tuple(ledger.pending()):
            if place.topic in deleted and goes(place, committed):
                is_there = ledger.is_open(place) or ledger.find(place) == committed
                yield cost_of(place.group), (tombstone(place),) if is_there else ()

    def _gone(self) -> Iterator[Piece]:
        ledger, find = self._ledger, self._shelf.topics.find

        def piece(place: Place, committed: Committed) -> Piece:
            facts = find(place.topic)
            stays = facts is not None and committed.topic_id in (ZERO_UUID, facts.id)
            return (1, ()) if stays else (cost_of(place.group), (tombstone(place),))

        for group in ledger.groups():
            for place in tuple(ledger.places(group)):
                found = ledger.find(place)
                if found is not None:
                    yield piece(place, found)
        for place, committed in tuple(ledger.pending()):
            if ledger.is_open(place):
                yield piece(place, committed)

    # For the parts that serve all kinds

    def committed(self, group_id: str) -> Mapping[str, Mapping[int, Committed]]:
        """Return what a group committed, by topic and partition."""
        return self._ledger.topics(group_id)

    def count(self, group_id: str) -> int:
        """Return how many offsets a group has."""
        return sum(map(len, self._ledger.topics(group_id).values()))

    def asked_topics(self, group_id: str, version: int) -> list[AskedTopic]:
        """Return what OffsetFetch for all that a group knows is answered with, as if it had been named."""
        return all_topics(self._shelf, self._ledger, group_id, version)

    def tombstones(self, group_id: str, most: int) -> list[KeyedRecord]:
        """Return the records that remove the offsets of a group, or so many of them."""
        return [tombstone(place) for place in islice(self._ledger.places(group_id), most)]

    # The log

    def apply(self, offset: int, record: KeyedRecord) -> None:
        """Take in a commit, or that one is gone."""
        place = place_of(record.key)
        if record.value is None:
            self._ledger.remove(place)
            self._expiry.offset_removed(place)
            return
        self._make_group(place.group)
        self._last_at = offset
        committed = committed_of(offset, record.value)
        self._ledger.put(place, committed)
        self._expiry.offset_committed(place, committed)

    def apply_pending(self, producer_id: int, offset: int, record: KeyedRecord) -> None:
        """Take in a commit that is part of a transaction."""
        if record.value is None:
            self.apply(offset, record)
            return
        place = place_of(record.key)
        self._make_group(place.group)
        self._last_at = offset
        self._ledger.hold(producer_id, place, committed_of(offset, record.value))
        self._expiry.group_seen(place.group)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """End a producer's transaction as its marker says."""
        for place in self._ledger.end(producer_id, committed=committed):
            found = self._ledger.find(place)
            if found is not None:
                self._make_group(place.group)  # it may be gone by its own record, without those of its offsets
                self._expiry.offset_committed(place, found)
            else:
                self._expiry.offset_removed(place)

    def group_seen(self, group_id: str) -> None:
        """Note that a record spoke of a group."""
        self._expiry.group_seen(group_id)

    def expire(self, key: TimerKey, now: int) -> Decision[None]:
        """Look for expired offsets of a group, and remove the group when it is left with nothing."""
        return self._expiry.expire(key[1], now)

    # Checks

    def _check_commit(self, request: OffsetCommitRequest, version: int, now: int) -> _Check | None:
        group = self._shelf.groups.get(request.group_id)
        epoch = request.generation_id_or_member_epoch
        if group is None:
            if epoch < 0:
                return None
            known = version >= _GROUP_ID_NOT_FOUND_SINCE
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND if known else ErrorCode.ILLEGAL_GENERATION)
        check = _may_commit(
            group, request.member_id, request.group_instance_id, epoch, version, transactional=False
        )
        if isinstance(group, ClassicGroup) and group.phase in (Phase.STABLE, Phase.PREPARING):
            self._classic.touch(group, request.member_id, now)
        return check

    def _check_transactional(self, request: TxnOffsetCommitRequest, version: int) -> _Check | None:
        group = self._shelf.groups.get(request.group_id)
        epoch = request.generation_id_or_member_epoch
        if group is None:
            if epoch < 0:
                return None
            raise BrokerError(ErrorCode.ILLEGAL_GENERATION)
        return _may_commit(
            group, request.member_id, request.group_instance_id, epoch, version, transactional=True
        )

    def _short(self, wished: list[Wish], codes: Codes) -> list[Wish]:
        """Return those whose note is not too long."""
        size_max = self._shelf.values["offset.metadata.max.bytes"]
        fitting = []
        for wish in wished:
            if is_too_long(wish.partition.committed_metadata, size_max):
                codes[wish.at[0]][wish.at[1]] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                fitting.append(wish)
        return fitting

    def _group_to_delete_from(self, group_id: str) -> Group:
        group = self._shelf.groups.get(group_id)
        if group is None or group.kind is Kind.SHARE:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND)
        if isinstance(group, ClassicGroup):
            group.check_offset_delete()
        return group

    def _is_known(self, place: Place) -> bool:
        return self._ledger.find(place) is not None or self._ledger.is_open(place)

    def _make_group(self, group_id: str) -> None:
        if group_id not in self._shelf.groups:
            self._classic.add_simple(group_id)


def _may_commit(
    group: Group, member_id: str, instance_id: str | None, epoch: int, version: int, *, transactional: bool
) -> _Check | None:
    """Raise BrokerError unless a member may commit; return what has yet to be asked of each partition, if anything."""
    if isinstance(group, ConsumerGroup):
        by_id = group.commit_check(member_id, instance_id, epoch, version, transactional=transactional)
        return None if by_id is None else lambda topic, partition: by_id(topic.id, partition)
    if isinstance(group, StreamsGroup):
        by_name = group.commit_check(member_id, instance_id, epoch, version, transactional=transactional)
        return None if by_name is None else lambda topic, partition: by_name(topic.name, partition)
    group.check_commit(member_id, instance_id, epoch, version, transactional=transactional)
    return None


def _record(
    group_id: str, wish: Wish, now: int, topic_id: bytes, expire_timestamp: int | None
) -> KeyedRecord:
    partition = wish.partition
    return commit_record(
        Place(group_id, wish.topic.name, partition.partition_index),
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata,
        now,
        expire_timestamp=expire_timestamp,
        topic_id=topic_id,
    )


def _refuse(wished: list[Wish], codes: Codes, code: ErrorCode) -> None:
    for wish in wished:
        codes[wish.at[0]][wish.at[1]] = code


def _delete_code(group: Group, facts: TopicFacts | None, place: Place) -> ErrorCode:
    if facts is None or not 0 <= place.partition < facts.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.subscribes_to(place.topic) else ErrorCode.NONE
