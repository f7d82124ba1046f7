"""Records in flight, kept as ranges: a span is neighbours with one fate, a flight is what was acquired together.

N1  The spans of a flight are in order, and each begins where the one before it ends.
N2  A span is held by at most one member, and by one exactly while it is acquired.
N3  A change that is not yet durable is only `wanted`: until it is settled the span is still acquired, and is neither
    split, handed out, nor changed again.

    AVAILABLE --hold()--> ACQUIRED --want(), settle(done=True)--> AVAILABLE | ACKNOWLEDGED | ARCHIVED | ARCHIVING
                              |                                        ^                                  |
                              +--let_go() (the lock ran out)-----------+<-------archive() (a letter went)-+
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple


class Delivery(IntEnum):
    """How far a record has come with a group; the values are those of the durable state.

    A record is archiving when the group has given it up and the dead-letter topic is yet to be told.
    """

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


FINAL = frozenset({Delivery.ACKNOWLEDGED, Delivery.ARCHIVED})


class Patience(NamedTuple):
    """How often a record may be handed out, and what becomes of one that is given up."""

    count_max: int
    given_up: Delivery = Delivery.ARCHIVED


@dataclass(slots=True, eq=False)
class Span:
    """Neighbouring offsets that share state, holder and delivery count.

    A count of 0 means that nobody was ever handed a record here: it is to be read yet, or there is none.
    """

    start_offset: int
    end_offset: int
    state: Delivery
    count: int
    member_id: str = ""
    deadline: int | None = None
    wanted: Delivery | None = None

    def __len__(self) -> int:
        return self.end_offset - self.start_offset

    @property
    def held(self) -> bool:
        """Whether a member holds it and has not said yet what became of it."""
        return self.state is Delivery.ACQUIRED and self.wanted is None

    @property
    def complete(self) -> bool:
        """Whether it is done with, or will be once a change is durable."""
        return (self.state if self.wanted is None else self.wanted) in FINAL

    @property
    def empty(self) -> bool:
        """Whether it stands for offsets at which the log has no record."""
        return self.state is Delivery.ARCHIVED and self.count == 0

    def hold(self, member_id: str, deadline: int) -> None:
        """Hand it to a member, until `deadline`."""
        assert self.state is Delivery.AVAILABLE
        self.state = Delivery.ACQUIRED
        self.count += 1
        self.member_id = member_id
        self.deadline = deadline

    def want(self, state: Delivery, patience: Patience) -> None:
        """Begin a change; what was tried often enough is not offered again."""
        assert self.held
        self.wanted = self._after_release(patience) if state is Delivery.AVAILABLE else state

    def settle(self, now: int, patience: Patience, *, done: bool) -> None:
        """End a change: it is durable, or it failed and the member holds on, unless its time is up."""
        assert self.wanted is not None
        wanted, self.wanted = self.wanted, None
        if done:
            self._leave(wanted)
        elif self.deadline is not None and self.deadline <= now:
            self.let_go(patience)

    def let_go(self, patience: Patience) -> None:
        """Take it from the member that held it too long."""
        self._leave(self._after_release(patience))

    def archive(self) -> None:
        """Be done with it, whoever holds it."""
        assert self.wanted is None
        self._leave(Delivery.ARCHIVED)

    def like(self, other: "Span") -> bool:
        """Whether the two could be one span, were they neighbours."""
        return (
            self.state is other.state
            and self.count == other.count
            and self.member_id == other.member_id
            and self.deadline == other.deadline
            and self.wanted is None
            and other.wanted is None
        )

    def split(self, offset: int) -> "Span":
        """Keep what is below `offset`, and return the rest."""
        assert self.wanted is None
        rest = Span(offset, self.end_offset, self.state, self.count, self.member_id, self.deadline)
        self.end_offset = offset
        return rest

    def _after_release(self, patience: Patience) -> Delivery:
        return patience.given_up if self.count >= patience.count_max else Delivery.AVAILABLE

    def _leave(self, state: Delivery) -> None:
        self.state = state
        self.member_id = ""
        self.deadline = None


class Flight:
    """What was acquired in one piece, and may by now be in several.

    `size` is how many offsets it had at first. An `unread` one covers offsets below the end that no state is known
    of: they have to be read from the log to know what is there.
    """

    __slots__ = ("size", "spans", "unread")

    def __init__(self, spans: list[Span], *, unread: bool = False) -> None:
        self.spans = spans
        self.unread = unread
        self.size = spans[-1].end_offset - spans[0].start_offset

    @property
    def start_offset(self) -> int:
        """The first offset."""
        return self.spans[0].start_offset

    @property
    def end_offset(self) -> int:
        """The offset after the last."""
        return self.spans[-1].end_offset

    @property
    def complete_count(self) -> int:
        """How many offsets are done with, or will be once a change is durable."""
        return sum(len(span) for span in self.spans if span.complete)

    @property
    def deadline(self) -> int | None:
        """When the first lock in it runs out."""
        return min(
            (span.deadline for span in self.spans if span.held and span.deadline is not None), default=None
        )

    def within(self, start_offset: int, end_offset: int) -> list[Span]:
        """Return the spans in a range, cut at its edges; those with a change under way are left whole."""
        found = []
        spans: list[Span] = []
        for span in self.spans:
            spans.append(span)
            if span.end_offset <= start_offset or span.start_offset >= end_offset:
                continue
            if span.wanted is None and span.start_offset < start_offset:
                span = span.split(start_offset)
                spans.append(span)
            if span.wanted is None and span.end_offset > end_offset:
                spans.append(span.split(end_offset))
            found.append(span)
        self.spans = spans
        return found

    def divide(self, edges: Iterable[int]) -> None:
        """Cut spans at offsets that come in order; those with a change under way are left whole."""
        spans: list[Span] = []
        waiting = iter(edges)
        edge = next(waiting, None)
        for span in self.spans:
            spans.append(span)
            while edge is not None and edge < span.end_offset:
                if span.wanted is None and edge > span.start_offset:
                    span = span.split(edge)
                    spans.append(span)
                edge = next(waiting, None)
        self.spans = spans

    def join(self) -> None:
        """Make neighbours that are alike one span again."""
        joined = [self.spans[0]]
        for span in self.spans[1:]:
            if span.like(joined[-1]):
                joined[-1].end_offset = span.end_offset
            else:
                joined.append(span)
        self.spans = joined

    def drop_below(self, offset: int) -> None:
        """Forget what is below `offset`, which lies inside."""
        self.spans = [span for span in self.spans if span.end_offset > offset]
        first = self.spans[0]
        first.start_offset = max(first.start_offset, offset)


def unread(start_offset: int, end_offset: int) -> list[Flight]:
    """Return the flight of a range that nobody has read; none when the range is empty."""
    if start_offset >= end_offset:
        return []
    return [Flight([Span(start_offset, end_offset, Delivery.AVAILABLE, 0)], unread=True)]
