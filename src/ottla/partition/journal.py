"""A partition as the journal of a machine: records with keys in, offsets out, and word of what is committed.

J1  One call is one batch, so it is stored whole or not at all.
J2  `replay` gives the records in the order of the log, those of a transaction as pending and its marker as its end.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from ottla.log.replay import read_marker
from ottla.partition.partition import Partition
from ottla.replicated.keyed import KeyedRecord, Kinds, decode
from ottla.wire.batch import build_batch, read_records, scan
from ottla.wire.compression import Codec
from ottla.wire.errors import BrokerError
from ottla.wire.record import Record
from ottla.world.disk import Bytes

_PIECE_BYTES = 256 << 10


class Replica(Protocol):
    """A machine, as far as the log of a partition can rebuild it."""

    def apply(self, offset: int, record: KeyedRecord) -> None:
        """Take one record in."""
        ...

    def apply_pending(self, producer_id: int, offset: int, record: KeyedRecord) -> None:
        """Take in a record of an open transaction."""
        ...

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """Make the pending records of a transaction count, or forget them."""
        ...


class PartitionJournal:
    """Where a coordinator keeps its records. `committed(error)` is called whenever more of them is durable."""

    __slots__ = ("_codec", "_committed", "partition")

    def __init__(
        self, partition: Partition, codec: Codec, committed: Callable[[BrokerError | None], None]
    ) -> None:
        self.partition = partition
        self._codec = codec
        self._committed = committed

    @property
    def end_offset(self) -> int:
        """The offset that the next record will have."""
        return self.partition.log.end_offset

    @property
    def committed_offset(self) -> int:
        """The offset below which everything is committed."""
        return self.partition.high_watermark

    def append(
        self, records: Sequence[object], now: int, transactional: tuple[int, int] | None = None
    ) -> range:
        """Write the records as one batch; BrokerError if it may or can not be done."""
        stored = [
            Record(number, now, *record.encode(), ())
            for number, record in enumerate(records)
            if isinstance(record, KeyedRecord)
        ]
        producer_id, producer_epoch = transactional or (-1, -1)
        batch = build_batch(
            stored,
            codec=self._codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional=transactional is not None,
        )
        appended = self.partition.append_own(batch, now)
        self.watch()
        return range(appended.base_offset, appended.end_offset)

    def watch(self) -> None:
        """Say so when all that is in the log is committed, whoever has appended it."""
        partition = self.partition
        end_offset = partition.log.end_offset
        if end_offset > partition.high_watermark:
            partition.when_durable(end_offset, self._committed)


class Replay:
    """Reads a partition's log into a machine, a piece at a time."""

    __slots__ = ("_kinds", "_machine", "_offset", "_partition", "records")

    def __init__(self, partition: Partition, machine: Replica, kinds: Kinds) -> None:
        self._partition = partition
        self._machine = machine
        self._kinds = kinds
        self._offset = partition.log.start_offset
        self.records = 0

    def step(self) -> bool:
        """Read one piece; False once the end is reached."""
        log = self._partition.log
        self._offset = max(self._offset, log.start_offset)
        if self._offset >= log.end_offset:
            return False
        data = log.read(self._offset, _PIECE_BYTES, log.end_offset)
        if not data:
            return False
        for position, batch in scan(data):
            if batch.is_control:
                marker = read_marker(data, position)
                if marker is not None:
                    self._machine.end_transaction(batch.producer_id, not marker.aborted)
            else:
                self._take(data, position, batch.producer_id if batch.is_transactional else None)
            self._offset = batch.end_offset
        return True

    def _take(self, data: Bytes, position: int, producer_id: int | None) -> None:
        for stored in read_records(data, position):
            record = None if stored.key is None else decode(self._kinds, stored.key, stored.value)
            if record is None:
                continue
            self.records += 1
            if producer_id is None:
                self._machine.apply(stored.offset, record)
            else:
                self._machine.apply_pending(producer_id, stored.offset, record)
