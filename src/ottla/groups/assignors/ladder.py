"""Members in the order of their loads, and two rungs among them: the least and the most loaded.

    load |                [##<-   ]##        the low rung grows to the right as it is filled up,
         |              ##[#######]##        the high rung to the left as it is worn down;
         | [...->    ]##[ high ...]##        whoever has nothing to give is excluded, at the far right
         | [ low ....]##[#######]##
         +---------------------------> members

The loads are the caller's: who takes a partition from the richest, or gives one to the poorest, says so there.
"""


class Ladder:
    """Names the next member to give to, and the next to take from."""

    __slots__ = (
        "_high_end", "_high_load", "_high_next", "_high_start", "_loads", "_low_end", "_low_load", "_low_next",
        "_order", "spread",
    )  # fmt: skip

    def __init__(self, loads: list[int], members: list[int]) -> None:
        self._loads = loads
        order = self._order = sorted(members, key=lambda member: (loads[member], member))
        least, most = loads[order[0]], loads[order[-1]]
        # How far the members are apart at first.
        self.spread = most - least
        self._low_load = least - 1
        self._low_end = self._low_next = 0
        self._high_load = most + 1
        self._high_start = self._high_end = len(order)
        self._high_next = len(order) - 1

    @property
    def is_level(self) -> bool:
        """Whether moving a partition from the high rung to the low one would change nothing for the better."""
        return self._high_load - self._low_load <= 1

    def poorest(self) -> int:
        """Return the next of the least loaded, who is then taken to have one partition more."""
        if self._low_next >= self._low_end:
            self._low_load += 1
            while (
                self._low_end < len(self._order) and self._loads[self._order[self._low_end]] == self._low_load
            ):
                self._low_end += 1
            self._low_next = 0
        found = self._order[self._low_next]
        self._low_next += 1
        return found

    def richest(self) -> int | None:
        """Return the next of the most loaded, who is then taken to have one partition less; None for nobody left."""
        if self._high_next < self._high_start:
            if self._high_end <= self._high_start and self._high_start > 0:
                # Everyone on the rung was excluded: it starts again with whoever comes next.
                self._high_load = self._loads[self._order[self._high_start - 1]]
            else:
                self._high_load -= 1
            while self._high_start > 0 and self._loads[self._order[self._high_start - 1]] == self._high_load:
                self._high_start -= 1
            self._high_next = self._high_end - 1
        if self._high_next < 0:
            return None
        found = self._order[self._high_next]
        self._high_next -= 1
        return found

    def exclude(self) -> None:
        """Take the member that `richest` named last off the rung: it has nothing to give."""
        order, at, last = self._order, self._high_next + 1, self._high_end - 1
        order[at], order[last] = order[last], order[at]
        self._high_end -= 1
