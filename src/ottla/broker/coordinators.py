"""The coordinators of one internal topic: a machine for each of its partitions, over that partition's log.

K1  A name belongs to one partition for good: Java's hash of it, modulo the number of partitions, as in Kafka.
K2  A machine is made when somebody first asks for its partition, or soon after the start if its log holds something:
    what was under way then, such as a transaction, has to end though nobody asks. Until its log is read, whoever asks
    hears COORDINATOR_LOAD_IN_PROGRESS; a short log is read on the spot.
K3  One timer a machine, set to its next deadline.
K4  What its log says of topics that are no more is forgotten before the first answer of a machine, since nobody told it
    when they were deleted.
K5  A partition that fails or goes takes its machine along; whoever waits hears NOT_COORDINATOR and looks for the next.

    submit() --no machine--> loading --log read--> serving --partition gone--> dropped
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar

from ottla.broker.broker import Timers
from ottla.broker.timing import Timing
from ottla.partition.journal import PartitionJournal, Replay
from ottla.partition.partition import Partition
from ottla.partition.table import PartitionTable
from ottla.replicated.decision import Decision, Effect
from ottla.replicated.host import Host, nobody
from ottla.replicated.keyed import KeyedRecord, Kinds
from ottla.wire.compression import Codec
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.world.clock import Clock

_PIECES_AT_ONCE = 8

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


class Coordinator(Protocol):
    """A machine that a coordinator runs."""

    @property
    def deadline(self) -> int | None:
        """When `expire` is next worth calling."""
        ...

    def apply(self, offset: int, record: KeyedRecord) -> None:
        """Take one record in."""
        ...

    def apply_pending(self, producer_id: int, offset: int, record: KeyedRecord) -> None:
        """Take in a record of an open transaction."""
        ...

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """Make the pending records of a transaction count, or forget them."""
        ...

    def expire(self, now: int) -> Decision[None]:
        """Say what the passing of time asks for."""
        ...

    def lead(self, now: int) -> Decision[None]:
        """Say what is to be done once the log has been read: timers to set, work to take up again."""
        ...

    def tidy(self) -> Decision[bool]:
        """Forget what the log says of topics that are no more; True when that takes another step."""
        ...


M = TypeVar("M", bound=Coordinator)
R = TypeVar("R")
Done = Callable[[R | BrokerError], None]


class _Seat(Generic[M]):
    """One partition's machine, from the first question on."""

    __slots__ = ("began_s", "deadline", "host", "journal", "machine", "partition", "replay", "timer")

    def __init__(self, partition: Partition, machine: M, began_s: float) -> None:
        self.partition = partition
        self.began_s = began_s
        self.machine = machine
        self.host: Host[M] | None = None
        self.journal: PartitionJournal | None = None
        self.replay: Replay | None = None
        self.timer: Any = None
        self.deadline: int | None = None


class Coordinators(Generic[M]):
    """All machines of one internal topic on this broker. `perform` carries out what they want done."""

    def __init__(
        self,
        topic: str,
        kinds: Kinds,
        table: PartitionTable,
        clock: Clock,
        timers: Timers,
        make: Callable[[int], M],
        perform: Callable[[Effect], None],
        codec: Codec = Codec.NONE,
        soon: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        """`soon` calls back once the requests at hand are served."""
        self.topic = topic
        self._kinds = kinds
        self._table = table
        self._clock = clock
        self._timers = timers
        self._make = make
        self._perform = perform
        self._codec = codec
        self._soon = timers.call_soon if soon is None else soon
        self._seats: dict[int, _Seat[M]] = {}
        self.loads = Timing()

    @property
    def loading(self) -> int:
        """How many machines still read their logs."""
        return sum(seat.host is None for seat in self._seats.values())

    @property
    def machines(self) -> Sequence[M]:
        """Every machine that has read its log."""
        return [seat.machine for seat in self._seats.values() if seat.host is not None]

    def load_one(self, indexes: Iterable[int]) -> bool:
        """Begin to read one log that holds something and that nobody has asked for; say whether there was one."""
        for index in indexes:
            partition = None if index in self._seats else self._table.partitions.get((self.topic, index))
            if partition is None or partition.refusal is not None:
                continue
            if partition.log.end_offset > partition.log.start_offset:
                self._seat(index)
                return True
        return False

    def submit(self, index: int, decide: Callable[[M, int], Decision[R]], done: Done[R]) -> None:
        """Let the machine of a partition decide, and call back once that is committed, or with the reason why not."""
        try:
            seat = self._seat(index)
        except BrokerError as error:
            done(error)
            return
        host = seat.host
        if host is None:
            done(BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
            return
        host.submit(decide, done, self._clock.now_ms())
        self._arm(seat)

    def gather(self, index: int, decide: Callable[[M, int], Decision[R]], done: Done[R]) -> None:
        """As `submit`, for decisions that do not look at each other's records: those of one read are one write."""
        try:
            seat = self._seat(index)
        except BrokerError as error:
            done(error)
            return
        host = seat.host
        if host is None:
            done(BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        elif host.gather(decide, done, self._clock.now_ms()):
            self._soon(lambda: self._write(seat))

    def _write(self, seat: _Seat[M]) -> None:
        if seat.host is not None:
            seat.host.write(self._clock.now_ms())
            self._arm(seat)

    def tell_all(self, decide: Callable[[M, int], Decision[bool]]) -> None:
        """Let every machine that has read its log decide, again as long as it says that there is more."""
        for seat in tuple(self._seats.values()):
            if seat.host is not None and seat.partition.refusal is None:
                self._steps(seat.host, seat.partition, decide)
                self._arm(seat)

    def _steps(self, host: Host[M], partition: Partition, decide: Callable[[M, int], Decision[bool]]) -> None:
        more = True

        def step(machine: M, now: int) -> Decision[bool]:
            nonlocal more
            decision = decide(machine, now)
            more = decision.reply
            return decision

        while more:
            end_offset = partition.log.end_offset
            host.submit(step, nobody, self._clock.now_ms())
            if partition.log.end_offset == end_offset:
                return  # There was nothing to write, or it could not be written.

    def lose(self, index: int) -> None:
        """Another broker leads a partition from now on: its machine is of no use here any more."""
        seat = self._seats.get(index)
        if seat is not None:
            self._leave(index, seat)

    def transaction_ended(self, index: int, producer_id: int, committed: bool) -> None:
        """A marker was appended to one of the partitions; a machine that still reads its log will come to it."""
        seat = self._seats.get(index)
        if seat is not None and seat.journal is not None:
            seat.machine.end_transaction(producer_id, committed)
            seat.journal.watch()

    def _seat(self, index: int) -> _Seat[M]:
        seat = self._seats.get(index)
        if seat is not None:
            if seat.partition.refusal is None:
                return seat
            self._leave(index, seat)
        try:
            partition = self._table.by_name(self.topic, index)
        except BrokerError:
            raise BrokerError(ErrorCode.NOT_COORDINATOR) from None
        if partition.refusal is not None:
            raise BrokerError(ErrorCode.NOT_COORDINATOR)
        machine = self._make(index)
        seat = self._seats[index] = _Seat(partition, machine, self._clock.monotonic())
        seat.replay = Replay(partition, machine, self._kinds)
        self._load(seat)
        return seat

    def _load(self, seat: _Seat[M]) -> None:
        """Read some of the log, and the rest in later turns of the loop."""
        replay = seat.replay
        assert replay is not None, "a seat is loaded once"
        for _ in range(_PIECES_AT_ONCE):
            if not replay.step():
                self._open(seat)
                return
        self._timers.call_soon(lambda: self._load(seat))

    def _open(self, seat: _Seat[M]) -> None:
        seat.replay = None
        self.loads.took(self._clock.monotonic() - seat.began_s)

        def committed(error: BrokerError | None) -> None:
            if error is None:
                host.commit(seat.partition.high_watermark)
            else:
                host.drop(_said(error))

        journal = seat.journal = PartitionJournal(seat.partition, self._codec, committed)
        host = seat.host = Host(seat.machine, journal, self._perform, _said)
        # What is read may not be durable yet, as a marker that was just written; nobody else would say when it is.
        journal.watch()
        host.submit(lambda machine, now: machine.lead(now), nobody, self._clock.now_ms())
        self._steps(host, seat.partition, lambda machine, now: machine.tidy())
        self._arm(seat)

    def _leave(self, index: int, seat: _Seat[M]) -> None:
        del self._seats[index]
        if seat.timer is not None:
            seat.timer.cancel()
        if seat.host is not None:
            seat.host.drop(BrokerError(ErrorCode.NOT_COORDINATOR))

    # Time

    def _arm(self, seat: _Seat[M]) -> None:
        deadline = seat.machine.deadline
        if deadline == seat.deadline:
            return
        if seat.timer is not None:
            seat.timer.cancel()
            seat.timer = None
        seat.deadline = deadline
        if deadline is not None:
            wait_ms = max(0, deadline - self._clock.now_ms())
            seat.timer = self._timers.call_later(wait_ms / 1000, lambda: self._ring(seat))

    def _ring(self, seat: _Seat[M]) -> None:
        seat.timer = seat.deadline = None
        if seat.host is not None and seat.partition.refusal is None:
            seat.host.expire(self._clock.now_ms())
            self._arm(seat)


@lru_cache(maxsize=10_000)
def partition_of(name: str, partitions: int) -> int:
    """Return which partition of an internal topic a group or transactional id belongs to."""
    number = 0
    data = name.encode("utf-16-be")
    for at in range(0, len(data), 2):
        number = (31 * number + (data[at] << 8 | data[at + 1])) & 0xFFFFFFFF
    # Java's Math.abs of the smallest integer would be negative; Kafka takes 0 for it.
    signed = number - (1 << 32) if number & 0x80000000 else number
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


def _said(error: BrokerError) -> BrokerError:
    return BrokerError(_SAID[error.code], error.message) if error.code in _SAID else error
