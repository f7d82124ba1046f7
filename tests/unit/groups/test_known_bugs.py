"""Bugs that cost others their users' offsets, replayed here by name."""

from ottla.replicated.host import Host
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.offset_commit import OffsetCommitRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest
from tests.unit.groups.test_classic_party import Party, fresh
from tests.unit.groups.test_offsets import commit, fetch
from tests.unit.groups.test_offsets_transactions import PRODUCER, commit_in
from tests.unit.replicated.journal import NOW

PLACE = ("orders", 0)
UNSTABLE = {PLACE: ErrorCode.UNSTABLE_OFFSET_COMMIT}


def test_redpanda_10669_whoever_takes_over_waits_for_an_offset_that_is_about_to_be_replaced():
    """The old owner commits its offset in a transaction; the new owner asks before the marker is there."""
    for committed, expected in ((True, 9), (False, 1)):
        party = Party()
        commit(party, {PLACE: 1})
        commit_in(party, {PLACE: 9})
        # The group's coordinator may have moved meanwhile: its successor knows the log, and nothing else.
        for machine in (party.machine, party.replayed()):
            assert fetch(party, PLACE, stable=True, machine=machine) == UNSTABLE
            assert fetch(party, PLACE, machine=machine) == {PLACE: 1}
        party.bench.end_transaction(PRODUCER, committed=committed)
        for machine in (party.machine, party.replayed()):
            assert fetch(party, PLACE, stable=True, machine=machine) == {PLACE: expected}


def test_redpanda_10669_a_second_transaction_keeps_the_offset_unstable_when_the_first_has_ended():
    party = Party()
    commit_in(party, {PLACE: 5}, producer_id=1)
    commit_in(party, {PLACE: 9}, producer_id=2)
    party.bench.end_transaction(1, committed=True)
    assert (
        fetch(party, PLACE, stable=True)
        == fetch(party, PLACE, stable=True, machine=party.replayed())
        == UNSTABLE
    )
    party.bench.end_transaction(2, committed=True)
    assert (
        fetch(party, PLACE, stable=True)
        == fetch(party, PLACE, stable=True, machine=party.replayed())
        == {PLACE: 9}
    )


class Slow:
    """A journal whose records are committed when the test says so."""

    def __init__(self):
        self.records = []
        self.committed_offset = 0

    @property
    def end_offset(self):
        return len(self.records)

    def append(self, records, now, transactional=None, *, any_length=False):
        self.records += records
        return range(self.end_offset - len(records), self.end_offset)


def offset_commit(offset):
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    part = topic.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    return OffsetCommitRequest(group_id="g", topics=[topic(name="orders", partitions=[part])])


def answer_of(machine):
    """The offset that a machine has for the place."""
    asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    found = machine.offsets.fetch(asked, 9, require_stable=True).reply
    return [each.committed_offset for topic in found.topics for each in topic.partitions]


def test_redpanda_9571_an_offset_that_was_written_and_not_answered_is_what_the_next_owner_reads():
    """The commit fails for its client and is applied all the same; nobody reads the offset before it any more."""
    journal, heard = Slow(), []
    host = Host(fresh(), journal, heard.append)
    host.submit(lambda groups, now: groups.offsets.commit(offset_commit(4), 9, now), heard.append, NOW)
    journal.committed_offset = journal.end_offset
    host.commit(journal.end_offset)
    host.submit(lambda groups, now: groups.offsets.commit(offset_commit(8), 9, now), heard.append, NOW)
    host.drop(BrokerError(ErrorCode.NOT_COORDINATOR))
    assert [type(each) for each in heard][1:] == [BrokerError]
    successor = fresh()
    for offset, record in enumerate(journal.records):
        successor.apply(offset, record)
    assert answer_of(successor) == [8]


def test_redpanda_9571_nobody_reads_an_offset_that_may_still_be_lost():
    """Whoever asks after a commit that is not durable yet is answered with it, and together with it."""
    journal, heard = Slow(), []
    host = Host(fresh(), journal, heard.append)
    host.submit(lambda groups, now: groups.offsets.commit(offset_commit(8), 9, now), heard.append, NOW)
    asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    host.submit(lambda groups, now: groups.offsets.fetch(asked, 9, require_stable=True), heard.append, NOW)
    assert heard == []
    journal.committed_offset = journal.end_offset
    host.commit(journal.end_offset)
    committed, fetched = heard
    assert committed.topics[0].partitions[0].error_code == 0
    assert fetched.topics[0].partitions[0].committed_offset == 8
