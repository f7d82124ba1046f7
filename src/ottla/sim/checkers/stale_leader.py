"""R6: a leader that does not hear of a majority steps down."""

from ottla.raft.event import Event, Request
from ottla.sim.checkers.checker import Checker
from ottla.sim.quorum.node import SimNode
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.fetch_snapshot import FetchSnapshotRequest
from ottla.wire.messages.update_raft_voter import UpdateRaftVoterRequest

# Two intervals in a row, since what was heard early in the first one counts to its end.
PATIENCE = 3.2


class StaleLeader(Checker):
    """Nobody goes on to lead whom nobody follows."""

    rule = "R6 a leader without a majority steps down"

    def __init__(self) -> None:
        self._since: dict[tuple[int, int], int] = {}
        self._heard: dict[tuple[int, int], dict[int, int]] = {}

    def led(self, node: SimNode, event: Event) -> None:
        """Note whom a leader hears of, and whether that is enough."""
        raft = node.raft
        assert raft is not None
        now, term = self.cluster.schedule.now, (node.id, raft.epoch)
        since = self._since.setdefault(term, now)
        heard = self._heard.setdefault(term, {})
        if isinstance(event, Request):
            message = event.message
            if isinstance(message, FetchRequest) and message.replica_state is not None:
                heard[message.replica_state.replica_id] = now
            elif isinstance(message, FetchSnapshotRequest):
                heard[message.replica_id] = now
            elif isinstance(message, UpdateRaftVoterRequest):
                heard[message.voter_id] = now
        patience_ms = int(node.settings.fetch_timeout_ms * PATIENCE)
        if now - since > patience_ms and len(raft.voters.by_id) > 1:
            present = {id for id in raft.voters.by_id if heard.get(id, 0) >= now - patience_ms}
            present |= raft.voters.by_id.keys() & {node.id}
            self.check(
                len(present) >= raft.voters.majority,
                f"node {node.id} leads epoch {raft.epoch}, and for {patience_ms} ms only {sorted(present)} of "
                f"{sorted(raft.voters.by_id)} were there",
            )
