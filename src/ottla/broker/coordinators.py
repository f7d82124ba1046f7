"""The coordinators of one internal topic: a machine for each of its partitions, over that partition's log.

K1  A name belongs to one partition for good: Java's hash of it, modulo the number of partitions, as in Kafka.
K2  A machine is made when somebody first asks for its partition, or soon after the start if its log holds something:
    what was under way then, such as a transaction, has to end though nobody asks. Until its log is read, whoever asks
    hears COORDINATOR_LOAD_IN_PROGRESS; a short log is read on the spot.
K3  One timer a machine, set to its next deadline, and one for replies that wait for too long.
K4  What its log says of topics that are no more is forgotten before the first answer of a machine, since nobody told it
    when they were deleted.
K5  A machine is of one leader epoch of its partition. One whose partition fails, goes, or begins another epoch is left:
    whoever waits hears NOT_COORDINATOR, and nothing that was begun for it (a load, a timer, a gathered write) goes on.
K6  A load that fails is over: whoever asks hears NOT_COORDINATOR, and the next request begins another. A failed read
    is the log's to judge. A log that cannot be decoded, or applied, is reported, and not read again for a while; nor
    is one whose machine breaks as it begins to lead: work that it has to take up would stay undone.
K7  Machines are told the wall clock's time, and told when that was set: what they measure lasts as long as before.
K8  A client that may write to the topic writes only what can be decoded. Records of unknown types are skipped by a
    load, which says how many there were.

    submit() --no machine--> loading --log read--> tidying --> serving --partition gone--> left
                                |                                                           ^
                                +------------- error, another epoch ------------------------+
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

from ottla.broker.complaint import Complaints, place_of
from ottla.broker.coordinator_seat import Around, Kept, M, Seat, unwritable
from ottla.broker.timing import Timing
from ottla.partition.journal import PartitionJournal, Replay, check_batch
from ottla.replicated.decision import Decision
from ottla.replicated.host import Host, HostRules, nobody
from ottla.replicated.steps import Steps
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.java_hash import absolute, java_hash
from ottla.world.disk import Bytes

_PIECES_AT_ONCE = 8
_SHORT_NAME = 255
_STEPS_AT_ONCE = 3  # so that a coordinator with little to forget answers the first request
_JUMP_MS = 1_000  # by which the wall clock has to be off to have been set
_RETRY_S = 1.0  # how soon a timer that broke is tried again
_UNREADABLE_S = 10.0  # how soon a log that cannot be decoded is read again

# What a coordinator says when its own log refuses a record.
_SAID = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


R = TypeVar("R")
Done = Callable[[R | BrokerError], None]
Names = Iterable[Hashable]


class _Work(NamedTuple, Generic[M]):
    """Long work of one machine: how it is begun, and what is left of it."""

    seat: Seat[M]
    begin: Callable[[M], Steps]
    steps: Steps


class Coordinators(Generic[M]):
    """All machines of one internal topic on this broker."""

    def __init__(self, kept: Kept[M], around: Around) -> None:
        self.topic = kept.topic
        self._kept = kept
        self._around = around
        self._clock = around.clock
        self._timers = around.timers
        self._soon = around.timers.call_soon if around.soon is None else around.soon
        self._seats: dict[int, Seat[M]] = {}
        # Until when logs that cannot be decoded are left alone.
        self._unreadable: dict[int, float] = {}
        # Long work of machines, of which one has its turn at a time.
        self._work: deque[_Work[M]] = deque()
        self.loads = Timing()
        self._complain = Complaints(self._report, self._clock.monotonic)
        # By how much the wall clock is ahead of the one that never jumps.
        self._ahead_ms = self._clock.now_ms() - int(self._clock.monotonic() * 1000)

    @property
    def loading(self) -> int:
        """How many machines still read their logs."""
        return sum(not seat.serves for seat in self._seats.values())

    @property
    def machines(self) -> Sequence[M]:
        """Every machine that has read its log."""
        return [seat.machine for seat in self._seats.values() if seat.serves]

    def machine(self, index: int) -> M | None:
        """Return the machine of a partition, if it is led here and has read its log."""
        seat = self._seats.get(index)
        return seat.machine if seat is not None and seat.serves and not seat.is_stale else None

    def check_batch(self, records: Bytes) -> None:
        """Raise INVALID_RECORD unless every record of a client's batch can be read back (K8). This is for a thread."""
        check_batch(records, self._kept.kinds, self._kept.check)

    def load_one(self, indexes: Iterable[int]) -> bool:
        """Begin to read one log that holds something and that nobody has asked for; say whether there was one.

        Machines that are of no use any more are left on the way.
        """
        for seat in tuple(self._seats.values()):
            if seat.is_stale:
                self._leave(seat)
        for index in indexes:
            partition = (
                None if index in self._seats else self._around.table.partitions.get((self.topic, index))
            )
            if partition is None or partition.refusal is not None or self._is_unreadable(index):
                continue
            if partition.log.end_offset > partition.log.start_offset:
                try:
                    self._seat(index)
                except BrokerError:
                    continue
                return True
        return False

    def submit(
        self,
        index: int,
        decide: Callable[[M, int], Decision[R]],
        done: Done[R],
        names: Names | None = None,
    ) -> None:
        """Let the machine of a partition decide, and call back once that is committed, or with the reason why not.

        With `names`, the decision depends on records about these alone, and waits for no others. A decision that breaks
        is reported, and answered UNKNOWN_SERVER_ERROR.
        """
        try:
            seat = self._serving(index)
        except BrokerError as error:
            done(error)
            return
        assert seat.host is not None
        seat.host.submit(decide, done, self._now(), names)
        self._arm(seat)

    def gather(
        self,
        index: int,
        decide: Callable[[M, int], Decision[R]],
        done: Done[R],
        names: Names | None = None,
    ) -> None:
        """As `submit`, for decisions that do not look at each other's records: those of one read are one write."""
        try:
            seat = self._serving(index)
        except BrokerError as error:
            done(error)
            return
        assert seat.host is not None
        if seat.host.gather(decide, done, self._now(), names):
            self._soon(lambda: self._write(seat))
        elif seat.timeout is None and seat.host.waiting:
            self._arm_timeout(seat, seat.host)  # one that has nothing to write may wait for others all the same

    def _write(self, seat: Seat[M]) -> None:
        if not seat.left and seat.host is not None:
            seat.host.write(self._now())
            self._arm(seat)

    def tell_all(self, begin: Callable[[M], Steps]) -> None:
        """Have every machine that has read its log do some long work: a step of one of them in a turn of the loop."""
        idle = not self._work
        for seat in self._seats.values():
            if seat.host is not None and not seat.is_stale:
                self._work.append(_Work(seat, begin, begin(seat.machine)))
        if idle and self._work:
            self._timers.call_soon(self._work_on)

    def _work_on(self) -> None:
        work = self._work.popleft()
        more = self._step(work.seat, work.steps)
        if more:
            self._work.append(work)
        elif more is None and not work.seat.left:
            self._timers.call_later(_RETRY_S, lambda: self._work_again(work))
        if self._work:
            self._timers.call_soon(self._work_on)

    def _work_again(self, work: "_Work[M]") -> None:
        if not work.seat.left:
            self._work.append(work._replace(steps=work.begin(work.seat.machine)))
            if len(self._work) == 1:
                self._timers.call_soon(self._work_on)

    def _step(self, seat: Seat[M], steps: Steps) -> bool | None:
        """Take one step; say whether there may be more, or None if it could not be written."""
        host = seat.host
        if seat.left or host is None:
            return False
        end_offset = seat.partition.log.end_offset
        decision: Decision[None] | None = None

        def step(machine: M, now: int) -> Decision[None]:
            nonlocal decision
            decision = next(steps, None)
            return Decision(None) if decision is None else decision

        try:
            host.attempt(step, nobody, self._now())
        except Exception as error:  # noqa: BLE001  # whatever it is, the coordinator is there for others
            self._broke(error)
            return False
        self._arm(seat)
        if decision is None:
            return False
        return None if decision.records and seat.partition.log.end_offset == end_offset else True

    def _tidy(self, seat: Seat[M], steps: Steps, finished: Callable[[], None]) -> None:
        """Take some steps now, and the others in later turns of the loop."""
        for _ in range(_STEPS_AT_ONCE):
            if not self._step(seat, steps):
                finished()  # There was nothing left to write, or it could not be written.
                return
        self._timers.call_soon(lambda: self._tidy(seat, steps, finished))

    def lose(self, index: int) -> None:
        """Another broker leads a partition from now on: its machine is of no use here any more."""
        seat = self._seats.get(index)
        if seat is not None:
            self._leave(seat)

    def transaction_ended(self, index: int, producer_id: int, committed: bool) -> None:
        """A marker was appended to one of the partitions; a machine that still reads its log will come to it."""
        seat = self._seats.get(index)
        if seat is not None and seat.journal is not None and seat.host is not None:
            try:
                seat.machine.end_transaction(producer_id, committed)
            except Exception as error:  # noqa: BLE001  # the marker is written, whatever becomes of this machine
                self._diverged(seat, error)
                return
            seat.host.written_otherwise()
            seat.journal.watch()

    # From the first question on

    def _serving(self, index: int) -> Seat[M]:
        seat = self._seat(index)
        if not seat.serves:
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return seat

    def _seat(self, index: int) -> Seat[M]:
        seat = self._seats.get(index)
        if seat is not None:
            if not seat.is_stale:
                return seat
            self._leave(seat)
        try:
            partition = self._around.table.by_name(self.topic, index)
        except BrokerError:
            raise BrokerError(ErrorCode.NOT_COORDINATOR) from None
        if partition.refusal is not None or self._is_unreadable(index):
            raise BrokerError(ErrorCode.NOT_COORDINATOR)
        machine = self._kept.make(index)
        seat = self._seats[index] = Seat(index, partition, machine, self._clock.monotonic())
        self._load(seat, Replay(partition, machine, self._kept.kinds))
        if seat.left:
            raise BrokerError(ErrorCode.NOT_COORDINATOR)
        return seat

    def _load(self, seat: Seat[M], replay: Replay) -> None:
        """Read some of the log, and the rest in later turns of the loop."""
        if seat.is_stale:
            self._leave(seat)
        if seat.left:
            return
        try:
            for _ in range(_PIECES_AT_ONCE):
                if not replay.step():
                    if replay.unknown:
                        types = f"types that this release does not know, the first of type {replay.unknown_type}"
                        self._report(f"{self._place(seat)} holds {replay.unknown} records of {types}: skipped")
                    self._open(seat)
                    return
        except OSError as error:
            seat.partition.log.storage_error(error)
            self._report(f"{self._place(seat)} could not be read, which is tried again: {error}")
            self._leave(seat)
        except Exception as error:  # noqa: BLE001  # whatever is in the log, requests are answered
            self._unreadable[seat.index] = self._clock.monotonic() + _UNREADABLE_S
            where = f"{self._place(seat)} at or after offset {replay.offset}"
            self._report(f"{where} cannot be read by its coordinator, which serves nobody: {error!r}")
            self._leave(seat)
        else:
            self._timers.call_soon(lambda: self._load(seat, replay))

    def _is_unreadable(self, index: int) -> bool:
        until_s = self._unreadable.get(index)
        if until_s is None:
            return False
        if self._clock.monotonic() < until_s:
            return True
        del self._unreadable[index]
        return False

    def _open(self, seat: Seat[M]) -> None:
        self.loads.took(self._clock.monotonic() - seat.began_s)

        def committed(error: BrokerError | None) -> None:
            if error is None:
                host.commit(seat.partition.high_watermark)
            else:
                host.drop(_said(error))

        def serve() -> None:
            if seat.left:
                return
            seat.serves = True  # before effects of `lead` come back to it
            try:
                decision = seat.machine.lead(self._now())
                host.attempt(lambda machine, now: decision, nobody, self._now())
            except Exception as error:  # noqa: BLE001  # K6
                self._unreadable[seat.index] = self._clock.monotonic() + _UNREADABLE_S
                self._report(f"{self._place(seat)}: its coordinator broke as it began to lead: {error!r}")
                self._leave(seat)
            self._arm(seat)

        journal = seat.journal = PartitionJournal(seat.partition, self._kept.codec, committed)
        rules = HostRules(
            self._kept.name_of, self._deadline_s, self._around.late, self._broke,
            lambda error: self._diverged(seat, error),
            lambda name, error: self._complain(unwritable(self._place(seat), name, error)),
        )
        host = seat.host = Host(seat.machine, journal, self._around.perform, _said, rules)
        # What is read may not be durable yet, as a marker that was just written; nobody else would say when it is.
        journal.watch()
        self._tidy(seat, seat.machine.tidy(), serve)

    def _leave(self, seat: Seat[M]) -> None:
        if seat.left:
            return
        seat.left = True
        seat.serves = False
        if self._seats.get(seat.index) is seat:
            del self._seats[seat.index]
        for timer in (seat.timer, seat.timeout):
            if timer is not None:
                timer.cancel()
        if seat.host is not None:
            seat.host.drop(BrokerError(ErrorCode.NOT_COORDINATOR))
        self._around.left(seat.index)

    def _place(self, seat: Seat[M]) -> str:
        return f"{self.topic}-{seat.index}"

    def _report(self, message: str) -> None:
        self._around.report(message)

    def _broke(self, error: Exception) -> None:
        self._report(f"a coordinator of {self.topic} broke, and goes on: {error!r}{place_of(error)}")

    def _diverged(self, seat: Seat[M], error: Exception) -> None:
        """What is in the log is not in the machine: another has to read it."""
        self._report(f"the coordinator of {self._place(seat)} could not take in a record, and reads all: {error!r}")
        self._leave(seat)

    # Time

    def _now(self) -> int:
        """Wall-clock time; when it has jumped, machines hear of it before anything else."""
        now = self._clock.now_ms()
        jump_ms = now - int(self._clock.monotonic() * 1000) - self._ahead_ms
        if not -_JUMP_MS < jump_ms < _JUMP_MS:
            self._ahead_ms += jump_ms
            for seat in self._seats.values():
                seat.machine.clock_jumped(jump_ms)
        return now

    def _deadline_s(self) -> float:
        return self._clock.monotonic() + self._kept.write_timeout_ms() / 1000

    def _arm(self, seat: Seat[M]) -> None:
        if seat.left or not seat.serves:
            return
        host = seat.host
        if seat.timeout is None and host is not None and host.waiting:
            self._arm_timeout(seat, host)
        now = self._now()
        deadline = seat.machine.deadline
        if deadline == seat.deadline:
            return
        if seat.timer is not None:
            seat.timer.cancel()
            seat.timer = None
        seat.deadline = deadline
        if deadline is not None:
            wait_ms = max(0, deadline - now)
            seat.timer = self._timers.call_later(wait_ms / 1000, lambda: self._ring(seat))

    def _ring(self, seat: Seat[M]) -> None:
        seat.timer = seat.deadline = None
        if seat.is_stale:
            self._leave(seat)
        host = seat.host
        if seat.left or host is None:
            return
        try:
            host.expire(self._now())
        except Exception as error:  # noqa: BLE001  # reported, and the timer goes on
            self._broke(error)
            seat.timer = self._timers.call_later(_RETRY_S, lambda: self._ring(seat))
        else:
            self._arm(seat)

    def _arm_timeout(self, seat: Seat[M], host: Host[M]) -> None:
        timeout_s = host.next_timeout_s
        if timeout_s is not None:
            wait_s = max(0.0, timeout_s - self._clock.monotonic())
            seat.timeout = self._timers.call_later(wait_s, lambda: self._time_out(seat))

    def _time_out(self, seat: Seat[M]) -> None:
        seat.timeout = None
        if not seat.left and seat.host is not None:
            seat.host.time_out(self._clock.monotonic())
            self._arm_timeout(seat, seat.host)


def partition_of(name: str, partitions: int) -> int:
    """Return which partition of an internal topic a group or transactional id belongs to."""
    if len(name) <= _SHORT_NAME:
        return _partition_of(name, partitions)
    return absolute(java_hash(name)) % partitions  # whoever makes up long ones would fill the memory with them


@lru_cache(maxsize=10_000)
def _partition_of(name: str, partitions: int) -> int:
    return absolute(java_hash(name)) % partitions


def _said(error: BrokerError) -> BrokerError:
    return BrokerError(_SAID[error.code], error.message) if error.code in _SAID else error
