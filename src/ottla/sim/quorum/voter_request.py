"""Requests to change the voters, as an operator makes them."""

from ottla.sim.quorum.cluster import CLUSTER_ID
from ottla.sim.quorum.node import SimNode
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest


def to_add(node: SimNode, *, ack_when_committed: bool = True) -> AddRaftVoterRequest:
    """Ask that a node become a voter."""
    settings = node.settings
    return AddRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        voter_id=settings.node_id,
        voter_directory_id=settings.directory_id,
        listeners=[
            AddRaftVoterRequest.Listener(name=each.listener, host=each.host, port=each.port)
            for each in settings.addresses
        ],
        ack_when_committed=ack_when_committed,
    )


def to_remove(node: SimNode) -> RemoveRaftVoterRequest:
    """Ask that a node be no voter any more."""
    return RemoveRaftVoterRequest(
        cluster_id=CLUSTER_ID, voter_id=node.id, voter_directory_id=node.settings.directory_id
    )
