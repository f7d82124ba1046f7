"""The DescribeTransactions API, key 65."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, Int64, String


class DescribeTransactionsRequest(Message, api=65, versions="0", flexible="0+"):
    """Ask for the state of transactions by transactional id."""

    transactional_ids: list[String]


class DescribeTransactionsResponse(Message, api=65, versions="0", flexible="0+"):
    """Each transaction's state, producer and partitions."""

    class TransactionState(Struct):
        class TopicData(Struct):
            topic: String
            partitions: list[Int32]

        error_code: Int16
        transactional_id: String
        transaction_state: String
        transaction_timeout_ms: Int32
        transaction_start_time_ms: Int64
        producer_id: Int64
        producer_epoch: Int16
        topics: list[TopicData]

    throttle_time_ms: Int32
    transaction_states: list[TransactionState]
