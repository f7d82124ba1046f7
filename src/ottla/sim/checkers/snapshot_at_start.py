"""A log that begins above zero begins where a snapshot ends."""

from ottla.sim.checkers.checker import Checker
from ottla.sim.quorum.log import Entry
from ottla.sim.quorum.node import SimNode


class SnapshotAtStart(Checker):
    """Nothing is removed from a log that no snapshot stands for."""

    rule = "a log begins where a snapshot ends"

    def started(self, node: SimNode) -> None:
        """Look at what a start finds."""
        self.trimmed(node)

    def cut_off(self, node: SimNode, entries: list[Entry], snapshot_offset: int | None) -> None:
        """Look at a log that was replaced."""
        self.trimmed(node)

    def trimmed(self, node: SimNode) -> None:
        """Look at a log whose beginning has moved."""
        start_offset = node.disk.log.start_offset
        self.check(
            start_offset == 0 or any(id.offset == start_offset for id in node.disk.log.snapshots),
            f"the log of node {node.id} begins at {start_offset}, and no snapshot ends there",
        )
