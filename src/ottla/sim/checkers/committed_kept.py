"""R3: a committed record is never cut off, unless a snapshot stands for it."""

from ottla.sim.checkers.checker import Checker
from ottla.sim.quorum.log import Entry
from ottla.sim.quorum.node import SimNode


class CommittedKept(Checker):
    """What a node cuts off was never committed."""

    rule = "R3 a committed record is never cut off"

    def cut_off(self, node: SimNode, entries: list[Entry], snapshot_offset: int | None) -> None:
        """Hold what was cut off against the history."""
        known = self.cluster.history.by_base
        for entry in entries:
            if snapshot_offset is None or entry.base_offset >= snapshot_offset:
                committed = known.get(entry.base_offset)
                self.check(
                    committed is None or committed.data != entry.data,
                    f"node {node.id} cuts off the committed record at {entry.base_offset}",
                )
