"""What the clients of a simulated cluster asked for, what they were told, and what they saw."""

from dataclasses import dataclass, field

Place = tuple[str, int]  # a topic and a partition of it

UNKNOWN = "unknown"  # the client cannot say whether it happened
DONE = "done"
UNDONE = "undone"  # it was called off


@dataclass(slots=True)
class Sent:
    """A record that somebody sent; `offset` is what the broker said, once it did."""

    sender: str
    place: Place
    value: bytes
    offset: int | None = None


@dataclass(slots=True)
class Transacted:
    """A transaction: the records it wrote, and what became of it."""

    sender: str
    values: list[tuple[Place, bytes]] = field(default_factory=list)
    outcome: str = UNKNOWN


@dataclass(slots=True)
class Owned:
    """Partitions that a member of a group was given, in a generation."""

    group: str
    member: str
    generation: int
    places: frozenset[Place]
    life: str  # whose client it is


@dataclass(slots=True)
class Begun:
    """Where a member began to read a partition that it was given: between what was confirmed before, and attempted."""

    group: str
    reader: str
    place: Place
    offset: int
    confirmed: int
    attempted: int


@dataclass(slots=True)
class Jumped:
    """A record that a reader was handed though another one was next."""

    reader: str
    place: Place
    expected: int
    offset: int


@dataclass(slots=True)
class Read:
    """A record as a reader saw it."""

    reader: str
    place: Place
    offset: int
    value: bytes


@dataclass(slots=True)
class Handed:
    """A record that a share consumer was handed by a leader, by its share partition `era` if that is known."""

    member: str
    host: str
    node: int
    era: object | None
    epoch: int  # of the leader
    place: Place
    offset: int
    count: int
    asked_s: float
    got_s: float


@dataclass(slots=True)
class Word:
    """What a share consumer said of a record; `taken` once it was heard, or refused, None as long as nobody knows."""

    member: str
    host: str
    node: int
    era: object | None
    epoch: int
    place: Place
    offset: int
    kind: int
    said_s: float
    heard_s: float = float("inf")
    taken: bool | None = None


@dataclass(slots=True)
class Sharing:
    """What members of share groups were handed, and what they said of it."""

    handed: list[Handed] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    values: list[Read] = field(default_factory=list)
    sessions_ended: list[tuple[float, str, int]] = field(default_factory=list)  # when, whose, with which node


@dataclass(slots=True)
class History:
    """Everything, in the order in which it happened."""

    sent: list[Sent] = field(default_factory=list)
    transactions: list[Transacted] = field(default_factory=list)
    owned: list[Owned] = field(default_factory=list)
    begun: list[Begun] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    jumps: list[Jumped] = field(default_factory=list)
    attempted: dict[tuple[str, Place], int] = field(default_factory=dict)  # commits that somebody asked for
    confirmed: dict[tuple[str, Place], int] = field(default_factory=dict)  # commits that were answered
    final: dict[Place, list[tuple[int, bytes]]] = field(default_factory=dict)  # all there is in the end
    final_committed: dict[Place, list[tuple[int, bytes]]] = field(
        default_factory=dict
    )  # of transactions that are
    final_offsets: dict[tuple[str, Place], int] = field(default_factory=dict)
    made: dict[str, bool | None] = field(default_factory=dict)  # topics: there, gone, or nobody knows
    final_topics: set[str] = field(default_factory=set)
    sharing: Sharing = field(default_factory=Sharing)

    commits: int = 0  # of offsets that were answered
    doubtful: dict[tuple[str, Place], int] = field(default_factory=dict)  # the least of those that were not

    def attempt(self, group: str, place: Place, offset: int) -> None:
        """A commit is asked for."""
        key = (group, place)
        self.attempted[key] = max(self.attempted.get(key, 0), offset)

    def confirm(self, group: str, place: Place, offset: int) -> None:
        """A commit was answered."""
        self.commits += 1
        key = (group, place)
        self.confirmed[key] = max(self.confirmed.get(key, 0), offset)

    def doubt(self, group: str, place: Place, offset: int) -> None:
        """A commit was not answered. It may be on its way for long, and be carried out after others."""
        key = (group, place)
        self.doubtful[key] = min(self.doubtful.get(key, offset), offset)

    def floor(self, group: str, place: Place) -> int:
        """Below which no committed offset can be by now."""
        key = (group, place)
        confirmed = self.confirmed.get(key, 0)
        return min(confirmed, self.doubtful.get(key, confirmed))
