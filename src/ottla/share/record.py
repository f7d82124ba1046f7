"""The records of `__share_group_state`, and the state that is a fold of them.

A snapshot holds the whole state of a share partition; an update holds what changed since. They have keys of different
types, so that compaction keeps the newest of each.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ottla.replicated.keyed import KeyedRecord, Kinds
from ottla.share.batches import StateBatch, combine
from ottla.share.key import ShareKey
from ottla.wire.records.share_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)

KINDS: Kinds = {0: (ShareSnapshotKey, ShareSnapshotValue), 1: (ShareUpdateKey, ShareUpdateValue)}

UNKNOWN = -1  # An offset or a count that nobody has said yet.


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The durable state of one share partition; `updates` counts the updates since the snapshot."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    batches: tuple[StateBatch, ...] = ()
    create_timestamp: int = 0
    write_timestamp: int = 0
    updates: int = 0

    @classmethod
    def of_snapshot(cls, value: ShareSnapshotValue) -> "PartitionState":
        """Return what a snapshot says."""
        return cls(
            value.snapshot_epoch,
            value.state_epoch,
            value.leader_epoch,
            value.start_offset,
            value.delivery_complete_count,
            _batches(value.state_batches),
            value.create_timestamp,
            value.write_timestamp,
        )

    @classmethod
    def of_update(cls, value: ShareUpdateValue) -> "PartitionState":
        """Return what an update says when there is no snapshot."""
        counts = (value.start_offset, value.delivery_complete_count)
        return cls(
            value.snapshot_epoch, 0, value.leader_epoch, *counts, _batches(value.state_batches), updates=1
        )

    def updated(self, value: ShareUpdateValue) -> "PartitionState":
        """Return the state with an update laid over it."""
        start_offset = self.start_offset if value.start_offset == UNKNOWN else value.start_offset
        return replace(
            self,
            leader_epoch=self.leader_epoch if value.leader_epoch == UNKNOWN else value.leader_epoch,
            start_offset=start_offset,
            complete_count=value.delivery_complete_count,
            batches=combine(self.batches, _batches(value.state_batches), start_offset),
            updates=self.updates + 1,
        )


def snapshot_record(key: ShareKey, state: PartitionState) -> KeyedRecord:
    """Return the record that holds a whole state."""
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.complete_count,
        create_timestamp=state.create_timestamp,
        write_timestamp=state.write_timestamp,
        state_batches=[ShareSnapshotValue.StateBatch(**batch._asdict()) for batch in state.batches],
    )
    return KeyedRecord(ShareSnapshotKey(**key._asdict()), value)


def update_record(key: ShareKey, change: PartitionState) -> KeyedRecord:
    """Return the record that holds a change; the state epoch is not part of it."""
    value = ShareUpdateValue(
        snapshot_epoch=change.snapshot_epoch,
        leader_epoch=change.leader_epoch,
        start_offset=change.start_offset,
        delivery_complete_count=change.complete_count,
        state_batches=[ShareUpdateValue.StateBatch(**batch._asdict()) for batch in change.batches],
    )
    return KeyedRecord(ShareUpdateKey(**key._asdict()), value)


def tombstone(key: ShareKey) -> KeyedRecord:
    """Return the record that forgets a share partition, updates and all."""
    return KeyedRecord(ShareSnapshotKey(**key._asdict()), None)


def _batches(
    batches: Iterable[ShareSnapshotValue.StateBatch] | Iterable[ShareUpdateValue.StateBatch],
) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(each.first_offset, each.last_offset, each.delivery_count, each.delivery_state)
        for each in batches
    )
