"""OffsetCommit (8): write down how far a group has come; v10 names topics by id."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.slicing import undivided
from ottla.channel.connection import Connection
from ottla.groups.offset_commit import refused_commit
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse


def handle(request: OffsetCommitRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Hand the request to the group's coordinator."""

    def finish(outcome: OffsetCommitResponse | BrokerError) -> OffsetCommitResponse:
        if not isinstance(outcome, BrokerError):
            return outcome
        code = outcome.code
        if code is ErrorCode.UNKNOWN_SERVER_ERROR:
            code = (
                ErrorCode.INVALID_COMMIT_OFFSET_SIZE
            )  # the only record of ours that a client makes too large
        return refused_commit(request, code)

    return broker.coordination.commit(
        request.group_id, lambda groups, now: groups.offsets.commit(request, version, now), finish
    )


API = Api(OffsetCommitRequest, OffsetCommitResponse, handle, long=undivided, long_bytes=1 << 18)
