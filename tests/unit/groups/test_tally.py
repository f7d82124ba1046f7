"""What groups have done is counted once, and not again when a log is read."""

from ottla.groups.group import Kind
from tests.unit.groups.test_classic_party import DELAY_MS, Party
from tests.unit.groups.test_offsets import commit, delete
from tests.unit.groups.test_offsets_transactions import commit_in

RETENTION_MS = 7 * 24 * 3_600_000


def tally(party):
    return party.machine.shelf.tally


def test_offsets_committed_deleted_and_expired():
    party = Party()
    commit(party, {("orders", 0): 1, ("orders", 1): 2, ("nowhere", 0): 3})
    commit_in(party, {("bills", 0): 4})
    assert tally(party).commits == 3
    delete(party, ("orders", 0), ("orders", 3))
    assert tally(party).deletions == 1
    party.bench.end_transaction(1, committed=True)
    assert tally(party).expirations == 0
    party.bench.pass_time(RETENTION_MS + 60_000)
    assert tally(party).expirations >= 1
    again = party.replayed()
    assert (again.shelf.tally.commits, again.shelf.tally.deletions) == (0, 0)


def test_a_classic_rebalance_is_complete_when_the_leader_has_said_who_gets_what():
    party = Party()
    leader, _ = party.enter()
    party.bench.pass_time(DELAY_MS)
    assert tally(party).rebalances[Kind.CLASSIC] == 0
    party.sync(leader, assignments={leader: b"all"})
    assert tally(party).rebalances[Kind.CLASSIC] == 1
    party.sync(leader, assignments={leader: b"all"})
    assert tally(party).rebalances[Kind.CLASSIC] == 1
    assert party.replayed().shelf.tally.rebalances[Kind.CLASSIC] == 0
