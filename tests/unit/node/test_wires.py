"""Connections to the quorum are as many as are in use, however many addresses are heard of."""

from ottla.node.wires import PEERS_MAX, QuorumWires
from ottla.raft.settings import Node
from ottla.wire.messages.vote import VoteRequest


class Peer:
    """One that never answers."""

    def __init__(self, address):
        self.address = address
        self.asked = 0
        self.is_closed = False

    def ask(self, request, response, answered):
        self.asked += 1

    def close(self):
        self.is_closed = True


def test_those_asked_last_are_kept():
    made = []
    wires = QuorumWires(lambda address: made.append(Peer(address)) or made[-1], lambda node_id: None)
    for port in range(1, 5 * PEERS_MAX):
        wires.ask(Node(2, "voter", 9093), VoteRequest(), lambda answer: None)
        wires.ask(Node(3, "anywhere", port), VoteRequest(), lambda answer: None)
    voter = made[0]
    assert voter.asked == 5 * PEERS_MAX - 1
    assert not voter.is_closed
    assert sum(not peer.is_closed for peer in made) == PEERS_MAX
    wires.close()
    assert all(peer.is_closed for peer in made)


def test_who_is_asked_because_another_was_closed_is_in_nobodys_way():
    class Chatty(Peer):
        def ask(self, request, response, answered):
            self.answered = answered

        def close(self):
            super().close()
            self.answered(ConnectionError("closed"))

    wires = QuorumWires(Chatty, lambda node_id: None)

    def ask_another(answer):
        wires.ask(Node(9, "another", 1), VoteRequest(), lambda answer: None)

    for port in (1, 2):
        wires.ask(Node(port, "voter", port), VoteRequest(), ask_another)
    wires.close()
