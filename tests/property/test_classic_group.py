"""A classic group keeps its promises, whatever its clients do, when they do it, and whatever the journal refuses.

Everyone who is told of a generation is told the same of it; a share is what its leader assigned; nobody waits for ever;
and whoever reads the log finds the last generation that was completed.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ottla.replicated.decision import Decision
from ottla.wire.errors import ErrorCode
from tests.unit.groups.test_classic_party import DELAY_MS, REBALANCE_MS, SESSION_MS, Party

PROTOCOLS = [("range", "sticky"), ("sticky", "range"), ("range",)]
INSTANCES = ["a", "b"]
KNOWN = st.integers(0, 5)


class ClassicGroup(RuleBasedStateMachine):
    """`ids` are all member ids ever given; `joins` and `syncs` are the tokens that wait, by who sent them."""

    def __init__(self):
        super().__init__()
        self.party = Party(group_max_size=4)
        self.ids = []
        self.joins = {}
        self.syncs = {}
        self.generations = {}
        self.newest = 0
        self.refusing = False
        carry_out = self.party.bench._carry_out

        def perhaps(decision):
            if self.refusing and decision.records:
                self.refusing, self.was_refused = False, True
                return decision.reply
            return carry_out(decision)

        self.party.bench._carry_out = perhaps
        self.was_refused = False

    def member(self, number):
        return self.ids[-1 - number % len(self.ids)] if self.ids else "nobody"

    def instance_of(self, member_id):
        prefix = member_id.split("-")[0]
        return prefix if prefix in INSTANCES else None

    @rule(protocols=st.sampled_from(PROTOCOLS), version=st.sampled_from([0, 3, 5, 9]))
    def come(self, protocols, version):
        named = tuple((name, b"") for name in protocols)
        self.track_join(self.party.join(protocols=named, version=version), None)

    @rule(instance=st.sampled_from(INSTANCES), version=st.sampled_from([5, 9]))
    def come_back(self, instance, version):
        self.track_join(
            self.party.join(instance=instance, version=version, protocols=(("range", b""),)), None
        )

    @rule(number=KNOWN, protocols=st.sampled_from(PROTOCOLS), news=st.booleans())
    def join_again(self, number, protocols, news):
        self.rejoin(self.member(number), tuple((name, b"news" if news else b"") for name in protocols))

    def rejoin(self, member_id, protocols):
        token = self.party.join(member_id, instance=self.instance_of(member_id), protocols=protocols)
        self.track_join(token, member_id)

    def track_join(self, token, member_id):
        if not self.was_refused:
            self.joins[token] = member_id
        self.was_refused = False
        self.read()

    @rule(number=KNOWN)
    def sync(self, number):
        self.synchronize(self.member(number))

    def synchronize(self, member_id):
        generation = self.newest
        shares = {id: f"{generation} {id}".encode() for id in self.ids}
        token = self.party.sync(
            member_id, generation, instance=self.instance_of(member_id), assignments=shares
        )
        if not self.was_refused:
            self.syncs[token] = (member_id, generation)
        self.was_refused = False
        self.read()

    @rule(number=KNOWN)
    def leave(self, number):
        member_id = self.member(number)
        self.party.leave((member_id, self.instance_of(member_id)))
        self.was_refused = False
        self.read()

    @rule(ms=st.sampled_from([0, 1, DELAY_MS, SESSION_MS // 2, SESSION_MS, REBALANCE_MS]), beat=st.booleans())
    def pass_time(self, ms, beat):
        for _ in range(4):
            self.party.pass_time(ms // 4)
            for member_id in self.ids if beat else ():
                self.party.heartbeat(member_id, self.newest, self.instance_of(member_id))
        self.was_refused = False
        self.read()

    @rule(leader_first=st.booleans())
    def settle(self, leader_first):
        """Let everyone do what a client should: join, wait, and sync."""
        for _ in range(2):
            for member_id in self.ids[-4:]:
                self.rejoin(member_id, (("range", b""),))
        self.pass_time(DELAY_MS, beat=True)
        for member_id in sorted(self.party.members(), reverse=leader_first):
            self.synchronize(member_id)

    @rule()
    def refuse(self):
        """Let the journal refuse what is to be recorded next."""
        self.refusing = True

    @rule()
    def lose_leadership(self):
        """Another process takes over: it has read the log, and those who wait are told by the host."""
        party = self.party
        found = party.replayed()
        party.bench.machine = party.machine = found
        party.bench.ask(lambda now: found.lead(now) or Decision(None))
        self.joins.clear()
        self.syncs.clear()
        # A generation that was not recorded may come again, with others in it.
        group = found.shelf.groups.get(party.group)
        recorded = 0 if group is None else group.generation
        self.newest = recorded
        self.generations = {number: told for number, told in self.generations.items() if number <= recorded}

    def read(self):
        answers = self.party.bench.answers
        for token in [token for token in self.joins if token in answers]:
            self.read_join(answers[token], self.joins.pop(token))
        for token in [token for token in self.syncs if token in answers]:
            member_id, generation = self.syncs.pop(token)
            answer = answers[token]
            if answer.error_code == ErrorCode.NONE:
                assert answer.assignment in (
                    f"{generation} {member_id}".encode(),
                    b"",
                    *self.inherited(member_id),
                )

    def inherited(self, member_id):
        """The shares of earlier incarnations of a static member."""
        instance = self.instance_of(member_id)
        return {
            f"{generation} {id}".encode()
            for generation in range(self.newest + 1)
            for id in self.ids
            if instance is not None and self.instance_of(id) == instance
        }

    def read_join(self, answer, member_id):
        if answer.member_id and answer.member_id not in self.ids and answer.error_code in (0, 79):
            self.ids.append(answer.member_id)
        if answer.error_code != ErrorCode.NONE:
            return
        assert member_id in (None, answer.member_id)
        generation = answer.generation_id
        assert generation >= self.newest
        self.newest = generation
        self.generations.setdefault(generation, answer.protocol_name)
        assert self.generations[generation] == answer.protocol_name
        if answer.members:
            names = [each.member_id for each in answer.members]
            assert answer.leader in names
            assert len(set(names)) == len(names)
            instances = [each.group_instance_id for each in answer.members if each.group_instance_id]
            assert len(set(instances)) == len(instances)

    @invariant()
    def those_who_wait_are_members(self):
        waiting = {id for id in self.joins.values() if id is not None}
        assert waiting <= set(self.party.members())

    @invariant()
    def a_group_has_no_more_members_than_it_may(self):
        # While they join, some of those before may still be counted; static ones are kept though they did not join.
        if self.party.state() != "PreparingRebalance":
            assert sum(self.instance_of(member_id) is None for member_id in self.party.members()) <= 4

    @invariant()
    def the_log_holds_the_last_generation(self):
        live, read = self.party.describe(), self.party.describe(self.party.replayed())
        if live.group_state in ("Stable", "Empty"):
            assert read.group_state == live.group_state or self.is_gone()
            assert sorted(read.members, key=lambda each: each.member_id) == sorted(
                live.members, key=lambda each: each.member_id
            )

    def is_gone(self):
        return self.party.group not in self.party.machine.shelf.groups

    def teardown(self):
        """In the end everybody is gone, and nobody was left waiting."""
        self.refusing = False
        for _ in range(4):
            self.party.pass_time(10 * REBALANCE_MS)
        self.read()
        assert self.joins == {}
        assert self.syncs == {}
        assert self.party.members() == []


TestClassicGroup = ClassicGroup.TestCase
TestClassicGroup.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
