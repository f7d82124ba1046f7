"""A share partition: one group's way through one partition, as the partition's leader keeps it in memory.

P1  A record is held by at most one member at a time, and no longer than its lock lasts unless that is renewed.
P2  What a member says of its records takes effect once the share coordinator has it on disk (`WriteState`, then
    `persisted`), and not at all if that fails. A lock that runs out takes effect at once: the record is offered
    again, and the count of its deliveries is written behind.
P3  A record that was accepted, rejected, or tried as often as is allowed is not handed out again.
P4  An acknowledgement is taken as a whole or not at all; renewed locks stay renewed.
P5  In a group with a dead-letter topic a record is given up in two steps: once that it is to be is durable, a letter is
    asked for (`DeadLetter`), and once that went, or could not (`dead_lettered`), the record is done with. A leader that
    finds the first step without the second asks again, so a letter goes at least once.

    EMPTY --open()--> LOADING --loaded()--> ACTIVE --fence(), a fatal error--> FENCED
                         |
                      loaded() with an error --> FAILED

The leader asks `next_offset`, reads the log there, and calls `acquire` with what it read. Nothing is to come between
the two for the same partition; reading within one step of an event loop is enough.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any

from ottla.replicated.decision import Decision, Effect
from ottla.replicated.timers import Timers
from ottla.share.acknowledgement import FATES, AcknowledgementBatch, Verdict, runs
from ottla.share.acquire import Acquired, Acquisition, Fetched, Wish
from ottla.share.change import Change, Written
from ottla.share.effects import (
    FATAL,
    Cause,
    DeadLetter,
    Freed,
    Lost,
    ReadState,
    Settled,
    WriteState,
    state_error,
)
from ottla.share.span import Delivery, Flight, Patience, Span
from ottla.share.window import Window, restored
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse

_Read = ReadShareGroupStateRequest.ReadStateData.PartitionData
_State = ReadShareGroupStateResponse.ReadStateResult.PartitionResult

# A share partition that was never read: the group's share.auto.offset.reset says where it begins.
NO_OFFSET = -1


class Phase(Enum):
    """How far a share partition has come."""

    EMPTY = "empty"
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    FENCED = "fenced"


class SharePartition:
    """The records in flight between one partition and the members of one share group.

    `config` returns a setting of the group by its name, such as `share.delivery.count.limit`.
    """

    __slots__ = (
        "_changes", "_config", "_letters", "_tickets", "_timers", "group_id", "leader_epoch", "partition", "phase",
        "state_epoch", "timeouts", "topic_id", "window",
    )  # fmt: skip

    def __init__(
        self, group_id: str, topic_id: bytes, partition: int, leader_epoch: int, config: Callable[[str], Any]
    ) -> None:
        self.group_id = group_id
        self.topic_id = topic_id
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.state_epoch = 0
        self.phase = Phase.EMPTY
        self.window = Window(0)
        self._config = config
        self._timers: Timers[Flight] = Timers()
        self._changes: dict[int, Change] = {}
        self._tickets = 0
        self._letters = 0
        # How many records were taken from members that held them too long.
        self.timeouts = 0

    @property
    def busy(self) -> bool:
        """Whether a change is being written, or a letter is on its way: whoever drops it now learns of neither."""
        return bool(self._changes) or self._letters > 0

    @property
    def start_offset(self) -> int:
        """The first offset that is not done with."""
        return self.window.start_offset

    @property
    def end_offset(self) -> int:
        """The offset behind the last that was ever handed out."""
        return self.window.end_offset

    @property
    def deadline(self) -> int | None:
        """When the next lock runs out."""
        return self._timers.next_deadline

    def open(self) -> Decision[None]:
        """Begin to load, if nobody has; LEADER_NOT_AVAILABLE while that lasts.

        Effect: `ReadState`. Its answer goes to `loaded`.
        """
        if self.phase is Phase.ACTIVE:
            return Decision(None)
        if self.phase is Phase.FAILED:
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "the share partition could not be loaded")
        if self.phase is not Phase.EMPTY:
            raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, f"the share partition is {self.phase.value}")
        self.phase = Phase.LOADING
        wish = _Read(partition=self.partition, leader_epoch=self.leader_epoch)
        return Decision(None, (), (ReadState(self.group_id, self.topic_id, wish),))

    def loaded(self, state: _State, reset_offset: int | None = None) -> Decision[None]:
        """Take in the durable state; BrokerError when the share coordinator refused, or sent nonsense.

        A state with start offset NO_OFFSET needs `reset_offset`: where share.auto.offset.reset says to begin.
        Effects: `Freed`, `DeadLetter` for what was given up before and may not have been told.
        """
        try:
            if state.error_code != ErrorCode.NONE:
                raise state_error(state.error_code, state.error_message)
            start_offset = state.start_offset
            if start_offset == NO_OFFSET:
                assert reset_offset is not None, "nobody said where the group begins"
                start_offset = reset_offset
            self.window = restored(start_offset, state.state_batches)
        except BrokerError:
            self.phase = Phase.FAILED
            raise
        self.state_epoch = state.state_epoch
        self.phase = Phase.ACTIVE
        letters = [
            # Why is not kept; a record tried as often as is allowed was most likely tried too often.
            self._letter(
                span, Cause.REJECTED if span.count < self._patience.count_max else Cause.TRIED_TOO_OFTEN
            )
            for flight in self.window.flights
            for span in flight.spans
            if span.state is Delivery.ARCHIVING
        ]
        return Decision(None, (), (self._freed(), *self._sent(letters)))

    def fence(self) -> None:
        """Hand out nothing any more: the partition is led elsewhere, or is gone."""
        self.phase = Phase.FENCED

    def next_offset(self) -> int:
        """Return the offset to read next."""
        return self.window.next_offset()

    def can_acquire(self) -> bool:
        """Whether anything could be handed out, if the log has it."""
        window = self.window
        return window.next_offset() != window.end_offset or len(window) < self._locks_max

    def acquire(self, wish: Wish, fetched: Fetched, now: int) -> list[Acquired]:
        """Hand records to a member, out of those a fetch at `next_offset` read; they are its own until acknowledged.

        Under read_committed the fetch comes with the aborted transactions, whose records nobody gets.
        """
        if self.phase is not Phase.ACTIVE or wish.records_max <= 0:
            return []
        deadline = now + self._config("share.record.lock.duration.ms")
        acquisition = Acquisition(
            self.window, wish, fetched, self._locks_max, self._patience.count_max, deadline
        )
        found = acquisition.run()
        if found:
            for flight in self.window.over(found[0].start_offset, found[-1].end_offset):
                self._arm(flight)
        return found

    def acknowledge(
        self, token: int, member_id: str, batches: Iterable[AcknowledgementBatch], now: int
    ) -> Decision[None]:
        """Take what a member says of its records: accepted, released, rejected, to be held longer, or not there.

        Effects: `WriteState`, or `Settled` when there is nothing to write or the word is refused. INVALID_RECORD_STATE
        for records that the member does not hold, INVALID_REQUEST for offsets that were never handed out.
        """
        change = Change(token)
        try:
            for batch in batches:
                self._take(change, member_id, batch, now)
        except BrokerError as error:
            letters = self._settle(change.spans, now, done=False)
            return Decision(None, (), (Settled(token, error), *self._sent(letters)))
        return self._write(change)

    def release(self, token: int | None, member_id: str, now: int) -> Decision[None]:
        """Take back everything a member holds, as when its session is closed. Effects: as of `acknowledge`."""
        change = Change(token)
        for flight in self.window.flights:
            for span in flight.spans:
                if span.held and span.member_id == member_id:
                    self._want(change, span, Verdict.RELEASE)
        return self._write(change)

    def persisted(self, ticket: int, code: int, now: int, message: str | None = None) -> Decision[None]:
        """Learn what became of a `WriteState`.

        Effects: `Settled` for whoever waits, `Freed`, `DeadLetter` for each range given up, `Lost` after a fatal error.
        """
        change = self._changes.pop(ticket)
        error = None if code == ErrorCode.NONE else state_error(code, message)
        letters = self._settle(change.spans, now, done=error is None)
        after: list[Effect] = []
        if error is None:
            self.window.advance()
        if error is None or not change.spans:
            # What was taken from a member whose time was up is given up, whether that could be written or not.
            letters += change.letters
        if error is None or error.code not in FATAL:
            after += self._sent(letters)
        if change.token is not None:
            after.append(Settled(change.token, error))
        if error is not None and error.code in FATAL:
            self.fence()
            after.append(Lost(self.group_id, self.topic_id, self.partition, error))
        after.append(self._freed())
        return Decision(None, (), tuple(after))

    def dead_lettered(self, letter: DeadLetter) -> Decision[None]:
        """Learn that a letter went, or never will: its records are done with. Effect: `WriteState`."""
        self._letters -= 1
        change = Change(None)
        for flight in self.window.over(letter.start_offset, letter.end_offset):
            for span in flight.within(letter.start_offset, letter.end_offset):
                if span.state is Delivery.ARCHIVING:
                    span.archive()
                    self.window.recount(span, was_complete=False)
                    change.note(span, span.state)
            flight.join()
        return self._write(change)

    def log_start_moved(self, log_start_offset: int) -> None:
        """Forget records that the log no longer has, whoever holds them."""
        for flight in self.window.trim(log_start_offset) or ():
            self._timers.cancel(flight)
        if self.window.flights:
            self._arm(self.window.flights[0])

    def expire(self, now: int) -> Decision[None]:
        """Take back what was held too long. Effects: `WriteState`, `Freed`."""
        change = Change(None)
        for flight in self._timers.due(now):
            for span in flight.spans:
                if span.held and span.deadline is not None and span.deadline <= now:
                    span.let_go(self._patience)
                    self.timeouts += len(span)
                    self.window.recount(span, was_complete=False)
                    self._note(change, span, span.state, Cause.TRIED_TOO_OFTEN)
            flight.join()
            self._arm(flight)
        if not change.batches:
            return Decision(None)
        self.window.freed()
        written = self._write(change)
        return Decision(None, (), (*written.after, self._freed()))

    @property
    def _locks_max(self) -> int:
        locks: int = self._config("share.partition.max.record.locks")
        return locks

    @property
    def _patience(self) -> Patience:
        letters = self._config("errors.deadletterqueue.topic.name")
        return Patience(
            self._config("share.delivery.count.limit"),
            Delivery.ARCHIVING if letters else Delivery.ARCHIVED,
        )

    def _freed(self) -> Freed:
        return Freed(self.group_id, self.topic_id, self.partition)

    def _arm(self, flight: Flight) -> None:
        deadline = flight.deadline
        if deadline is None:
            self._timers.cancel(flight)
        else:
            self._timers.set(flight, deadline)

    def _take(self, change: Change, member_id: str, batch: AcknowledgementBatch, now: int) -> None:
        window = self.window
        verdicts = list(runs(batch, window.start_offset))
        if batch.last_offset < window.start_offset:
            return
        if not window.flights:
            raise BrokerError(ErrorCode.INVALID_RECORD_STATE, "no record is in flight")
        if not window.was_handed_out(batch.last_offset):
            raise BrokerError(ErrorCode.INVALID_REQUEST, "an offset is past all that were acquired")
        edges = [verdicts[0].start_offset, *(run.end_offset for run in verdicts)]
        at = 0
        for flight in window.over(edges[0], edges[-1]):
            if flight.unread:
                continue
            flight.divide(edges)
            for span in flight.spans:
                while at < len(verdicts) and verdicts[at].end_offset <= span.start_offset:
                    at += 1
                if at == len(verdicts):
                    break
                if span.end_offset > edges[0] and not span.empty:
                    self._judge(change, member_id, span, verdicts[at].verdict, now)
            self._arm(flight)

    def _judge(self, change: Change, member_id: str, span: Span, verdict: Verdict, now: int) -> None:
        if not span.held or span.member_id != member_id:
            raise BrokerError(ErrorCode.INVALID_RECORD_STATE, "a record is not held by this member")
        if verdict is Verdict.RENEW:
            self._renew(span, now)
        else:
            self._want(change, span, verdict)

    def _renew(self, span: Span, now: int) -> None:
        if not self._config("share.renew.acknowledge.enable"):
            raise BrokerError(ErrorCode.INVALID_RECORD_STATE, "the group does not allow locks to be renewed")
        span.deadline = now + self._config("share.record.lock.duration.ms")

    def _want(self, change: Change, span: Span, verdict: Verdict) -> None:
        patience = self._patience
        span.want(FATES.get(verdict, patience.given_up), patience)
        assert span.wanted is not None
        self.window.recount(span, was_complete=False)
        change.spans.append(span)
        cause = Cause.REJECTED if verdict is Verdict.REJECT else Cause.TRIED_TOO_OFTEN
        self._note(change, span, span.wanted, cause)

    def _note(self, change: Change, span: Span, state: Delivery, cause: Cause) -> None:
        change.note(span, state)
        if state is Delivery.ARCHIVING:
            change.letters.append(self._letter(span, cause))

    def _letter(self, span: Span, cause: Cause) -> DeadLetter:
        where = (self.group_id, self.topic_id, self.partition)
        return DeadLetter(*where, span.start_offset, span.end_offset, span.count, cause)

    def _sent(self, letters: Sequence[DeadLetter]) -> Sequence[DeadLetter]:
        self._letters += len(letters)
        return letters

    def _write(self, change: Change) -> Decision[None]:
        if not change.batches:
            return Decision(None, (), () if change.token is None else (Settled(change.token, None),))
        self._tickets += 1
        self._changes[self._tickets] = change
        written = Written(
            partition=self.partition,
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=self.window.start_offset,
            delivery_complete_count=self.window.complete_count,
            state_batches=change.batches,
        )
        return Decision(None, (), (WriteState(self._tickets, self.group_id, self.topic_id, written),))

    def _settle(self, spans: Sequence[Span], now: int, *, done: bool) -> list[DeadLetter]:
        """End changes; return the letters for what is given up though its change failed: its time was up meanwhile."""
        patience = self._patience
        letters: list[DeadLetter] = []
        for span in spans:
            was_complete = span.complete
            span.settle(now, patience, done=done)
            self.window.recount(span, was_complete)
            if not done and span.state is Delivery.ARCHIVING:
                letters.append(self._letter(span, Cause.TRIED_TOO_OFTEN))
            if span.state is Delivery.AVAILABLE:
                self.window.freed()
        if spans:
            low = min(span.start_offset for span in spans)
            for flight in self.window.over(low, max(span.end_offset for span in spans)):
                flight.join()
                self._arm(flight)
        return letters
