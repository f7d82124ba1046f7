"""A leader neither cuts its log nor replaces it by a snapshot."""

from ottla.raft.ready import Ready
from ottla.sim.checkers.checker import Checker
from ottla.sim.quorum.node import SimNode


class LeaderKeepsLog(Checker):
    """A leader only appends."""

    rule = "a leader only appends"

    def wrote(self, node: SimNode, ready: Ready) -> None:
        """Look at what a leader writes."""
        if node.leads:
            self.check(
                ready.truncate_to is None and ready.reset_to is None, f"leader {node.id} changes its log"
            )
