"""Vote (52): give a voter our vote for an epoch, or say that we would (pre-vote, KIP-996)."""

from ottla.broker.api import Api
from ottla.broker.quorum_door import ask_quorum
from ottla.wire.messages.vote import VoteRequest, VoteResponse

API = Api(VoteRequest, VoteResponse, ask_quorum)
