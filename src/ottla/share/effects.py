"""What share partitions and share groups ask of the world around them."""

from dataclasses import dataclass
from enum import Enum

from ottla.replicated.decision import Effect
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from ottla.wire.messages.write_share_group_state import WriteShareGroupStateRequest


@dataclass(frozen=True, slots=True)
class ReadState(Effect):
    """Ask the share coordinator for a partition's state, and give the answer to `SharePartition.loaded`."""

    group_id: str
    topic_id: bytes
    partition: ReadShareGroupStateRequest.ReadStateData.PartitionData


@dataclass(frozen=True, slots=True)
class WriteState(Effect):
    """Ask the share coordinator to write a change, and tell `SharePartition.persisted` the ticket and the outcome."""

    ticket: int
    group_id: str
    topic_id: bytes
    partition: WriteShareGroupStateRequest.WriteStateData.PartitionData


@dataclass(frozen=True, slots=True)
class Settled(Effect):
    """The outcome of an acknowledgement or a release; no error means that it is durable."""

    token: int
    error: BrokerError | None


@dataclass(frozen=True, slots=True)
class Freed(Effect):
    """There may be records to acquire now: a share fetch that waits for this partition is worth another try."""

    group_id: str
    topic_id: bytes
    partition: int


@dataclass(frozen=True, slots=True)
class Lost(Effect):
    """The share partition is of no use any more and has to be dropped; the next fetch begins a new one."""

    group_id: str
    topic_id: bytes
    partition: int
    error: BrokerError


class Cause(Enum):
    """Why a record was given up."""

    REJECTED = "rejected"
    TRIED_TOO_OFTEN = "tried too often"


@dataclass(frozen=True, slots=True)
class DeadLetter(Effect):
    """Write records that the group has given up to its dead-letter topic, and tell `SharePartition.dead_lettered` once
    they are there, or can not be (KIP-1191).
    """

    group_id: str
    topic_id: bytes
    partition: int
    start_offset: int
    end_offset: int
    delivery_count: int
    cause: Cause


_SOFT = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}

# Errors after which a share partition cannot go on.
FATAL = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


def state_error(code: int, message: str | None = None) -> BrokerError:
    """Return what a client is told when the share coordinator refused with `code`."""
    known = ErrorCode(code)
    if known in {ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.UNSUPPORTED_VERSION}:
        # Between brokers only: no client could do anything about it.
        message = "the broker could not reach the durable state"
    return BrokerError(_SOFT.get(known, ErrorCode.UNKNOWN_SERVER_ERROR), message)
