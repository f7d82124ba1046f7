"""The share coordinator of one partition of `__share_group_state`: it keeps how far share partitions have come.

K1  State exists from `initialize` to `delete`; neither read nor write brings it into being.
K2  A leader of an older epoch than the newest heard of is refused, as is a writer of an older state epoch: the state
    was begun anew since, and its word is about the one before.
K3  A change is an update; after `share.coordinator.snapshot.update.records.per.snapshot` of them comes a snapshot.
K4  Below `redundant_offset` the log holds nothing that a snapshot after it does not hold as well.

Kafka's requests name many share partitions, each kept by a partition of the topic of its own: whoever takes the
request finds that with `state_partition`, and gives each command its own share partition.
"""

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import replace
from typing import Any

from ottla.replicated.decision import Decision, together
from ottla.replicated.keyed import KeyedRecord, stored_bytes
from ottla.replicated.steps import STEP_BYTES, Piece, Steps, cost_of, in_steps
from ottla.share.batches import BATCHES_MAX, StateBatch, combine, nonsense
from ottla.share.key import ShareKey
from ottla.share.record import UNKNOWN, PartitionState, snapshot_record, tombstone, update_record
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.delete_share_group_state import DeleteShareGroupStateResponse
from ottla.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from ottla.wire.messages.read_share_group_state import ReadShareGroupStateResponse
from ottla.wire.messages.read_share_group_state_summary import ReadShareGroupStateSummaryResponse
from ottla.wire.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from ottla.wire.records.share_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)

Initialize = InitializeShareGroupStateRequest.InitializeStateData.PartitionData
Initialized = InitializeShareGroupStateResponse.InitializeStateResult.PartitionResult
ReadState = ReadShareGroupStateResponse.ReadStateResult.PartitionResult
Write = WriteShareGroupStateRequest.WriteStateData.PartitionData
Written = WriteShareGroupStateResponse.WriteStateResult.PartitionResult
Deleted = DeleteShareGroupStateResponse.DeleteStateResult.PartitionResult
Summary = ReadShareGroupStateSummaryResponse.ReadStateSummaryResult.PartitionResult

COLD_MS = 300_000
_SNAPSHOTS_MAX = 200  # in one step, if they have no more than STEP_BYTES: each may hold many batches
_MORE_MS = 50


class ShareState:
    """The machine. `partitions` returns how many partitions the topic of an id has, None when there is none."""

    __slots__ = ("_cold_at", "_gone_offset", "_is_under_way", "_leader_epochs", "_offsets", "_partitions",
                 "_state_epochs", "_values", "states")  # fmt: skip

    def __init__(self, partitions: Callable[[bytes], int | None], values: Mapping[str, Any]) -> None:
        self.states: dict[ShareKey, PartitionState] = {}
        self._partitions = partitions
        self._values = values
        # The highest epochs ever recorded of each: state that is begun anew keeps out those who missed it.
        self._leader_epochs: dict[ShareKey, int] = {}
        self._state_epochs: dict[ShareKey, int] = {}
        self._offsets: dict[ShareKey, int] = {}
        self._gone_offset: int | None = None
        self._cold_at: int | None = None
        self._is_under_way = False  # whether there are more snapshots to write than one step does

    @property
    def deadline(self) -> int | None:
        """When to look for share partitions without a fresh snapshot."""
        return self._cold_at

    @property
    def redundant_offset(self) -> int | None:
        """The offset below which the log may be cut off; None when there is nothing to cut."""
        offset = min(self._offsets.values(), default=self._gone_offset)
        return offset if offset else None

    def apply(self, offset: int, record: KeyedRecord) -> None:
        """Take in a snapshot, an update, or the end of a share partition."""
        key, value = record.key, record.value
        assert isinstance(key, ShareSnapshotKey | ShareUpdateKey)
        where = ShareKey(key.group_id, key.topic_id, key.partition)
        if isinstance(value, ShareSnapshotValue):
            self.states[where] = PartitionState.of_snapshot(value)
            self._offsets[where] = offset
            self._state_epochs[where] = max(value.state_epoch, self._state_epochs.get(where, UNKNOWN))
            self._leader_epochs[where] = max(value.leader_epoch, self._leader_epochs.get(where, UNKNOWN))
        elif isinstance(value, ShareUpdateValue):
            known = self.states.get(where)
            self.states[where] = PartitionState.of_update(value) if known is None else known.updated(value)
            self._offsets.setdefault(where, offset)  # K4: without a snapshot, this is all that the log holds of it
            self._leader_epochs[where] = max(value.leader_epoch, self._leader_epochs.get(where, UNKNOWN))
        elif isinstance(key, ShareSnapshotKey):
            for table in (self.states, self._leader_epochs, self._state_epochs, self._offsets):
                table.pop(where, None)
            self._gone_offset = offset

    def loaded(self, now: int) -> None:
        """The log is read: begin to look after partitions that nobody writes to."""
        self._cold_at = now + COLD_MS

    def initialize(self, group_id: str, topic_id: bytes, wish: Initialize, now: int) -> Decision[Initialized]:
        """Begin a share partition, anew if need be, at an offset or, with -1, wherever its leader will say."""
        key = ShareKey(group_id, topic_id, wish.partition)
        code, reason = self._problem(key, state_epoch=wish.state_epoch)
        if code:
            return Decision(Initialized(partition=wish.partition, error_code=code, error_message=reason))
        known = self.states.get(key)
        state = PartitionState(
            snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
            state_epoch=wish.state_epoch,
            leader_epoch=0,
            start_offset=wish.start_offset,
            complete_count=UNKNOWN if wish.start_offset == UNKNOWN else 0,
            create_timestamp=now,
            write_timestamp=now,
        )
        return Decision(Initialized(partition=wish.partition), (snapshot_record(key, state),))

    def read(
        self, group_id: str, topic_id: bytes, partition: int, leader_epoch: int, now: int
    ) -> Decision[ReadState]:
        """Return the whole state to the partition's leader, and from now on refuse leaders before it."""
        key = ShareKey(group_id, topic_id, partition)
        code, reason = self._problem(key, leader_epoch, must_exist=True)
        if code:
            return Decision(ReadState(partition=partition, error_code=code, error_message=reason))
        state = self.states[key]
        reply = ReadState(
            partition=partition,
            state_epoch=state.state_epoch,
            start_offset=state.start_offset,
            state_batches=[ReadState.StateBatch(**batch._asdict()) for batch in state.batches],
        )
        if leader_epoch in {UNKNOWN, self._leader_epochs.get(key)}:
            return Decision(reply)
        change = replace(state, leader_epoch=leader_epoch, batches=())
        return Decision(reply, (self._record(key, change, now),))

    def write(self, group_id: str, topic_id: bytes, wish: Write, now: int) -> Decision[Written]:
        """Lay a change over the state."""
        key = ShareKey(group_id, topic_id, wish.partition)
        code, reason = self._problem(key, wish.leader_epoch, wish.state_epoch, must_exist=True)
        if code:
            return Decision(Written(partition=wish.partition, error_code=code, error_message=reason))
        batches = tuple(
            StateBatch(each.first_offset, each.last_offset, each.delivery_count, each.delivery_state)
            for each in wish.state_batches
        )
        reason = nonsense(batches)
        if reason is None and len(batches) + len(self.states[key].batches) > 2 * BATCHES_MAX:
            reason = f"the state would have more than {2 * BATCHES_MAX} batches"
        if reason is not None:
            return Decision(
                Written(partition=wish.partition, error_code=ErrorCode.INVALID_REQUEST, error_message=reason)
            )
        change = replace(
            self.states[key],
            start_offset=wish.start_offset,
            complete_count=wish.delivery_complete_count,
            batches=batches,
        )
        return Decision(Written(partition=wish.partition), (self._record(key, change, now),))

    def summarize(self, group_id: str, topic_id: bytes, partition: int) -> Decision[Summary]:
        """Return start offset and epochs; of a share partition without state, that it has none."""
        key = ShareKey(group_id, topic_id, partition)
        code, reason = self._problem(key)
        if code:
            return Decision(Summary(partition=partition, error_code=code, error_message=reason))
        state = self.states.get(key) or PartitionState(0, 0, 0, UNKNOWN, UNKNOWN)
        return Decision(
            Summary(
                partition=partition,
                state_epoch=state.state_epoch,
                leader_epoch=state.leader_epoch,
                start_offset=state.start_offset,
                delivery_complete_count=state.complete_count,
            )
        )

    def delete(self, group_id: str, topic_id: bytes, partition: int) -> Decision[Deleted]:
        """Forget a share partition; one that is not there is forgotten already."""
        key = ShareKey(group_id, topic_id, partition)
        code, reason = self._problem(key)
        if code:
            return Decision(Deleted(partition=partition, error_code=code, error_message=reason))
        records = (tombstone(key),) if key in self.states else ()
        return Decision(Deleted(partition=partition), records)

    def topics_deleted(self, topic_ids: Set[bytes]) -> Steps:
        """Forget the share partitions of topics that are no more."""
        return in_steps(self._forget(lambda topic_id: topic_id in topic_ids))

    def forget_gone(self) -> Steps:
        """Forget those of topics that were deleted while nobody led."""
        return in_steps(self._forget(lambda topic_id: self._partitions(topic_id) is None))

    def _forget(self, is_gone: Callable[[bytes], bool]) -> Iterator[Piece]:
        states = self.states
        for key in tuple(states):
            if key in states and is_gone(key.topic_id):
                yield cost_of(key.group_id), (tombstone(key),)
            else:
                yield 1, ()

    def expire(self, now: int) -> Decision[None]:
        """Write a snapshot of what has had none for long, so that the log behind it can go; not while all is quiet."""
        self._cold_at = now + COLD_MS
        is_quiet = all(state.create_timestamp != state.write_timestamp for state in self.states.values())
        if is_quiet and not self._is_under_way:
            return Decision(None)
        cold = (each for each in self.states.items() if now - each[1].write_timestamp >= COLD_MS)
        snapshots: list[Decision[None]] = []
        size_bytes = 0
        self._is_under_way = False
        for key, state in cold:
            fresh = replace(state, snapshot_epoch=state.snapshot_epoch + 1, write_timestamp=now)
            records = (snapshot_record(key, fresh),)
            snapshots.append(Decision(None, records, any_length=True))
            size_bytes += stored_bytes(records)
            if len(snapshots) == _SNAPSHOTS_MAX or size_bytes >= STEP_BYTES:
                self._is_under_way = True
                self._cold_at = now + _MORE_MS
                break
        return together(snapshots) if snapshots else Decision(None)

    def _record(self, key: ShareKey, change: PartitionState, now: int) -> KeyedRecord:
        known = self.states[key]
        if known.updates < self._values["share.coordinator.snapshot.update.records.per.snapshot"]:
            return update_record(
                key, replace(change, batches=combine((), change.batches, change.start_offset))
            )
        start_offset = known.start_offset if change.start_offset == UNKNOWN else change.start_offset
        state = replace(
            change,
            snapshot_epoch=known.snapshot_epoch + 1,
            start_offset=start_offset,
            batches=combine(known.batches, change.batches, start_offset),
            create_timestamp=now,
            write_timestamp=now,
        )
        return snapshot_record(key, state)

    def _problem(
        self,
        key: ShareKey,
        leader_epoch: int = UNKNOWN,
        state_epoch: int = UNKNOWN,
        *,
        must_exist: bool = False,
    ) -> tuple[ErrorCode, str | None]:
        if key.partition < 0:
            return ErrorCode.INVALID_REQUEST, "a partition has no negative number"
        if must_exist and key not in self.states:
            return ErrorCode.INVALID_REQUEST, "the share partition has no state"
        if leader_epoch != UNKNOWN and self._leader_epochs.get(key, UNKNOWN) > leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH, "there is a newer leader"
        if state_epoch != UNKNOWN and self._state_epochs.get(key, UNKNOWN) > state_epoch:
            return ErrorCode.FENCED_STATE_EPOCH, "the state was begun anew"
        count = self._partitions(key.topic_id)
        if count is None or key.partition >= count:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition"
        return ErrorCode.NONE, None
