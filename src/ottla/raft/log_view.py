"""What Raft asks of the log it replicates: bytes to send to others, and nothing else.

All that is decided, is decided over the outline of the log. The view is asked for what lies before the step at hand;
what that step appends is sent from memory.
"""

from typing import NamedTuple, Protocol

from ottla.raft.election_state import ElectionState
from ottla.raft.membership import Membership
from ottla.raft.outline import Outline
from ottla.raft.snapshot import SnapshotId

Buffer = bytes | bytearray | memoryview


class LogView(Protocol):
    """The log and its snapshots, to read from."""

    def read(self, offset: int, size_bytes_max: int) -> Buffer:
        """Whole batches from the one that begins at `offset` on; at least that one, if there is one.

        BrokerError says why they cannot be read.
        """
        ...

    def check(self, data: Buffer, position: int) -> None:
        """Raise ProtocolError for a batch of the leader's with a record that the state machine could not read back."""
        ...

    def snapshot_size(self, id: SnapshotId) -> int | None:
        """The size of a snapshot; None when it is gone."""
        ...

    def read_snapshot(self, id: SnapshotId, position: int, size_bytes_max: int) -> Buffer:
        """A piece of a snapshot, cut anywhere. BrokerError says why it cannot be read."""
        ...


class Memory(NamedTuple):
    """What a replica finds on its disk when it starts: `quorum-state`, and what the log says when it is read."""

    state: ElectionState
    outline: Outline
    membership: Membership
