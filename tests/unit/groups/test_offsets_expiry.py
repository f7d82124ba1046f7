"""When offsets expire, and when a group that has nothing left goes."""

from ottla.groups import offset_expiry
from ottla.wire.errors import ErrorCode
from tests.unit.groups.test_classic_party import DELAY_MS, SESSION_MS, Party, subscription
from tests.unit.groups.test_offsets import commit, delete, fetch
from tests.unit.groups.test_offsets_transactions import PRODUCER, commit_in

HOUR_MS = 3_600_000
CHECK_MS = 600_000


def hourly(**how):
    """A party whose offsets are kept for an hour."""
    return Party(offsets_retention_minutes=60, **how)


def is_gone(party):
    return party.group not in party.machine.shelf.groups


def test_offsets_without_members_expire_one_by_one_and_the_group_with_the_last():
    party = hourly()
    commit(party, {("orders", 0): 1})
    party.pass_time(HOUR_MS // 2)
    commit(party, {("orders", 1): 2})
    party.pass_time(HOUR_MS // 2 - 1)
    assert fetch(party) == {("orders", 0): 1, ("orders", 1): 2}
    party.pass_time(1)
    assert fetch(party) == {("orders", 1): 2}
    party.pass_time(HOUR_MS // 2)
    assert fetch(party) == {}
    assert is_gone(party)
    again = party.replayed()
    assert not again.shelf.groups
    assert fetch(party, machine=again) == {}


def test_a_commit_begins_the_time_anew():
    party = hourly()
    for _ in range(5):
        commit(party, {("orders", 0): 1})
        party.pass_time(HOUR_MS - 1)
    assert fetch(party) == {("orders", 0): 1}
    party.pass_time(1)
    assert is_gone(party)


def test_offsets_of_a_group_that_members_left_count_from_then():
    party = hourly()
    (one,) = party.settled(subscription("orders"))
    commit(party, {("orders", 0): 1, ("bills", 0): 1}, member_id=one, generation=1)
    party.beat(one, times=3 * HOUR_MS // (SESSION_MS // 2))
    assert fetch(party) == {("orders", 0): 1}, "what members do not read expires meanwhile"
    party.leave((one, None))
    party.pass_time(HOUR_MS - 1)
    assert fetch(party) == {("orders", 0): 1}
    party.pass_time(CHECK_MS)
    assert is_gone(party)


def test_after_a_replay_the_time_goes_on():
    party = hourly()
    (one,) = party.settled(subscription("orders"))
    commit(party, {("orders", 0): 1}, member_id=one, generation=1)
    party.leave((one, None))
    party.pass_time(HOUR_MS // 2)
    party.bench.machine = party.machine = party.replayed()
    party.bench.ask(party.machine.lead)
    party.pass_time(HOUR_MS // 2 - 1)
    assert fetch(party) == {("orders", 0): 1}
    party.pass_time(1)
    assert is_gone(party)


def test_members_that_do_not_say_what_they_read_keep_all_offsets():
    party = hourly()
    (one,) = party.settled(b"no subscription at all")
    commit(party, {("orders", 0): 1}, member_id=one, generation=1)
    party.beat(one, times=2 * HOUR_MS // (SESSION_MS // 2))
    assert fetch(party) == {("orders", 0): 1}


def test_a_client_of_old_sets_its_own_time():
    party = hourly()
    commit(party, {("orders", 0): 1})
    party.pass_time(1)
    commit(party, {("orders", 1): 1}, version=4, retention_time_ms=1000)
    party.pass_time(999)
    assert len(fetch(party)) == 2
    party.pass_time(1)
    assert fetch(party) == {("orders", 0): 1}


def test_an_open_transaction_keeps_offsets_and_group():
    party = hourly()
    commit(party, {("orders", 0): 1})
    commit_in(party, {("orders", 0): 2})
    party.pass_time(2 * HOUR_MS)
    assert fetch(party) == {("orders", 0): 1}
    party.bench.end_transaction(PRODUCER, committed=False)
    party.pass_time(CHECK_MS)
    assert is_gone(party)


def test_a_group_with_nothing_goes_but_not_while_it_is_in_the_making():
    party = Party()
    member_id = party.answer(party.join()).member_id
    party.pass_time(SESSION_MS - 1)
    token = party.join(member_id)
    party.pass_time(DELAY_MS)
    assert party.code(token) == ErrorCode.NONE
    party.leave((member_id, None))
    assert party.state() == "Empty"
    party.pass_time(CHECK_MS)
    assert is_gone(party)
    assert party.bench.records[-1].value is None


def test_a_group_whose_last_offset_was_deleted_goes_after_a_while():
    party = Party()
    commit(party, {("orders", 0): 1})
    party.pass_time(1000)
    delete(party, ("orders", 0))
    party.pass_time(CHECK_MS - 1)
    assert not is_gone(party)
    party.pass_time(1)
    assert is_gone(party)


def test_what_the_journal_refuses_is_asked_for_again():
    party = hourly()
    commit(party, {("orders", 0): 1})
    party.pass_time(HOUR_MS - 1)
    party.bench.now += 1
    refused = party.machine.expire(party.bench.now)
    assert refused.records
    assert fetch(party) == {("orders", 0): 1}
    party.pass_time(CHECK_MS)
    assert is_gone(party)


def test_time_costs_nothing_for_groups_that_are_not_due():
    party = Party()
    for number in range(100):
        party.group = f"g{number}"
        commit(party, {("orders", 0): 1})
    party.pass_time(0)
    looked = []
    expire = party.machine.offsets._expiry.expire

    class Watched:
        def expire(self, key, now):
            looked.append(key)
            return expire(key[1], now)

    party.machine.offsets, real = Watched(), party.machine.offsets
    party.pass_time(24 * HOUR_MS)
    party.machine.offsets = real
    assert looked == []


def test_many_offsets_expire_in_steps(monkeypatch):
    monkeypatch.setattr(offset_expiry, "TOMBSTONES_MAX", 2)
    party = hourly()
    commit(party, {(topic, index): 1 for topic in ("orders", "bills") for index in range(3)})
    before = len(party.bench.records)
    party.pass_time(HOUR_MS)
    assert len(fetch(party)) < 6
    steps = []
    for _ in range(10):
        steps.append(len(party.bench.records) - before)
        before = len(party.bench.records)
        party.pass_time(100)
    assert fetch(party) == {}
    assert max(steps) <= 3, "two offsets at a time, and the group at last"
    assert is_gone(party)
