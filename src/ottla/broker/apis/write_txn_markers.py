"""WriteTxnMarkers (27): write the markers that end transactions, for a coordinator or an operator who aborts one."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.markers import MARKERS_A_TURN, Marker
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

Done = WriteTxnMarkersResponse.WritableTxnMarkerResult
Topic = Done.WritableTxnMarkerTopicResult
Part = Topic.WritableTxnMarkerPartitionResult
_LONG_BYTES = 512  # some more than a hundred partitions


def handle(request: WriteTxnMarkersRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Append every marker, and answer once all are durable."""
    pending = Pending()
    response = WriteTxnMarkersResponse()
    work: list[tuple[Marker, str, Part]] = []
    for wanted in request.markers:
        marker = Marker(
            wanted.producer_id,
            wanted.producer_epoch,
            wanted.coordinator_epoch,
            wanted.transaction_result,
            wanted.transaction_version,
        )
        result = Done(producer_id=wanted.producer_id)
        if any(topic.partition_indexes for topic in wanted.topics):
            response.markers.append(result)
        for topic in wanted.topics:
            parts = [Part(partition_index=index) for index in topic.partition_indexes]
            result.topics.append(Topic(name=topic.name, partitions=parts))
            work += [(marker, topic.name, part) for part in parts]
    left = len(work)

    def written(part: Part, code: ErrorCode) -> None:
        nonlocal left
        part.error_code = code
        left -= 1
        if left == 0:
            pending.resolve(response)

    for marker, name, part in work:
        broker.transactions.markers.write(
            name,
            part.partition_index,
            marker,
            lambda code, part=part: written(part, code),  # type: ignore[misc]
        )
    if not work:
        pending.resolve(response)
    return pending


API = Api(
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    handle,
    long=in_slices(Cut("markers.topics.partition_indexes", "markers.topics.partitions"), size=MARKERS_A_TURN),
    long_bytes=_LONG_BYTES,
)
