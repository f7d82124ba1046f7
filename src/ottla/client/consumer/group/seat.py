"""A member's seat in a classic group: which generation it is of, and whether it has to join the next.

    UNJOINED --begin()--> PREPARING --joined()--> COMPLETING --synced()--> STABLE
        ^                     |                        |                      |
        +------- reset() -----+------------------------+----------------------+

T1  A seat that was lost is noticed once: answers to what an earlier generation asked change nothing any more.
"""

import enum
from typing import NamedTuple

REASON_MAX = 255


class SeatState(enum.Enum):
    """How far a member is on its way into a generation."""

    UNJOINED = enum.auto()
    PREPARING = enum.auto()
    COMPLETING = enum.auto()
    STABLE = enum.auto()


class Generation(NamedTuple):
    """A generation of a group, seen by one of its members."""

    id: int = -1
    member_id: str = ""
    protocol: str | None = None


NOBODY = Generation()


class Seat:
    """One member's seat."""

    def __init__(self) -> None:
        self.state = SeatState.UNJOINED
        self.generation = NOBODY
        self.must_join = True
        self.must_prepare = True  # give up partitions first, as the protocol asks
        self.reason = ""

    @property
    def is_taken(self) -> bool:
        """Whether heartbeats are expected."""
        return self.state in (SeatState.COMPLETING, SeatState.STABLE)

    @property
    def is_moving(self) -> bool:
        """Whether the member is between two generations."""
        return self.state in (SeatState.PREPARING, SeatState.COMPLETING)

    @property
    def is_lost(self) -> bool:
        """Whether the member is of no generation, so that what it owned may be somebody else's."""
        return self.generation.id == NOBODY.id or not self.generation.member_id

    def ask_for(self, reason: str) -> None:
        """Have the member join the next generation."""
        if not self.must_join:
            self.reason = reason
        self.must_join = True

    def begin(self) -> None:
        """Set out for the next generation."""
        self.state = SeatState.PREPARING

    def named(self, member_id: str) -> None:
        """Take the name that the coordinator gave, to join with."""
        self.generation = Generation(member_id=member_id)
        self.reason = "need to re-join with the given member-id: " + member_id

    def joined(self, generation: Generation) -> None:
        """Be of a generation whose assignment is being worked out."""
        self.state = SeatState.COMPLETING
        self.generation = generation

    def synced(self) -> None:
        """Have an assignment."""
        self.state = SeatState.STABLE
        self.must_join = False
        self.reason = ""

    def reset(self, reason: str, *, keep_name: bool = False) -> None:
        """Lose the seat; the name may still be good for joining again."""
        self.state = SeatState.UNJOINED
        self.generation = Generation(member_id=self.generation.member_id) if keep_name else NOBODY
        self.must_join = self.must_prepare = True
        self.reason = reason[:REASON_MAX]
