"""Transactions as `__transaction_state` stores them: one record an id, replaced by the next, ended by a tombstone.

R1  The value is written at version 1 once transaction.version is 1 or more, and at version 0 before. That has no room
    for the previous and the next producer id, nor for the client's transaction version: they are not kept then.
R2  What is read back is what was written; the order of partitions is of no meaning, so they are written sorted.
"""

from ottla.replicated.keyed import KeyedRecord, Kinds
from ottla.transactions.state import State
from ottla.transactions.transaction import Transaction
from ottla.wire.errors import ProtocolError
from ottla.wire.records.transaction import TransactionLogKey, TransactionLogValue

KINDS: Kinds = {0: (TransactionLogKey, TransactionLogValue)}


def record_of(transactional_id: str, transaction: Transaction, version: int) -> KeyedRecord:
    """Return the record that says where an id stands."""
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=int(transaction.state),
        transaction_partitions=None if transaction.state is State.EMPTY else _by_topic(transaction),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
    )
    if version >= 1:
        value.previous_producer_id = transaction.previous_producer_id
        value.next_producer_id = transaction.next_producer_id
        value.client_transaction_version = transaction.client_version
    return KeyedRecord(TransactionLogKey(transactional_id=transactional_id), value, version)


def tombstone_of(transactional_id: str) -> KeyedRecord:
    """Return the record that forgets an id."""
    return KeyedRecord(TransactionLogKey(transactional_id=transactional_id), None)


def transaction_of(value: TransactionLogValue) -> Transaction:
    """Read a record's value."""
    try:
        state = State(value.transaction_status)
    except ValueError:
        raise ProtocolError(f"{value.transaction_status} is no state of a transaction") from None
    topics = value.transaction_partitions if state is not State.EMPTY else None
    return Transaction(
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        state,
        frozenset((each.topic, partition) for each in topics or () for partition in each.partition_ids),
        value.transaction_start_timestamp_ms,
        value.transaction_last_update_timestamp_ms,
        value.previous_producer_id,
        value.next_producer_id,
        value.client_transaction_version,
    )


def _by_topic(transaction: Transaction) -> list[TransactionLogValue.PartitionsSchema]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        found.setdefault(topic, []).append(partition)
    return [
        TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=partitions)
        for topic, partitions in found.items()
    ]
