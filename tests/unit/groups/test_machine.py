"""The machine of a partition: listing, deleting, replaying, and a journal that refuses."""

import pytest

from ottla.groups.group import Kind
from ottla.groups.machine import Part
from ottla.replicated.decision import Decision
from ottla.replicated.keyed import KeyedRecord, decode
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.consumer_protocol import ConsumerProtocolAssignment
from ottla.wire.messages.delete_groups import DeleteGroupsResponse
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest
from ottla.wire.messages.list_groups import ListGroupsResponse
from ottla.wire.messages.sync_group import SyncGroupRequest
from ottla.wire.records.streams_group import StreamsGroupMetadataKey, StreamsGroupMetadataValue
from tests.unit.groups.test_classic_party import (
    CLIENT,
    DELAY_MS,
    RANGE,
    SESSION_MS,
    Party,
    subscription,
)
from tests.unit.groups.test_offsets import commit, fetch
from tests.unit.groups.test_offsets_transactions import PRODUCER, commit_in
from tests.unit.replicated.journal import NOW

NONE = ErrorCode.NONE


class OtherGroup:
    """A group of another kind, as plain as it can be."""

    protocol_type = "streams"
    state = "Empty"

    def __init__(self, id, kind=Kind.STREAMS):
        self.id = id
        self.kind = kind

    def subscribes_to(self, topic):
        return False

    def check_delete(self):
        if self.state != "Empty":
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP)

    def check_fetch(self, member_id, epoch):
        if member_id is not None:
            raise BrokerError(ErrorCode.STALE_MEMBER_EPOCH)

    def expires_at(self, now, commit_timestamp, retention_ms):
        return commit_timestamp + retention_ms

    def tombstones(self):
        return [KeyedRecord(StreamsGroupMetadataKey(group_id=self.id), None)]


class OtherGroups:
    """Groups of another kind: a record makes one, a tombstone removes it, a timer writes a record."""

    def __init__(self):
        self.shelf = None
        self.led = None

    def apply(self, record):
        if record.value is None:
            self.shelf.groups.pop(record.key.group_id, None)
        else:
            self.shelf.groups[record.key.group_id] = OtherGroup(record.key.group_id)

    def expire(self, key, now):
        return Decision(None, (other_record(key[1]),))

    def lead(self, now):
        self.led = now

    def classic_join(self, request, version, client, token, now):
        return Decision("join")

    def classic_sync(self, request, version, token, now):
        return Decision("sync")

    def classic_heartbeat(self, request, now):
        return Decision("heartbeat")

    def classic_leave(self, request, version, now):
        return Decision("leave")


def other_record(group_id):
    return KeyedRecord(StreamsGroupMetadataKey(group_id=group_id), StreamsGroupMetadataValue(epoch=1))


def mixed():
    """Return a party whose machine has others in place of streams groups, and the part they are."""
    others = OtherGroups()
    kind = StreamsGroupMetadataKey(group_id="").api_key
    party = Party()
    machine = party.machine
    machine._parts["streams"] = Part("streams", {kind: machine.kinds[kind]}, others, others.lead)
    machine._routes[kind] = others
    others.shelf = machine.shelf
    return party, others


def put(party, group_id, state="Empty"):
    party.bench.ask(lambda: Decision(None, (other_record(group_id),)))
    party.machine.shelf.groups[group_id].state = state


def test_groups_of_all_kinds_are_listed():
    party, _ = mixed()
    party.settled()
    put(party, "s", "Reconciling")
    party.group = "h"
    commit(party, {("orders", 0): 1})

    def listed(states=(), types=()):
        found = party.machine.listing.list_groups(states, types).reply
        for version in range(6):
            ListGroupsResponse(groups=found).encode(version)
        return {(each.group_id, each.group_state, each.group_type, each.protocol_type) for each in found}

    classic = ("g", "Stable", "classic", "consumer")
    simple = ("h", "Empty", "classic", "")
    streams = ("s", "Reconciling", "streams", "streams")
    assert listed() == {classic, simple, streams}
    assert listed(states=["stable", "empty"]) == {classic, simple}
    assert listed(types=["streams"]) == {streams}
    assert listed(types=["nonsense"]) == set()
    assert listed(states=["stable"], types=["streams"]) == set()


def test_classic_groups_are_described():
    party, _ = mixed()
    (one,) = party.settled(b"mine")
    put(party, "s")
    found = party.machine.listing.describe(["g", "none", "s"], 6).reply
    assert [(each.group_state, each.error_code, each.error_message) for each in found] == [
        ("Stable", NONE, None),
        ("Dead", ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found."),
        ("Dead", ErrorCode.GROUP_ID_NOT_FOUND, "Group s is not a classic group."),
    ]
    (member,) = found[0].members
    assert (member.member_id, member.client_id, member.client_host) == (one, "app", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (b"mine", f"share of {one}".encode())
    found = party.machine.listing.describe(["none"], 5).reply
    assert (found[0].group_state, found[0].error_code) == ("Dead", NONE)
    party.join(one)
    (found,) = party.machine.listing.describe(["g"], 6).reply
    assert (found.group_state, found.protocol_data, found.members[0].member_metadata) == (
        "CompletingRebalance",
        "",
        b"",
    )


def test_groups_are_deleted_with_their_offsets():
    party, _ = mixed()
    party.group = "h"
    commit(party, {("orders", 0): 1})
    commit_in(party, {("orders", 0): 2, ("orders", 1): 3})
    party.group = "g"
    party.settled()
    put(party, "s")
    put(party, "busy", "Stable")
    found = party.bench.ask(party.machine.listing.delete, ["h", "g", "none", "s", "busy", "h"])
    DeleteGroupsResponse(results=found).encode(3)
    assert [(each.group_id, each.error_code) for each in found] == [
        ("h", NONE),
        ("g", ErrorCode.NON_EMPTY_GROUP),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND),
        ("s", NONE),
        ("busy", ErrorCode.NON_EMPTY_GROUP),
    ]
    party.bench.end_transaction(PRODUCER, committed=True)
    assert set(party.machine.shelf.groups) == {"g", "busy"}
    assert fetch(party, group="h") == {}


def test_a_classic_member_makes_over_an_empty_group_of_another_kind():
    party, _ = mixed()
    put(party, "g")
    member_id = party.answer(party.join()).member_id
    assert party.machine.shelf.groups["g"].kind is Kind.CLASSIC
    token = party.join(member_id)
    party.pass_time(DELAY_MS)
    assert party.code(token) == NONE
    put(party, "h", "Stable")
    party.group = "h"
    assert party.code(party.join()) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert party.code(party.sync("m")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert party.heartbeat("m") == ErrorCode.UNKNOWN_MEMBER_ID
    assert party.leave(("m", None)) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_classic_members_of_a_consumer_group_are_its_guests():
    party, guests = mixed()
    party.machine.consumer = guests
    group = party.machine.shelf.groups["g"] = OtherGroup("g", Kind.CONSUMER)
    group.state = "Stable"
    machine = party.machine
    assert machine.join(JoinGroupRequest(group_id="g"), 9, CLIENT, 1, NOW).reply == "join"
    assert machine.sync(SyncGroupRequest(group_id="g"), 5, 1, NOW).reply == "sync"
    assert machine.heartbeat(HeartbeatRequest(group_id="g"), NOW).reply == "heartbeat"
    assert machine.leave(LeaveGroupRequest(group_id="g"), 5, NOW).reply == "leave"
    group.state = "Empty"
    assert party.code(party.join()) == ErrorCode.MEMBER_ID_REQUIRED, "an empty one becomes classic"


def test_offsets_are_read_only_by_members_who_may():
    party, _ = mixed()
    put(party, "g")
    assert fetch(party, ("orders", 0), member_id="m", epoch=1) == ErrorCode.STALE_MEMBER_EPOCH
    assert fetch(party, ("orders", 0)) == {("orders", 0): -1}


def test_other_kinds_are_told_when_to_lead_and_when_time_is_up():
    party, others = mixed()
    party.bench.ask(party.machine.lead)
    assert others.led == NOW
    party.machine.shelf.timers.set(("streams", "s", "session", "m"), NOW + 5)
    party.pass_time(5)
    assert "s" in party.machine.shelf.groups
    party.pass_time(5_000)
    assert len(party.bench.records) == 1, "once"


def test_a_timer_whose_records_are_refused_comes_again():
    party, _ = mixed()
    timers = party.machine.shelf.timers
    timers.set(("streams", "s", "session", "m"), NOW)
    refused = party.machine.expire(NOW)
    assert refused.records == (other_record("s"),)
    party.pass_time(999)
    assert "s" not in party.machine.shelf.groups
    party.pass_time(1)
    assert "s" in party.machine.shelf.groups
    assert ("streams", "s", "session", "m") not in timers


def test_a_group_is_dealt_with_once_in_a_step():
    party, _ = mixed()
    timers = party.machine.shelf.timers
    for member_id in "abc":
        timers.set(("streams", "s", "session", member_id), NOW)
        timers.set(("streams", "t", "session", member_id), NOW)
    assert len(party.machine.expire(NOW).records) == 2
    party.pass_time(2_000)
    assert len(party.bench.records) == 6


def test_a_join_that_is_refused_leaves_no_trace():
    party = Party()
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=SESSION_MS,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=RANGE[0][0], metadata=b"")],
    )
    assert party.machine.join(request, 9, CLIENT, 99, NOW).records
    assert not party.machine.shelf.groups
    assert party.machine.deadline is None
    party.settled()


def test_an_assignment_that_is_refused_is_handed_in_again():
    party = Party()
    one, _ = party.enter()
    two, _ = party.enter()
    party.pass_time(2 * DELAY_MS)
    waiting = party.sync(two)
    request = SyncGroupRequest(group_id="g", generation_id=1, member_id=one)
    assert party.machine.sync(request, 5, 99, party.bench.now).records
    assert party.answer(waiting) is None
    assert party.state() == "CompletingRebalance"
    leading = party.sync(one, assignments={one: b"a", two: b"b"})
    assert party.answer(leading).assignment == b"a"
    assert party.answer(waiting).assignment == b"b"


def test_a_seat_that_could_not_be_handed_over_stays_with_its_holder():
    party = Party()
    token = party.join(instance="i")
    party.pass_time(DELAY_MS)
    one = party.answer(token).member_id
    party.sync(one, instance="i", assignments={one: b"all"})
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=SESSION_MS,
        group_instance_id="i",
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=RANGE[0][0], metadata=RANGE[0][1])],
    )
    assert party.machine.join(request, 9, CLIENT, 99, party.bench.now).records
    assert party.heartbeat(one, instance="i") == NONE
    party.beat(one, times=5)
    assert party.members() == [one]


@pytest.mark.parametrize("how", ["leave", "expire"])
def test_a_group_that_could_not_be_emptied_keeps_its_members(how):
    party = Party()
    (one,) = party.settled()
    if how == "leave":
        request = LeaveGroupRequest(group_id="g", members=[LeaveGroupRequest.MemberIdentity(member_id=one)])
        assert party.machine.leave(request, 5, party.bench.now).records
        assert party.heartbeat(one) == NONE
    else:
        party.pass_time(SESSION_MS - 1)
        party.bench.now += 1
        assert party.machine.expire(party.bench.now).records
        assert party.members() == [one]
        party.pass_time(999)
        assert party.members() == [one]
        party.pass_time(1)
    if how == "expire":
        assert party.state() == "Empty"


def test_everything_is_replayed_from_bytes():
    party = Party()
    one, two = party.settled(b"one", b"two")
    commit(party, {("orders", 0): 1}, member_id=one, generation=1)
    commit_in(party, {("orders", 1): 2}, member_id=two, generation=1)
    party.bench.end_transaction(PRODUCER, committed=True)
    party.group = "h"
    commit(party, {("bills", 0): 3}, version=4, retention_time_ms=10_000)
    kinds = party.machine.kinds
    for number, entry in enumerate(party.bench.log):
        if entry[0] != "end":
            read = decode(kinds, *entry[-1].encode())
            assert read == entry[-1]
            party.bench.log[number] = (*entry[:-1], read)
    again = party.replayed()
    assert set(again.shelf.groups) == {"g", "h"}
    for group in ("g", "h"):
        assert fetch(party, group=group) == fetch(party, group=group, machine=again)
    party.group = "g"
    before, after = party.describe(), party.describe(again)
    assert before == after


def test_nobody_waits_for_a_forgotten_token_but_the_seat_is_kept():
    party = Party()
    one, token = party.enter()
    party.machine.forget(token)
    party.pass_time(DELAY_MS)
    assert party.members() == [one]


def test_a_heartbeat_costs_no_record():
    party = Party()
    (one,) = party.settled()
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id=one)
    assert party.machine.heartbeat(request, NOW) == Decision(HeartbeatResponse())


def test_what_is_said_of_one_group_does_not_depend_on_the_records_of_another():
    party, _ = mixed()
    one, _ = party.settled(b"one", b"two")
    token = party.join(one)
    timers = party.machine.shelf.timers
    party.pass_time(SESSION_MS - 1)
    party.bench.now += 1
    timers.set(("streams", "s", "session", "m"), party.bench.now)
    assert party.machine.expire(party.bench.now).records == (other_record("s"),), "which the journal refuses"
    party.pass_time(0)
    assert party.code(token) == NONE, "the other is out, and the generation begins"


def test_a_classic_group_becomes_a_consumer_group_and_back_while_its_member_stays():
    party = Party()
    one, _ = party.enter(protocols=(("range", subscription("orders")),))
    party.pass_time(DELAY_MS)
    share = ConsumerProtocolAssignment.TopicPartition(topic="orders", partitions=[0, 1, 2, 3])
    assigned = b"\0\3" + ConsumerProtocolAssignment(assigned_partitions=[share]).encode(3)
    party.sync(one, assignments={one: assigned})
    commit(party, {("orders", 0): 7}, member_id=one, generation=1)

    def beat(epoch, **fields):
        request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch, **fields)
        return party.bench.ask(party.machine.consumer.heartbeat, request, 1, CLIENT).error_code

    joining = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["orders"], "topic_partitions": []}
    assert beat(0, **joining) == NONE
    assert party.machine.shelf.groups["g"].kind is Kind.CONSUMER
    assert party.heartbeat(one, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert fetch(party) == {("orders", 0): 7}
    assert beat(-1) == NONE
    party.pass_time(0)
    assert party.machine.shelf.groups["g"].kind is Kind.CLASSIC
    assert party.state() == "PreparingRebalance"
    assert party.members() == [one]
    assert party.describe(party.replayed()).members[0].member_id == one
    token = party.join(one)
    assert party.code(token) == NONE
    party.pass_time(SESSION_MS)
    assert party.state() == "Empty", "its session is a classic one again"
