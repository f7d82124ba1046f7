"""The tail: where the batches appended last stand, so that whoever reads at the end of the log needs no index.

Most reads are of what was just written, and of those most wait for it: the newest batch, unless it is large, is kept
in memory. The list is cut to half its length now and then, whatever the rate of
appends, so a look-up is a bisection over two thousand numbers at most.
"""

from bisect import bisect_right

_BATCHES_MAX = 2048
NEWEST_BYTES_MAX = 4 << 10

NOTHING = (0, 0)


class Tail:
    """End offsets and positions of the newest batches of the active segment, all of them from `start_offset` on.

    `newest` is the last of them and begins at `newest_offset`, which is -1 when it is not kept.
    """

    __slots__ = ("ends", "newest", "newest_offset", "positions", "start_offset")

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.ends: list[int] = []
        self.positions: list[int] = []
        self.newest = b""
        self.newest_offset = -1

    def trim(self) -> None:
        """Forget the older half once there are many."""
        if len(self.ends) > _BATCHES_MAX:
            half = len(self.ends) // 2
            self.start_offset = self.ends[half - 1]
            del self.ends[:half]
            del self.positions[:half]

    def extent(
        self, offset: int, end_offset: int, size_bytes_max: int, file_size: int, at_least_one: bool
    ) -> tuple[int, int]:
        """Return begin and end position of the whole batches from `offset` on that end at `end_offset` or before."""
        ends, positions = self.ends, self.positions
        first = bisect_right(ends, offset)
        beyond = bisect_right(ends, end_offset)
        if first >= beyond:
            return NOTHING
        begin = positions[first]
        stop = positions[beyond] if beyond < len(ends) else file_size
        if stop - begin > size_bytes_max:
            fitting = bisect_right(positions, begin + size_bytes_max, first, beyond) - 1
            if fitting > first:
                stop = positions[fitting]
            elif not at_least_one:
                return NOTHING
            elif first + 1 < len(ends):
                stop = positions[first + 1]
        return begin, stop
