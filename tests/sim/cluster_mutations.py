"""Bugs of whole clusters, put back on purpose: those that lost somebody's records, and those the simulator found.

Which bug of history stands where, those of the quorum (mutations.py) included, is a table in ADR 0043. One is missing:
records from tiered storage with the aborted transactions of the local log (redpanda#7043), for nothing is tiered yet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from ottla.broker import fetcher, followed
from ottla.broker.apis import offset_for_leader_epoch
from ottla.broker.fetching import Fetch
from ottla.channel.budget import Budget
from ottla.channel.connection import Connection
from ottla.client.cluster import Cluster
from ottla.client.consumer.assigned_partition import AssignedPartition
from ottla.client.consumer.fetcher import Fetcher
from ottla.client.producer.identity import ProducerIdentity
from ottla.controller import fencing
from ottla.groups.offsets import Offsets
from ottla.log.log import Log
from ottla.log.producer_state import ProducerEntry, Producers
from ottla.partition import copy
from ottla.partition.flusher import AckFlusher
from ottla.partition.leadership import Leadership, Proposal
from ottla.partition.partition import Partition
from ottla.partition.roles import Roles
from ottla.replicated.host import Host
from ottla.sim.cluster.perils import COORDINATOR, LEADER
from ottla.sim.cluster.scenarios import two_elections
from ottla.sim.cluster.scenarios.scenario import Scenario
from ottla.sim.cluster.workloads import copy as copying
from ottla.transactions import ending
from ottla.wire.errors import BrokerError, ErrorCode

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Mutation:
    """A bug, the scenario in which it shows, and what it breaks there."""

    name: str
    put_in: Callable[[Patch], None]
    scenario: str | Scenario
    rules: tuple[str, ...]  # of the laws that it may break
    seeds: range = range(40)


def commits_what_the_leader_alone_has(patch: Patch) -> None:
    """A record is acknowledged before those in sync have it (Kafka 0.8, as Jepsen found it)."""
    patch.setattr(Leadership, "watermark", lambda self, durable_offset, end_offset, now_ms: durable_offset)


def truncates_to_watermark(patch: Patch) -> None:
    """Whoever becomes a follower cuts its log to the watermark it knows, which lags (before KIP-101)."""
    real = Partition.follow

    def follow(self: Partition, leader_epoch: int) -> None:
        is_new = leader_epoch != self.leader_epoch
        real(self, leader_epoch)
        if is_new:
            copy.cut_to(self, self.high_watermark)

    patch.setattr(Partition, "follow", follow)


def fetches_by_offset_alone(patch: Patch) -> None:
    """A leader serves every offset that it has, whatever epoch the follower's log ends in (before KIP-320)."""
    patch.setattr(Fetch, "_diverges", staticmethod(lambda partition, wanted, part: False))


def believes_one_answer(patch: Patch) -> None:
    """A follower asks once an epoch where the logs branched, and cuts there whatever its own epochs are (KIP-279)."""
    settled: set[tuple[Partition, int]] = set()

    def cut(partition: Partition, epoch: int, end_offset: int) -> bool:
        copy.cut_to(partition, min(end_offset, partition.log.end_offset))
        settled.add((partition, partition.leader_epoch))
        return True

    def last_epoch(partition: Partition) -> int:
        return -1 if (partition, partition.leader_epoch) in settled else copy.last_epoch(partition)

    patch.setattr(fetcher, "cut_to_branch", cut)
    patch.setattr(followed, "last_epoch", last_epoch)


def takes_every_stop_for_a_clean_one(patch: Patch) -> None:
    """Whoever comes back may lead what it led, whatever it lost: nobody asks for its last epoch (before KIP-966)."""
    real = fencing.give_up_partitions

    def give_up(view: Any, broker_id: int, *, clean: bool, **rest: Any) -> Any:
        return real(view, broker_id, clean=True, **rest)

    patch.setattr(fencing, "give_up_partitions", give_up)


def commits_with_too_few(patch: Patch) -> None:
    """The watermark moves though fewer are in sync than have to be (before KIP-966)."""
    real = Leadership.watermark

    def watermark(self: Leadership, durable_offset: int, end_offset: int, now_ms: int) -> int:
        asked_for, self.min_isr = self.min_isr, 1
        try:
            return real(self, durable_offset, end_offset, now_ms)
        finally:
            self.min_isr = asked_for

    patch.setattr(Leadership, "watermark", watermark)


def shrinks_before_it_is_agreed(patch: Patch) -> None:
    """A leader goes on without a follower that the controller still counts (before KIP-497)."""
    real = Roles._propose

    def propose(self: Roles, partition: Partition, proposal: Proposal | None) -> None:
        real(self, partition, proposal)
        if proposal is not None and partition.leadership is not None:
            partition.leadership.isr &= {id for id, _ in proposal.isr}
            partition.advance(partition.durable_offset)

    patch.setattr(Roles, "_propose", propose)


def leads_with_all_committed(patch: Patch) -> None:
    """A new leader shows all that it has, before its followers have it (redpanda#5090)."""
    real = Partition.lead

    def lead(self: Partition, leader_epoch: int, leadership: Leadership | None = None) -> None:
        is_new = leader_epoch != self.leader_epoch
        real(self, leader_epoch, leadership)
        if is_new:
            self.raise_watermark(self.log.end_offset)

    patch.setattr(Partition, "lead", lead)


def answers_who_waited_though_the_lead_is_lost(patch: Patch) -> None:
    """Whoever waits for a record to be committed hears that it is when the leader steps down (KAFKA-13574 reversed)."""
    real = Partition._refuse_waiters

    def refuse_waiters(self: Partition, error: BrokerError) -> None:
        if self.error is not None:
            real(self, error)
            return
        for waiters in (self._local_waiters, self._waiters):
            while waiters:
                waiters.popleft()[1](None)

    patch.setattr(Partition, "_refuse_waiters", refuse_waiters)


def acknowledges_before_the_disk(patch: Patch) -> None:
    """Records are acknowledged before they are synced; all machines lose their power."""

    def appended(self: AckFlusher, partition: Partition) -> None:
        partition.advance(partition.log.end_offset)

    patch.setattr(AckFlusher, "appended", appended)


def forgets_what_was_sent_again(patch: Patch) -> None:
    """A batch that is sent again is written again."""
    patch.setattr(ProducerEntry, "duplicate_of", lambda self, epoch, first_sequence, last_sequence: None)
    patch.setattr(Producers, "_check_sequence", lambda self, entry, epoch, first_sequence, count: None)


def ends_whichever_transaction_is_open(patch: Patch) -> None:
    """An EndTxn that comes late ends the transaction after its own (KAFKA-17754)."""
    real = ending._is_retry

    def is_retry(transaction: Any, request: Any) -> bool:
        if transaction.producer_id == request.producer_id and transaction.state.name == "ONGOING":
            return False
        return real(transaction, request)

    patch.setattr(ending, "_is_retry", is_retry)


def tells_offsets_that_may_change(patch: Patch) -> None:
    """The next owner is told a committed offset though a transaction is about to replace it (redpanda#9571)."""
    real = Offsets.fetch

    def look(self: Offsets, asked: Any, version: int, *, require_stable: bool) -> Any:
        return real(self, asked, version, require_stable=False)

    patch.setattr(Offsets, "fetch", look)


def takes_markers_of_older_epochs(patch: Patch) -> None:
    """A marker ends whichever transaction of its producer is open, of whatever epoch it is (redpanda#3232)."""
    real = Producers.complete

    def complete(self: Producers, producer_id: int, epoch: int, *rest: Any, aborted: bool) -> Any:
        entry = self.entries.get(producer_id)
        newest = epoch if entry is None else max(epoch, entry.epoch)
        return real(self, producer_id, newest, *rest, aborted=aborted)

    patch.setattr(Producers, "admit_marker", lambda self, *of_marker: None)
    patch.setattr(Producers, "complete", complete)


def takes_the_unknown_for_undone(patch: Patch) -> None:
    """A producer takes NOT_LEADER_OR_FOLLOWER for a word on what was written, and numbers it anew (KAFKA-13574)."""
    real = ProducerIdentity.may_retry

    def may_retry(self: ProducerIdentity, lane: Any, batch: Any, code: ErrorCode, log_start_offset: int) -> bool:
        if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._request_bump(lane)
        return real(self, lane, batch, code, log_start_offset)

    patch.setattr(ProducerIdentity, "may_retry", may_retry)


def coordinators_answer_before_it_is_committed(patch: Patch) -> None:
    """A coordinator answers from memory, before its records are with the others (redpanda#6018)."""
    patch.setattr(Host, "_hold", lambda self, done, decision, names: self._answer(done, decision))


def takes_the_next_transaction_for_the_last(patch: Patch) -> None:
    """The first batch of a transaction is not looked up while the marker of the one before it is on its way."""

    def in_transaction(self: Producers, producer_id: int, epoch: int) -> bool:
        entry = self.entries.get(producer_id)
        return entry is not None and entry.transaction_first_offset >= 0

    patch.setattr(Producers, "in_transaction", in_transaction)


def ends_epochs_at_the_watermark(patch: Patch) -> None:
    """A new leader tells consumers that an epoch ends where it knows it to be committed."""

    def handle(request: Any, version: int, connection: Any, broker: Any) -> Any:
        response = asked(request, version, connection, broker)
        for topic in response.topics:
            for part in topic.partitions:
                if not part.error_code:
                    partition = broker.table.by_name(topic.topic, part.partition)
                    part.end_offset = min(part.end_offset, partition.high_watermark)
        return response

    asked = offset_for_leader_epoch.API.handle
    patch.setattr(offset_for_leader_epoch.API, "handle", handle)


def snapshots_forget_what_was_sent_again(patch: Patch) -> None:
    """After a restart only the last batch of a producer is known, and those before it are out of order, as in Kafka."""
    real = Producers.load

    def load(self: Producers, snapshot: Any, end_offset: int) -> None:
        real(self, snapshot, end_offset)
        for entry in self.entries.values():
            entry.is_restored = False

    patch.setattr(Producers, "load", load)


def believes_fetches_of_before_the_seek(patch: Patch) -> None:
    """A consumer takes the answer to what it asked for before it was told to read elsewhere."""
    real = Fetcher._fetch

    async def look(self: Fetcher, node: int, wanted: Any, position_ids: Any) -> None:
        await real(self, node, wanted, {each: self._subscription.assignment[each].position_id for each in wanted})

    patch.setattr(Fetcher, "_fetch", look)
    patch.setattr(copying, "_ABORTS", 0.6)  # after which copiers seek


def believes_fetches_of_the_last_assignment(patch: Patch) -> None:
    """Positions are numbered anew by each assignment, so a response to an earlier fetch passes for a current one."""
    real = AssignedPartition.__init__

    def begin(self: AssignedPartition, partition: Any) -> None:
        real(self, partition)
        self.position_id = 0

    def jump(self: AssignedPartition) -> None:
        self.position_id += 1
        self.retry_at = 0.0

    patch.setattr(AssignedPartition, "__init__", begin)
    patch.setattr(AssignedPartition, "_discard_fetched", jump)


def reads_from_leaders_of_the_past(patch: Patch) -> None:
    """A consumer knows that a record is of a later epoch than the leader it knows, and asks that one all the same."""
    patch.setattr(Cluster, "supersede_leader", lambda self, topic, partition, epoch: None)


def leads_before_it_is_known(patch: Patch) -> None:
    """A node that comes back leads by what its metadata says of its last life, in the epoch of that life."""
    patch.setattr(
        Roles, "is_registered", property(lambda self: True, lambda self, value: None), raising=False
    )



def takes_a_full_disk_for_a_write(patch: Patch) -> None:
    """A batch that the disk had no room for counts as written, in the log of a leader."""
    patch.setattr(Log, "_write_again_or_fail", lambda self, file, records, error: None)


def syncs_what_came_after(patch: Patch) -> None:
    """What was appended while a sync was under way counts as synced, once that is done."""
    real = AckFlusher._dispatch

    def dispatch(self: AckFlusher, worker: Any, jobs: list[Any]) -> None:
        class Late:
            def run(self, work: Any, done: Any) -> None:
                def late(outcome: Any, error: Any) -> None:
                    jobs[:] = [(each, log, log.end_offset, *rest) for each, log, _, *rest in jobs]
                    done(outcome, error)

                worker.run(work, late)

        real(self, Late(), jobs)

    patch.setattr(AckFlusher, "_dispatch", dispatch)


def reads_no_more_once_it_waited(patch: Patch) -> None:
    """A connection whose peer was slow to read is never read from again."""
    patch.setattr(Connection, "resume_writing", lambda self: None)


def wakes_nobody_who_waits_for_room(patch: Patch) -> None:
    """Those who wait until others have taken their answers are forgotten."""
    patch.setattr(Budget, "_wake_soon", lambda self: None)


L1 = "L1 offsets are dense and growing"
L2 = "L2 equal bytes below the high watermark"
L3 = "L3 the watermark never falls within an epoch"
P1 = "P1 an acknowledged record survives"
P2 = "P2 once and in order"
G2 = "G2 committed offsets never go back"
G3 = "G3 a member reads in a row"
T1 = "T1 all of a transaction or nothing"
STUCK = "progress"
C5 = "C5 whoever has caught up is read from"

# Scenarios that have nothing but what it takes.
PRODUCING, READING = {"produce": 100}, {"produce": 100, "consume": 100}
COPYING = {"produce": 100, "copy": 100}
LEADERS_DIE = Scenario("leaders-die", {"killing in turn": 1}, count=(4, 6), lasts_s=(0.3, 2.0), work=READING)
COORDINATORS_DIE = Scenario(
    "coordinators-die",
    {"killing in turn": 1, "kill": 1},
    count=(6, 9),
    lasts_s=(0.3, 1.5),
    victims=(COORDINATOR,),
    work=COPYING,
)
CUT_OFF = Scenario("cut-off", {"isolation": 1}, count=(3, 5), lasts_s=(2.0, 5.0), work=PRODUCING)
SLOW_RESTARTS = Scenario(
    "slow-restarts", {"restart": 3, "slowness": 4}, count=(7, 9), lasts_s=(0.3, 3.0), work=PRODUCING
)
REBALANCES = Scenario("rebalances", {"stop of a client": 1, "kill": 2}, count=(5, 7), work=READING)
LATE_END = Scenario("late-end", {"late end": 1}, count=(1, 1), span_s=1.0, work=COPYING)
QUIET = Scenario("quiet", {"restart": 1}, count=(1, 2), span_s=4.0, lasts_s=(0.2, 1.0), work=COPYING)
# Longer than it takes to miss a broker and to go on without it, while clients can still reach it.
FORGOTTEN = Scenario(
    "forgotten",
    {"isolation": 1},
    count=(1, 1),
    lasts_s=(14.0, 18.0),
    span_s=1.0,
    victims=(LEADER,),
    work=READING,
)
MISSING = Scenario(
    "missing",
    {"missing of the controller": 1},
    count=(1, 1),
    lasts_s=(12.0, 15.0),
    span_s=1.0,
    work=PRODUCING,
    properties={"replica.lag.time.max.ms": "1500"},
)
HEIR_BEHIND = replace(
    two_elections.SCENARIO, name="heir-behind", perils={"two elections, the heir behind": 1}
)
THIRD_BEHIND = replace(
    two_elections.SCENARIO, name="third-behind", perils={"two elections, the third behind": 1}
)
FULL = Scenario(
    "full",
    {"full disk": 1},
    count=(2, 4),
    lasts_s=(0.5, 3.0),
    span_s=6.0,
    victims=(LEADER,),
    work=READING,
    properties={"min.insync.replicas": "1"},
    replicas=1,
)
DARK = Scenario(
    "dark",
    {"power loss": 1},
    count=(2, 3),
    lasts_s=(0.5, 2.0),
    span_s=6.0,
    victims=(LEADER,),
    work=PRODUCING,
    properties={"min.insync.replicas": "1"},
    replicas=1,
)
SLOW_AND_DARK = replace(DARK, name="slow-and-dark", perils={"slow disk": 3, "blackout": 2}, count=(5, 7))
SLOW_READERS = Scenario("slow", {"slow readers": 1}, count=(2, 3), lasts_s=(1.0, 3.0), span_s=5.0, work=READING)
SLOW_EVERYWHERE = replace(SLOW_READERS, name="slow-everywhere", count=(4, 6), work=READING | COPYING)
BLACKOUT = Scenario("readers-in-the-dark", {"blackout": 1}, count=(1, 2), lasts_s=(0.5, 4.0), work=READING)

MUTATIONS = (
    Mutation("leader alone commits", commits_what_the_leader_alone_has, LEADERS_DIE, (L2, P1, G2, G3)),
    Mutation("truncates to the watermark", truncates_to_watermark, LEADERS_DIE, (L2, L3, P1, G2, G3)),
    Mutation("fetches by offset alone", fetches_by_offset_alone, THIRD_BEHIND, (L1, L2)),
    Mutation("believes one answer", believes_one_answer, HEIR_BEHIND, (L1, L2)),
    Mutation("shrinks before it is agreed", shrinks_before_it_is_agreed, MISSING, (L2, P1)),
    Mutation("leads with all committed", leads_with_all_committed, THIRD_BEHIND, (L2, P1, G2, G3)),
    Mutation(
        "takes every stop for a clean one",
        takes_every_stop_for_a_clean_one,
        "last-standing",
        (L2, L3, P1, G2),
    ),
    Mutation("commits with too few", commits_with_too_few, "last-standing", (L2, P1, G3)),
    Mutation("answers when the lead is lost", answers_who_waited_though_the_lead_is_lost, CUT_OFF, (P1,)),
    Mutation(
        "acknowledges before the disk", acknowledges_before_the_disk, BLACKOUT, (L2, L3, P1, T1, G2, G3)
    ),
    Mutation("forgets what was sent again", forgets_what_was_sent_again, LEADERS_DIE, (P2,)),
    Mutation("ends whichever is open", ends_whichever_transaction_is_open, LATE_END, (T1,)),
    Mutation("tells offsets that may change", tells_offsets_that_may_change, "newcomers", (T1,)),
    Mutation("takes markers of older epochs", takes_markers_of_older_epochs, "late-marker", (T1,)),
    Mutation("takes the unknown for undone", takes_the_unknown_for_undone, SLOW_RESTARTS, (P2,)),
    Mutation("coordinators hurry", coordinators_answer_before_it_is_committed, COORDINATORS_DIE, (T1, G2)),
    Mutation(
        "takes the next for the last",
        takes_the_next_transaction_for_the_last,
        "deaths",
        (STUCK, "TimedOut", T1),
    ),
    Mutation("ends epochs at the watermark", ends_epochs_at_the_watermark, BLACKOUT, (G2, G3)),
    Mutation("snapshots forget", snapshots_forget_what_was_sent_again, SLOW_RESTARTS, (P2,)),
    Mutation("fetches of before the seek", believes_fetches_of_before_the_seek, QUIET, (T1,)),
    Mutation("leads before it is known", leads_before_it_is_known, "unsynced", (L2,), range(100, 140)),
    Mutation("leaders of the past", reads_from_leaders_of_the_past, FORGOTTEN, (G2,)),
    Mutation("fetches of the last time", believes_fetches_of_the_last_assignment, REBALANCES, (G2, G3)),
    Mutation("a full disk is a write", takes_a_full_disk_for_a_write, FULL, (L1, P1, G3, STUCK)),
    Mutation("acknowledges before its disk", acknowledges_before_the_disk, DARK, (L2, L3, P1)),
    Mutation("syncs what came after", syncs_what_came_after, SLOW_AND_DARK, (L2, L3, P1)),
    Mutation("wakes nobody", wakes_nobody_who_waits_for_room, SLOW_EVERYWHERE, (C5,)),
    Mutation("reads no more", reads_no_more_once_it_waited, SLOW_READERS, (C5,)),
)
