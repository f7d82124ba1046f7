"""One coordinator: what its machine has to offer, what its topic keeps, what is around it, and how far it has come."""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from ottla.broker.broker import Timers
from ottla.partition.partition import Partition
from ottla.partition.table import PartitionTable
from ottla.replicated.decision import Decision, Effect
from ottla.replicated.host import Host, nobody
from ottla.replicated.keyed import KeyedRecord, Kinds
from ottla.replicated.steps import Steps
from ottla.wire.compression import Codec
from ottla.wire.errors import BrokerError
from ottla.world.clock import Clock

if TYPE_CHECKING:
    from ottla.partition.journal import PartitionJournal


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

    def clock_jumped(self, by_ms: int) -> None:
        """Hear that the wall clock was set: how long something takes is not for it to say."""
        ...

    def lead(self, now: int) -> Decision[None]:
        """Say what is to be done once the log has been read: timers to set, work to take up again."""
        ...

    def tidy(self) -> Steps:
        """Forget what the log says of topics that are no more."""
        ...


M = TypeVar("M", bound=Coordinator)


class Kept(NamedTuple, Generic[M]):
    """What coordinators of a topic keep, and how: the topic, its types of records, and what makes a machine.

    `name_of` says whom a record is about; `write_timeout_ms` how long a reply waits for its records to be committed.
    `check` breaks over a record of a client that can be decoded, but whose value a machine could not take in.
    """

    topic: str
    kinds: Kinds
    make: Callable[[int], M]
    name_of: Callable[[KeyedRecord], Hashable]
    write_timeout_ms: Callable[[], int]
    codec: Codec = Codec.NONE
    check: Callable[[KeyedRecord], object] = nobody


class Around(NamedTuple):
    """What is around coordinators. `perform` carries out what they want done, and `report` tells an operator.

    `soon` calls back once the requests at hand are served. `late` hears of effects that will come too late, and why;
    `left` of partitions whose machine is of no use here any more.
    """

    table: PartitionTable
    clock: Clock
    timers: Timers
    perform: Callable[[Effect], None]
    report: Callable[[str], object] = nobody
    soon: Callable[[Callable[[], None]], object] | None = None
    late: Callable[[Effect, BrokerError], None] = lambda effect, error: None
    left: Callable[[int], None] = nobody


class Seat(Generic[M]):
    """One partition's machine in one leader epoch, from the first question on."""

    __slots__ = ("began_s", "deadline", "host", "index", "journal", "leader_epoch", "left", "machine", "partition",
                 "serves", "timeout", "timer")  # fmt: skip

    def __init__(self, index: int, partition: Partition, machine: M, began_s: float) -> None:
        self.index = index
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.began_s = began_s
        self.machine = machine
        self.host: Host[M] | None = None
        self.journal: PartitionJournal | None = None
        self.serves = False
        self.left = False
        self.timer: Any = None
        self.timeout: Any = None
        self.deadline: int | None = None

    @property
    def is_stale(self) -> bool:
        """Whether the partition is no longer led here, or in another epoch (K5)."""
        return self.partition.refusal is not None or self.partition.leader_epoch != self.leader_epoch


def unwritable(place: str, name: Hashable, error: BrokerError) -> str:
    """Say that what is due for a name stays undone; it is tried again, so this is not to be said every time."""
    return f"{place}: what is due for {name!r:.100} cannot be written, and is tried again: {error.message}"
