"""The host of a machine: appends what it decides, applies what was appended, and replies once it is committed.

H1  A reply leaves only when every record its decision could have seen is committed. A decision without records
    still waits for those of the decisions before it.
H2  Records are applied in the order in which they were appended, right after the append, so the next decision sees
    them. An append that fails changes nothing.
H3  Replies leave in the order of their decisions.
H4  Once dropped, a host answers everything with the error it was dropped for. The machine is not rolled back:
    whoever leads next replays the log into a new one.

    submit() --append, apply--> waiting --commit()--> replied
                                   |
                                 drop()--> refused
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from ottla.replicated.decision import Decision, Effect, Machine, Millis
from ottla.wire.errors import BrokerError, ErrorCode

M = TypeVar("M", bound=Machine[Any])
R = TypeVar("R")
Done = Callable[[R | BrokerError], None]


class Journal(Protocol):
    """Where a host appends: a log that this process leads."""

    @property
    def end_offset(self) -> int:
        """The offset that the next record will have."""
        ...

    @property
    def committed_offset(self) -> int:
        """The offset below which everything is committed."""
        ...

    def append(
        self, records: Sequence[object], now: Millis, transactional: tuple[int, int] | None = None
    ) -> range:
        """Write the records as one atomic step and return their offsets; BrokerError if it may or can not be done.

        With `transactional`, a producer's id and epoch, they are part of that producer's open transaction.
        """
        ...


class Host(Generic[M]):
    """Runs one machine over one journal."""

    __slots__ = ("_dropped", "_journal", "_perform", "_waiting", "machine")

    def __init__(self, machine: M, journal: Journal, perform: Callable[[Effect], None] | None = None) -> None:
        self.machine = machine
        self._journal = journal
        self._perform = perform
        self._waiting: deque[tuple[int, Callable[[Any], None], Decision[Any] | BrokerError]] = deque()
        self._dropped: BrokerError | None = None

    @property
    def waiting(self) -> int:
        """How many replies wait for their records to be committed."""
        return len(self._waiting)

    def submit(self, decide: Callable[[M, Millis], Decision[R]], done: Done[R], now: Millis) -> None:
        """Let the machine decide, append and apply its records, and call `done` once they are committed."""
        if self._dropped is not None:
            done(self._dropped)
            return
        outcome: Decision[R] | BrokerError
        try:
            outcome = decide(self.machine, now)
            if outcome.records:
                self._record(outcome, now)
        except BrokerError as error:
            outcome = error
        offset = self._journal.end_offset
        if offset <= self._journal.committed_offset and not self._waiting:
            self._answer(done, outcome)
        else:
            self._waiting.append((offset, done, outcome))

    def expire(self, now: Millis) -> None:
        """Tell the machine the time, if it waits for it."""
        deadline = self.machine.deadline
        if self._dropped is None and deadline is not None and now >= deadline:
            self.submit(lambda machine, moment: machine.expire(moment), nobody, now)

    def commit(self, offset: int) -> None:
        """Let out every reply that has seen nothing at or above `offset`."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= offset:
            _, done, outcome = waiting.popleft()
            self._answer(done, outcome)

    def drop(self, error: BrokerError | None = None) -> None:
        """Leadership is gone: refuse what waits and whatever may still come."""
        self._dropped = error or BrokerError(ErrorCode.NOT_CONTROLLER)
        waiting, self._waiting = self._waiting, deque()
        for _, done, _ in waiting:
            done(self._dropped)

    def _record(self, decision: Decision[Any], now: Millis) -> None:
        records, transactional = decision.records, decision.transactional
        if transactional is None:
            offsets = self._journal.append(records, now)
            apply = self.machine.apply
        else:
            offsets = self._journal.append(records, now, transactional)
            # Only machines that return such decisions have it.
            apply = partial(self.machine.apply_pending, transactional[0])  # type: ignore[attr-defined]
        for offset, record in zip(offsets, records, strict=True):
            apply(offset, record)

    def _answer(self, done: Done[R], outcome: Decision[R] | BrokerError) -> None:
        if isinstance(outcome, BrokerError):
            done(outcome)
            return
        if self._perform is not None:
            for effect in outcome.after:
                self._perform(effect)
        done(outcome.reply)


def nobody(_: object) -> None:
    """Receive a reply nobody waits for."""
