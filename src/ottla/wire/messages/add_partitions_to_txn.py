"""The AddPartitionsToTxn API, key 24."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int16, Int32, Int64, String


class AddPartitionsToTxnRequest(Message, api=24, versions="0-5", flexible="3+"):
    """Enlist partitions in a transaction; v4 lets brokers do or verify so for several transactions."""

    class AddPartitionsToTxnTopic(Struct):
        name: String
        partitions: list[Int32]

    class AddPartitionsToTxnTransaction(Struct):
        transactional_id: String
        producer_id: Int64
        producer_epoch: Int16
        verify_only: Bool
        topics: list["AddPartitionsToTxnRequest.AddPartitionsToTxnTopic"]

    transactions: list[AddPartitionsToTxnTransaction] = since(4)
    v3_and_below_transactional_id: String = since(0, until=3)
    v3_and_below_producer_id: Int64 = since(0, until=3)
    v3_and_below_producer_epoch: Int16 = since(0, until=3)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = since(0, until=3)


class AddPartitionsToTxnResponse(Message, api=24, versions="0-5", flexible="3+"):
    """Whether each partition is part of the transaction now."""

    class AddPartitionsToTxnPartitionResult(Struct):
        partition_index: Int32
        partition_error_code: Int16

    class AddPartitionsToTxnTopicResult(Struct):
        name: String
        results_by_partition: list["AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult"]

    class AddPartitionsToTxnResult(Struct):
        transactional_id: String
        topic_results: list["AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult"]

    throttle_time_ms: Int32
    error_code: Int16 = since(4, ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = since(4)
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = since(0, until=3)
