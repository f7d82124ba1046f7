"""The high watermark never falls: neither at a node while it runs, nor from leader to leader."""

from ottla.raft.leader import Leader
from ottla.sim.checkers.checker import Checker
from ottla.sim.quorum.node import SimNode


class MonotonicWatermark(Checker):
    """What is committed stays committed."""

    rule = "the high watermark never falls"

    def __init__(self) -> None:
        self._of_node: dict[tuple[int, int], int] = {}
        self._of_epoch: dict[int, int] = {}

    def advanced(self, node: SimNode) -> None:
        """Note how far the log is committed."""
        raft = node.raft
        assert raft is not None
        life, now = (node.id, node.life), raft.high_watermark
        before = self._of_node.get(life, -1)
        self.check(now >= before, f"node {node.id} goes from {before} committed back to {now}")
        self.check(
            now <= raft.end_offset,
            f"node {node.id} has {now} committed, and its log ends at {raft.end_offset}",
        )
        self._of_node[life] = now
        role = raft.replica.role
        if isinstance(role, Leader) and role.is_established:
            earlier = max(
                (known for epoch, known in self._of_epoch.items() if epoch < raft.epoch), default=-1
            )
            self.check(
                role.high_watermark >= earlier,
                f"leader {node.id} of epoch {raft.epoch} has {role.high_watermark} committed, and {earlier} was",
            )
            self._of_epoch[raft.epoch] = role.high_watermark
