"""What a transactional producer does after a response of a coordinator.

DONE              continue
RETRY             send the request again after a pause
FIND_COORDINATOR  look the coordinator up first
ABORT             the transaction cannot be committed
BUMP_EPOCH        the same, and the producer needs a new epoch
FAIL              the producer can only be closed
NOT_ALLOWED       nothing happened; the application may call again once it is authorized
"""

import enum

from ottla.client.errors import ClientError, CommitFailed, refused
from ottla.wire.errors import ErrorCode


class ResponseAction(enum.Enum):
    """What to do after a response."""

    DONE = enum.auto()
    RETRY = enum.auto()
    FIND_COORDINATOR = enum.auto()
    ABORT = enum.auto()
    BUMP_EPOCH = enum.auto()
    FAIL = enum.auto()
    NOT_ALLOWED = enum.auto()


class CoordinatorCall(enum.Enum):
    """The requests to a coordinator."""

    FIND = "FindCoordinator"
    INITIALIZE = "InitProducerId"
    ADD_PARTITIONS = "AddPartitionsToTxn"
    ADD_OFFSETS = "AddOffsetsToTxn"
    COMMIT_OFFSETS = "TxnOffsetCommit"
    COMMIT = "EndTxn, commit"
    ABORT = "EndTxn, abort"


_FENCED = {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED}
_COORDINATOR_MOVED = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}

# The codes that mean something special for one request.
_ACTIONS: dict[CoordinatorCall, dict[ErrorCode, ResponseAction]] = {
    CoordinatorCall.FIND: {
        ErrorCode.COORDINATOR_NOT_AVAILABLE: ResponseAction.RETRY,
        ErrorCode.GROUP_AUTHORIZATION_FAILED: ResponseAction.ABORT,
        ErrorCode.TRANSACTION_ABORTABLE: ResponseAction.ABORT,
    },
    CoordinatorCall.INITIALIZE: {
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: ResponseAction.NOT_ALLOWED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ResponseAction.NOT_ALLOWED,
        ErrorCode.TRANSACTION_ABORTABLE: ResponseAction.ABORT,
    },
    CoordinatorCall.ADD_PARTITIONS: {
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: ResponseAction.FAIL,
        ErrorCode.INVALID_TXN_STATE: ResponseAction.FAIL,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING: ResponseAction.FAIL,
        ErrorCode.UNKNOWN_PRODUCER_ID: ResponseAction.BUMP_EPOCH,
    },
    CoordinatorCall.ADD_OFFSETS: {
        ErrorCode.UNKNOWN_PRODUCER_ID: ResponseAction.BUMP_EPOCH,
        ErrorCode.GROUP_AUTHORIZATION_FAILED: ResponseAction.ABORT,
        ErrorCode.TRANSACTION_ABORTABLE: ResponseAction.ABORT,
    },
    CoordinatorCall.COMMIT_OFFSETS: {
        ErrorCode.REQUEST_TIMED_OUT: ResponseAction.FIND_COORDINATOR,
        ErrorCode.GROUP_AUTHORIZATION_FAILED: ResponseAction.ABORT,
        ErrorCode.FENCED_INSTANCE_ID: ResponseAction.ABORT,
        ErrorCode.TRANSACTION_ABORTABLE: ResponseAction.ABORT,
        ErrorCode.UNKNOWN_MEMBER_ID: ResponseAction.ABORT,
        ErrorCode.ILLEGAL_GENERATION: ResponseAction.ABORT,
    },
    CoordinatorCall.COMMIT: {
        ErrorCode.UNKNOWN_PRODUCER_ID: ResponseAction.BUMP_EPOCH,
        ErrorCode.TRANSACTION_ABORTABLE: ResponseAction.ABORT,
    },
    # A failed abort must not lead to another abort.
    CoordinatorCall.ABORT: {},
}

# All other codes. A partition that could not be added can be left out of the next transaction.
_OTHERWISE = {CoordinatorCall.ADD_PARTITIONS: ResponseAction.ABORT}


def action_for(call: CoordinatorCall, code: ErrorCode) -> ResponseAction:
    """Return what to do after a response with this code."""
    if code is ErrorCode.NONE:
        return ResponseAction.DONE
    found = _ACTIONS[call].get(code)
    if found is not None:
        return found
    if code in _COORDINATOR_MOVED:
        return ResponseAction.FIND_COORDINATOR
    if code.retriable:
        return ResponseAction.RETRY
    return ResponseAction.FAIL if code in _FENCED else _OTHERWISE.get(call, ResponseAction.FAIL)


def error_for(call: CoordinatorCall, code: ErrorCode, about: str) -> ClientError:
    """Return the error for a code."""
    if code in _FENCED:
        # An older coordinator has the first code only.
        return refused(ErrorCode.PRODUCER_FENCED, about=about)
    error = refused(code, about=f"{about}: {call.value}")
    if call is CoordinatorCall.COMMIT_OFFSETS and code in (
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
    ):
        failed = CommitFailed("the group has moved on, so the offsets did not become part of the transaction")
        failed.__cause__ = error
        return failed
    return error
