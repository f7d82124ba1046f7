"""A leader's state machine has seen all that was committed before it is told that it leads."""

from ottla.sim.checkers.checker import Checker
from ottla.sim.quorum.node import SimNode


class LeaderInformed(Checker):
    """Nobody decides anything over a state of the past."""

    rule = "a leader knows all that is committed before it decides"

    def announced(self, node: SimNode) -> None:
        """Look at what a new leader has applied."""
        if node.leadership.leader_id == node.id:
            last = self.cluster.history.last_before(node.leadership.epoch)
            end_offset = last.end_offset if last is not None else 0
            self.check(
                node.applied_offset >= end_offset,
                f"node {node.id} begins to lead epoch {node.leadership.epoch} having seen {node.applied_offset} of "
                f"{end_offset} committed",
            )
