"""BeginQuorumEpoch (53): hear from a new leader that it leads."""

from ottla.broker.api import Api
from ottla.broker.quorum_door import ask_quorum
from ottla.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse

API = Api(BeginQuorumEpochRequest, BeginQuorumEpochResponse, ask_quorum)
