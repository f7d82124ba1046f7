"""The state of a member of a classic group: its generation, and whether it has to join the next one.

    UNJOINED --begin()--> PREPARING --joined()--> COMPLETING --synced()--> STABLE
        ^                     |                        |                      |
        +------- reset() -----+------------------------+----------------------+

T1  Answers to requests of an earlier generation are ignored, so a lost membership is handled once.
"""

import enum
from typing import NamedTuple

REASON_MAX = 255


class ClassicMemberState(enum.Enum):
    """The progress of a member in joining a generation."""

    UNJOINED = enum.auto()
    PREPARING = enum.auto()
    COMPLETING = enum.auto()
    STABLE = enum.auto()


class Generation(NamedTuple):
    """A generation of a group, seen by one of its members."""

    id: int = -1
    member_id: str = ""
    protocol: str | None = None


NO_GENERATION = Generation()


class ClassicMembership:
    """The state of one member."""

    def __init__(self) -> None:
        self.state = ClassicMemberState.UNJOINED
        self.generation = NO_GENERATION
        self.must_join = True
        self.must_prepare = True  # revoke partitions first, as the protocol requires
        self.reason = ""

    @property
    def is_joined(self) -> bool:
        """Whether the coordinator expects heartbeats."""
        return self.state in (ClassicMemberState.COMPLETING, ClassicMemberState.STABLE)

    @property
    def is_rebalancing(self) -> bool:
        """Whether the member is joining a generation."""
        return self.state in (ClassicMemberState.PREPARING, ClassicMemberState.COMPLETING)

    @property
    def is_lost(self) -> bool:
        """Whether the member has no generation, so that its partitions may belong to others."""
        return self.generation.id == NO_GENERATION.id or not self.generation.member_id

    def request_rejoin(self, reason: str) -> None:
        """Join the next generation with the next poll."""
        if not self.must_join:
            self.reason = reason
        self.must_join = True

    def begin(self) -> None:
        """Begin to join the next generation."""
        self.state = ClassicMemberState.PREPARING

    def set_member_id(self, member_id: str) -> None:
        """Set the member id from the coordinator, to join with."""
        self.generation = Generation(member_id=member_id)
        self.reason = "need to re-join with the given member-id: " + member_id

    def joined(self, generation: Generation) -> None:
        """Enter a generation. Its assignment is not known yet."""
        self.state = ClassicMemberState.COMPLETING
        self.generation = generation

    def synced(self) -> None:
        """Handle the assignment."""
        self.state = ClassicMemberState.STABLE
        self.must_join = False
        self.reason = ""

    def reset(self, reason: str, *, keep_member_id: bool = False) -> None:
        """Lose the membership. The member id may be kept for the next join."""
        self.state = ClassicMemberState.UNJOINED
        self.generation = Generation(member_id=self.generation.member_id) if keep_member_id else NO_GENERATION
        self.must_join = self.must_prepare = True
        self.reason = reason[:REASON_MAX]
