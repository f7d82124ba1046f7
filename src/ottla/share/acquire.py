"""Acquiring: which of the records that a fetch read are handed to the member that asked.

A1  A record is handed out when it is available, or new beyond the end of the window; never when it is held.
A2  Without a record limit, whole flights and whole record batches are handed out, so the wish may be exceeded by less
    than one of them. With a record limit it never is.
A3  A record tried half as often as allowed is handed out in smaller and smaller company, and for the last time alone,
    so that one bad record does not take its neighbours with it.
A4  Records of aborted transactions are done with as soon as they are seen.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from ottla.share.span import Delivery, Flight, Span, unread
from ottla.share.window import Window

_TRIES_MIN = 2  # A record is handed out freely for at least as many times.


class BatchFacts(NamedTuple):
    """One record batch as a fetch read it; `aborts` for a control batch that ends a transaction by aborting it."""

    base_offset: int
    last_offset: int
    producer_id: int = -1
    transactional: bool = False
    aborts: bool = False


class Fetched(NamedTuple):
    """What a fetch at `fetch_offset` read; `aborted` transactions, under read_committed: producer id, first offset."""

    fetch_offset: int
    batches: Sequence[BatchFacts]
    aborted: Sequence[tuple[int, int]] = ()


class Wish(NamedTuple):
    """What a member asks for: at most so many records, in pieces of about `batch_size`."""

    member_id: str
    records_max: int
    batch_size: int
    record_limit: bool = False


class Acquired(NamedTuple):
    """Records handed out together, with the count of deliveries, this one included."""

    start_offset: int
    end_offset: int
    delivery_count: int


@dataclass(slots=True)
class Acquisition:
    """One member's fetch meeting the window."""

    window: Window
    wish: Wish
    fetched: Fetched
    locks_max: int
    count_max: int
    deadline: int

    def run(self) -> list[Acquired]:
        """Hand out what can be, and return it in order."""
        window, batches = self.window, self.fetched.batches
        if not batches or batches[-1].last_offset < window.start_offset:
            return []
        if self.fetched.fetch_offset > window.end_offset:
            return []  # Nobody knows what is between the window and these records.
        end_offset = batches[-1].last_offset + 1
        room = min(self.wish.records_max, self.locks_max - len(window))
        if room <= 0:
            # The window is full: nothing new, but what came back may be handed out again.
            room = min(self.wish.records_max, window.end_offset - self.fetched.fetch_offset)
            end_offset = min(end_offset, window.end_offset)
        if room <= 0:
            return []
        window.pass_over(self.fetched.fetch_offset, batches[0].base_offset)
        found = self._acquire(max(batches[0].base_offset, window.start_offset), end_offset, room)
        return self._without_aborted(found)

    def _acquire(self, start_offset: int, end_offset: int, room: int) -> list[Acquired]:
        found: list[Acquired] = []
        taken = 0
        for flight in self.window.over(start_offset, end_offset):
            if taken >= room:
                break
            if flight.unread:
                low, high = max(start_offset, flight.start_offset), min(end_offset, flight.end_offset)
                pieces = self._read(flight, low, high, room - taken)
            else:
                wary = self._is_wary(flight, start_offset, end_offset)
                if wary and taken:
                    return found
                pieces = self._again(flight, start_offset, end_offset, room - taken)
                if wary and pieces:
                    return found + pieces
            found += pieces
            taken += _total(pieces)
        start_offset = max(start_offset, self.window.end_offset)
        if taken < room and start_offset < end_offset:
            pieces, flights = self._new(start_offset, end_offset, room - taken)
            for flight in flights:
                self.window.append(flight)
            found += pieces
        return found

    @property
    def _wary_count(self) -> int:
        return max(_TRIES_MIN, (self.count_max + 1) // 2)

    def _is_wary(self, flight: Flight, start_offset: int, end_offset: int) -> bool:
        return any(
            span.count >= self._wary_count
            for span in flight.spans
            if span.state is Delivery.AVAILABLE
            and span.end_offset > start_offset
            and span.start_offset < end_offset
        )

    def _again(self, flight: Flight, start_offset: int, end_offset: int, room: int) -> list[Acquired]:
        """Hand out what is available in a flight that was handed out before."""
        found: list[Acquired] = []
        taken = 0
        most: int | None = None
        for span in flight.within(start_offset, end_offset):
            if span.state is not Delivery.AVAILABLE:
                continue
            last_try = self.count_max > _TRIES_MIN and span.count == self.count_max - 1
            if last_try and taken:
                break
            if span.count >= self._wary_count and most is None:
                most = max(1, flight.size >> (span.count - self._wary_count + 1))
            allowed = 1 if last_try else len(span)
            if self.wish.record_limit:
                allowed = min(allowed, room - taken)
            if most is not None and taken < most:
                allowed = min(allowed, most - taken)
            full = allowed < len(span) or last_try
            part = flight.within(span.start_offset, span.start_offset + allowed)[0]
            part.hold(self.wish.member_id, self.deadline)
            taken += allowed
            _add(found, Acquired(part.start_offset, part.end_offset, part.count))
            if full or taken == most or (self.wish.record_limit and taken == room):
                break
        flight.join()
        return found

    def _read(self, flight: Flight, start_offset: int, end_offset: int, room: int) -> list[Acquired]:
        """Hand out what is in a flight that nobody has read."""
        pieces, flights = self._new(start_offset, end_offset, room)
        before = unread(flight.start_offset, start_offset)
        after = unread(flights[-1].end_offset, flight.end_offset)
        self.window.replace(flight, [*before, *flights, *after])
        return pieces

    def _new(self, start_offset: int, end_offset: int, room: int) -> tuple[list[Acquired], list[Flight]]:
        """Make flights of records that were never handed out."""
        if room < end_offset - start_offset:
            end_offset = min(end_offset, self._batch_end(start_offset + room - 1))
        if self.wish.record_limit:
            held_end = min(end_offset, start_offset + room)
            spans = [self._fresh(start_offset, held_end)]
            if held_end < end_offset:
                spans.append(Span(held_end, end_offset, Delivery.AVAILABLE, 0))
                self.window.freed()
            return [Acquired(start_offset, held_end, 1)], [Flight(spans)]
        cuts = [start_offset, *self._cuts(start_offset, end_offset), end_offset]
        ranges = list(pairwise(cuts))
        pieces = [Acquired(low, high, 1) for low, high in ranges]
        return pieces, [Flight([self._fresh(low, high)]) for low, high in ranges]

    def _fresh(self, start_offset: int, end_offset: int) -> Span:
        return Span(start_offset, end_offset, Delivery.ACQUIRED, 1, self.wish.member_id, self.deadline)

    def _cuts(self, start_offset: int, end_offset: int) -> Iterable[int]:
        """Where record batches begin that are far enough apart for pieces of the size that was asked for."""
        size = max(1, self.wish.batch_size)
        if end_offset - start_offset <= size:
            return
        for batch in self.fetched.batches:
            if batch.base_offset >= end_offset:
                return
            if batch.base_offset - start_offset >= size:
                yield batch.base_offset
                start_offset = batch.base_offset

    def _batch_end(self, offset: int) -> int:
        """Return where the record batch ends that has this offset; right behind it when it is in none."""
        for batch in self.fetched.batches:
            if batch.base_offset <= offset <= batch.last_offset:
                return batch.last_offset + 1
        return offset + 1

    def _without_aborted(self, found: list[Acquired]) -> list[Acquired]:
        aborted = aborted_ranges(self.fetched)
        if not found or not aborted:
            return found
        archived = False
        for low, high in aborted:
            archived |= self.window.archive(low, high, Delivery.ACQUIRED)
            found = [piece for each in found for piece in _outside(each, low, high)]
        if archived:
            self.window.advance()
        return found


def aborted_ranges(fetched: Fetched) -> list[tuple[int, int]]:
    """Return start and end of every batch that an aborted transaction wrote."""
    waiting = sorted(fetched.aborted, key=lambda each: each[1], reverse=True)
    producers: set[int] = set()
    found = []
    for batch in fetched.batches:
        if batch.producer_id < 0:
            continue
        while waiting and waiting[-1][1] <= batch.last_offset:
            producers.add(waiting.pop()[0])
        if batch.aborts:
            producers.discard(batch.producer_id)
        elif batch.transactional and batch.producer_id in producers:
            found.append((batch.base_offset, batch.last_offset + 1))
    return found


def _total(pieces: Iterable[Acquired]) -> int:
    return sum(piece.end_offset - piece.start_offset for piece in pieces)


def _add(found: list[Acquired], piece: Acquired) -> None:
    if found and found[-1].end_offset == piece.start_offset and found[-1][2] == piece.delivery_count:
        found[-1] = found[-1]._replace(end_offset=piece.end_offset)
    else:
        found.append(piece)


def _outside(piece: Acquired, start_offset: int, end_offset: int) -> Iterable[Acquired]:
    if piece.end_offset <= start_offset or piece.start_offset >= end_offset:
        yield piece
        return
    if piece.start_offset < start_offset:
        yield piece._replace(end_offset=start_offset)
    if piece.end_offset > end_offset:
        yield piece._replace(start_offset=end_offset)
