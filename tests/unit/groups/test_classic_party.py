"""A classic group from the first join to a stable generation, and the driver that the other tests of it use."""

from ottla.groups.machine import Groups
from ottla.groups.shelf import Shelf
from ottla.groups.topics import TopicFacts
from ottla.metadata.settings.layers import BrokerValues
from ottla.replicated.keyed import Client
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.messages.describe_groups import DescribeGroupsResponse
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest
from ottla.wire.messages.sync_group import SyncGroupRequest
from ottla.wire.records.classic_group import GroupMetadataKey, GroupMetadataValue
from tests.unit.replicated.journal import NOW, Bench

CLIENT = Client("app", "/127.0.0.1")
SESSION_MS = 10_000
REBALANCE_MS = 60_000
DELAY_MS = 3_000


class Topics:
    """Topics of four partitions each; a topic's id is made of its name."""

    def __init__(self, *names):
        self.known = {name: TopicFacts(name, topic_id(name), 4) for name in names}
        self.version = 1

    def find(self, name):
        return self.known.get(name)

    def by_id(self, id):
        return next((facts for facts in self.known.values() if facts.id == id), None)

    def names(self):
        return list(self.known)


def topic_id(name):
    return name.encode().ljust(16, b".")


def subscription(*topics):
    return b"\0\3" + ConsumerProtocolSubscription(topics=list(topics)).encode(3)


RANGE = (("range", subscription("orders")),)


def fresh(topics=None, **settings):
    """Return a machine of its own."""
    values = BrokerValues(
        {"node.id": "1"} | {name.replace("_", "."): str(value) for name, value in settings.items()}
    )
    numbers = iter(range(1, 1_000_000))
    shelf = Shelf(
        topics or Topics("orders", "bills"),
        values,
        lambda group_id, name: values[f"group.{name}"],
        lambda: next(numbers).to_bytes(16, "big"),
    )
    return Groups(shelf)


class Party:
    """A machine with one group, and clients that talk to it."""

    def __init__(self, group="g", **settings):
        self.settings = settings
        self.bench = Bench(fresh(**settings))
        self.machine = self.bench.machine
        self.group = group
        self.token = 0

    def join(self, member_id="", *, instance=None, protocols=RANGE, version=9, client=CLIENT, **fields):
        """Send a JoinGroup and return its token."""
        self.token += 1
        fields = {"session_timeout_ms": SESSION_MS, "rebalance_timeout_ms": REBALANCE_MS} | fields
        request = JoinGroupRequest(
            **{"group_id": self.group, "protocol_type": "consumer"} | fields,
            member_id=member_id,
            group_instance_id=instance,
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=data)
                for name, data in protocols
            ],
        )
        self.bench.ask(self.machine.join, request, version, client, self.token)
        return self.token

    def enter(self, **how):
        """Join as a dynamic member does: ask for an id, and join with it. Returns the id and the token."""
        member_id = self.answer(self.join(**how)).member_id
        return member_id, self.join(member_id, **how)

    def sync(self, member_id, generation=1, *, assignments=None, instance=None, version=5, **fields):
        """Send a SyncGroup and return its token."""
        self.token += 1
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=id, assignment=data)
                for id, data in (assignments or {}).items()
            ],
            **fields,
        )
        self.bench.ask(self.machine.sync, request, version, self.token)
        return self.token

    def heartbeat(self, member_id, generation=1, instance=None):
        """Send a Heartbeat and return the error code."""
        request = HeartbeatRequest(
            group_id=self.group, generation_id=generation, member_id=member_id, group_instance_id=instance
        )
        return self.bench.ask(self.machine.heartbeat, request).error_code

    def leave(self, *members, version=5):
        """Let members leave, each given as (member id, instance id); return the codes."""
        if version < 3:
            request = LeaveGroupRequest(group_id=self.group, member_id=members[0][0])
            return self.bench.ask(self.machine.leave, request, version).error_code
        request = LeaveGroupRequest(
            group_id=self.group,
            members=[
                LeaveGroupRequest.MemberIdentity(member_id=id, group_instance_id=instance)
                for id, instance in members
            ],
        )
        return [each.error_code for each in self.bench.ask(self.machine.leave, request, version).members]

    def answer(self, token):
        """Return what a token was answered with; None if it still waits."""
        return self.bench.answers.get(token)

    def code(self, token):
        """Return the error code a token was answered with."""
        return self.bench.answers[token].error_code

    def pass_time(self, ms):
        self.bench.pass_time(ms)

    def beat(self, *members, generation=1, ms=SESSION_MS // 2, times=1):
        """Let time pass while these members send heartbeats."""
        for _ in range(times):
            self.pass_time(ms)
            for member_id in members:
                self.heartbeat(member_id, generation)

    def settled(self, *subscriptions, **how):
        """Make a stable group with a member for each subscription; return their ids, the leader first."""
        entered = [self.enter(protocols=(("range", each),), **how) for each in subscriptions or [b"\0\0"]]
        self.pass_time(DELAY_MS * (1 + len(entered)))
        leader = self.answer(entered[0][1]).leader
        ids = sorted((id for id, _ in entered), key=lambda each: each != leader)
        for member_id in ids[1:]:
            self.sync(member_id)
        self.sync(ids[0], assignments={id: f"share of {id}".encode() for id in ids})
        assert self.state() == "Stable"
        return ids

    def state(self):
        return self.describe().group_state

    def describe(self, machine=None):
        listing = (machine or self.machine).listing
        (found,) = listing.describe([self.group], 5).reply
        return found

    def members(self):
        return [member.member_id for member in self.describe().members]

    def replayed(self):
        """Return a machine that read the log."""
        return self.bench.replayed(fresh(**self.settings))

    def last_value(self):
        """Return the newest record of the group."""
        return next(
            record.value
            for record in reversed(self.bench.records)
            if isinstance(record.key, GroupMetadataKey)
        )


def test_a_new_member_is_given_its_id_and_the_group_is_recorded():
    party = Party()
    answer = party.answer(party.join())
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id == "app-00000000-0000-4000-8000-000000000001"
    (record,) = party.bench.records
    assert record.encode() == (
        b"\0\2\0\1g",
        b"\0\3" + b"\0\0" + bytes(4) + b"\xff\xff" + b"\xff\xff" + NOW.to_bytes(8, "big") + bytes(4),
    )


def test_an_old_client_joins_without_an_id_of_its_own():
    party = Party()
    token = party.join(version=3)
    assert party.answer(token) is None
    party.pass_time(DELAY_MS)
    assert party.code(token) == ErrorCode.NONE
    assert party.answer(token).member_id in party.members()


def test_version_0_has_one_timeout_for_both():
    party = Party()
    token = party.join(version=0, rebalance_timeout_ms=-1)
    party.pass_time(DELAY_MS)
    member_id = party.answer(token).member_id
    party.sync(member_id, assignments={member_id: b"all"})
    (member,) = party.last_value().members
    assert member.rebalance_timeout == member.session_timeout == SESSION_MS


def test_without_a_delay_those_who_come_at_once_still_begin_together():
    party = Party(**{"group.initial.rebalance.delay.ms": "0"})
    _, first = party.enter()
    party.pass_time(4)
    _, second = party.enter()
    party.pass_time(1)
    assert party.answer(first) is None
    party.pass_time(5)
    assert [party.answer(token).generation_id for token in (first, second)] == [1, 1]


def test_the_first_generation_waits_for_the_delay_and_for_those_who_come_meanwhile():
    party = Party()
    _, first = party.enter()
    party.pass_time(DELAY_MS - 1)
    _, second = party.enter()
    party.pass_time(1)
    assert party.answer(first) is None
    party.pass_time(DELAY_MS - 1)
    assert party.answer(first) is None
    party.pass_time(1)
    assert party.answer(first).generation_id == party.answer(second).generation_id == 1
    assert party.state() == "CompletingRebalance"


def test_the_first_generation_does_not_wait_beyond_the_rebalance_timeout():
    party = Party()
    _, first = party.enter(rebalance_timeout_ms=8_000)
    for _ in range(8):
        party.pass_time(999)
        assert party.answer(first) is None
        party.enter(rebalance_timeout_ms=8_000)
    party.pass_time(8)
    assert party.code(first) == ErrorCode.NONE


def test_only_the_leader_learns_the_members():
    party = Party()
    one, first = party.enter(protocols=(("range", b"one"),))
    two, second = party.enter(protocols=(("range", b"two"),))
    party.pass_time(DELAY_MS * 2)
    answer = party.answer(first)
    assert answer.leader == one
    assert answer.protocol_type == "consumer"
    assert answer.protocol_name == "range"
    assert [(each.member_id, each.metadata) for each in answer.members] == [(one, b"one"), (two, b"two")]
    assert party.answer(second).leader == one
    assert party.answer(second).members == []


def test_everyone_gets_a_share_from_the_leader_and_the_generation_is_recorded():
    party = Party()
    one, _ = party.enter(protocols=(("range", b"one"),))
    two, _ = party.enter(protocols=(("range", b"two"),))
    three, _ = party.enter(protocols=(("range", b"three"),))
    party.pass_time(DELAY_MS * 2)
    began = party.machine.shelf.groups["g"].since_ms
    waiting = party.sync(two)
    assert party.answer(waiting) is None
    party.pass_time(100)
    leading = party.sync(one, assignments={one: b"a", two: b"b"})
    assert party.answer(leading).assignment == b"a"
    assert party.answer(waiting).assignment == b"b"
    assert party.answer(party.sync(three)).assignment == b"", "one that the leader passed over has nothing"
    member = GroupMetadataValue.MemberMetadata

    def seat(id, subscription, assignment):
        return member(
            member_id=id,
            client_id="app",
            client_host="/127.0.0.1",
            rebalance_timeout=REBALANCE_MS,
            session_timeout=SESSION_MS,
            subscription=subscription,
            assignment=assignment,
        )

    assert party.last_value() == GroupMetadataValue(
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader=one,
        current_state_timestamp=began,
        members=[seat(one, b"one", b"a"), seat(two, b"two", b"b"), seat(three, b"three", b"")],
    )
    assert party.bench.records[-1].version == 3


def test_a_replayed_group_is_what_the_last_generation_was():
    party = Party()
    ids = party.settled(b"one", b"two", b"three")
    party.join(ids[0])
    assert party.state() == "PreparingRebalance", "which the log does not know"
    again = party.replayed()
    found = party.describe(again)
    assert found.group_state == "Stable"
    assert found.protocol_data == "range"
    assert [(each.member_id, each.member_metadata, each.member_assignment) for each in found.members] == [
        (member.member_id, member.subscription, member.assignment) for member in party.last_value().members
    ]
    group = again.shelf.groups["g"]
    assert (group.generation, group.leader) == (1, ids[0])


def test_answers_can_be_encoded_at_every_version():
    for version in range(10):
        party = Party(group_max_size=1)
        tokens = [party.join(version=version, protocols=())]
        if version < 4:
            tokens.append(party.join(version=version))
        else:
            tokens.append(party.enter(version=version)[1])
        party.pass_time(DELAY_MS)
        tokens.append(party.join(version=version))
        for token in tokens:
            found = JoinGroupResponse.decode(party.answer(token).encode(version), version)
            assert found.error_code == party.code(token)
        sync_version = min(version, 5)
        member_id = party.members()[0]
        for token in (
            party.sync("nobody", version=sync_version),
            party.sync(member_id, assignments={member_id: b"x"}, version=sync_version),
        ):
            party.answer(token).encode(sync_version)
        described = party.machine.listing.describe(["g", "none"], min(version, 6)).reply
        DescribeGroupsResponse(groups=described).encode(min(version, 6))
