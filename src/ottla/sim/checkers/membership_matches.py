"""The voters that a replica counts by are those that its log names last."""

from ottla.raft.membership import Membership
from ottla.sim.checkers.checker import Checker
from ottla.sim.quorum.log import Entry
from ottla.sim.quorum.node import SimNode


class MembershipMatches(Checker):
    """Who votes stands in the log, also after a part of it was cut off or replaced."""

    rule = "the voters are those of the log"

    def cut_off(self, node: SimNode, entries: list[Entry], snapshot_offset: int | None) -> None:
        """Read the log again, and compare."""
        raft, log = node.raft, node.disk.log
        assert raft is not None
        real = log.recall(lambda: Membership(node.static))
        told = raft.replica.membership
        self.check(
            (told.voters, told.kraft_version) == (real.voters, real.kraft_version),
            f"node {node.id} counts by {sorted(told.voters.by_id)}, and its log names {sorted(real.voters.by_id)}",
        )
