"""The states of a transactional producer (KIP-98; KIP-890 is version 2).

    UNINITIALIZED --initialize()--> INITIALIZING --ready()--> READY --begin()--> OPEN
                                         ^                      ^                 |
                                         |                      |       commit()  |  abort()
                                         |                      |                 v
                                         +---- ended(bump) -----+-- ended() -- COMMITTING, ABORTING
                                                                                  ^
    OPEN, COMMITTING, INITIALIZING --must_abort()--> BROKEN -----abort()----------+
    anything --doom()--> DOOMED

X1  In version 1 a partition takes records of a transaction once its coordinator knows that it will; in version 2 the
    broker of the partition sees to that, and the epoch rises with every transaction.
X2  BROKEN is left by aborting. DOOMED is never left.
X3  `started` says whether the coordinator has heard of the transaction: if not, there is nothing to end.
"""

import enum

from ottla.client.errors import Aborted, ClientError, Fenced, MustAbort, Refused, WrongState, refused
from ottla.client.producer.lane import Lane
from ottla.wire.errors import ErrorCode


class State(enum.Enum):
    """Where a transactional producer stands; the value is how a sentence says it."""

    UNINITIALIZED = "has not called init_transactions"
    INITIALIZING = "is in init_transactions"
    READY = "is in no transaction"
    OPEN = "is in a transaction"
    COMMITTING = "is committing"
    ABORTING = "is aborting"
    BROKEN = "has to abort its transaction"
    DOOMED = "cannot go on"


# A produce answer after which the producer cannot go on, transactional or not.
FATAL = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)


class Transaction:
    """What a transactional producer may do now, and which partitions have a part in it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = State.UNINITIALIZED
        self.error: ClientError | None = None
        self.is_v2 = False
        self.started = False
        # Whether the coordinator can hand out another epoch on request, and whether that is needed.
        self.can_bump = False
        self.bump_required = False
        self.new: dict[Lane, None] = {}
        self.joined: set[Lane] = set()

    # What the program calls

    def check(self, call: str, *allowed: State) -> None:
        """Raise unless the producer is in one of these states."""
        if self.state in allowed:
            return
        self.check_error()
        raise WrongState(f"{call}: the producer {self.state.value}", hint=_HINTS.get(self.state, ""))

    def check_error(self) -> None:
        """Raise what stands in the way."""
        if self.state is State.DOOMED:
            assert self.error is not None
            raise again(self.error)
        if self.state is State.BROKEN:
            message = f"the transaction of {self.name} cannot be committed: {self.error}"
            raise MustAbort(message, hint="call abort_transaction, and begin anew") from self.error

    def begin(self) -> None:
        """Open a transaction."""
        self.check("begin_transaction", State.READY)
        self.state = State.OPEN

    def commit(self) -> None:
        """Begin to commit."""
        self.check("commit_transaction", State.OPEN)
        self.state = State.COMMITTING

    def abort(self) -> None:
        """Begin to abort."""
        self.check("abort_transaction", State.OPEN, State.BROKEN)
        self.state = State.ABORTING
        self.error = None
        self.new.clear()

    def admit(self, lane: Lane) -> None:
        """Have a partition take part."""
        if self.is_v2:
            self.joined.add(lane)
            self.started = True
        elif lane not in self.joined:
            self.new[lane] = None

    # What becomes of it

    @property
    def is_completing(self) -> bool:
        """Whether everything is to leave at once."""
        return self.state is State.COMMITTING or self.state is State.ABORTING

    @property
    def is_ongoing(self) -> bool:
        """Whether there is a transaction that has not ended."""
        return self.is_completing or self.state is State.OPEN or self.state is State.BROKEN

    def may_leave(self, lane: Lane) -> bool:
        """Whether a partition's records may be sent."""
        return lane in self.joined

    def ended(self) -> None:
        """Take in that the transaction is over."""
        self.state = State.INITIALIZING if self.bump_required else State.READY
        self.error = None
        self.started = False
        self.bump_required = False
        self.new.clear()
        self.joined.clear()

    def must_abort(self, error: ClientError) -> None:
        """Take in what makes it impossible to commit."""
        if self.state is State.ABORTING or self.state is State.DOOMED:
            return
        if self.state in (State.OPEN, State.COMMITTING, State.BROKEN, State.INITIALIZING):
            self.state = State.BROKEN
            self.error = error

    def must_abort_if_possible(self, error: ClientError) -> None:
        """The same after numbers were lost, which only another epoch helps against."""
        if not self.can_bump and not self.is_v2:
            self.doom(error)
            return
        if not self.is_v2:
            self.bump_required = True
        self.must_abort(error)

    def doom(self, error: ClientError) -> None:
        """Take in what makes it impossible to go on."""
        if self.state is not State.DOOMED:
            self.state = State.DOOMED
            self.error = error

    def batch_failed(self, error: ClientError, code: ErrorCode | None) -> None:
        """Take in that records of the transaction were not written."""
        if isinstance(error, Aborted):
            return
        if code in FATAL:
            self.doom(error)
            return
        if self.can_bump and not self.is_v2 and not self.is_completing:
            self.bump_required = True
        self.must_abort(error)


def again(error: ClientError) -> ClientError:
    """Return an error to be raised once more, in another place."""
    if isinstance(error, Fenced | Refused):
        new: ClientError = refused(error.code, about="the producer cannot go on")
    else:
        new = ClientError(f"the producer cannot go on: {error}")
    new.__cause__ = error
    return new


_HINTS = {
    State.UNINITIALIZED: "call init_transactions once, before anything else",
    State.INITIALIZING: "call init_transactions again, and wait for it",
    State.READY: "call begin_transaction first",
    State.OPEN: "commit or abort the transaction first",
    State.COMMITTING: "call commit_transaction again, and wait for it",
    State.ABORTING: "call abort_transaction again, and wait for it",
}
