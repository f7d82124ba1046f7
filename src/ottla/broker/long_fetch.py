"""A fetch of very many partitions without a session, read some of them in a turn of the loop.

With a session there are no more of them than in the cluster (law F4 of `fetch_session.py`), and after the first fetch
only those that are due.

D1  Limits, order and errors are those of a fetch that is read at once. What grew while others were read is read again
    in the last turn, in which the fetch is answered or parked: no growth is missed.
"""

from collections.abc import Generator

from ottla.broker.fetch_session import Key, Wanted
from ottla.broker.fetching import Fetch, Part
from ottla.channel.connection import Connection
from ottla.wire.messages.fetch import FetchRequest

PARTITIONS_A_TURN = 500
_NAMED_A_TURN = 5_000


class LongFetch(Fetch):
    """One fetch request, read in slices."""

    __slots__ = ()

    def read_in_slices(self, connection: Connection) -> Generator[None, None, list[tuple[Wanted, Part]]]:
        """Read everything within the limits, and note whether waiting could bring more."""
        left = self._limit(connection)
        parts: list[tuple[Wanted, Part]] = []
        self.bytes_read = 0
        for wanted in self._wanted:
            part, wanted.partition = self._read(wanted, left)
            left = self._count(part, left)
            parts.append((wanted, part))
            if not len(parts) % PARTITIONS_A_TURN:
                yield
        for wanted, part in parts:
            if wanted.partition is not None and self._has_changed(wanted, part):
                self._fill(part, wanted, wanted.partition, left)
                left = self._count(part, left)
        return parts

    def _count(self, part: Part, left: int) -> int:
        size = len(part.records or b"")
        self.bytes_read += size
        if part.error_code or part.diverging_epoch is not None:
            self.settled = True
        return max(0, left - size)

    @staticmethod
    def _has_changed(wanted: Wanted, part: Part) -> bool:
        """Whether a partition of which nothing was read would be answered otherwise by now."""
        partition = wanted.partition
        if partition is None or part.records or part.error_code or part.diverging_epoch is not None:
            return False
        return (
            partition.high_watermark != part.high_watermark
            or partition.log.end_offset > wanted.offset
            or partition.refusal is not None
            or wanted.leader_epoch not in (-1, partition.leader_epoch)
        )


def all_wanted_in_slices(request: FetchRequest, by_id: bool) -> Generator[None, None, list[Wanted]]:
    """What a fetch without a session wants; a partition that is named several times as it was named last."""
    found: dict[Key, Wanted] = {}
    named = 0
    for topic in request.topics:
        name = topic.topic_id if by_id else topic.topic
        for part in topic.partitions:
            key = name, part.partition
            wanted = found[key] = Wanted(key)
            wanted.update(part)
            named += 1
            if not named % _NAMED_A_TURN:
                yield
    return list(found.values())
