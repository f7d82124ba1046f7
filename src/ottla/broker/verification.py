"""Whether a partition is part of the transaction that a client writes to it for (KIP-890).

V1  The first batch of a transaction in a partition waits until the coordinator has the partition in that transaction;
    the others find the transaction open and need not ask.
V2  While a request waits, its records are copies: the buffer they came in is the next request's.
V3  A transaction whose predecessor is still being completed waits for that here, a little while, and not at the client.
V4  Old clients are told what they understand: errors that they would not try again become one that they do.
V5  Requests of one producer are looked up one after the other, so that none overtakes an older one that had to wait:
    its sequence numbers would be out of order.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from ottla.broker.broker import Broker
from ottla.wire.batch import BATCH_HEADER, BATCH_HEADER_SIZE, TRANSACTIONAL
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.produce import ProduceRequest

Place = tuple[str, int]
# What to say of partitions whose batch is not to be appended.
Refused = dict[Place, BrokerError]

_BY_ID_SINCE = 13
_ADDS_SINCE = 12  # the first version of clients that leave adding partitions to the broker
_ABORTABLE_SINCE = 11  # the first version that knows TRANSACTION_ABORTABLE
_TRY_AGAIN = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class Doubted(NamedTuple):
    """A producer, and the partitions that it may not have in its transaction yet."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    places: list[Place]


def doubtful(request: ProduceRequest, version: int, broker: Broker) -> Doubted | None:
    """Return what the coordinator has to be asked; the records of such a request are copied."""
    producer_id = producer_epoch = -1
    places: list[Place] = []
    for topic in request.topic_data:
        for part in topic.partition_data:
            records = part.records
            if records is None or len(records) < BATCH_HEADER_SIZE:
                continue
            header = BATCH_HEADER.unpack_from(records)
            key = (topic.topic_id if version >= _BY_ID_SINCE else topic.name, part.index)
            partition = broker.table.find(key, version >= _BY_ID_SINCE)
            if not header[5] & TRANSACTIONAL or partition is None:
                continue
            if partition.log.in_transaction(header[9], header[10]):
                continue
            producer_id, producer_epoch = header[9], header[10]
            places.append((partition.topic, partition.index))
    if not places or not broker.settings["transaction.partition.verification.enable"]:
        return None
    for topic in request.topic_data:
        for part in topic.partition_data:
            if part.records is not None:
                part.records = memoryview(bytearray(part.records))
    return Doubted(request.transactional_id or "", producer_id, producer_epoch, places)


def verify(doubted: Doubted, version: int, broker: Broker, done: Callable[[Refused], None]) -> None:
    """Ask the coordinator; `done` hears of the partitions that are not in the transaction."""
    adds = version >= _ADDS_SINCE
    settings = broker.settings
    patience_ms = settings["add.partitions.to.txn.retry.backoff.max.ms"] if adds else 0
    deadline = broker.clock.monotonic() + min(patience_ms, settings["request.timeout.ms"]) / 1000

    behind = broker.verifying.get(doubted.producer_id)

    def ask() -> None:
        broker.transactions.enlist(
            doubted.transactional_id,
            doubted.producer_id,
            doubted.producer_epoch,
            doubted.places,
            add=adds,
            done=answered,
        )

    def answered(codes: dict[Place, ErrorCode]) -> None:
        if ErrorCode.CONCURRENT_TRANSACTIONS in codes.values() and broker.clock.monotonic() < deadline:
            broker.call_later(settings["add.partitions.to.txn.retry.backoff.ms"] / 1000, ask)
            return
        done({place: _said(code, version) for place, code in codes.items() if code is not ErrorCode.NONE})
        # V5: whoever came behind it is looked up only now, for its records come behind as well.
        queue = broker.verifying[doubted.producer_id]
        if queue:
            queue.popleft()()
        else:
            del broker.verifying[doubted.producer_id]

    if behind is None:
        broker.verifying[doubted.producer_id] = deque()
        ask()
    else:
        behind.append(ask)


def _said(code: ErrorCode, version: int) -> BrokerError:
    if code is ErrorCode.PRODUCER_FENCED:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < _ABORTABLE_SINCE:
        code = ErrorCode.INVALID_TXN_STATE
    if code in _TRY_AGAIN or (code is ErrorCode.CONCURRENT_TRANSACTIONS and version < _ADDS_SINCE):
        return BrokerError(
            ErrorCode.NOT_ENOUGH_REPLICAS, f"the transaction could not be looked up: {code.name}"
        )
    if code is ErrorCode.INVALID_TXN_STATE:
        return BrokerError(code, "Partition was not added to the transaction")
    return BrokerError(code)
