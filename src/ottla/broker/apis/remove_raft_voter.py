"""RemoveRaftVoter (81): let a controller vote no more (KIP-853)."""

from ottla.broker.api import Api
from ottla.broker.quorum_door import ask_quorum
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse

API = Api(RemoveRaftVoterRequest, RemoveRaftVoterResponse, ask_quorum)
