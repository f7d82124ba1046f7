"""The host of a machine: appends what it decides, applies what was appended, and replies once it is committed.

H1  A reply leaves only when every record its decision could have seen is committed. A decision with records waits for
    those. One without waits for the records of the names it was made about, or for all records when it names none.
    A refusal tells nothing that could be lost, and leaves at once, as in Kafka.
H2  Records are applied in the order in which they were appended, right after the append, so the next decision sees
    them. An append that fails changes nothing.
H3  Replies that wait leave in the order of their decisions.
H4  Once dropped, a host answers everything with the error it was dropped for. The machine is not rolled back:
    whoever leads next replays the log into a new one.
H5  Decisions that do not look at each other's records may be gathered, and written by one append; any other decision
    finds them written and applied. One that cannot be written with the others is tried alone, and fails alone,
    whether the journal refused it or its records cannot be encoded.
    What is due at one moment is written likewise: what is too long with others, or cannot be encoded, fails alone, and
    is reported. Otherwise it would keep everything that is due with it from happening, again and again.
H6  A reply that has waited until its deadline is answered REQUEST_TIMED_OUT. Its records stay in the log and in the
    machine, and may be committed later: its effects are performed then.
H7  With rules, what breaks is reported, and keeps no reply from leaving: a callback, a decision, an append. Whoever
    waits for a decision that broke hears UNKNOWN_SERVER_ERROR, once. `attempt` raises it instead.
H8  A machine that breaks while it takes in what was appended is not what the log says: it is given up.

    submit() --append, apply--> waiting --commit()--> replied
       |                           |
    gather() --write()-------------+--time_out()--> answered, still waiting for its effects
                                   |
                                 drop()--> refused
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ottla.replicated.decision import Decision, Effect, Machine, Millis, Together
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

        With `transactional`, a producer's id and epoch, they are part of that producer's open transaction. A journal
        with a limit on the length of a step takes `any_length`, too, with which that does not hold.
        """
        ...


class HostRules(NamedTuple):
    """How replies of a coordinator wait.

    `name_of` says which name a record is about; `deadline_s` until when a reply that begins to wait now may wait.
    `late` hears of the effects of a reply that was timed out, and of the error; `broke` of callbacks that broke, and
    `diverged` of what the machine could not take in (H8): it drops the host. `unwritable` hears whose records were due
    and are too long to be written, and of the error.
    """

    name_of: Callable[[Any], Hashable]
    deadline_s: Callable[[], float]
    late: Callable[[Effect, BrokerError], None]
    broke: Callable[[Exception], object]
    diverged: Callable[[Exception], object]
    unwritable: Callable[[Hashable, BrokerError], object] = lambda name, error: None


class _Waiter:
    """A reply that waits until all below `offset` is committed."""

    __slots__ = ("deadline_s", "decision", "done", "offset")

    def __init__(
        self, offset: int, done: Callable[[Any], None], decision: Decision[Any], deadline_s: float
    ) -> None:
        self.offset = offset
        self.done = done
        self.decision = decision
        self.deadline_s = deadline_s


class Host(Generic[M]):
    """Runs one machine over one journal."""

    __slots__ = (
        "_all_written",
        "_dropped",
        "_end_offset",
        "_excuse",
        "_gathered",
        "_journal",
        "_late",
        "_perform",
        "_rules",
        "_waiting",
        "_written",
        "machine",
    )

    def __init__(
        self,
        machine: M,
        journal: Journal,
        perform: Callable[[Effect], None] | None = None,
        excuse: Callable[[BrokerError], BrokerError] | None = None,
        rules: HostRules | None = None,
    ) -> None:
        """`excuse` turns what a journal says into what callers are told. Without `rules` replies wait for ever."""
        self.machine = machine
        self._journal = journal
        self._perform = perform
        self._excuse = excuse
        self._rules = rules
        self._gathered: list[tuple[Decision[Any], Callable[[Any], None], Iterable[Hashable] | None]] = []
        self._waiting: deque[_Waiter] = deque()
        # How many of those at the front were answered when their time was up.
        self._late = 0
        # Where the last record about a name ends, for names with records that are not committed yet, oldest first.
        self._written: dict[Hashable, int] = {}
        # Where the last record ends that the machine has seen. The log may go on: nobody would tell this host when a
        # record that somebody else has written, as a client's marker, is committed.
        self._end_offset = journal.end_offset
        # Where the last of those ends that may be about any name.
        self._all_written = journal.end_offset
        self._dropped: BrokerError | None = None

    @property
    def waiting(self) -> int:
        """How many replies wait for their records to be committed."""
        return len(self._waiting) - self._late

    @property
    def next_timeout_s(self) -> float | None:
        """When the next reply has waited for too long; None when none waits."""
        return self._waiting[self._late].deadline_s if len(self._waiting) > self._late else None

    def submit(
        self,
        decide: Callable[[M, Millis], Decision[R]],
        done: Done[R],
        now: Millis,
        names: Iterable[Hashable] | None = None,
    ) -> None:
        """Let the machine decide, append and apply its records, and call `done` once they are committed.

        With `names`, the decision depends on records about these alone.
        """
        try:
            self.attempt(decide, done, now, names)
        except Exception as error:  # noqa: BLE001  # H7
            self._broke(done, error)

    def attempt(
        self,
        decide: Callable[[M, Millis], Decision[R]],
        done: Done[R],
        now: Millis,
        names: Iterable[Hashable] | None = None,
    ) -> None:
        """Do what `submit` does, but raise what breaks (H7), without a call of `done`."""
        if self._dropped is not None:
            self._tell(done, self._dropped)
            return
        if self._gathered:
            self.write(now)
        try:
            decision = decide(self.machine, now)
            if decision.records:
                self._record(decision, now)
        except BrokerError as error:
            self._refuse(done, error)
            return
        self._hold(done, decision, names)

    def gather(
        self,
        decide: Callable[[M, Millis], Decision[R]],
        done: Done[R],
        now: Millis,
        names: Iterable[Hashable] | None = None,
    ) -> bool:
        """Let the machine decide, and leave its records to `write`; say whether that has to be called (H5).

        For decisions that are the same whether the records of others like it have been applied or not.
        """
        if self._dropped is not None:
            self._tell(done, self._dropped)
            return False
        try:
            decision = decide(self.machine, now)
            assert decision.transactional is None, "records of a transaction have a batch of their own"
        except BrokerError as error:
            self._refuse(done, error)
            return False
        except Exception as error:  # noqa: BLE001  # H7
            self._broke(done, error)
            return False
        gathered = self._gathered
        if not decision.records and (not gathered or decision.is_refusal):
            self._hold(done, decision, names)
            return False
        gathered.append((decision, done, names))
        return len(gathered) == 1

    def write(self, now: Millis) -> None:
        """Append and apply what was gathered."""
        gathered = self._gathered
        if not gathered:
            return
        self._gathered = []
        if len(gathered) > 1:
            records = [record for decision, _, _ in gathered for record in decision.records]
            try:
                offsets = self._journal.append(records, now)
            except Exception:  # noqa: BLE001  # H5: each alone, below
                pass
            else:
                try:
                    self._apply(self.machine.apply, offsets, records)
                except BrokerError as error:
                    for _, done, _ in gathered:
                        self._refuse(done, error)
                    return
                for decision, done, names in gathered:
                    self._hold(done, decision, names)
                return
        for decision, done, names in gathered:
            try:
                if decision.records:
                    self._record(decision, now)
            except BrokerError as error:
                self._refuse(done, error)
            except Exception as error:  # noqa: BLE001  # H7
                self._broke(done, error)
            else:
                self._hold(done, decision, names)

    def expire(self, now: Millis) -> None:
        """Tell the machine the time, if it waits for it; raise what breaks."""
        deadline = self.machine.deadline
        if self._dropped is not None or deadline is None or now < deadline:
            return
        if self._gathered:
            self.write(now)
        try:
            decision = self.machine.expire(now)
        except BrokerError:
            return
        parts = decision.parts if isinstance(decision, Together) else ()
        try:
            if decision.records:
                self._record(decision, now)
        except BrokerError as error:
            if error.code not in _TOO_LONG:
                return  # so would each of them be refused
            if not parts:
                self._unwritable(decision, error)
        except Exception:
            if not parts:
                raise
        else:
            self._hold(nobody, decision, None)
            return
        self._write_alone(parts, now)

    def _write_alone(self, parts: Iterable[Decision[None]], now: Millis) -> None:
        """Write what could not be written together (H5)."""
        for part in parts:
            if self._dropped is not None:
                return
            try:
                if part.records:
                    self._record(part, now)
            except BrokerError as error:
                if error.code in _TOO_LONG:
                    self._unwritable(part, error)
            except Exception as error:  # noqa: BLE001  # H7
                self._broke(nobody, error)
            else:
                self._hold(nobody, part, None)

    def _unwritable(self, decision: Decision[None], error: BrokerError) -> None:
        if self._rules is not None:
            self._rules.unwritable(self._rules.name_of(decision.records[0]), error)

    def commit(self, offset: int) -> None:
        """Let out every reply that has seen nothing at or above `offset`."""
        written = self._written
        if written:
            committed = []
            for name, end_offset in written.items():
                if end_offset > offset:
                    break
                committed.append(name)
            for name in committed:
                del written[name]
        waiting = self._waiting
        while waiting and waiting[0].offset <= offset:
            waiter = waiting.popleft()
            if self._late:
                self._late -= 1
            self._answer(waiter.done, waiter.decision)

    def time_out(self, now_s: float) -> None:
        """Answer those who have waited for too long (H6)."""
        late = []
        for waiter in islice(self._waiting, self._late, None):
            if waiter.deadline_s > now_s:
                break
            late.append(waiter)
        self._late += len(late)
        for waiter in late:
            done, waiter.done = waiter.done, nobody
            error = self._excused(BrokerError(ErrorCode.REQUEST_TIMED_OUT))
            if self._rules is not None:
                for effect in waiter.decision.after:
                    self._tell(partial(self._rules.late, effect), error)
            self._tell(done, error)

    def written_otherwise(self) -> None:
        """The journal has grown by records that others wrote and the machine has taken in, about any name.

        Whoever calls sees to it that `commit` is called for them.
        """
        self._all_written = self._end_offset = self._journal.end_offset

    def drop(self, error: BrokerError | None = None) -> None:
        """Leadership is gone: refuse what waits and whatever may still come."""
        self._dropped = error or BrokerError(ErrorCode.NOT_CONTROLLER)
        waiting, self._waiting, self._late = self._waiting, deque(), 0
        gathered, self._gathered = self._gathered, []
        for waiter in waiting:
            self._tell(waiter.done, self._dropped)
        for _, done, _ in gathered:
            self._tell(done, self._dropped)

    def _record(self, decision: Decision[Any], now: Millis) -> None:
        records, transactional = decision.records, decision.transactional
        if decision.any_length:
            assert transactional is None, "what is part of a transaction was asked for"
            # Only machines over journals with a limit return such decisions.
            offsets = self._journal.append(records, now, any_length=True)  # type: ignore[call-arg]
            self._apply(self.machine.apply, offsets, records)
        elif transactional is None:
            offsets = self._journal.append(records, now)
            self._apply(self.machine.apply, offsets, records)
        else:
            offsets = self._journal.append(records, now, transactional)
            # Only machines that return such decisions have it.
            apply_pending = self.machine.apply_pending  # type: ignore[attr-defined]
            self._apply(partial(apply_pending, transactional[0]), offsets, records)

    def _apply(self, apply: Callable[[int, Any], None], offsets: range, records: Sequence[object]) -> None:
        self._end_offset = offsets.stop
        try:
            for offset, record in zip(offsets, records, strict=True):
                apply(offset, record)
            if self._rules is not None and offsets.stop > self._journal.committed_offset:
                name_of, written = self._rules.name_of, self._written
                for record in records:
                    name = name_of(record)
                    written.pop(name, None)  # so that the oldest stay in front
                    written[name] = offsets.stop
        except Exception as error:
            if self._rules is None:
                raise
            self._rules.diverged(error)
            raise self._dropped or BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR) from error

    def _hold(self, done: Done[R], decision: Decision[R], names: Iterable[Hashable] | None) -> None:
        """Keep an answer until all that it has seen is committed; it may be already."""
        committed_offset = self._journal.committed_offset
        offset = self._end_offset
        if offset > committed_offset and not decision.records:
            if decision.is_refusal:
                self._answer(done, decision)
                return
            if names is not None and self._rules is not None:
                written = self._written
                offset = max([self._all_written, *[written.get(name, 0) for name in names]])
                if offset <= committed_offset:
                    self._answer(done, decision)
                    return
        if offset <= committed_offset and not self._waiting:
            self._answer(done, decision)
        else:
            deadline_s = _NEVER if self._rules is None else self._rules.deadline_s()
            self._waiting.append(_Waiter(offset, done, decision, deadline_s))

    def _answer(self, done: Done[R], decision: Decision[R]) -> None:
        if self._perform is not None:
            for effect in decision.after:
                self._tell(self._perform, effect)
        self._tell(done, decision.reply)

    def _refuse(self, done: Callable[[Any], None], error: BrokerError) -> None:
        self._tell(done, self._excused(error))

    def _broke(self, done: Callable[[Any], None], error: Exception) -> None:
        """Report what broke a decision, and refuse that one alone (H7). It is to be called while it is handled."""
        if self._rules is None:
            raise error
        self._rules.broke(error)
        self._refuse(done, BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR))

    def _excused(self, error: BrokerError) -> BrokerError:
        return error if self._excuse is None else self._excuse(error)

    def _tell(self, hear: Callable[[Any], None], what: object) -> None:
        try:
            hear(what)
        except Exception as error:
            if self._rules is None:
                raise
            self._rules.broke(error)


def nobody(_: object) -> None:
    """Receive a reply nobody waits for."""


_NEVER = float("inf")
_TOO_LONG = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
