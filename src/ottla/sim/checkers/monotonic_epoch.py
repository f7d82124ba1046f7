"""The epoch that a node speaks in never falls, not even over a crash."""

from ottla.raft.ready import Ready, Reply, Send
from ottla.sim.checkers.checker import Checker
from ottla.sim.quorum.node import SimNode


class MonotonicEpoch(Checker):
    """Epochs only grow."""

    rule = "epochs only grow"

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._said: dict[int, int] = {}

    def started(self, node: SimNode) -> None:
        """A node may have forgotten an epoch, but none that it has spoken in."""
        self._seen[node.id] = self._said.get(node.id, 0)
        self._check(node)

    def wrote(self, node: SimNode, ready: Ready) -> None:
        """Note the epoch where it changes."""
        if ready.state is not None:
            self._check(node)

    def _check(self, node: SimNode) -> None:
        raft = node.raft
        assert raft is not None
        seen = self._seen.get(node.id, 0)
        self.check(raft.epoch >= seen, f"node {node.id} goes from epoch {seen} back to {raft.epoch}")
        self._seen[node.id] = raft.epoch

    def said(self, node: SimNode, word: Send | Reply) -> None:
        """Note what others may know."""
        state = node.disk.state
        if state is not None:
            self._said[node.id] = state.epoch
