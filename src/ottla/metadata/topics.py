"""Topics and partitions as values.

Partition indexes of a topic are dense from zero once the batch that made them is applied. Everything here is a tuple:
an image of many thousand partitions is made by the interpreter's fastest constructor, and shared without fear.

What is the same in most partitions is one object in all of them, which is a third of an image: an in-sync set that is
all replicas, and the id of a directory.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from ottla.metadata.directory import MIGRATING
from ottla.metadata.error import MetadataError
from ottla.wire.records.metadata import PartitionChangeRecord, PartitionRecord

NO_LEADER = -1
NO_LEADER_CHANGE = -2
RECOVERED = 0
RECOVERING = 1


class PartitionState(NamedTuple):
    """What the cluster knows of one partition."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    directories: tuple[bytes, ...]
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    leader_recovery_state: int = RECOVERED

    @classmethod
    def of(cls, record: PartitionRecord) -> "PartitionState":
        """The state a PartitionRecord describes."""
        replicas = tuple(record.replicas)
        return cls(
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
            replicas,
            _in_sync(record.isr, replicas),
            _directories(record.directories, replicas),
            tuple(record.eligible_leader_replicas or ()),
            tuple(record.last_known_elr or ()),
            tuple(record.adding_replicas),
            tuple(record.removing_replicas),
            record.leader_recovery_state,
        )

    def changed_by(self, change: PartitionChangeRecord) -> "PartitionState":
        """The state after a change: any change raises the partition epoch, a named leader the leader epoch."""
        replicas = self.replicas if change.replicas is None else tuple(change.replicas)
        directories: tuple[bytes, ...] | list[bytes] = self.directories
        if change.directories is not None:
            directories = change.directories
        elif len(directories) != len(replicas):
            directories = ()
        leader, leader_epoch = self.leader, self.leader_epoch
        if change.leader != NO_LEADER_CHANGE:
            leader, leader_epoch = change.leader, leader_epoch + 1
        recovery = change.leader_recovery_state
        elr, last_known_elr = change.eligible_leader_replicas, change.last_known_elr
        return PartitionState(
            leader,
            leader_epoch,
            self.partition_epoch + 1,
            replicas,
            self.isr if change.isr is None else _in_sync(change.isr, replicas),
            _directories(directories, replicas),
            self.elr if elr is None else tuple(elr),
            self.last_known_elr if last_known_elr is None else tuple(last_known_elr),
            self.adding if change.adding_replicas is None else tuple(change.adding_replicas),
            self.removing if change.removing_replicas is None else tuple(change.removing_replicas),
            self.leader_recovery_state if recovery < 0 else recovery,
        )

    def record(self, topic_id: bytes, index: int) -> PartitionRecord:
        """The record that makes this state."""
        return PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing),
            adding_replicas=list(self.adding),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=list(self.directories),
            eligible_leader_replicas=list(self.elr) or None,
            last_known_elr=list(self.last_known_elr) or None,
        )

    @property
    def reassigning(self) -> bool:
        """True while replicas are on their way in or out."""
        return bool(self.adding or self.removing)

    def directory_of(self, broker: int) -> bytes:
        """The directory that holds this broker's replica; a broker without one has a migrating one."""
        try:
            return self.directories[self.replicas.index(broker)]
        except ValueError:
            return MIGRATING


class Topic(NamedTuple):
    """A topic and its partitions by index."""

    name: str
    id: bytes
    partitions: Mapping[int, PartitionState]


class Topics(NamedTuple):
    """All topics, by both of their keys."""

    by_name: Mapping[str, Topic]
    by_id: Mapping[bytes, Topic]


def _in_sync(isr: list[int], replicas: tuple[int, ...]) -> tuple[int, ...]:
    members = tuple(isr)
    return replicas if members == replicas else members


def _directories(
    directories: tuple[bytes, ...] | list[bytes], replicas: tuple[int, ...]
) -> tuple[bytes, ...]:
    if not directories:
        return (MIGRATING,) * len(replicas)
    if len(directories) != len(replicas):
        raise MetadataError(f"{len(directories)} directories are named for {len(replicas)} replicas")
    return directories if isinstance(directories, tuple) else tuple(map(_shared, directories))


@lru_cache(maxsize=4096)
def _shared(directory: bytes) -> bytes:
    """The id that was seen first, of those that are the same."""
    return directory
