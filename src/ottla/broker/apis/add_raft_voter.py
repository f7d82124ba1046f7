"""AddRaftVoter (80): let a controller that has caught up vote (KIP-853)."""

from ottla.broker.api import Api
from ottla.broker.quorum_door import ask_quorum
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse

API = Api(AddRaftVoterRequest, AddRaftVoterResponse, ask_quorum)
