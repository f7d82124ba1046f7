"""R1: an epoch has one leader."""

from ottla.raft.event import Event
from ottla.sim.checkers.checker import Checker
from ottla.sim.quorum.node import SimNode


class SingleLeader(Checker):
    """Nobody leads an epoch that somebody else has led; and nobody leads one again that it led before a crash.

    A leader that crashed before its disk knew of the lead has not said a word, and so has not led.
    """

    rule = "R1 one leader an epoch"

    def __init__(self) -> None:
        self._leaders: dict[int, int] = {}
        self._lives: dict[int, int] = {}

    def led(self, node: SimNode, event: Event) -> None:
        """Note who leads."""
        raft, state = node.raft, node.disk.state
        assert raft is not None
        leader_id = self._leaders.setdefault(raft.epoch, node.id)
        self.check(leader_id == node.id, f"{leader_id} and {node.id} both lead epoch {raft.epoch}")
        if state is not None and (state.epoch, state.leader_id) == (raft.epoch, node.id):
            life = self._lives.setdefault(raft.epoch, node.life)
            self.check(life == node.life, f"{node.id} leads epoch {raft.epoch} again after a crash")
