"""Whether a partition is part of the transaction that a client writes to it for (KIP-890).

V1  The first batch of a transaction in a partition waits until the coordinator has the partition in that transaction;
    the others find the transaction open and need not ask.
V2  While a request waits its connection is mute, and only what may still be stored of it is kept (`kept_request.py`).
V3  A transaction whose predecessor is still being completed waits for that here, a little while, and not at the client.
V4  Old clients are told what they understand: errors that they would not try again become one that they do.
V5  Requests of one producer are looked up one after the other, so that none overtakes an older one that had to wait:
    its sequence numbers would be out of order.
V6  The log is told before the coordinator is asked, each time, and takes the batch only if the answer still holds then:
    a marker may be written between (`log/verification.py`). So may one while a batch is looked through in a thread.
V7  Whatever becomes of a look-up, the next of the same producer has its turn.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from ottla.broker.broker import Broker
from ottla.log.verification import Verification
from ottla.partition.partition import Partition
from ottla.wire.batch import BATCH_HEADER, BATCH_HEADER_SIZE, TRANSACTIONAL
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.produce import ProduceRequest

Place = tuple[str, int]

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
# What does not say that the producer has no such transaction.
_MAY_CHANGE = _TRY_AGAIN | {
    ErrorCode.NONE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.UNKNOWN_SERVER_ERROR,
}


class Batch(NamedTuple):
    """A batch of a transaction: where it goes, and its first sequence number."""

    partition: Partition
    sequence: int

    @property
    def place(self) -> Place:
        """Topic and partition."""
        return self.partition.topic, self.partition.index


class Doubted(NamedTuple):
    """A producer, and its batches for partitions that it may not have in its transaction yet."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    batches: list[Batch]


class Verified(NamedTuple):
    """What came of a look-up: what to say of partitions whose batch is not to be appended, and proof for the others."""

    refused: dict[Place, BrokerError]
    proofs: dict[Place, Verification]


def doubtful(request: ProduceRequest, version: int, broker: Broker) -> Doubted | None:
    """Return what the coordinator has to be asked; None when it has not.

    BrokerError for a request with batches of several producers, of which only one could be asked for.
    """
    producers: dict[tuple[int, int], None] = {}
    batches: list[Batch] = []
    for topic in request.topic_data:
        for part in topic.partition_data:
            records = part.records
            if records is None or len(records) < BATCH_HEADER_SIZE:
                continue
            header = BATCH_HEADER.unpack_from(records)
            if not header[5] & TRANSACTIONAL:
                continue
            producer_id, producer_epoch = header[9], header[10]
            producers[producer_id, producer_epoch] = None
            key = (topic.topic_id if version >= _BY_ID_SINCE else topic.name, part.index)
            partition = broker.table.find(key, version >= _BY_ID_SINCE)
            if partition is not None and not partition.log.in_transaction(producer_id, producer_epoch):
                batches.append(Batch(partition, header[11]))
    if len(producers) > 1:
        raise BrokerError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
        )
    if not batches or not broker.settings["transaction.partition.verification.enable"]:
        return None
    ((producer_id, producer_epoch),) = producers
    return Doubted(request.transactional_id or "", producer_id, producer_epoch, batches)


def verify(doubted: Doubted, version: int, broker: Broker, done: Callable[[Verified], object]) -> None:
    """Ask the coordinator; `done` hears of partitions that are not in the transaction, and has proof of the others."""
    adds = version >= _ADDS_SINCE
    settings = broker.settings
    patience_ms = settings["add.partitions.to.txn.retry.backoff.max.ms"] if adds else 0
    deadline = broker.clock.monotonic() + min(patience_ms, settings["request.timeout.ms"]) / 1000
    transactional_id, producer_id, producer_epoch, batches = doubted
    asked: list[tuple[Batch, Verification]] = []
    is_asking = False

    def ask() -> None:
        nonlocal is_asking
        now_ms = broker.clock.now_ms()
        asked.clear()
        for batch in batches:
            log = batch.partition.log
            if not log.in_transaction(producer_id, producer_epoch):  # an older batch may have opened it
                proof = log.verifications.begin(producer_id, producer_epoch, batch.sequence, now_ms)
                asked.append((batch, proof))
        places = list(dict.fromkeys(batch.place for batch, _ in asked))
        if not places:
            answered({})
            return
        is_asking = True
        try:
            broker.transactions.enlist(
                transactional_id, producer_id, producer_epoch, places, add=adds, done=answered
            )
        except Exception as error:
            if not is_asking:
                raise  # it is answered, and this is about what came of it
            broker.failed(error)
            answered(dict.fromkeys(places, ErrorCode.UNKNOWN_SERVER_ERROR))

    def answered(codes: dict[Place, ErrorCode]) -> None:
        nonlocal is_asking
        is_asking = False
        for batch, proof in asked:
            batch.partition.log.verifications.end(
                producer_id, proof, refused=codes[batch.place] not in _MAY_CHANGE
            )
        if ErrorCode.CONCURRENT_TRANSACTIONS in codes.values() and broker.clock.monotonic() < deadline:
            broker.call_later(settings["add.partitions.to.txn.retry.backoff.ms"] / 1000, ask)
            return
        refused = {
            place: _said(code, version) for place, code in codes.items() if code is not ErrorCode.NONE
        }
        try:
            done(Verified(refused, {batch.place: proof for batch, proof in asked}))
        finally:
            # V5: whoever came behind it is looked up only now, for its records come behind as well.
            queue = broker.verifying[producer_id]
            if queue:
                broker.call_soon(queue.popleft())
            else:
                del broker.verifying[producer_id]

    behind = broker.verifying.get(producer_id)
    if behind is None:
        broker.verifying[producer_id] = deque()
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
