"""The markers that end a transaction, written to the partitions that took part.

X3  A marker is a batch of the partition's own, so it goes where the records went, and readers meet it after them.
X4  A marker in a partition of `__consumer_offsets` also tells the groups of that partition, in the order of the log.
X5  The coordinator hears that a transaction is over once all its markers are durable. A partition that the metadata no
    longer has needs none; what a broker says of it is not enough, for that may know less, or have had it moved away.
X6  Whatever else keeps a marker from being written passes: only those that are missing are written again.
X7  A turn of the loop writes some markers for all transactions that end, and they take turns: one that has thousands of
    partitions holds up neither other requests nor the end of another transaction. Where each goes is asked when it is
    written.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import NamedTuple, Protocol

from ottla.channel.peers import Peer
from ottla.partition.table import PartitionTable
from ottla.wire.control import end_transaction_batch
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

MARKERS_A_TURN = 50

Place = tuple[str, int]  # topic, partition
Written = Callable[[ErrorCode], None]
Finished = Callable[[tuple[Place, ...]], None]


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
        exists: Callable[[str, int], bool],
        report: Callable[[str], object],
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        """`elsewhere` is the way to the leader of a partition that is led by another broker.

        `exists` says whether the metadata knows a partition; `report` tells an operator.
        """
        self._report = report
        self._call_soon = call_soon
        self._writing: deque[Generator[None, None, None]] = (
            deque()
        )  # what is left of each end of a transaction
        self._left = MARKERS_A_TURN
        self._is_scheduled = False
        self._elsewhere = elsewhere
        self._exists = exists
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
        except Exception as error:  # noqa: BLE001  # X6: it passes as well, or the transaction would stay open
            self._report(f"a marker could not be written to {topic}-{index}, which is tried again: {error!r}")
            written(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        listener = self._listeners.get(topic)
        if listener is not None:
            try:
                listener.transaction_ended(index, marker.producer_id, marker.committed)
            except Exception as error:  # noqa: BLE001  # the marker is there, and whoever waits for it hears so
                self._report(f"who had to know of a marker in {topic}-{index} broke: {error!r}")
        if appended.end_offset <= partition.high_watermark:
            written(ErrorCode.NONE)
        else:
            partition.when_durable(
                appended.end_offset, lambda error: written(ErrorCode.NONE if error is None else error.code)
            )

    def write_all(self, partitions: Iterable[Place], marker: Marker, finished: Finished) -> None:
        """Append a marker to each partition, some a turn (X7); `finished` hears which have to be tried again.

        It is not called at all when a later producer or coordinator has taken over: the end is theirs to write.
        """
        self._writing.append(self._write_each(tuple(partitions), marker, finished))
        self._go_on()

    def _go_on(self) -> None:
        """Write what this turn has room for, a marker of each transaction after the other."""
        while self._writing and self._left:
            writing = self._writing.popleft()
            self._left -= 1
            for _ in writing:
                self._writing.append(writing)
                break
        if not self._is_scheduled:
            self._is_scheduled = True
            self._call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._is_scheduled = False
        self._left = MARKERS_A_TURN
        if self._writing:
            self._go_on()

    def _write_each(
        self, places: tuple[Place, ...], marker: Marker, finished: Finished
    ) -> Generator[None, None, None]:
        left = 1 + len(places)  # one for this
        again: list[Place] = []
        fenced = False

        def written(place: Place, code: ErrorCode) -> None:
            nonlocal left, fenced
            left -= 1
            if code in _FENCED:
                fenced = True
            elif code is not ErrorCode.NONE and (code not in _UNKNOWN or self._exists(*place)):
                again.append(place)
            if left == 0 and not fenced:
                finished(tuple(again))

        remote: dict[Peer, list[Place]] = {}
        for number, place in enumerate(places):
            if number:
                yield
            if not self._exists(*place):
                written(place, ErrorCode.NONE)
                continue
            peer = self._elsewhere(*place)
            if peer is None:
                self.write(*place, marker, partial(written, place))
            else:
                remote.setdefault(peer, []).append(place)
        for peer, theirs in remote.items():
            _write_there(peer, theirs, marker, written, self._report)
        left -= 1
        if left == 0 and not fenced:
            finished(tuple(again))


def _write_there(
    peer: Peer,
    places: list[Place],
    marker: Marker,
    written: Callable[[Place, ErrorCode], None],
    report: Callable[[str], object],
) -> None:
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
        said: dict[Place, ErrorCode] = {}
        if not isinstance(answer, Exception):
            try:
                said = _understood(answer, report)
            except Exception as error:  # noqa: BLE001  # X6: what is not known to be written is written again
                report(f"an answer about markers could not be understood: {error!r}")
        for place in places:
            written(place, said.get(place, ErrorCode.NETWORK_EXCEPTION))

    peer.ask(request, WriteTxnMarkersResponse, answered)


def _understood(answer: WriteTxnMarkersResponse, report: Callable[[str], object]) -> dict[Place, ErrorCode]:
    """Return what another broker says of each partition."""
    said: dict[Place, ErrorCode] = {}
    for result in answer.markers:
        for topic in result.topics:
            for part in topic.partitions:
                code = said[topic.name, part.partition_index] = ErrorCode(part.error_code)
                if code != part.error_code:  # of a newer release, perhaps
                    report(
                        f"a marker could not be written to {topic.name}-{part.partition_index}, which is tried "
                        f"again: its leader answers with the unknown error code {part.error_code}"
                    )
    return said


_UNKNOWN = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
_FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
