"""Membership by epochs, as a machine without clock or connection: consumer groups (KIP-848) and share groups (KIP-932).

The coordinator assigns; heartbeats carry everything. A member reconciles what it has with what it was assigned, and
says so with its next heartbeat.

    UNSUBSCRIBED --join()--> JOINING --heard()--> RECONCILING --reconciled()--> ACKNOWLEDGING
         ^                     ^                    ^     ^                          |
         |                     |                    |     +--heard() or left over----+
         |                     |                  heard()                          sent()
         |                     |                    |                                |
      sent() <-- LEAVING       +--released()-- FENCED, STALE <-----               STABLE
                    ^                              ^ fenced(): from any state of a member
                    +--leave() and expire()--------+

E1  A member's name is made once and stays. Its epoch is 0 to join, -1 to leave, -2 to leave for a while (static).
E2  What a request says beside name and epoch is said when it is new, and all of it after a failure: whether the
    coordinator has heard it is not known then.
E3  An assignment counts as taken over once a heartbeat that says so was sent.
"""

import enum
from collections.abc import Mapping
from typing import NamedTuple

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
PAUSE_EPOCH = -2


class MemberState(enum.Enum):
    """What a member is about to do."""

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

_OUTSIDE = frozenset({MemberState.UNSUBSCRIBED, MemberState.FENCED, MemberState.STALE, MemberState.FATAL})
_URGENT = frozenset({MemberState.JOINING, MemberState.ACKNOWLEDGING, MemberState.LEAVING})
_TAKES_ASSIGNMENTS = frozenset(
    {MemberState.JOINING, MemberState.RECONCILING, MemberState.ACKNOWLEDGING, MemberState.STABLE}
)


class Share(NamedTuple):
    """Partitions by topic id, numbered so that the same ones assigned again count as new."""

    number: int
    partitions: Partitions


NO_SHARE = Share(-1, {})


class Membership:
    """One member's state."""

    def __init__(self, member_id: str, *, static: bool = False) -> None:
        self.member_id = member_id
        self.state = MemberState.UNSUBSCRIBED
        self.epoch = JOIN_EPOCH
        self.target = NO_SHARE
        self.current = NO_SHARE
        self._static = static
        self._expired = False

    # What is to be done

    @property
    def is_outside(self) -> bool:
        """Whether no heartbeats are sent."""
        return self.state in _OUTSIDE

    @property
    def is_urgent(self) -> bool:
        """Whether a heartbeat has to leave before its time."""
        return self.state in _URGENT

    @property
    def must_release(self) -> bool:
        """Whether what was assigned is lost, and has to be let go of."""
        return self.state in (MemberState.FENCED, MemberState.STALE, MemberState.FATAL)

    @property
    def is_hopeless(self) -> bool:
        """Whether it can never be a member again."""
        return self.state is MemberState.FATAL

    @property
    def must_reconcile(self) -> bool:
        """Whether something was assigned, or taken away, that has yet to be."""
        return self.state is MemberState.RECONCILING and self.current != self.target

    @property
    def is_member(self) -> bool:
        """Whether the coordinator counts on this member."""
        return self.epoch > 0

    # The application's side

    def join(self) -> None:
        """Become a member, or one again."""
        if self.state is MemberState.UNSUBSCRIBED:
            self._join()

    def released(self) -> None:
        """What was lost has been let go of; join again, unless that is pointless."""
        self.current = NO_SHARE
        if self.state in (MemberState.FENCED, MemberState.STALE):
            self._join()

    def _join(self) -> None:
        self.state = MemberState.JOINING
        self.epoch = JOIN_EPOCH
        self.target = NO_SHARE
        self._expired = False

    def reconciled(self, share: Share) -> None:
        """The application has let go of what was taken away and has what was added, as far as topics are known."""
        if self.state is MemberState.RECONCILING:
            self.current = share
            self.state = MemberState.ACKNOWLEDGING

    def leave(self, *, force: bool | None = None) -> bool:
        """Cease to be a member; whether there is anything to tell the coordinator about it.

        A static member leaves for a while, unless forced to leave for good; `force=False` tells nobody.
        """
        outside = self.is_outside
        self.current = self.target = NO_SHARE
        if self.state is not MemberState.FATAL:
            self.state = MemberState.UNSUBSCRIBED if outside else MemberState.LEAVING
        if outside:
            return False
        self.epoch = PAUSE_EPOCH if self._static and force is not True else LEAVE_EPOCH
        if force is False and not self._static:
            self.state, self.epoch = MemberState.UNSUBSCRIBED, JOIN_EPOCH
            return False
        return True

    def expire(self) -> bool:
        """Leave because the application does not poll; whether there is anything to tell the coordinator about it."""
        if self.is_outside or self.state is MemberState.LEAVING:
            return False
        self.state = MemberState.LEAVING
        self.epoch = PAUSE_EPOCH if self._static else LEAVE_EPOCH
        self._expired = True
        return True

    # The coordinator's side

    def sent(self) -> None:
        """A heartbeat has left."""
        if self.state is MemberState.ACKNOWLEDGING:
            done = self.current == self.target
            self.state = MemberState.STABLE if done else MemberState.RECONCILING
        elif self.state is MemberState.LEAVING:
            self.state = MemberState.STALE if self._expired else MemberState.UNSUBSCRIBED
            self.epoch = JOIN_EPOCH

    def heard(self, epoch: int, assignment: Partitions | None) -> None:
        """A heartbeat was answered, perhaps with an assignment."""
        if self.is_outside or self.state is MemberState.LEAVING or epoch < 0:
            return
        self.epoch = epoch
        if assignment is None and self.state is MemberState.JOINING:
            self.state = MemberState.STABLE
        if assignment is None or self.state not in _TAKES_ASSIGNMENTS:
            return
        if self.target.number < 0 or assignment != self.target.partitions:
            self.target = Share(self.target.number + 1, dict(assignment))
        if self.current != self.target:
            self.state = MemberState.RECONCILING
        elif self.state in (MemberState.RECONCILING, MemberState.JOINING):
            self.state = MemberState.STABLE

    def fenced(self) -> None:
        """The coordinator does not know this member, or not this epoch: what it has may be another's."""
        if self.state is MemberState.LEAVING:
            self.state = MemberState.UNSUBSCRIBED
        elif not self.is_outside:
            self.state = MemberState.FENCED
        self.epoch = JOIN_EPOCH

    def failed(self) -> None:
        """Nothing can be done any more."""
        self.state = MemberState.FATAL
        self.epoch = JOIN_EPOCH
