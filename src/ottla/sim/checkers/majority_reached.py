"""What is committed is on the disks of a majority of the voters."""

from ottla.sim.checkers.checker import Checker
from ottla.sim.quorum.log import Entry
from ottla.sim.quorum.node import SimNode


class MajorityReached(Checker):
    """A record is committed only when the loss of any minority leaves it somewhere."""

    rule = "a majority has what is committed on disk"

    def __init__(self) -> None:
        self._end_offset = 0

    def committed(self, node: SimNode, entries: list[Entry]) -> None:
        """Count the disks that have what was just committed."""
        last = entries[-1]
        if last.end_offset <= self._end_offset or not node.leads:
            return
        self._end_offset = last.end_offset
        raft = node.raft
        assert raft is not None
        having = sum(self._has(voter_id, last) for voter_id in raft.voters.by_id)
        self.check(
            having >= raft.voters.majority,
            f"node {node.id} commits {last.end_offset}, which {having} of {len(raft.voters.by_id)} voters have",
        )

    def _has(self, voter_id: int, last: Entry) -> bool:
        log = self.cluster.nodes[voter_id].disk.synced
        if log.start_offset >= last.end_offset:
            return True
        found = log.between(last.base_offset, last.base_offset + 1)
        return bool(found) and found[0].data == last.data
