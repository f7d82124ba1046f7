"""FetchSnapshot (59): read a snapshot of the metadata piece by piece (KIP-630)."""

from ottla.broker.api import Api
from ottla.broker.quorum_door import ask_quorum
from ottla.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse

API = Api(FetchSnapshotRequest, FetchSnapshotResponse, ask_quorum)
