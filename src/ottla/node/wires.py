"""The wires between the replicas of the metadata log: one connection to each address that is asked."""

from collections.abc import Callable

from ottla.channel.peers import Address, Late, Peer
from ottla.quorum.driver import Answered
from ottla.raft.settings import Node
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from ottla.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ottla.wire.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from ottla.wire.messages.vote import VoteRequest, VoteResponse

ANSWERS: dict[type[Message], type[Message]] = {
    AddRaftVoterRequest: AddRaftVoterResponse,
    ApiVersionsRequest: ApiVersionsResponse,
    BeginQuorumEpochRequest: BeginQuorumEpochResponse,
    EndQuorumEpochRequest: EndQuorumEpochResponse,
    FetchRequest: FetchResponse,
    FetchSnapshotRequest: FetchSnapshotResponse,
    RemoveRaftVoterRequest: RemoveRaftVoterResponse,
    UpdateRaftVoterRequest: UpdateRaftVoterResponse,
    VoteRequest: VoteResponse,
}


# Whoever claims to lead says where it is to be asked, so more addresses may be heard of than a quorum has voters.
PEERS_MAX = 64


class QuorumWires:
    """Asks replicas by their address. `peer(address)` makes a connection; `missed` hears who did not answer.

    Those asked last are kept.
    """

    def __init__(self, peer: Callable[[Address], Peer], missed: Callable[[int], object]) -> None:
        self._make = peer
        self._missed = missed
        self._peers: dict[Address, Peer] = {}  # the one asked longest ago first
        self.gone: set[int] = set()  # who did not answer when last asked
        self._is_closed = False

    def ask(self, node: Node, request: Message, answered: Answered) -> None:
        """Ask a node; `answered` is called once, in a later turn, with its answer or with why there is none.

        Once this is closed nobody is asked, and nobody answers.
        """
        if self._is_closed:
            return
        address = Address(node.host, node.port)
        peer = self._peers.pop(address, None)
        if peer is None:
            if len(self._peers) >= PEERS_MAX:
                self._peers.pop(next(iter(self._peers))).close()
            peer = self._make(address)
        self._peers[address] = peer

        def done(answer: Message | Exception) -> None:
            if isinstance(answer, Late):
                answered(ErrorCode.REQUEST_TIMED_OUT)  # which a pause may explain as well as a death
            elif isinstance(answer, Exception):
                if len(self.gone) >= PEERS_MAX:
                    self.gone.pop()
                self.gone.add(node.id)
                self._missed(node.id)
                answered(ErrorCode.BROKER_NOT_AVAILABLE)
            else:
                self.gone.discard(node.id)
                answered(answer)

        peer.ask(request, ANSWERS[type(request)], done)

    def close(self) -> None:
        """Ask nobody any more. Questions that are under way end here, and who hears of that may ask again."""
        self._is_closed = True
        peers, self._peers = self._peers, {}
        for peer in peers.values():
            peer.close()
