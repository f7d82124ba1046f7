"""Which partitions take part in a transaction: AddPartitionsToTxn, AddOffsetsToTxn, and the verification of both.

N1  A partition is in the transaction once the record that says so is committed; the answer waits for it.
N2  To verify changes nothing. A broker asks it before it appends what a client claims to belong to a transaction, and
    a partition that was not added is answered TRANSACTION_ABORTABLE (KIP-890).
"""

from collections.abc import Iterable, Mapping

from ottla.replicated.decision import Decision
from ottla.transactions.ledger import Ledger, spoken
from ottla.transactions.state import State
from ottla.transactions.transaction import EPOCH_RISES, TopicPartition, Transaction
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

Wish = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
_TopicResult = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
_PartitionResult = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult

OFFSETS_TOPIC = "__consumer_offsets"
# From this version on the request comes from brokers, for many transactions, and says that the epoch rises.
_BATCHED_SINCE = 4
_FENCED_SINCE = 2


def wishes_of(request: AddPartitionsToTxnRequest, version: int) -> list[Wish]:
    """Return what a request asks for, one transaction each; clients' versions know only one."""
    if version >= _BATCHED_SINCE:
        return request.transactions
    return [
        Wish(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
    ]


def response_of(results: Iterable[Result], version: int) -> AddPartitionsToTxnResponse:
    """Return the results of all wishes as the version has them."""
    if version >= _BATCHED_SINCE:
        return AddPartitionsToTxnResponse(results_by_transaction=list(results))
    (result,) = results
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)


def result_of(wish: Wish, codes: ErrorCode | Mapping[TopicPartition, ErrorCode]) -> Result:
    """Return the result of a wish: one code for all its partitions, or one each."""
    return Result(
        transactional_id=wish.transactional_id,
        topic_results=[
            _TopicResult(
                name=topic.name,
                results_by_partition=[
                    _PartitionResult(
                        partition_index=partition,
                        partition_error_code=(
                            codes if isinstance(codes, ErrorCode) else codes[topic.name, partition]
                        ),
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in wish.topics
        ],
    )


def add_partitions(ledger: Ledger, wish: Wish, version: int, now: int) -> Decision[Result]:
    """AddPartitionsToTxn, for one transaction."""
    partitions = frozenset((topic.name, partition) for topic in wish.topics for partition in topic.partitions)
    try:
        if wish.verify_only:
            return Decision(result_of(wish, _verify(ledger, wish, partitions)))
        step = _enlist(
            ledger,
            wish.transactional_id,
            wish.producer_id,
            wish.producer_epoch,
            partitions,
            EPOCH_RISES if version >= _BATCHED_SINCE else 0,
            now,
        )
    except BrokerError as error:
        return Decision(result_of(wish, spoken(error.code, version, _FENCED_SINCE)))
    records = () if step is None else (ledger.record(wish.transactional_id, step),)
    return Decision(result_of(wish, ErrorCode.NONE), records)


def add_offsets(
    ledger: Ledger, request: AddOffsetsToTxnRequest, version: int, offsets_partition: int, now: int
) -> Decision[AddOffsetsToTxnResponse]:
    """AddOffsetsToTxn: enlist the partition of `__consumer_offsets` that keeps the group's offsets."""
    try:
        step = _enlist(
            ledger,
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            frozenset({(OFFSETS_TOPIC, offsets_partition)}),
            # Clients of transactions v2 do not send this; their offset commits enlist by themselves.
            0,
            now,
        )
    except BrokerError as error:
        return Decision(AddOffsetsToTxnResponse(error_code=spoken(error.code, version, _FENCED_SINCE)))
    records = () if step is None else (ledger.record(request.transactional_id, step),)
    return Decision(AddOffsetsToTxnResponse(), records)


def _enlist(
    ledger: Ledger,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: frozenset[TopicPartition],
    client_version: int,
    now: int,
) -> Transaction | None:
    """Return the transaction with the partitions in it; None when they are in already."""
    transaction = _find(ledger, transactional_id)
    # First of all: the producer may be using the id and epoch that only come with the end of what is under way.
    if transaction.state.settling:
        raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS)
    _check_producer(transaction, producer_id, producer_epoch)
    if transaction.state is State.ONGOING and partitions <= transaction.partitions:
        return None
    if transaction.state is not State.ONGOING and not transaction.state.idle:
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{transaction.state.label} is not to be recorded")
    return transaction.enlisted(partitions, client_version, now)


def _verify(
    ledger: Ledger, wish: Wish, partitions: frozenset[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    transaction = _find(ledger, wish.transactional_id)
    _check_producer(transaction, wish.producer_id, wish.producer_epoch)
    if transaction.state.settling:
        raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS)
    return {
        each: ErrorCode.NONE if each in transaction.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for each in partitions
    }


def _find(ledger: Ledger, transactional_id: str) -> Transaction:
    if not transactional_id:
        raise BrokerError(ErrorCode.INVALID_REQUEST)
    transaction = ledger.transactions.get(transactional_id)
    if transaction is None:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    return transaction


def _check_producer(transaction: Transaction, producer_id: int, producer_epoch: int) -> None:
    if transaction.producer_id != producer_id:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != producer_epoch:
        raise BrokerError(ErrorCode.PRODUCER_FENCED)
