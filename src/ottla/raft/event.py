"""What can happen to a replica. Each is handed to `Raft.step`, one at a time."""

from dataclasses import dataclass

from ottla.raft.snapshot import SnapshotId
from ottla.raft.voters import Voters
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message


@dataclass(frozen=True, slots=True)
class Start:
    """The replica begins; the first event, and only the first."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed, at least up to `Raft.deadline`."""


@dataclass(frozen=True, slots=True)
class Request:
    """Somebody asks. `token` comes back with the reply, which is of the same version, now or later."""

    token: object
    message: Message
    version: int
    listener: str


@dataclass(frozen=True, slots=True)
class Gone:
    """Whoever sent the request with this token has gone: nobody would hear an answer."""

    token: object


@dataclass(frozen=True, slots=True)
class Response:
    """Somebody answers the request with this id that was sent to this node."""

    request_id: int
    node_id: int
    message: Message


@dataclass(frozen=True, slots=True)
class Failure:
    """There is no answer. BROKER_NOT_AVAILABLE or NETWORK_EXCEPTION say that nobody listens or the connection is lost,
    REQUEST_TIMED_OUT that nothing came, UNSUPPORTED_VERSION that the other does not know the request.
    """

    request_id: int
    node_id: int
    code: ErrorCode = ErrorCode.BROKER_NOT_AVAILABLE


@dataclass(frozen=True, slots=True)
class Append:
    """The leader's state machine wants these batches written, at the end of the log and in the leader's epoch."""

    data: bytes | bytearray


@dataclass(frozen=True, slots=True)
class Synced:
    """All that was to be written up to the Ready of this number is on disk."""

    number: int


@dataclass(frozen=True, slots=True)
class Snapshotted:
    """The state machine's snapshot of committed records is on disk."""

    id: SnapshotId


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The log was removed up to the end of this snapshot, and so were the snapshots before it."""

    id: SnapshotId


@dataclass(frozen=True, slots=True)
class Received:
    """A snapshot that was fetched is on disk, whole and sound, and names these voters."""

    id: SnapshotId
    kraft_version: int
    voters: Voters | None


@dataclass(frozen=True, slots=True)
class Spoiled:
    """A snapshot that was fetched is not sound, and was thrown away."""

    id: SnapshotId


@dataclass(frozen=True, slots=True)
class Resign:
    """The state machine gives up the epoch it leads, should it still lead it."""

    epoch: int


@dataclass(frozen=True, slots=True)
class ShutDown:
    """The node is about to stop: hand over the lead, if it is here, within this time."""

    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Raise kraft.version, as `kafka-features upgrade` asks for; or only say whether that could be done."""

    kraft_version: int
    validate_only: bool = False


Event = (
    Start
    | Tick
    | Request
    | Gone
    | Response
    | Failure
    | Append
    | Synced
    | Snapshotted
    | Trimmed
    | Received
    | Spoiled
    | Resign
    | ShutDown
    | Upgrade
)
