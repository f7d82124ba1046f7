"""The state of a member of a consumer group (KIP-848) or share group (KIP-932), without clock and connection.

The coordinator assigns partitions in heartbeat responses. The member reconciles them with the ones it has, and
acknowledges that with its next heartbeat. `response` stands for `handle_response()`.

    UNSUBSCRIBED --join()--> JOINING --response-> RECONCILING --reconciled()--> ACKNOWLEDGING
         ^                     ^                    ^     ^                          |
         |                     |                    |     +--response or unfinished--+
         |                     |                 response                          sent()
         |                     |                    |                                |
      sent() <-- LEAVING       +--released()-- FENCED, STALE <-----               STABLE
                    ^                              ^ fenced(): from any state of a member
                    +--leave() and expire()--------+

E1  The member id never changes. The epoch is 0 to join, -1 to leave, -2 to leave temporarily (static members).
E2  Other fields of a request are sent when they change, and all of them after a failure, because the coordinator may
    not have received them.
E3  An assignment counts as acknowledged once the heartbeat after it was sent.
"""

import enum
from collections.abc import Mapping
from typing import NamedTuple

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2


class EpochMemberState(enum.Enum):
    """The state of a member."""

    UNSUBSCRIBED = enum.auto()
    JOINING = enum.auto()
    RECONCILING = enum.auto()
    ACKNOWLEDGING = enum.auto()
    STABLE = enum.auto()
    FENCED = enum.auto()
    LEAVING = enum.auto()
    STALE = enum.auto()
    FATAL = enum.auto()


Partitions = Mapping[bytes, frozenset[int]]

_OUTSIDE = frozenset(
    {EpochMemberState.UNSUBSCRIBED, EpochMemberState.FENCED, EpochMemberState.STALE, EpochMemberState.FATAL}
)
_URGENT = frozenset({EpochMemberState.JOINING, EpochMemberState.ACKNOWLEDGING, EpochMemberState.LEAVING})
_TAKES_ASSIGNMENTS = frozenset(
    {
        EpochMemberState.JOINING,
        EpochMemberState.RECONCILING,
        EpochMemberState.ACKNOWLEDGING,
        EpochMemberState.STABLE,
    }
)


class LocalAssignment(NamedTuple):
    """Partitions by topic id. The number makes a repeated assignment of the same partitions a new one."""

    number: int
    partitions: Partitions


NO_ASSIGNMENT = LocalAssignment(-1, {})


class EpochMembership:
    """One member's state."""

    def __init__(self, member_id: str, *, static: bool = False) -> None:
        self.member_id = member_id
        self.state = EpochMemberState.UNSUBSCRIBED
        self.epoch = JOIN_EPOCH
        self.target = NO_ASSIGNMENT
        self.current = NO_ASSIGNMENT
        self._static = static
        self._expired = False

    # State

    @property
    def is_outside(self) -> bool:
        """Whether no heartbeats are sent."""
        return self.state in _OUTSIDE

    @property
    def is_urgent(self) -> bool:
        """Whether a heartbeat has to be sent now."""
        return self.state in _URGENT

    @property
    def must_release(self) -> bool:
        """Whether the assignment is lost and has to be released."""
        return self.state in (EpochMemberState.FENCED, EpochMemberState.STALE, EpochMemberState.FATAL)

    @property
    def is_fatal(self) -> bool:
        """Whether it has failed permanently."""
        return self.state is EpochMemberState.FATAL

    @property
    def must_reconcile(self) -> bool:
        """Whether the target differs from the current assignment."""
        return self.state is EpochMemberState.RECONCILING and self.current != self.target

    @property
    def is_member(self) -> bool:
        """Whether the coordinator knows this member."""
        return self.epoch > 0

    # The application

    def join(self) -> None:
        """Join the group."""
        if self.state is EpochMemberState.UNSUBSCRIBED:
            self._join()

    def released(self) -> None:
        """Handle the release of a lost assignment. Join again, unless the error is fatal."""
        self.current = NO_ASSIGNMENT
        if self.state in (EpochMemberState.FENCED, EpochMemberState.STALE):
            self._join()

    def _join(self) -> None:
        self.state = EpochMemberState.JOINING
        self.epoch = JOIN_EPOCH
        self.target = NO_ASSIGNMENT
        self._expired = False

    def reconciled(self, local_assignment: LocalAssignment) -> None:
        """Handle the end of a reconciliation. Partitions of unknown topics may be missing in it."""
        if self.state is EpochMemberState.RECONCILING:
            self.current = local_assignment
            self.state = EpochMemberState.ACKNOWLEDGING

    def leave(self, *, force: bool | None = None) -> bool:
        """Leave the group. Return whether a heartbeat has to say so.

        A static member leaves temporarily unless `force` is true. With `force=False` no heartbeat is sent.
        """
        outside = self.is_outside
        self.current = self.target = NO_ASSIGNMENT
        if self.state is not EpochMemberState.FATAL:
            self.state = EpochMemberState.UNSUBSCRIBED if outside else EpochMemberState.LEAVING
        if outside:
            return False
        self.epoch = STATIC_LEAVE_EPOCH if self._static and force is not True else LEAVE_EPOCH
        if force is False and not self._static:
            self.state, self.epoch = EpochMemberState.UNSUBSCRIBED, JOIN_EPOCH
            return False
        return True

    def expire(self) -> bool:
        """Leave because the application does not poll. Return whether a heartbeat has to say so."""
        if self.is_outside or self.state is EpochMemberState.LEAVING:
            return False
        self.state = EpochMemberState.LEAVING
        self.epoch = STATIC_LEAVE_EPOCH if self._static else LEAVE_EPOCH
        self._expired = True
        return True

    # The coordinator

    def sent(self) -> None:
        """Handle a sent heartbeat."""
        if self.state is EpochMemberState.ACKNOWLEDGING:
            done = self.current == self.target
            self.state = EpochMemberState.STABLE if done else EpochMemberState.RECONCILING
        elif self.state is EpochMemberState.LEAVING:
            self.state = EpochMemberState.STALE if self._expired else EpochMemberState.UNSUBSCRIBED
            self.epoch = JOIN_EPOCH

    def handle_response(self, epoch: int, assignment: Partitions | None) -> None:
        """Handle a heartbeat response, perhaps with an assignment."""
        if self.is_outside or self.state is EpochMemberState.LEAVING or epoch < 0:
            return
        self.epoch = epoch
        if assignment is None and self.state is EpochMemberState.JOINING:
            self.state = EpochMemberState.STABLE
        if assignment is None or self.state not in _TAKES_ASSIGNMENTS:
            return
        if self.target.number < 0 or assignment != self.target.partitions:
            self.target = LocalAssignment(self.target.number + 1, dict(assignment))
        if self.current != self.target:
            self.state = EpochMemberState.RECONCILING
        elif self.state in (EpochMemberState.RECONCILING, EpochMemberState.JOINING):
            self.state = EpochMemberState.STABLE

    def fenced(self) -> None:
        """Handle that the coordinator does not know this member or its epoch: its partitions may belong to others."""
        if self.state is EpochMemberState.LEAVING:
            self.state = EpochMemberState.UNSUBSCRIBED
        elif not self.is_outside:
            self.state = EpochMemberState.FENCED
        self.epoch = JOIN_EPOCH

    def failed(self) -> None:
        """Handle a fatal error."""
        self.state = EpochMemberState.FATAL
        self.epoch = JOIN_EPOCH
