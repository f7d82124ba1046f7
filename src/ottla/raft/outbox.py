"""The outbox: collects what a step wants, and knows which words must wait for which bytes.

R2  Nothing is said in an epoch before the election state that names it is on disk: neither a vote, nor a fetch, nor a
    leader's first word.
R4  A request says that its sender has its log. A fetch is a receipt for every record before its offset, and a vote is
    given for them, so both wait until those records are on disk. What a leader sends to others does not wait for the
    leader's own disk; the leader counts its copy once it is synced, like any other.
"""

from ottla.raft.election_state import ElectionState
from ottla.raft.ready import Leadership, Ready, Reply, Send
from ottla.raft.settings import Node
from ottla.raft.snapshot import Chunk, SnapshotId
from ottla.wire.batch import scan
from ottla.wire.message import Message


class Outbox:
    """What one replica has to write and to say."""

    __slots__ = (
        "_asked",
        "_log_number",
        "_read",
        "_ready",
        "_replies",
        "_requests",
        "_state_number",
        "number",
        "synced",
    )

    def __init__(self) -> None:
        self.number = 0  # of the last Ready with something to write
        self.synced = 0
        self._state_number = 0  # of the last Ready with an election state
        self._log_number = 0  # of the last Ready with a change of the log
        self._asked = 0
        self._requests: list[Send] = []
        self._replies: list[Reply] = []
        self._ready = Ready(0)
        self._read: dict[tuple[int, int], bytearray] = {}  # of what this step appends, by offset and size

    def ask(self, node: Node, message: Message) -> int:
        """Send a request, and return its id."""
        self._asked += 1
        self._requests.append(Send(self._asked, node, message))
        return self._asked

    def reply(self, token: object, message: Message) -> None:
        """Answer a request."""
        self._replies.append(Reply(token, message))

    def save(self, state: ElectionState) -> None:
        """Write the election state."""
        self._ready.state = state

    def append(self, data: bytes | bytearray) -> None:
        """Write batches."""
        self._ready.append.append(data)
        self._read.clear()

    def read(self, offset: int, size_bytes_max: int) -> bytes | bytearray:
        """What this step appends, from the batch that begins at `offset` on; at least that batch, if there is one.

        A hundred observers that wait for the same are sent the same bytes, read once.
        """
        known = self._read.get((offset, size_bytes_max))
        if known is None:
            known = self._read[offset, size_bytes_max] = self._scan(offset, size_bytes_max)
        return known

    def _scan(self, offset: int, size_bytes_max: int) -> bytearray:
        found = bytearray()
        for data in self._ready.append:
            for position, batch in scan(data):
                if batch.base_offset >= offset:
                    if found and len(found) + batch.size > size_bytes_max:
                        return found
                    found += data[position : position + batch.size]
        return found

    def truncate(self, end_offset: int) -> None:
        """Cut the log."""
        assert not self._ready.append, "a step cuts the log before it appends"
        self._ready.truncate_to = end_offset

    def reset(self, id: SnapshotId) -> None:
        """Begin the log anew behind a snapshot."""
        assert not self._ready.append, "a step begins a log before it appends"
        self._ready.reset_to = id

    def keep(self, chunk: Chunk) -> None:
        """Write a piece of a snapshot."""
        self._ready.chunk = chunk

    def commit(self, end_offset: int) -> None:
        """Tell how far the log is committed."""
        self._ready.committed = end_offset

    def announce(self, leadership: Leadership) -> None:
        """Tell who leads."""
        self._ready.leadership = leadership

    def take(self) -> Ready:
        """Return what the step wants, and begin anew."""
        ready = self._ready
        changes_log = bool(ready.append) or ready.truncate_to is not None or ready.reset_to is not None
        if changes_log or ready.state is not None:
            ready.is_to_sync = True
            self.number += 1
            if ready.state is not None:
                self._state_number = self.number
            if changes_log:
                self._log_number = self.number
        ready.number = self.number
        synced = self.synced
        words: list[Send | Reply] = [*self._replies]
        if self._state_number > synced:
            ready.send_after_sync = [*words, *self._requests]
        elif self._log_number > synced:
            ready.send_now, ready.send_after_sync = words, [*self._requests]
        else:
            ready.send_now = [*words, *self._requests]
        self._replies = []
        self._requests = []
        self._ready = Ready(self.number)
        self._read.clear()
        return ready
