"""Parcels that wait to be handed out, in the order in which they came.

B1  What belongs to an earlier era of its partition is thrown away, unopened.
B2  A paused partition's parcels keep their places in line among themselves, and hold up nobody else.
B3  An error comes out only when there is nothing else to hand out before it.
"""

from collections import deque
from collections.abc import Callable

from ottla.client.consumer.parcel import Decode, Parcel
from ottla.client.consumer.reading import Reading
from ottla.client.errors import ClientError
from ottla.client.record import Record

NEVER = float("inf")


class Shelf:
    """The parcels of one consumer."""

    def __init__(self, is_fetchable: Callable[[Reading], bool], decode: Decode | None) -> None:
        self._is_fetchable = is_fetchable
        self._decode = decode
        self._parcels: deque[Parcel] = deque()
        self.bytes_of: dict[int, int] = {}  # held of what each broker sent, but for paused partitions
        self.records = 0  # handed out so far

    def __len__(self) -> int:
        return len(self._parcels)

    @property
    def size_bytes(self) -> int:
        """Bytes that wait."""
        return sum(parcel.size for parcel in self._parcels)

    def put(self, parcel: Parcel) -> None:
        """Put a parcel in line."""
        self._parcels.append(parcel)
        self._count(parcel)

    def purge(self) -> None:
        """Throw away what is of an earlier era, wherever in line it is."""
        for parcel in self._parcels:
            if not parcel.is_current:
                self._discount(parcel)
        self._parcels = deque(parcel for parcel in self._parcels if parcel.is_current)

    def clear(self) -> None:
        """Throw everything away."""
        self._parcels.clear()
        self.bytes_of.clear()

    def take(self, count: int) -> tuple[list[Record], bool]:
        """Hand out up to `count` records; also say whether a position moved. Raises the first parcel's error."""
        found: list[Record] = []
        moved = False
        parked: list[Parcel] = []
        try:
            while count > len(found) and (parcel := self._next(parked)) is not None:
                try:
                    records = parcel.take(count - len(found), self._decode)
                except ClientError:
                    # Not fetched again before somebody has sought past what is wrong.
                    parcel.reading.retry_at = NEVER
                    if found or moved:
                        break
                    raise
                moved = True
                found = found + records if found else records
                if parcel.is_empty:
                    self._discount(self._parcels.popleft())
        finally:
            self._parcels.extendleft(reversed(parked))
        self.records += len(found)
        return found, moved

    def take_raw(self, bytes_max: int) -> list[Parcel]:
        """Hand out unopened parcels of up to `bytes_max` together, one at least; positions move behind them."""
        found: list[Parcel] = []
        parked: list[Parcel] = []
        size = 0
        while (parcel := self._next(parked)) is not None and (not found or size + parcel.size <= bytes_max):
            self._discount(self._parcels.popleft())
            position = parcel.reading.position
            if parcel.chunk is None or position is None:
                # Some of its records were handed out as objects; the rest is fetched again.
                parcel.reading.begin_era(-1 if position is None else position.offset)
                continue
            size += parcel.size
            parcel.chunk = parcel.chunk._replace(start_offset=position.offset)
            parcel.reading.advance(parcel.end_offset, parcel.epoch)
            found.append(parcel)
        self._parcels.extendleft(reversed(parked))
        return found

    def give_back(self, parcel: Parcel, next_offset: int) -> None:
        """Take back what could not be read from an offset on, to hand it out again from there."""
        chunk = parcel.chunk
        if chunk is not None and parcel.is_current and next_offset < parcel.end_offset:
            parcel.chunk = chunk._replace(start_offset=next_offset)
            parcel.reading.advance(next_offset, parcel.epoch)
            self._parcels.appendleft(parcel)
            self._count(parcel)

    def _next(self, parked: list[Parcel]) -> Parcel | None:
        """Return the parcel to open next, and put those aside whose turn it is not."""
        parcels = self._parcels
        while parcels:
            parcel = parcels[0]
            if not parcel.is_current:
                self._discount(parcels.popleft())
            elif self._is_fetchable(parcel.reading):
                return parcel
            else:
                # It may lie here for long, and must not keep its broker from being asked for other partitions.
                parcel.detach()
                self._discount(parcel)
                parked.append(parcels.popleft())
        return None

    def _count(self, parcel: Parcel) -> None:
        parcel.counted = True
        self.bytes_of[parcel.node] = self.bytes_of.get(parcel.node, 0) + parcel.size

    def _discount(self, parcel: Parcel) -> None:
        if not parcel.counted:
            return
        parcel.counted = False
        left = self.bytes_of.get(parcel.node, 0) - parcel.size
        if left > 0:
            self.bytes_of[parcel.node] = left
        else:
            self.bytes_of.pop(parcel.node, None)
