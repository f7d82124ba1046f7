"""A disk that forgets: what was not synced when the power went is there in part, or torn, or not at all.

K1  What was synced stays.
K2  Of what was not, a prefix stays: of the states that were written, and of the changes to the log. A change of the log
    stays only if the states written before it do, since the driver syncs those first.
K3  The last append of that prefix may be torn at any byte, and a byte in it may be wrong. Recovery keeps the batches
    before that, and no more. The wrong byte is one that the checksum covers: base offset and epoch lie outside it, and
    a recovery can only hold them against their neighbours.
K4  A snapshot is written aside and gets its name once it is synced, so it is whole or not there.
"""

from collections.abc import Callable
from typing import NamedTuple

from ottla.raft.election_state import ElectionState
from ottla.raft.snapshot import SnapshotId
from ottla.sim.quorum.log import Entry, SimLog, entries_in
from ottla.wire.batch import Batch
from ottla.world.entropy import Entropy

_CHECKED_FROM = 17  # where the checksum of a batch stands, in front of what it covers


class _Change(NamedTuple):
    number: int
    states_before: int
    apply: Callable[[SimLog], object]
    appended: bytes | None


class QuorumDisk:
    """The metadata directory of one node: `quorum-state`, the log, its snapshots."""

    __slots__ = ("_changes", "_states", "_states_written", "durable_end_offset", "log", "state", "synced")

    def __init__(self) -> None:
        self.state: ElectionState | None = None  # as it is on disk
        self.synced = SimLog()  # as it is on disk
        self.log = SimLog()  # as it is seen while the node runs
        self._states: list[tuple[int, ElectionState]] = []
        self._changes: list[_Change] = []
        self._states_written = 0
        self.durable_end_offset = 0

    def write_state(self, number: int, state: ElectionState) -> None:
        """Write `quorum-state`; the bytes go through Kafka's form."""
        self._states_written += 1
        self._states.append((number, ElectionState.decode(state.encode(1, ()))))

    def append(self, number: int, data: bytes | bytearray) -> list[Entry]:
        """Append batches."""
        entries = entries_in(data)
        self.log.append(entries)
        self._change(number, lambda log: log.append(entries), bytes(data))
        return entries

    def truncate(self, number: int, end_offset: int) -> list[Entry]:
        """Cut the log, and return what was cut off."""
        cut = self.log.truncate(end_offset)
        self._change(number, lambda log: log.truncate(end_offset))
        return cut

    def reset(self, number: int, id: SnapshotId) -> list[Entry]:
        """Begin the log anew behind a snapshot, and return what was there."""
        cut = self.log.reset(id)
        self._change(number, lambda log: log.reset(id))
        return cut

    def trim(self, id: SnapshotId) -> None:
        """Remove from the log what a snapshot stands for; the files are gone once something else is synced."""
        self.log.trim(id)
        self._change(0, lambda log: log.trim(id) if id.offset > log.start_offset else None)

    def keep_snapshot(self, id: SnapshotId, data: bytes) -> None:
        """Give a snapshot its name; it was synced before."""
        self.log.snapshots[id] = data
        self.synced.snapshots[id] = data

    def _change(self, number: int, apply: Callable[[SimLog], object], appended: bytes | None = None) -> None:
        self._changes.append(_Change(number, self._states_written, apply, appended))

    def sync(self, number: int) -> None:
        """Make all durable up to this number."""
        while self._states and self._states[0][0] <= number:
            self.state = self._states.pop(0)[1]
        while self._changes and self._changes[0].number <= number:
            self._changes.pop(0).apply(self.synced)
        self.durable_end_offset = self.synced.end_offset

    def lose_power(self, entropy: Entropy, *, tears: bool) -> None:
        """Forget what was not synced, more or less, and recover what is left."""
        states = entropy.below(len(self._states) + 1)
        kept_states = self._states_written - len(self._states) + states
        if states:
            self.state = self._states[states - 1][1]
        possible = [each for each in self._changes if each.states_before <= kept_states]
        kept = entropy.below(len(possible) + 1)
        for change in possible[:kept]:
            change.apply(self.synced)
        if tears and kept < len(possible) and (data := possible[kept].appended) is not None:
            torn = bytearray(data[: entropy.below(len(data) + 1)])
            size = min(len(torn), Batch.parse(data).size)
            if size > _CHECKED_FROM and entropy.below(2):
                torn[_CHECKED_FROM + entropy.below(size - _CHECKED_FROM)] ^= 1 << entropy.below(8)
            self.synced.append(entries_in(torn))
        self._states.clear()
        self._changes.clear()
        newest = max(self.synced.snapshots, default=None)
        if newest is not None and (newest.epoch, newest.offset) > self.synced.last:
            self.synced.reset(newest)
        self.log = self.synced.copy()
        self.durable_end_offset = self.synced.end_offset

    def wipe(self) -> None:
        """Lose everything."""
        self.state = None
        self.synced, self.log = SimLog(), SimLog()
        self._states.clear()
        self._changes.clear()
        self.durable_end_offset = 0
