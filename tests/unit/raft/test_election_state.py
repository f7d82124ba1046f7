"""The election state, as Kafka writes it."""

import pytest

from ottla.raft.election_state import ElectionState, UnreadableState
from ottla.raft.voters import ReplicaKey
from tests.unit.raft.bench import directory

# As Apache Kafka 4.3.1 writes them.
DYNAMIC = b'{"leaderId":1,"leaderEpoch":7,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
STATIC = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":7,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
)


def test_both_forms() -> None:
    state = ElectionState(7, 1)
    assert state.encode(1, (1, 2)) == DYNAMIC
    assert state.encode(0, (1, 2)) == STATIC
    assert ElectionState.decode(DYNAMIC) == ElectionState.decode(STATIC) == state


def test_a_vote_survives() -> None:
    state = ElectionState(7, -1, 2, directory(2))
    assert ElectionState.decode(state.encode(1, ())) == state
    older = ElectionState.decode(state.encode(0, ()))
    assert older == ElectionState(7, -1, 2)
    assert state.has_voted_for(ReplicaKey(2, directory(2)))
    assert not state.has_voted_for(ReplicaKey(2, directory(3)))
    assert older.has_voted_for(ReplicaKey(2, directory(3))), "the older form knows nodes alone"


@pytest.mark.parametrize("content", [b"", b"[]", bytes(9), DYNAMIC[:50], b'{"data_version":1}'])
def test_torn_content(content: bytes) -> None:
    with pytest.raises(UnreadableState) as raised:
        ElectionState.decode(content)
    assert raised.value.is_torn


def test_content_from_the_future() -> None:
    with pytest.raises(UnreadableState, match="data_version 7") as raised:
        ElectionState.decode(b'{"data_version":7}')
    assert not raised.value.is_torn
