"""The WriteTxnMarkers API, key 27."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int8, Int16, Int32, Int64, String


class WriteTxnMarkersRequest(Message, api=27, versions="1-2", flexible="1+"):
    """Ask partition leaders to write the markers that end transactions."""

    class WritableTxnMarker(Struct):
        class WritableTxnMarkerTopic(Struct):
            name: String
            partition_indexes: list[Int32]

        producer_id: Int64
        producer_epoch: Int16
        transaction_result: Bool
        topics: list[WritableTxnMarkerTopic]
        coordinator_epoch: Int32
        transaction_version: Int8 = since(2, ignorable=True)

    markers: list[WritableTxnMarker]


class WriteTxnMarkersResponse(Message, api=27, versions="1-2", flexible="1+"):
    """Whether each marker was written."""

    class WritableTxnMarkerResult(Struct):
        class WritableTxnMarkerTopicResult(Struct):
            class WritableTxnMarkerPartitionResult(Struct):
                partition_index: Int32
                error_code: Int16

            name: String
            partitions: list[WritableTxnMarkerPartitionResult]

        producer_id: Int64
        topics: list[WritableTxnMarkerTopicResult]

    markers: list[WritableTxnMarkerResult]
