"""UpdateRaftVoter (82): write down anew where a voter listens and what it supports (KIP-853)."""

from ottla.broker.api import Api
from ottla.broker.quorum_door import ask_quorum
from ottla.wire.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse

API = Api(UpdateRaftVoterRequest, UpdateRaftVoterResponse, ask_quorum)
