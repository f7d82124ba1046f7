"""TxnOffsetCommit (28): write down how far a group has come, as part of a transaction.

From v5 on nobody has added the group's offsets to the transaction before; the broker does.
"""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.internal_topics import OFFSETS
from ottla.broker.slicing import undivided
from ottla.channel.connection import Connection
from ottla.groups.machine import Groups
from ottla.groups.offset_commit import refused_transactional
from ottla.replicated.decision import Decision
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

_ADDS_SINCE = 5
NO_SEQUENCE = -1


def handle(request: TxnOffsetCommitRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Have the offsets in the transaction, then ask the group's coordinator.

    They are written only if no marker was since the coordinator of the transaction was asked (`log/verification.py`).
    """
    pending = Pending()
    producer_id, producer_epoch = request.producer_id, request.producer_epoch
    place = (OFFSETS.name, broker.coordination.index(request.group_id))
    partition = broker.table.find(place, by_id=False)
    proof = None

    def enlisted(codes: dict[tuple[str, int], ErrorCode]) -> None:
        code = codes[place]
        if partition is not None and proof is not None:
            partition.log.verifications.end(producer_id, proof, refused=code is not ErrorCode.NONE)
        if code is not ErrorCode.NONE:
            pending.resolve(refused_transactional(request, _said(code, version)))
            return
        broker.coordination.groups.submit(place[1], decide, committed)

    def decide(groups: Groups, now: int) -> Decision[TxnOffsetCommitResponse]:
        decision = groups.offsets.commit_transactional(request, version, now)
        if decision.records and partition is not None and proof is not None:
            log = partition.log
            if not log.in_transaction(producer_id, producer_epoch):
                log.verifications.check(producer_id, NO_SEQUENCE, proof)
        return decision

    def committed(outcome: TxnOffsetCommitResponse | BrokerError) -> None:
        if isinstance(outcome, BrokerError):
            outcome = refused_transactional(request, outcome.code)
        pending.resolve(outcome)

    if not request.group_id:
        return_code = refused_transactional(request, ErrorCode.INVALID_GROUP_ID)
        pending.resolve(return_code)
        return pending
    if partition is not None:
        proof = partition.log.verifications.begin(
            producer_id, producer_epoch, NO_SEQUENCE, broker.clock.now_ms()
        )
    broker.transactions.enlist(
        request.transactional_id,
        producer_id,
        producer_epoch,
        [place],
        add=version >= _ADDS_SINCE,
        done=enlisted,
    )
    return pending


def _said(code: ErrorCode, version: int) -> ErrorCode:
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < _ADDS_SINCE - 1:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.INVALID_PRODUCER_EPOCH if code is ErrorCode.PRODUCER_FENCED else code


API = Api(TxnOffsetCommitRequest, TxnOffsetCommitResponse, handle, long=undivided, long_bytes=1 << 18)
