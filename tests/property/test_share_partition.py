"""A share partition against a list of what became of every record.

A record is never held by two members at once, never handed out again once it is done with, and never more often than is
allowed; in the end every record is done with. What was written and what is in memory agree.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ottla.share.batches import StateBatch, combine
from ottla.share.span import FINAL, Delivery
from ottla.wire.errors import ErrorCode
from tests.unit.share.stage import (
    ACCEPT,
    ACKNOWLEDGED,
    ARCHIVED,
    AVAILABLE,
    GAP,
    LOCK_MS,
    REJECT,
    RELEASE,
    RENEW,
    Stage,
    batches,
    said,
)

LIMIT = 4
LOCKS = 30
MEMBERS = ("m1", "m2", "m3")
FATES = {GAP: ARCHIVED, ACCEPT: ACKNOWLEDGED, RELEASE: AVAILABLE, REJECT: ARCHIVED}

members = st.sampled_from(MEMBERS)


class SharePartitions(RuleBasedStateMachine):
    """`held` says who holds an offset and until when; `count` how often it was handed out; `done` what is over."""

    @initialize(sizes=st.lists(st.integers(1, 9), min_size=3, max_size=15))
    def begin(self, sizes):
        ends = [sum(sizes[: place + 1]) for place in range(len(sizes))]
        self.log = batches(*ends)
        self.end = ends[-1]
        self.stage = Stage(share_delivery_count_limit=LIMIT, share_partition_max_record_locks=LOCKS)
        self.stage.patient = True
        self.held: dict[int, tuple[str, int]] = {}
        self.count = dict.fromkeys(range(self.end), 0)
        self.done: set[int] = set()
        self.changes: list[tuple[str, dict[int, int]]] = []
        self.durable: tuple[StateBatch, ...] = ()

    @property
    def pending(self):
        return {offset for _, fates in self.changes for offset in fates}

    @rule(member=members, most=st.integers(1, 12), size=st.integers(1, 12), limit=st.booleans())
    def acquire(self, member, most, size, limit):
        stage = self.stage
        room = LOCKS - len(stage.partition.window)
        found = stage.acquire(member, most, self.log, size=size, limit=limit)
        taken = 0
        for first, last, count in found:
            for offset in range(first, last + 1):
                assert offset not in self.held
                assert offset not in self.done
                assert offset not in self.pending
                self.count[offset] += 1
                assert self.count[offset] == count <= LIMIT
                self.held[offset] = member, stage.now + LOCK_MS
                taken += 1
        if limit:
            assert taken <= most
        if room > 0 and stage.partition.next_offset() < self.end and not found:
            raise AssertionError("there was something to hand out")

    @rule(data=st.data(), member=members)
    def acknowledge(self, data, member):
        mine = sorted(
            offset for offset, (who, _) in self.held.items() if who == member and offset not in self.pending
        )
        if not mine:
            return
        first = data.draw(st.sampled_from(mine))
        last = first
        while last + 1 in mine and data.draw(st.integers(0, 3)):
            last += 1
        offsets = range(first, last + 1)
        kinds = [data.draw(st.sampled_from([GAP, ACCEPT, RELEASE, REJECT, RENEW])) for _ in offsets]
        if data.draw(st.booleans()):
            kinds = kinds[:1]
        outcome = self.stage.say(member, said(first, last, *kinds))
        every = (
            dict(zip(offsets, kinds * len(offsets) if len(kinds) == 1 else kinds, strict=True))
            if kinds
            else {}
        )
        fates = {}
        for offset, kind in every.items():
            if kind == RENEW:
                self.held[offset] = member, self.stage.now + LOCK_MS
            else:
                over = kind == RELEASE and self.count[offset] >= LIMIT
                fates[offset] = ARCHIVED if over else FATES[kind]
        assert outcome == ("waits" if fates else None)
        if fates:
            self.changes.append((member, fates))

    @rule(data=st.data(), member=members)
    def speak_out_of_turn(self, data, member):
        known = range(self.stage.partition.start_offset, self.stage.partition.end_offset)
        others = [each for each in known if self.held.get(each, ("", 0))[0] != member or each in self.pending]
        if others:
            offset = data.draw(st.sampled_from(others))
            assert self.stage.say(member, said(offset, offset, ACCEPT)) is ErrorCode.INVALID_RECORD_STATE

    @rule(member=members)
    def close_session(self, member):
        fates = {
            offset: ARCHIVED if self.count[offset] >= LIMIT else AVAILABLE
            for offset, (who, _) in self.held.items()
            if who == member and offset not in self.pending
        }
        assert self.stage.release(member) == ("waits" if fates else None)
        if fates:
            self.changes.append((member, fates))

    @precondition(lambda self: self.stage.waiting)
    @rule(works=st.booleans())
    def persist(self, works):
        stage = self.stage
        ticket = stage.waiting.pop(0)
        if works:
            self._keep(stage.written[ticket - 1])
        code = ErrorCode.NONE if works else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        who, fates = self.changes.pop(0)
        stage.do(stage.partition.persisted(ticket, code, stage.now))
        for offset, fate in fates.items():
            if works or not who:
                self._leave(offset, fate)
            elif self.held[offset][1] <= stage.now:
                self._leave(offset, ARCHIVED if self.count[offset] >= LIMIT else AVAILABLE)

    @rule(ms=st.sampled_from([1, LOCK_MS // 3, LOCK_MS]))
    def pass_time(self, ms):
        stage = self.stage
        count = len(stage.written)
        stage.pass_time(ms)
        late = [
            offset
            for offset, (_, end) in self.held.items()
            if end <= stage.now and offset not in self.pending
        ]
        for offset in late:
            self._leave(offset, ARCHIVED if self.count[offset] >= LIMIT else AVAILABLE)
        assert len(stage.written) == count + bool(late)
        if late:
            self.changes.append(("", {}))

    def _leave(self, offset, fate):
        self.held.pop(offset, None)
        if fate != AVAILABLE:
            self.done.add(offset)

    def _keep(self, written):
        new = [
            StateBatch(each.first_offset, each.last_offset, each.delivery_count, each.delivery_state)
            for each in written.state_batches
        ]
        self.durable = combine(self.durable, new, written.start_offset)

    @invariant()
    def the_window_is_whole(self):
        window = self.stage.partition.window
        spans = [span for flight in window.flights for span in flight.spans]
        edges = [window.start_offset, *(span.end_offset for span in spans)]
        assert [span.start_offset for span in spans] == edges[:-1]
        assert edges[-1] == window.end_offset or not spans
        for span in spans:
            assert len(span) > 0
            for offset in range(span.start_offset, span.end_offset):
                assert (span.state is Delivery.ACQUIRED) == (offset in self.held)
                assert (span.state in FINAL) == (offset in self.done)
                assert span.count == self.count[offset]
                if offset in self.held:
                    assert (span.member_id, span.deadline) == self.held[offset]
        assert window.complete_count == sum(len(span) for span in spans if span.complete)
        assert all(offset in self.done for offset in range(window.start_offset))
        assert len(window) <= LOCKS + 9

    @invariant()
    def what_is_durable_is_true(self):
        for batch in self.durable:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                if batch.delivery_state in {ACKNOWLEDGED, ARCHIVED}:
                    assert offset in self.done
                assert batch.delivery_count <= self.count[offset]

    def teardown(self):
        """Whatever happened, everything is done with in the end."""
        if not hasattr(self, "stage"):
            return
        stage = self.stage
        stage.patient = False
        stage.persist()
        stage.pass_time(LOCK_MS)
        for _ in range(LIMIT * self.end * 4):
            if stage.partition.start_offset == self.end:
                return
            for first, last, _ in stage.acquire("last", 10, self.log):
                assert stage.say("last", said(first, last, ACCEPT)) is None
        raise AssertionError("records are left over")


SharePartitions.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
test_share_partition = SharePartitions.TestCase
