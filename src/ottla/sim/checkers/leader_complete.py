"""A leader has all that was committed in the epochs before its own (Raft, §5.4)."""

from ottla.raft.event import Event
from ottla.sim.checkers.checker import Checker
from ottla.sim.quorum.node import SimNode


class LeaderComplete(Checker):
    """Whoever is elected lacks nothing."""

    rule = "a leader has all that is committed"

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def led(self, node: SimNode, event: Event) -> None:
        """Look at the log of a new leader."""
        raft = node.raft
        if raft is None or raft.epoch in self._seen:
            return
        self._seen.add(raft.epoch)
        last = self.cluster.history.last_before(raft.epoch)
        if last is None or node.disk.log.start_offset >= last.end_offset:
            return
        own = node.entry_at(last.base_offset)
        self.check(
            own is not None and own.data == last.data,
            f"node {node.id} leads epoch {raft.epoch} without the record that was committed at {last.base_offset}",
        )
