"""What a transactional producer does about the answers of its coordinators.

DONE        go on
AGAIN       ask again after a pause
ELSEWHERE   look for the coordinator first
ABORT       the transaction cannot be committed
RENUMBER    the same, and only another epoch helps
DOOM        the producer cannot go on
DENIED      nothing happened; the program may try again when it is allowed to
"""

import enum

from ottla.client.errors import ClientError, CommitFailed, refused
from ottla.wire.errors import ErrorCode


class Reaction(enum.Enum):
    """What to do about an answer."""

    DONE = enum.auto()
    AGAIN = enum.auto()
    ELSEWHERE = enum.auto()
    ABORT = enum.auto()
    RENUMBER = enum.auto()
    DOOM = enum.auto()
    DENIED = enum.auto()


class Errand(enum.Enum):
    """What a coordinator is asked for."""

    FIND = "FindCoordinator"
    INITIALIZE = "InitProducerId"
    ADD_PARTITIONS = "AddPartitionsToTxn"
    ADD_OFFSETS = "AddOffsetsToTxn"
    COMMIT_OFFSETS = "TxnOffsetCommit"
    COMMIT = "EndTxn, commit"
    ABORT = "EndTxn, abort"


_FENCED = {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED}
_ELSEWHERE = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}

# What a code means for one errand when it means something else than for the others.
_REACTIONS: dict[Errand, dict[ErrorCode, Reaction]] = {
    Errand.FIND: {
        ErrorCode.COORDINATOR_NOT_AVAILABLE: Reaction.AGAIN,
        ErrorCode.GROUP_AUTHORIZATION_FAILED: Reaction.ABORT,
        ErrorCode.TRANSACTION_ABORTABLE: Reaction.ABORT,
    },
    Errand.INITIALIZE: {
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Reaction.DENIED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: Reaction.DENIED,
        ErrorCode.TRANSACTION_ABORTABLE: Reaction.ABORT,
    },
    Errand.ADD_PARTITIONS: {
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Reaction.DOOM,
        ErrorCode.INVALID_TXN_STATE: Reaction.DOOM,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING: Reaction.DOOM,
        ErrorCode.UNKNOWN_PRODUCER_ID: Reaction.RENUMBER,
    },
    Errand.ADD_OFFSETS: {
        ErrorCode.UNKNOWN_PRODUCER_ID: Reaction.RENUMBER,
        ErrorCode.GROUP_AUTHORIZATION_FAILED: Reaction.ABORT,
        ErrorCode.TRANSACTION_ABORTABLE: Reaction.ABORT,
    },
    Errand.COMMIT_OFFSETS: {
        ErrorCode.REQUEST_TIMED_OUT: Reaction.ELSEWHERE,
        ErrorCode.GROUP_AUTHORIZATION_FAILED: Reaction.ABORT,
        ErrorCode.FENCED_INSTANCE_ID: Reaction.ABORT,
        ErrorCode.TRANSACTION_ABORTABLE: Reaction.ABORT,
        ErrorCode.UNKNOWN_MEMBER_ID: Reaction.ABORT,
        ErrorCode.ILLEGAL_GENERATION: Reaction.ABORT,
    },
    Errand.COMMIT: {
        ErrorCode.UNKNOWN_PRODUCER_ID: Reaction.RENUMBER,
        ErrorCode.TRANSACTION_ABORTABLE: Reaction.ABORT,
    },
    # To abort because aborting failed would never end.
    Errand.ABORT: {},
}

# The rest: a partition that could not be added can be left out of the next transaction.
_OTHERWISE = {Errand.ADD_PARTITIONS: Reaction.ABORT}


def react(errand: Errand, code: ErrorCode) -> Reaction:
    """Return what to do about an answer with this code."""
    if code is ErrorCode.NONE:
        return Reaction.DONE
    found = _REACTIONS[errand].get(code)
    if found is not None:
        return found
    if code in _ELSEWHERE:
        return Reaction.ELSEWHERE
    if code.retriable:
        return Reaction.AGAIN
    return Reaction.DOOM if code in _FENCED else _OTHERWISE.get(errand, Reaction.DOOM)


def error_for(errand: Errand, code: ErrorCode, about: str) -> ClientError:
    """Return the error that a code means for an errand."""
    if code in _FENCED:
        # An older coordinator has the first code only.
        return refused(ErrorCode.PRODUCER_FENCED, about=about)
    error = refused(code, about=f"{about}: {errand.value}")
    if errand is Errand.COMMIT_OFFSETS and code in (
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
    ):
        failed = CommitFailed("the group has moved on, so the offsets did not become part of the transaction")
        failed.__cause__ = error
        return failed
    return error
