"""Consumers come, go, dawdle and forget; yet no partition has two readers, and in the end all are read.

G1  Nobody is granted a partition that another still reads.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ottla.wire.errors import ErrorCode
from tests.unit.groups.consumer_stage import GROUP, Stage, durable

IDS = ["a", "b", "c"]
NAMES = st.lists(st.sampled_from(IDS), min_size=2, max_size=8)
WISHES = st.sampled_from([["foo"], ["bar"], ["foo", "bar"], []])


class ConsumerGroupModel(RuleBasedStateMachine):
    """Drives a group through its heartbeats alone, and knows what each consumer believes to read."""

    def __init__(self):
        super().__init__()
        self.stage = Stage(
            {"group.consumer.assignment.interval.ms": "100", "group.consumer.session.timeout.ms": "45000"},
            foo=4,
            bar=3,
        )
        self.live = {}
        self.made = 0

    @initialize(topics=WISHES)
    def begin(self, topics):
        """Two consumers have settled before anything happens, so that there is something to move."""
        for name in IDS[:2]:
            self.join(name, topics, None)
        self.settle()

    def lost(self):
        """Those whom the coordinator has put out stop reading, as their own timeouts would have it."""
        group = self.stage.machine.shelf.groups.get(GROUP)
        members = group.members if group else {}
        for name, each in list(self.live.items()):
            if each.epoch and each.id not in members:
                del self.live[name]

    @rule(name=st.sampled_from(IDS), topics=WISHES, assignor=st.sampled_from([None, "uniform", "range"]))
    def join(self, name, topics, assignor):
        if name not in self.live:
            self.made += 1
            each = self.live[name] = self.stage.consumer(
                f"{name}{self.made}", subscribed_topic_names=topics, server_assignor=assignor,
                rebalance_timeout_ms=60_000,
            )  # fmt: skip
            each.beat()

    @rule(name=st.sampled_from(IDS), regex=st.sampled_from(["f.*", ".*"]))
    def join_by_regex(self, name, regex):
        if name not in self.live:
            self.made += 1
            each = self.live[name] = self.stage.consumer(
                f"{name}{self.made}",
                subscribed_topic_names=[],
                subscribed_topic_regex=regex,
                rebalance_timeout_ms=60_000,
            )
            each.beat()
            self.stage.pass_time(0)

    @rule(name=st.sampled_from(IDS))
    def join_static(self, name):
        if name not in self.live:
            self.made += 1
            each = self.live[name] = self.stage.consumer(
                f"{name}{self.made}", instance_id=name, rebalance_timeout_ms=60_000
            )
            each.beat()
            if each.error is ErrorCode.UNRELEASED_INSTANCE_ID:
                del self.live[name]

    @rule(names=NAMES, quiet=st.booleans())
    def beat(self, names, quiet):
        for name in names:
            if name in self.live:
                self.live[name].beat(quiet=quiet)
                self.nobody_is_granted_what_another_reads()

    @rule(name=st.sampled_from(IDS))
    def obey(self, name):
        if name in self.live:
            self.live[name].obey()

    @rule(name=st.sampled_from(IDS), topics=WISHES)
    def resubscribe(self, name, topics):
        if name in self.live:
            self.live[name].beat(subscribed_topic_names=topics)

    @rule(name=st.sampled_from(IDS))
    def lose_an_answer(self, name):
        if name in self.live and self.live[name].epoch:
            each = self.live[name]
            before = each.epoch, each.granted
            each.beat()
            if each.error is ErrorCode.NONE:
                each.epoch, each.granted = before
                each.in_doubt = True

    @rule(name=st.sampled_from(IDS), for_now=st.booleans())
    def leave(self, name, for_now):
        each = self.live.pop(name, None)
        if each is not None and each.epoch:
            instance = each.fields.get("instance_id")
            self.stage.beat(
                member_id=each.id, member_epoch=-2 if instance and for_now else -1, instance_id=instance
            )

    @rule(ms=st.sampled_from([50, 100, 10_001, 44_000]))
    def wait(self, ms):
        self.stage.pass_time(ms)
        self.lost()

    @rule(count=st.integers(3, 8))
    def grow(self, count):
        if count > self.stage.topics.find("bar").partitions:
            self.stage.topics.put("bar", count)

    @rule()
    def fail_over(self):
        self.stage.machine = self.stage.fresh()
        self.stage.ask(self.stage.machine.lead)

    @precondition(lambda self: self.live)
    @rule()
    def settle(self):
        """Everyone who is heard from in time has its share in the end, and nothing is left over."""
        group = self.stage.group
        for member in list(group.members.values()):
            if member.id not in {each.id for each in self.live.values()}:
                self.stage.beat(member_id=member.id, member_epoch=-1, instance_id=member.instance_id)
        for _ in range(16):
            self.stage.pass_time(2_000)
            for each in self.live.values():
                each.step()
        group = self.stage.group
        assert group.state == "Stable", self.stage.describe()
        topics = self.stage.topics
        wanted = set()
        for member in group.members.values():
            for name in group.topics_of(member):
                facts = topics.find(name)
                wanted |= {(facts.id, partition) for partition in range(facts.partitions)}
        owned = [pair for each in self.live.values() for pair in each.owned]
        assert sorted(owned) == sorted(wanted)

    @invariant()
    def nobody_is_granted_what_another_reads(self):
        everyone = list(self.live.values())
        for each in everyone:
            for other in everyone:
                if each is not other:
                    assert not each.owned & (other.owned | other.granted), (each.id, other.id)

    @invariant()
    def epochs_follow_each_other(self):
        group = self.stage.machine.shelf.groups.get(GROUP)
        if group is not None:
            assert group.assignment_epoch <= group.epoch
            assert all(member.epoch <= group.assignment_epoch for member in group.members.values())

    def teardown(self):
        assert durable(self.stage.fresh()) == durable(self.stage.machine)


TestConsumerGroup = ConsumerGroupModel.TestCase
TestConsumerGroup.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)


def test_one_that_lost_an_answer_says_everything_even_if_its_next_heartbeat_is_a_quiet_one():
    model = ConsumerGroupModel()
    model.begin(["foo", "bar"])
    model.resubscribe("a", ["bar"])
    model.lose_an_answer("b")  # which would have told it to give partitions up
    model.beat(["b", "b"], True)
    model.settle()
