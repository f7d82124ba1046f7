"""Connections to the quorum are as many as are in use, however many addresses are heard of."""

from ottla.channel.link import LinkLost
from ottla.node.wires import PEERS_MAX, QuorumWires
from ottla.raft.settings import Node
from ottla.wire.errors import ErrorCode
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


class HonestPeer(Peer):
    """One whose close ends its questions, as that of a true one does."""

    def __init__(self, address):
        super().__init__(address)
        self.questions = []

    def ask(self, request, response, answered):
        super().ask(request, response, answered)
        self.questions.append(answered)

    def close(self):
        super().close()
        questions, self.questions = self.questions, []
        for answered in questions:
            answered(LinkLost("this node is stopping"))


def test_who_asks_again_because_of_the_close_does_not_break_it():
    made = []
    wires = QuorumWires(lambda address: made.append(HonestPeer(address)) or made[-1], lambda node_id: None)
    heard = []

    def ask(port):
        def answered(answer):
            heard.append(answer)
            ask(port + 10)  # as Raft asks the next voter where one does not answer

        wires.ask(Node(port, "voter", port), VoteRequest(), answered)

    for port in range(3):
        ask(port)
    wires.close()
    assert heard == [ErrorCode.BROKER_NOT_AVAILABLE] * 3
    assert len(made) == 3 and all(peer.is_closed for peer in made), "nobody is asked once it is closed"


def test_nobody_is_asked_once_it_is_closed():
    made = []
    wires = QuorumWires(lambda address: made.append(Peer(address)) or made[-1], lambda node_id: None)
    wires.close()
    wires.ask(Node(2, "voter", 9093), VoteRequest(), lambda answer: None)
    assert made == []
