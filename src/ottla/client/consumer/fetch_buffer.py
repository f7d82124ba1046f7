"""The completed fetches of a consumer, in the order in which they arrived.

B1  A fetch from before a seek or a new assignment of its partition is discarded unopened.
B2  The fetches of a paused partition stay in order, and do not delay other partitions.
B3  An error is raised only after all records before it were returned.
"""

from collections import deque
from collections.abc import Callable

from ottla.client.consumer.assigned_partition import AssignedPartition
from ottla.client.consumer.completed_fetch import CompletedFetch, Deserialize
from ottla.client.errors import ClientError
from ottla.client.record import Record

NEVER = float("inf")


class FetchBuffer:
    """The completed fetches of one consumer."""

    def __init__(self, is_fetchable: Callable[[AssignedPartition], bool], decode: Deserialize | None) -> None:
        self._is_fetchable = is_fetchable
        self._decode = decode
        self._fetches: deque[CompletedFetch] = deque()
        self.bytes_of: dict[int, int] = {}  # buffered bytes by broker, without paused partitions
        self.records = 0  # returned so far

    def __len__(self) -> int:
        return len(self._fetches)

    @property
    def size_bytes(self) -> int:
        """The buffered bytes."""
        return sum(fetch.size for fetch in self._fetches)

    def put(self, fetch: CompletedFetch) -> None:
        """Add a completed fetch."""
        self._fetches.append(fetch)
        self._count(fetch)

    def purge(self) -> None:
        """Discard all fetches from before a seek or a new assignment."""
        for fetch in self._fetches:
            if not fetch.is_current:
                self._uncount(fetch)
        self._fetches = deque(fetch for fetch in self._fetches if fetch.is_current)

    def clear(self) -> None:
        """Discard everything."""
        self._fetches.clear()
        self.bytes_of.clear()

    def take(self, count: int) -> tuple[list[Record], bool]:
        """Return up to `count` records, and whether a position moved. Raises the error of the first fetch."""
        found: list[Record] = []
        moved = False
        parked: list[CompletedFetch] = []
        try:
            while count > len(found) and (fetch := self._next(parked)) is not None:
                try:
                    records = fetch.take(count - len(found), self._decode)
                except ClientError:
                    # The partition is not fetched again before the application seeks past the error.
                    fetch.assigned.retry_at = NEVER
                    if found or moved:
                        break
                    raise
                moved = True
                found = found + records if found else records
                if fetch.is_empty:
                    self._uncount(self._fetches.popleft())
        finally:
            self._fetches.extendleft(reversed(parked))
        self.records += len(found)
        return found, moved

    def take_unopened(self, bytes_max: int) -> list[CompletedFetch]:
        """Return unopened fetches of up to `bytes_max` bytes, at least one. Positions advance."""
        found: list[CompletedFetch] = []
        parked: list[CompletedFetch] = []
        size = 0
        while (fetch := self._next(parked)) is not None and (not found or size + fetch.size <= bytes_max):
            self._uncount(self._fetches.popleft())
            position = fetch.assigned.position
            if fetch.unopened is None or position is None:
                # Some of its records were returned as objects. The rest is fetched again.
                fetch.assigned.refetch_from(-1 if position is None else position.offset)
                continue
            size += fetch.size
            fetch.unopened = fetch.unopened._replace(start_offset=position.offset)
            fetch.assigned.advance(fetch.end_offset, fetch.epoch)
            found.append(fetch)
        self._fetches.extendleft(reversed(parked))
        return found

    def give_back(self, fetch: CompletedFetch, next_offset: int) -> None:
        """Put a fetch back, to return its records again from an offset on."""
        fetched = fetch.unopened
        if fetched is not None and fetch.is_current and next_offset < fetch.end_offset:
            fetch.unopened = fetched._replace(start_offset=next_offset)
            fetch.assigned.advance(next_offset, fetch.epoch)
            self._fetches.appendleft(fetch)
            self._count(fetch)

    def _next(self, parked: list[CompletedFetch]) -> CompletedFetch | None:
        """Return the next fetch, and move those of paused partitions to `parked`."""
        fetches = self._fetches
        while fetches:
            fetch = fetches[0]
            if not fetch.is_current:
                self._uncount(fetches.popleft())
            elif self._is_fetchable(fetch.assigned):
                return fetch
            else:
                # It may stay for long, and must not prevent fetches of other partitions from its broker.
                fetch.release_response()
                self._uncount(fetch)
                parked.append(fetches.popleft())
        return None

    def _count(self, fetch: CompletedFetch) -> None:
        fetch.is_counted = True
        self.bytes_of[fetch.node] = self.bytes_of.get(fetch.node, 0) + fetch.size

    def _uncount(self, fetch: CompletedFetch) -> None:
        if not fetch.is_counted:
            return
        fetch.is_counted = False
        left = self.bytes_of.get(fetch.node, 0) - fetch.size
        if left > 0:
            self.bytes_of[fetch.node] = left
        else:
            self.bytes_of.pop(fetch.node, None)
