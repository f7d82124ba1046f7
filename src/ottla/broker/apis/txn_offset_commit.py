"""TxnOffsetCommit (28): write down how far a group has come, as part of a transaction.

From v5 on nobody has added the group's offsets to the transaction before; the broker does.
"""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.internal_topics import OFFSETS
from ottla.channel.connection import Connection
from ottla.groups.offset_commit import refused_transactional
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

_ADDS_SINCE = 5


def handle(request: TxnOffsetCommitRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Have the offsets in the transaction, then ask the group's coordinator."""
    pending = Pending()
    place = (OFFSETS.name, broker.coordination.index(request.group_id))

    def enlisted(codes: dict[tuple[str, int], ErrorCode]) -> None:
        code = codes.get(place, ErrorCode.NONE)
        if code is not ErrorCode.NONE:
            pending.resolve(refused_transactional(request, _said(code, version)))
            return
        broker.coordination.groups.submit(
            place[1],
            lambda groups, now: groups.offsets.commit_transactional(request, version, now),
            committed,
        )

    def committed(outcome: TxnOffsetCommitResponse | BrokerError) -> None:
        if isinstance(outcome, BrokerError):
            outcome = refused_transactional(request, outcome.code)
        pending.resolve(outcome)

    if not request.group_id:
        return_code = refused_transactional(request, ErrorCode.INVALID_GROUP_ID)
        pending.resolve(return_code)
        return pending
    broker.transactions.enlist(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [place],
        add=version >= _ADDS_SINCE,
        done=enlisted,
    )
    return pending


def _said(code: ErrorCode, version: int) -> ErrorCode:
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < _ADDS_SINCE - 1:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.INVALID_PRODUCER_EPOCH if code is ErrorCode.PRODUCER_FENCED else code


API = Api(TxnOffsetCommitRequest, TxnOffsetCommitResponse, handle)
