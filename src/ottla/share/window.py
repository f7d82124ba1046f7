"""The window of a share partition: every offset from the first that is not done with to the last ever acquired.

W1  The flights are in order and cover the window without a hole, `start_offset` to `end_offset`.
W2  The start moves up only, and never beyond an offset that is not durably done with, unless the log itself no longer
    has it.
W3  What is below the start is forgotten: a word about it is neither an error nor of any effect.
"""

from bisect import bisect_right
from collections.abc import Iterable
from operator import attrgetter

from ottla.share.span import FINAL, Delivery, Flight, Span, unread
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.read_share_group_state import ReadShareGroupStateResponse

StateBatch = ReadShareGroupStateResponse.ReadStateResult.PartitionResult.StateBatch

_start = attrgetter("start_offset")
_KNOWN = frozenset(Delivery)


class Window:
    """The records in flight of one group in one partition."""

    __slots__ = ("_searching", "complete_count", "end_offset", "flights", "start_offset")

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.flights: list[Flight] = []
        # How many offsets are done with, or will be once a change is durable.
        self.complete_count = 0
        # Whether something below the end may be available; spares the search while all is in hands.
        self._searching = False

    def __len__(self) -> int:
        return self.end_offset - self.start_offset

    def next_offset(self) -> int:
        """Return the first offset that could be handed out: one below the end that is available, or the end."""
        if self._searching:
            for flight in self.flights:
                for span in flight.spans:
                    if span.state is Delivery.AVAILABLE:
                        return span.start_offset
            self._searching = False
        return self.end_offset

    def freed(self) -> None:
        """Note that something below the end became available."""
        self._searching = True

    def recount(self, span: Span, was_complete: bool) -> None:
        """Note that a span may have become complete, or no longer be; one below the start does not count."""
        if span.complete is not was_complete and span.end_offset > self.start_offset:
            self.complete_count += -len(span) if was_complete else len(span)

    def over(self, start_offset: int, end_offset: int) -> list[Flight]:
        """Return the flights that have an offset in a range."""
        flights = self.flights
        found = []
        for at in range(max(0, bisect_right(flights, start_offset, key=_start) - 1), len(flights)):
            flight = flights[at]
            if flight.start_offset >= end_offset:
                break
            if flight.end_offset > start_offset:
                found.append(flight)
        return found

    def was_handed_out(self, offset: int) -> bool:
        """Whether an offset of the window belongs to records that a member was handed, now or earlier."""
        for flight in self.over(offset, offset + 1):
            return not flight.unread and not any(
                span.empty and span.start_offset <= offset < span.end_offset for span in flight.spans
            )
        return False

    def append(self, flight: Flight) -> None:
        """Add a flight at the end."""
        assert flight.start_offset == self.end_offset
        self.flights.append(flight)
        self.end_offset = flight.end_offset
        self.complete_count += flight.complete_count

    def replace(self, old: Flight, new: Iterable[Flight]) -> None:
        """Put flights in the place of one that covered the same offsets."""
        at = self.flights.index(old)
        self.flights[at : at + 1] = new

    def archive(self, start_offset: int, end_offset: int, state: Delivery) -> bool:
        """Be done with what is in `state` in a range, and say whether there was any."""
        found = False
        for flight in self.over(start_offset, end_offset):
            if flight.unread and state is Delivery.AVAILABLE:
                flight = self._isolate(flight, start_offset, end_offset)
            for span in flight.within(start_offset, end_offset):
                if span.state is state and span.wanted is None:
                    span.archive()
                    self.complete_count += len(span)
                    found = True
            flight.join()
        return found

    def pass_over(self, start_offset: int, end_offset: int) -> None:
        """Note that the log has no record in a range: it was compacted away, or never was."""
        if start_offset >= end_offset:
            return
        self.archive(start_offset, end_offset, Delivery.AVAILABLE)
        if start_offset <= self.end_offset < end_offset:
            self.append(Flight([Span(self.end_offset, end_offset, Delivery.ARCHIVED, 0)]))
            self.advance()

    def _isolate(self, flight: Flight, start_offset: int, end_offset: int) -> Flight:
        """Make the part of an unread flight that is in a range one of its own."""
        low, high = max(start_offset, flight.start_offset), min(end_offset, flight.end_offset)
        middle = Flight([Span(low, high, Delivery.AVAILABLE, 0)])
        parts = [*unread(flight.start_offset, low), middle, *unread(high, flight.end_offset)]
        self.replace(flight, parts)
        return middle

    def advance(self) -> bool:
        """Move the start over all that is done with, and say whether it moved."""
        offset = self.start_offset
        for flight in self.flights:
            for span in flight.spans:
                if span.state not in FINAL:
                    return self.trim(offset) is not None
                offset = span.end_offset
        return self.trim(offset) is not None

    def trim(self, offset: int) -> list[Flight] | None:
        """Forget everything below `offset`, and return the flights that are gone; None when that is nothing new."""
        if offset <= self.start_offset:
            return None
        self.start_offset = offset
        self.end_offset = max(self.end_offset, offset)
        kept = 0
        while kept < len(self.flights) and self.flights[kept].end_offset <= offset:
            kept += 1
        gone, self.flights = self.flights[:kept], self.flights[kept:]
        self.complete_count -= sum(flight.complete_count for flight in gone)
        if self.flights and self.flights[0].start_offset < offset:
            first = self.flights[0]
            self.complete_count -= first.complete_count
            first.drop_below(offset)
            self.complete_count += first.complete_count
        return gone


def restored(start_offset: int, batches: Iterable[StateBatch]) -> Window:
    """Return the window that the durable state describes; what it says nothing of has to be read anew.

    UNKNOWN_SERVER_ERROR when that state contradicts itself.
    """
    window = Window(start_offset)
    for batch in sorted(batches, key=lambda each: each.first_offset):
        if (
            batch.first_offset < window.end_offset
            or batch.last_offset < batch.first_offset
            or batch.delivery_state not in _KNOWN
        ):
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "the durable state contradicts itself")
        for gap in unread(window.end_offset, batch.first_offset):
            window.append(gap)
        state = Delivery(batch.delivery_state)
        if state is Delivery.ACQUIRED:
            state = Delivery.AVAILABLE  # Whoever held it held it with another leader.
        span = Span(batch.first_offset, batch.last_offset + 1, state, batch.delivery_count)
        window.append(Flight([span]))
    window.freed()
    window.advance()
    return window
