"""Membership: the log names the voters, and takes them back when it is cut."""

from ottla.raft.membership import Membership
from ottla.raft.voters import Voters
from ottla.wire.batch import scan
from ottla.wire.control import quorum_batch
from ottla.wire.messages.control import KRaftVersionRecord
from tests.unit.raft.bench import batch, voters


def write(membership: Membership, offset: int, named: Voters, version: int | None = None) -> None:
    controls = [] if version is None else [KRaftVersionRecord(kraft_version=version)]
    data = quorum_batch([*controls, named.record()], timestamp_ms=0, base_offset=offset)
    for position, each in scan(data):
        membership.read(data, position, each)


def test_settings_count_until_the_log_speaks() -> None:
    membership = Membership(voters(1))
    assert (membership.voters, membership.voters_offset, membership.can_change) == (voters(1), None, False)
    write(membership, 5, voters(1, 2), 1)
    assert (membership.voters, membership.voters_offset, membership.can_change) == (voters(1, 2), 6, True)


def test_a_record_counts_before_it_is_committed_and_no_more_once_it_is_cut() -> None:
    membership = Membership()
    write(membership, 5, voters(1, 2), 1)
    write(membership, 9, voters(1, 2, 3))
    assert membership.voters == voters(1, 2, 3)
    membership.truncate(9)
    assert (membership.voters, membership.voters_offset) == (voters(1, 2), 6)
    membership.truncate(6)
    assert (membership.voters_offset, membership.kraft_version) == (None, 1)
    membership.truncate(5)
    assert not membership.can_change


def test_what_a_snapshot_is_told() -> None:
    membership = Membership()
    membership.load(-1, 1, voters(1))
    write(membership, 5, voters(1, 2))
    write(membership, 9, voters(1, 2, 3))
    assert membership.at(4) == (1, voters(1))
    assert membership.at(8) == (1, voters(1, 2))
    membership.trim(7)
    assert membership.at(8) == (1, voters(1, 2)), "what is in force where the log begins is kept"
    assert membership.at(20) == (1, voters(1, 2, 3))


def test_a_snapshot_replaces_all_that_was_known() -> None:
    membership = Membership(voters(9))
    write(membership, 5, voters(1, 2), 1)
    membership.load(19, 1, voters(3))
    assert (membership.voters, membership.voters_offset) == (voters(3), 19)
    membership.load(29, 0, None)
    assert (membership.voters, membership.can_change) == (voters(9), False)


def test_data_is_not_looked_into() -> None:
    membership = Membership(voters(1))
    for position, each in scan(batch(0, 1)):
        membership.read(b"", position, each)
    assert membership.voters == voters(1)
