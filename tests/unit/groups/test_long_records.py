"""Records that are together longer than a batch may be: whoever has brought them, they hold nobody else up."""

import pytest

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.machine import Groups
from ottla.replicated.host import Host
from ottla.replicated.steps import STEP_BYTES
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from tests.unit.groups.consumer_stage import CLIENT, GROUP, Stage, settle
from tests.unit.groups.test_classic_party import Party
from tests.unit.groups.test_consumer_migration import Elder
from tests.unit.groups.test_offsets import commit
from tests.unit.replicated.journal import Limited, run_out

LONG = 30_000
DAY_MS = 24 * 3_600_000


def host_of(machine, **how):
    """Put a machine whose state was made on a bench over a journal with a limit."""
    journal = Limited(**how)
    return Host(machine, journal), journal


def test_members_whose_tombstones_are_too_long_together_keep_no_other_from_being_fenced():
    stage = Stage()
    for number in range(12):
        name = f"P{number}".ljust(LONG, "p")
        stage.beat(group_id=name, member_id=f"M{number}".ljust(LONG, "m"))
    stage.beat(member_id="dead")
    machine = stage.fresh()
    machine.lead(stage.now)
    host, journal = host_of(machine)
    run_out(host, stage.now + 60_000)
    assert not stage.group.members.keys() - {"dead"}
    assert not any(group.members for group in machine.shelf.groups.values())
    assert min(journal.lengths) > 0, "nothing was refused"
    assert max(journal.lengths) < STEP_BYTES + 8 * LONG


def test_offsets_of_a_group_with_a_long_name_expire():
    party = Party("g" * LONG)
    party.group = "g" * LONG
    commit(party, {("orders", number): 1 for number in range(3)})
    count = 200
    ledger = party.machine.offsets._ledger
    place, offset = next((each, ledger.find(each)) for each in ledger.places(party.group))
    for number in range(count):
        ledger.put(place._replace(partition=number), offset)
    host, journal = host_of(party.machine)
    now = party.bench.now
    for _ in range(100):
        now += DAY_MS
        run_out(host, now)
    assert party.group not in party.machine.shelf.groups
    assert min(journal.lengths) > 0
    assert max(journal.lengths) < STEP_BYTES + 4 * LONG


def test_one_whose_timer_breaks_holds_nobody_up(monkeypatch):
    stage = Stage()
    for name in ("a", "broken", "c"):
        stage.beat(group_id=name, member_id="m")
    machine: Groups = stage.machine
    host, _ = host_of(machine)
    expire = type(machine)._expire

    def breaks(self, key, now):
        if key[:2] == ("consumer", "broken"):
            raise RuntimeError("a bug")
        return expire(self, key, now)

    monkeypatch.setattr(Groups, "_expire", breaks)
    now = stage.now + 60_000
    for _ in range(8):
        try:
            run_out(host, now)
        except RuntimeError:
            now += 1_000
    found = {name: len(machine.shelf.groups[name].members) for name in ("a", "broken", "c")}
    assert found == {"a": 0, "broken": 1, "c": 0}
    assert machine.deadline <= now + 1_000, "it is tried again"


def large_group(stage, count, size):
    """Let classic members with so much to say into a group that one of the new protocol has made."""
    stage.beat(member_id="new")
    for _ in range(count):
        Elder(stage).join()
    for member in list(stage.group.members.values()):
        if member.classic is not None:
            for each in member.classic.supported_protocols:
                each.metadata = each.metadata + bytes(size)


@pytest.mark.parametrize("how", ["leaves", "is silent"])
def test_a_group_goes_back_to_the_classic_protocol_however_much_its_members_say(how):
    stage = Stage({"group.consumer.migration.policy": "bidirectional"})
    large_group(stage, 5, 400_000)
    host, journal = host_of(stage.machine)
    if how == "leaves":
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id="new", member_epoch=-1)
        replies = []
        host.submit(
            lambda machine, now: machine.consumer.heartbeat(request, 1, CLIENT, now), replies.append, stage.now
        )
        assert not replies[0].error_code
    else:
        stage.machine.shelf.timers.set(("consumer", GROUP, "session", "new"), stage.now)
        host.expire(stage.now)
    group = stage.machine.shelf.groups[GROUP]
    assert isinstance(group, ClassicGroup) and len(group.members) == 5
    assert max(journal.lengths) > 1 << 20


def test_a_large_group_rebalances():
    """The targets of all its members are one step, longer than what somebody may ask for."""
    stage = Stage(foo=1)
    count = 3_000
    for number in range(count):
        stage.beat(member_id=f"{number:036}")
    stage.topics.put("foo", count)
    host, journal = host_of(stage.machine, length_max=100_000)
    member = next(iter(stage.group.members.values()))
    request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member.id, member_epoch=member.epoch)
    replies = []
    host.submit(
        lambda machine, now: machine.consumer.heartbeat(request, 1, CLIENT, now),
        replies.append,
        stage.now + 60_000,
    )
    assert max(journal.lengths) > 100_000
    assert stage.group.assignment_epoch == stage.group.epoch


def test_a_group_with_many_offsets_is_deleted_in_steps():
    party = Party()
    commit(party, {("orders", 0): 1})
    ledger = party.machine.offsets._ledger
    (place,) = ledger.places("g")
    offset = ledger.find(place)
    for number in range(12_000):
        ledger.put(place._replace(partition=number), offset)
    host, journal = host_of(party.machine, length_max=1_000)
    answers = []
    while not answers or not answers[-1]:
        host.submit(lambda machine, now: machine.listing.delete(["g"]), answers.append, party.bench.now)
    assert [each.error_code for each in answers[-1]] == [0] and len(answers) == 3
    assert "g" not in party.machine.shelf.groups and not ledger.topics("g")
    assert len(journal.records) == 12_001


def test_a_deletion_is_refused_for_a_group_that_somebody_has_joined_meanwhile():
    party = Party()
    commit(party, {("orders", 0): 1})
    party.enter()
    decision = party.machine.listing.delete(DeleteGroupsRequest(groups_names=["g"]).groups_names)
    assert not decision.records
    assert [each.error_code for each in decision.reply] == [ErrorCode.NON_EMPTY_GROUP]


def test_settled_groups_write_nothing():
    stage = Stage()
    consumers = [stage.consumer(name) for name in "ab"]
    settle(consumers)
    count = len(stage.records)
    settle(consumers)
    assert len(stage.records) == count
