"""Transactions in `__transaction_state`."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int8, Int16, Int32, Int64, String


class TransactionLogKey(Message, api=0, versions="0"):
    """Key of a transaction: its transactional id."""

    transactional_id: String


class TransactionLogValue(Message, api=0, versions="0-1", flexible="1+"):
    """A transaction's state: producer, epoch, status and partitions."""

    class PartitionsSchema(Struct):
        topic: String
        partition_ids: list[Int32]

    producer_id: Int64
    previous_producer_id: Int64 = since(1, default=-1, tag=0)
    next_producer_id: Int64 = since(1, default=-1, tag=1)
    producer_epoch: Int16
    next_producer_epoch: Int16 = since(1, default=-1, tag=3)
    transaction_timeout_ms: Int32
    transaction_status: Int8
    transaction_partitions: list[PartitionsSchema] | None
    transaction_last_update_timestamp_ms: Int64
    transaction_start_timestamp_ms: Int64
    client_transaction_version: Int16 = since(1, tag=2)
