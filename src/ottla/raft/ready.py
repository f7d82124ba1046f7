"""What a step asks for: what to write, what to say, and what has become certain.

D1  The driver carries out the Readys in order: `state`, then `reset_to` or `truncate_to`, then `append`. The state is
    on disk before the log is touched; the log need not be synced at once.
D2  It does so before the next step, since the next step counts on the log having what this one appended.
D3  `send_now` waits for nothing. `send_after_sync` waits until all that was to be written up to this `number` is on
    disk, which the driver then tells by `Synced(number)`.
D4  `committed` is told to the state machine before `leadership` is: a leader has seen all that is committed before it
    decides anything.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.raft.election_state import ElectionState
from ottla.raft.settings import Node
from ottla.raft.snapshot import Chunk, SnapshotId
from ottla.wire.message import Message


class Send(NamedTuple):
    """A request to another node; its answer comes back as Response, or Failure, with this id."""

    request_id: int
    node: Node
    message: Message


class Reply(NamedTuple):
    """An answer to the request that came with this token."""

    token: object
    message: Message


class Leadership(NamedTuple):
    """Who leads in which epoch; -1 while nobody is known to."""

    leader_id: int
    epoch: int


@dataclass(slots=True)
class Ready:
    """The outcome of one step."""

    number: int
    state: ElectionState | None = None
    reset_to: SnapshotId | None = None
    truncate_to: int | None = None
    append: list[bytes | bytearray] = field(default_factory=list)
    chunk: Chunk | None = None
    send_now: list[Send | Reply] = field(default_factory=list)
    send_after_sync: list[Send | Reply] = field(default_factory=list)
    committed: int | None = None
    leadership: Leadership | None = None
    is_to_sync: bool = False  # something has to reach the disk
