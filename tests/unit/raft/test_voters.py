"""Voters: who they are, and how a set of them changes."""

from ottla.metadata.feature import KRAFT_VERSION, SUPPORTED
from ottla.raft.voters import KRAFT_VERSIONS, ReplicaKey, Voter, Voters
from tests.unit.raft.bench import address, directory, voter, voters


def test_the_versions_are_those_of_the_features() -> None:
    assert SUPPORTED[KRAFT_VERSION] == KRAFT_VERSIONS


def test_a_voter_is_a_node_with_a_directory() -> None:
    known = voters(1, 2)
    assert known.has(ReplicaKey(1, directory(1)))
    assert not known.has(ReplicaKey(1, directory(9))), "the disk is another one"
    assert not known.has(ReplicaKey(3, directory(3)))
    static = Voters.of([Voter(1)])
    assert static.has(ReplicaKey(1, directory(9))), "a static quorum knows no directories"


def test_one_is_added_removed_or_written_anew() -> None:
    known = voters(1, 2)
    assert known.plus(voter(3)) == voters(1, 2, 3)
    assert known.plus(voter(2)) is None
    assert voters(1, 2, 3).minus(voter(3).key) == known
    assert known.minus(ReplicaKey(2, directory(9))) is None
    assert voters(1).minus(voter(1).key) is None, "the last one stays"
    moved = voter(2)._replace(addresses=(address(7),))
    assert known.differs_on(moved)
    assert not known.differs_on(voter(2))
    changed = known.changed(moved)
    assert changed is not None
    assert changed.addresses_of(2) == (address(7),)
    assert known.changed(moved._replace(directory_id=directory(9))) is None
    assert known.changed(moved._replace(directory_id=directory(9)), any_directory=True) is not None


def test_a_record_says_it_all() -> None:
    known = voters(1, 2, 3)
    assert Voters.read(known.record()) == known
    message = known.leader_change(2, [2, 3])
    assert [each.voter_id for each in message.voters] == [1, 2, 3]
    assert [each.voter_id for each in message.granting_voters] == [2, 3]


def test_majorities() -> None:
    assert [voters(*range(1, count + 1)).majority for count in (1, 2, 3, 4, 5)] == [1, 2, 2, 3, 3]
