"""Bugs of share groups, put back on purpose; each breaks Q1 in its own way."""

from __future__ import annotations

from typing import Any

from ottla.broker.share_partitions import Seat, SharePartitions
from ottla.share import partition as share_partition
from ottla.share.acknowledgement import FATES, Verdict
from ottla.share.acquire import Acquired, Acquisition
from ottla.share.change import Change
from ottla.share.partition import SharePartition
from ottla.share.span import Delivery, Flight, Span
from ottla.sim.cluster.scenarios.scenario import Scenario
from ottla.wire.errors import BrokerError, ErrorCode
from tests.sim.cluster_mutations import Mutation, Patch


def hands_out_what_is_held(patch: Patch) -> None:
    """A record that comes between others which are available is handed out with them, whoever holds it."""
    real = Acquisition._again

    def again(self: Acquisition, flight: Flight, start_offset: int, end_offset: int, room: int) -> list[Acquired]:
        for span in flight.within(start_offset, end_offset):
            if span.held:
                span.state = Delivery.AVAILABLE
        return real(self, flight, start_offset, end_offset, room)

    patch.setattr(Acquisition, "_again", again)


def takes_the_word_of_anybody(patch: Patch) -> None:
    """Who lost a record when its time was up may still say what became of it, though another one has it."""
    real = SharePartition._judge

    def judge(
        self: SharePartition, change: Change, member_id: str, span: Span, verdict: Verdict, now: int
    ) -> None:
        if not span.held:
            raise BrokerError(ErrorCode.INVALID_RECORD_STATE)
        real(self, change, span.member_id, span, verdict, now)

    patch.setattr(SharePartition, "_judge", judge)


def answers_before_it_is_durable(patch: Patch) -> None:
    """A word is taken before the share coordinator has it, so that the next leader has never heard of it."""
    real = SharePartitions._write

    def write(self: SharePartitions, seat: Seat, effect: Any) -> None:
        real(self, seat, effect)
        change = seat.share._changes.get(effect.ticket)
        if change is not None and change.token is not None and change.token in self._settling:
            self._settling.pop(change.token)(None)
            self._settling[change.token] = lambda error: None

    patch.setattr(SharePartitions, "_write", write)


def one_lock_ends_all(patch: Patch) -> None:
    """When a lock runs out, all that anybody holds of the partition is let go."""
    real = SharePartition.expire

    def expire(self: SharePartition, now: int) -> Any:
        for flight in self.window.flights:
            for span in flight.spans:
                if span.held:
                    span.deadline = now
            self._arm(flight)
        return real(self, now)

    patch.setattr(SharePartition, "expire", expire)


def renews_nothing(patch: Patch) -> None:
    """A lock is said to be renewed, and runs out as before."""
    patch.setattr(SharePartition, "_renew", lambda self, span, now: None)


def releases_what_others_hold(patch: Patch) -> None:
    """When a session ends, all that anybody holds is offered anew."""
    real = SharePartition.release

    def release(self: SharePartition, token: int | None, member_id: str, now: int) -> Any:
        for flight in self.window.flights:
            for span in flight.spans:
                if span.held:
                    span.member_id = member_id
        return real(self, token, member_id, now)

    patch.setattr(SharePartition, "release", release)


def gives_up_what_was_released(patch: Patch) -> None:
    """A record that a member could not deal with is never tried again."""
    patch.setattr(share_partition, "FATES", {**FATES, Verdict.RELEASE: Delivery.ARCHIVED})


def starts_where_the_last_leader_ended(patch: Patch) -> None:
    """A new leader takes all that it finds in the state for dealt with, what was released included."""
    real = share_partition.restored

    def restored(start_offset: int, batches: Any) -> Any:
        for batch in batches:
            batch.delivery_state = 2
        return real(start_offset, batches)

    patch.setattr(share_partition, "restored", restored)


Q1 = "Q1 a share record is held by one member at a time"
SHARING = {"produce": 100, "share": 100}
MEMBERS_GO = Scenario(
    "members-go",
    {"death of a client": 1, "stop of a client": 2},
    count=(4, 6),
    lasts_s=(0.3, 3.0),
    span_s=8.0,
    work=SHARING,
)
LEADERS_GO = Scenario(
    "leaders-go", {"kill": 2, "isolation": 2}, count=(3, 5), lasts_s=(0.3, 6.0), span_s=8.0, work=SHARING
)

SHARE_MUTATIONS = (
    Mutation("hands out what is held", hands_out_what_is_held, MEMBERS_GO, (Q1,)),
    Mutation("takes the word of anybody", takes_the_word_of_anybody, MEMBERS_GO, (Q1,), range(6, 50)),
    Mutation("answers before it is durable", answers_before_it_is_durable, LEADERS_GO, (Q1,), range(3, 50)),
    Mutation("one lock ends all", one_lock_ends_all, MEMBERS_GO, (Q1,), range(4, 50)),
    Mutation("renews nothing", renews_nothing, MEMBERS_GO, (Q1,), range(12, 50)),
    Mutation("releases what others hold", releases_what_others_hold, MEMBERS_GO, (Q1,), range(12, 50)),
    Mutation("gives up what was released", gives_up_what_was_released, MEMBERS_GO, (Q1,)),
    Mutation("starts where the last ended", starts_where_the_last_leader_ended, LEADERS_GO, (Q1,)),
)
