"""The outline that Raft decides over is the outline of the log that the disk has."""

from ottla.raft.ready import Ready
from ottla.sim.checkers.checker import Checker
from ottla.sim.quorum.node import SimNode


class OutlineMatches(Checker):
    """Raft and the log agree on what the log is."""

    rule = "the outline is that of the log"

    def wrote(self, node: SimNode, ready: Ready) -> None:
        """Compare the two after a change."""
        raft, log = node.raft, node.disk.log
        assert raft is not None
        outline = raft.replica.outline
        told = (outline.start_offset, outline.last_epoch, outline.end_offset, sorted(outline.snapshots))
        real = (log.start_offset, *log.last, sorted(log.snapshots))
        self.check(told == real, f"node {node.id} thinks that its log is {told}, and it is {real}")
