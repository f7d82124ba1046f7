"""All state machines are given the same records in the same order, from the log or by a snapshot."""

from ottla.sim.checkers.checker import Checker
from ottla.sim.quorum.log import Entry
from ottla.sim.quorum.node import SimNode


class ConsistentData(Checker):
    """What is committed anywhere is what is committed everywhere; this checker also writes the history."""

    rule = "consistent committed data"

    def committed(self, node: SimNode, entries: list[Entry]) -> None:
        """Hold the records against those that others were given."""
        history, raft = self.cluster.history, node.raft
        assert raft is not None
        for entry in entries:
            known = history.by_base.get(entry.base_offset)
            if known is None:
                self.check(
                    entry.base_offset == history.end_offset,
                    f"node {node.id} commits {entry.base_offset}, which does not follow {history.end_offset}",
                )
                history.add(entry, raft.epoch)
            elif known is not entry:
                self.check(
                    known.data == entry.data,
                    f"node {node.id} has committed another record at {entry.base_offset} (epoch {entry.epoch}) "
                    f"than was committed there first (epoch {known.epoch})",
                )

    def loaded(self, node: SimNode) -> None:
        """Hold the state of a snapshot against the records before it."""
        self.check(
            node.digest == self.cluster.history.digests.get(node.applied_offset),
            f"node {node.id} has loaded a snapshot that is not the state at {node.applied_offset}",
        )
