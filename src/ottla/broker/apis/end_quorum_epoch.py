"""EndQuorumEpoch (54): hear from a leader that it leads no more, and who should be next."""

from ottla.broker.api import Api
from ottla.broker.quorum_door import ask_quorum
from ottla.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse

API = Api(EndQuorumEpochRequest, EndQuorumEpochResponse, ask_quorum)
