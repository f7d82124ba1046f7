"""R2 and R4: no word leaves a node before the disk has what the word stands for."""

from ottla.raft.election_state import ElectionState
from ottla.raft.ready import Reply, Send
from ottla.sim.checkers.checker import Checker
from ottla.sim.quorum.node import Call, SimNode
from ottla.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.vote import VoteRequest, VoteResponse


class SyncedBeforeSaid(Checker):
    """Epochs, votes and receipts are on disk before anybody hears of them."""

    rule = "R2 synced before said"

    def said(self, node: SimNode, word: Send | Reply) -> None:
        """Hold a word against the disk."""
        state = node.disk.state or ElectionState()
        message = word.message
        if isinstance(message, FetchRequest):
            asked = message.topics[0].partitions[0]
            self._known(node, state, asked.current_leader_epoch)
            if asked.current_leader_epoch == state.epoch:
                self.check(
                    asked.fetch_offset <= node.disk.durable_end_offset or not node.settings.can_vote,
                    f"node {node.id} fetches from {asked.fetch_offset}, and only "
                    f"{node.disk.durable_end_offset} is on its disk",
                )
        elif isinstance(message, FetchResponse) and message.responses:
            leader = message.responses[0].partitions[0].current_leader
            if leader is not None:
                self._known(node, state, leader.leader_epoch)
        elif isinstance(message, VoteRequest):
            asked_vote = message.topics[0].partitions[0]
            self._known(node, state, asked_vote.replica_epoch)
            if not asked_vote.pre_vote and asked_vote.replica_epoch == state.epoch:
                own = node.id in (state.voted_id, state.leader_id)
                self.check(own, f"node {node.id} stands for election without having voted for itself")
        elif isinstance(message, VoteResponse) and message.topics:
            told = message.topics[0].partitions[0]
            self._known(node, state, told.leader_epoch)
            assert isinstance(word, Reply)
            self._check_vote(node, state, word)
        elif isinstance(message, BeginQuorumEpochRequest):
            begun = message.topics[0].partitions[0]
            self._known(node, state, begun.leader_epoch)
            if begun.leader_epoch == state.epoch:
                self.check(state.leader_id == node.id, f"node {node.id} leads, and has not written it down")

    def _known(self, node: SimNode, state: ElectionState, epoch: int) -> None:
        self.check(
            epoch <= state.epoch, f"node {node.id} speaks in epoch {epoch}, and its disk knows {state.epoch}"
        )

    def _check_vote(self, node: SimNode, state: ElectionState, word: Reply) -> None:
        call = word.token
        assert isinstance(call, Call)
        request, response = call.message, word.message
        assert isinstance(request, VoteRequest)
        assert isinstance(response, VoteResponse)
        asked = request.topics[0].partitions[0]
        told = response.topics[0].partitions[0]
        if told.vote_granted and not asked.pre_vote and asked.replica_epoch == state.epoch:
            self.check(
                state.voted_id == asked.replica_id,
                f"node {node.id} gives its vote of epoch {state.epoch} to {asked.replica_id}, and its disk has "
                f"{state.voted_id}",
            )
