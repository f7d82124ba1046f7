"""The host of a machine: appends what it decides, applies what was appended, and replies once it is committed.

H1  A reply leaves only when every record its decision could have seen is committed. A decision without records
    still waits for those of the decisions before it.
H2  Records are applied in the order in which they were appended, right after the append, so the next decision sees
    them. An append that fails changes nothing.
H3  Replies leave in the order of their decisions.
H4  Once dropped, a host answers everything with the error it was dropped for. The machine is not rolled back:
    whoever leads next replays the log into a new one.
H5  Decisions that do not look at each other's records may be gathered, and written by one append; any other decision
    finds them written and applied. One that cannot be written with the others is tried alone, and fails alone.

    submit() --append, apply--> waiting --commit()--> replied
       |                           |
    gather() --write()-------------+
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

    __slots__ = ("_dropped", "_excuse", "_gathered", "_journal", "_perform", "_waiting", "machine")

    def __init__(
        self,
        machine: M,
        journal: Journal,
        perform: Callable[[Effect], None] | None = None,
        excuse: Callable[[BrokerError], BrokerError] | None = None,
    ) -> None:
        """`excuse` turns what a journal says into what callers are told."""
        self.machine = machine
        self._journal = journal
        self._perform = perform
        self._excuse = excuse
        self._gathered: list[tuple[Decision[Any], Callable[[Any], None]]] = []
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
        if self._gathered:
            self.write(now)
        outcome: Decision[R] | BrokerError
        try:
            outcome = decide(self.machine, now)
            if outcome.records:
                self._record(outcome, now)
        except BrokerError as error:
            outcome = error
        self._hold(done, outcome)

    def gather(self, decide: Callable[[M, Millis], Decision[R]], done: Done[R], now: Millis) -> bool:
        """Let the machine decide, and leave its records to `write`; say whether that has to be called (H5).

        For decisions that are the same whether the records of others like it have been applied or not.
        """
        if self._dropped is not None:
            done(self._dropped)
            return False
        try:
            decision = decide(self.machine, now)
        except BrokerError as error:
            self._hold(done, error)
            return False
        assert decision.transactional is None, "records of a transaction have a batch of their own"
        gathered = self._gathered
        if not decision.records and not gathered:
            self._hold(done, decision)
            return False
        gathered.append((decision, done))
        return len(gathered) == 1

    def write(self, now: Millis) -> None:
        """Append and apply what was gathered."""
        gathered = self._gathered
        if not gathered:
            return
        self._gathered = []
        if len(gathered) > 1:
            records = [record for decision, _ in gathered for record in decision.records]
            try:
                offsets = self._journal.append(records, now)
            except BrokerError:
                pass  # H5: each alone, below
            else:
                apply = self.machine.apply
                for offset, record in zip(offsets, records, strict=True):
                    apply(offset, record)
                for decision, done in gathered:
                    self._hold(done, decision)
                return
        for decision, done in gathered:
            outcome: Decision[Any] | BrokerError = decision
            try:
                if decision.records:
                    self._record(decision, now)
            except BrokerError as error:
                outcome = error
            self._hold(done, outcome)

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
        gathered, self._gathered = self._gathered, []
        for _, done, _ in waiting:
            done(self._dropped)
        for _, done in gathered:
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

    def _hold(self, done: Done[R], outcome: Decision[R] | BrokerError) -> None:
        """Keep an answer until all that it has seen is committed; it may be already."""
        offset = self._journal.end_offset
        if offset <= self._journal.committed_offset and not self._waiting:
            self._answer(done, outcome)
        else:
            self._waiting.append((offset, done, outcome))

    def _answer(self, done: Done[R], outcome: Decision[R] | BrokerError) -> None:
        if isinstance(outcome, BrokerError):
            done(outcome if self._excuse is None else self._excuse(outcome))
            return
        if self._perform is not None:
            for effect in outcome.after:
                self._perform(effect)
        done(outcome.reply)


def nobody(_: object) -> None:
    """Receive a reply nobody waits for."""
