"""Threads come, go, dawdle and forget, topics grow; yet no task is active twice, and in the end all are run.

G1  Nobody is granted an active task that another still runs, and no process has a task in two roles.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ottla.wire.errors import ErrorCode
from tests.unit.groups.test_streams_stage import GROUP, Stage, durable

IDS = ["a", "b", "c", "d"]


class StreamsGroupModel(RuleBasedStateMachine):
    """Drives a group through its heartbeats alone, and knows what each thread believes to run."""

    @initialize(standbys=st.integers(0, 2), delay=st.sampled_from([0, 3000]))
    def begin(self, standbys, delay):
        self.stage = Stage(
            {
                "group.streams.assignment.interval.ms": "100",
                "group.streams.num.standby.replicas": str(standbys),
                "group.streams.initial.rebalance.delay.ms": str(delay),
            },
            foo=3,
            bar=2,
            store=2,
        )
        self.standbys = standbys
        self.live = {}
        self.made = 0
        for name in IDS[:2]:
            self.join(name, 0)
        self.settle()

    @rule(name=st.sampled_from(IDS), process=st.integers(0, 2))
    def join(self, name, process):
        if name not in self.live:
            self.made += 1
            self.live[name] = self.stage.thread(
                f"{name}{self.made}", process_id=f"{name}-{process}" if process else "shared",
                rebalance_timeout_ms=20_000,
            )  # fmt: skip
            self.live[name].beat()

    @rule(name=st.sampled_from(IDS), quiet=st.booleans())
    def beat(self, name, quiet):
        if name in self.live:
            each = self.live[name]
            each.beat(quiet=quiet)
            assert each.error in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)

    @rule(name=st.sampled_from(IDS))
    def obey(self, name):
        if name in self.live:
            self.live[name].obey()

    @rule(name=st.sampled_from(IDS))
    def leave(self, name):
        each = self.live.pop(name, None)
        if each is not None and each.epoch:
            self.stage.beat(member_id=each.id, member_epoch=-1)

    @rule(name=st.sampled_from(IDS))
    def crash(self, name):
        """A thread stops running and says nothing."""
        self.live.pop(name, None)

    @rule(ms=st.sampled_from([1, 100, 3_000, 20_000]))
    def wait(self, ms):
        self.stage.pass_time(ms)
        self.lost()

    def lost(self):
        """Those whom the coordinator has put out stop running, as their own timeouts would have it."""
        group = self.stage.machine.shelf.groups.get(GROUP)
        members = group.members if group else {}
        for name, each in list(self.live.items()):
            if each.epoch and each.id not in members:
                del self.live[name]

    @rule()
    def grow(self):
        facts = self.stage.topics.find("foo")
        if facts.partitions < 6:
            self.stage.topics.put("foo", facts.partitions + 1)

    @rule()
    def settle(self):
        """All beat and obey for a while: then every task has one that runs it, and as many standbys as can be."""
        # The sessions of those that crashed end in the twelfth round at the latest.
        for _ in range(20):
            for each in self.live.values():
                each.step()
            self.stage.pass_time(4_000)
            self.lost()
        if not self.live:
            return
        expected = {("0", number) for number in range(self.stage.topics.find("foo").partitions)}
        expected |= {("1", 0), ("1", 1)}
        active = [task for each in self.live.values() for task in each.active]
        assert sorted(active) == sorted(expected)
        assert self.stage.group.state == "Stable"
        processes = {each.process for each in self.live.values()}
        standby = [task for each in self.live.values() for task in each.standby]
        assert len(standby) == 2 * min(self.standbys, len(processes) - 1)
        shares = [len(each.active) + len(each.standby) for each in self.live.values()]
        assert self.standbys or max(shares) - min(shares) <= max(1, len(expected) - len(shares))

    @invariant()
    def no_task_is_active_twice(self):
        active = [
            task for each in self.live.values() for task in each.runs["active"] | each.granted["active"]
        ]
        assert len(active) == len(set(active))

    @invariant()
    def a_process_has_a_task_in_one_role(self):
        held = [
            (each.process, task)
            for each in self.live.values()
            for role in ("active", "standby")
            for task in each.runs[role] | each.granted[role]
        ]
        assert len(held) == len(set(held))

    @invariant()
    def the_log_tells_all(self):
        assert durable(self.stage.fresh()) == durable(self.stage.machine)
        for group in self.stage.machine.shelf.groups.values():
            assert group.assignment_epoch <= group.epoch
            assert all(member.epoch <= group.assignment_epoch for member in group.members.values())


TestStreamsGroup = StreamsGroupModel.TestCase
TestStreamsGroup.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
