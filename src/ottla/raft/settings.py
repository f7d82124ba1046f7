"""What a replica of the metadata log is told before it starts: who it is, where others are, how patient to be.

The defaults are those of Kafka's `controller.quorum.*` settings.
"""

from dataclasses import dataclass
from typing import NamedTuple

from ottla.raft.voters import KRAFT_VERSIONS, Address, ReplicaKey, Voter

TOPIC = "__cluster_metadata"
PARTITION = 0


class Node(NamedTuple):
    """Where to send a request. Servers known by their address alone have ids below -1."""

    id: int
    host: str
    port: int


# No more than this of the log, or of a snapshot, goes into one answer, whatever is asked for: as much as Kafka's own
# replicas ask for. A batch that is larger goes alone.
ANSWER_BYTES_MAX = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RaftSettings:
    """One replica.

    `listener` is the one that replicas speak to each other on, and `addresses` are all that this node can be reached
    at. `bootstrap` are the nodes to ask when nobody is known to lead. A node that `can_vote` syncs what it fetches even
    while it only observes; with `auto_join` it asks to become a voter.
    """

    node_id: int
    directory_id: bytes
    cluster_id: str
    addresses: tuple[Address, ...]
    bootstrap: tuple[Node, ...]
    listener: str = "CONTROLLER"
    can_vote: bool = True
    auto_join: bool = False
    election_timeout_ms: int = 1_000
    election_backoff_ms_max: int = 1_000
    fetch_timeout_ms: int = 2_000
    request_timeout_ms: int = 2_000
    retry_backoff_ms: int = 20
    fetch_wait_ms_max: int = 500
    fetch_bytes_max: int = 1024 * 1024
    snapshot_bytes_max: int = 1024 * 1024

    @property
    def key(self) -> ReplicaKey:
        """The copy of the log that this replica is."""
        return ReplicaKey(self.node_id, self.directory_id)

    @property
    def voter(self) -> Voter:
        """The replica as it would have itself written down among the voters."""
        return Voter(self.node_id, self.directory_id, self.addresses, KRAFT_VERSIONS)


def node_at(id: int, addresses: tuple[Address, ...], listener: str) -> Node | None:
    """The node behind these addresses, as it is reached on one listener; None when it does not listen there."""
    for address in addresses:
        if address.listener == listener:
            return Node(id, address.host, address.port)
    return None
