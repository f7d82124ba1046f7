"""The markers that end a transaction, written to the partitions that took part.

X3  A marker is a batch of the partition's own, so it goes where the records went, and readers meet it after them.
X4  A marker in a partition of `__consumer_offsets` also tells the groups of that partition, in the order of the log.
X5  The coordinator hears that a transaction is over once all its markers are durable. What has gone since, a deleted
    topic, needs none.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ottla.channel.peers import Peer
from ottla.partition.table import PartitionTable
from ottla.wire.control import end_transaction_batch
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

Written = Callable[[ErrorCode], None]


class Marker(NamedTuple):
    """How one producer's transaction ends."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    transaction_version: int = 0


class Listener(Protocol):
    """Who has to know that a transaction has ended in a partition."""

    def transaction_ended(self, index: int, producer_id: int, committed: bool) -> None:
        """A marker was appended to the partition."""
        ...


class Markers:
    """Writes markers. `listeners` are told of those in their topic."""

    def __init__(
        self,
        table: PartitionTable,
        now_ms: Callable[[], int],
        listeners: dict[str, Listener],
        elsewhere: Callable[[str, int], Peer | None],
    ) -> None:
        """`elsewhere` is the way to the leader of a partition that is led by another broker."""
        self._elsewhere = elsewhere
        self._table = table
        self._now_ms = now_ms
        self._listeners = listeners

    def write(self, topic: str, index: int, marker: Marker, written: Written) -> None:
        """Append a marker, and call back once it is durable, or with the reason why it is not there."""
        now_ms = self._now_ms()
        batch = end_transaction_batch(
            commit=marker.committed,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp_ms=now_ms,
        )
        try:
            partition = self._table.by_name(topic, index)
            appended = partition.append_own(batch, now_ms, marker.transaction_version)
        except BrokerError as error:
            written(error.code)
            return
        listener = self._listeners.get(topic)
        if listener is not None:
            listener.transaction_ended(index, marker.producer_id, marker.committed)
        if appended.end_offset <= partition.high_watermark:
            written(ErrorCode.NONE)
        else:
            partition.when_durable(
                appended.end_offset, lambda error: written(ErrorCode.NONE if error is None else error.code)
            )

    def write_all(
        self, partitions: tuple[tuple[str, int], ...], marker: Marker, finished: Callable[[bool], None]
    ) -> None:
        """Append a marker to each partition; `finished` hears whether none has to be tried again.

        It is not called at all when a later producer or coordinator has taken over: the end is theirs to write.
        """
        left = len(partitions)
        again = fenced = False

        def written(code: ErrorCode) -> None:
            nonlocal left, again, fenced
            left -= 1
            fenced = fenced or code in _FENCED
            again = again or code not in _OVER
            if left == 0 and not fenced:
                finished(not again)

        if not partitions:
            finished(True)
        remote: dict[Peer, list[tuple[str, int]]] = {}
        for topic, index in partitions:
            peer = self._elsewhere(topic, index)
            if peer is None:
                self.write(topic, index, marker, written)
            else:
                remote.setdefault(peer, []).append((topic, index))
        for peer, places in remote.items():
            _write_there(peer, places, marker, written)


def _write_there(peer: Peer, places: list[tuple[str, int]], marker: Marker, written: Written) -> None:
    """Have another broker append a marker to partitions that it leads; `written` hears a code for each."""
    topics: dict[str, list[int]] = {}
    for topic, index in places:
        topics.setdefault(topic, []).append(index)
    wanted = WriteTxnMarkersRequest.WritableTxnMarker
    request = WriteTxnMarkersRequest(
        markers=[
            wanted(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                transaction_result=marker.committed,
                topics=[
                    wanted.WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
                    for name, indexes in topics.items()
                ],
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
            )
        ]
    )

    def answered(answer: WriteTxnMarkersResponse | Exception) -> None:
        said: dict[tuple[str, int], ErrorCode] = {}
        if not isinstance(answer, Exception):
            for result in answer.markers:
                for topic in result.topics:
                    for part in topic.partitions:
                        said[topic.name, part.partition_index] = ErrorCode(part.error_code)
        for place in places:
            written(said.get(place, ErrorCode.NETWORK_EXCEPTION))

    peer.ask(request, WriteTxnMarkersResponse, answered)


# A partition that is gone needs no marker.
_OVER = frozenset({ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
_FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
