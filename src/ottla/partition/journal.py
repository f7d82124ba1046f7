"""A partition as the journal of a machine: records with keys in, offsets out, and word of what is committed.

J1  One call is one batch, so it is stored whole or not at all. It is of the leader epoch in which the journal was
    opened: in any other it is refused, since another leader may have written between.
J3  A step of `Replay` is short, whatever is in the log: a long batch takes several.
J2  `replay` gives the records in the order of the log, those of a transaction as pending and its marker as its end.
J4  What a client writes is decoded before the append, by what `Replay` reads it with (`check_batch`), so that no log
    comes to hold what its coordinator cannot read. Records of unknown types are counted, and passed over.
J5  `max.message.bytes` bounds what clients make a coordinator write. What ends or removes that again is written
    though it is longer, and though the limit was lowered: it does not get shorter, and would be refused for ever.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol

from ottla.log.replay import read_marker
from ottla.partition.partition import Partition
from ottla.replicated.keyed import KeyedRecord, Kinds, decode, type_of
from ottla.wire.batch import Batch, build_batch, read_records, record_bytes, scan
from ottla.wire.compression import Codec
from ottla.wire.errors import BrokerError, ErrorCode, ProtocolError
from ottla.wire.record import Record, read_varint, walk
from ottla.world.disk import Bytes

_PIECE_BYTES = 256 << 10
_RECORDS_A_STEP = 4096
_BATCH_BYTES_MAX = 64 << 20  # which a batch of a coordinator's may hold
LENGTH_MAX = 32 << 20  # of a batch of our own, however long it has to be


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

    __slots__ = ("_codec", "_committed", "_leader_epoch", "partition")

    def __init__(
        self, partition: Partition, codec: Codec, committed: Callable[[BrokerError | None], None]
    ) -> None:
        self.partition = partition
        self._leader_epoch = partition.leader_epoch
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
        self,
        records: Sequence[object],
        now: int,
        transactional: tuple[int, int] | None = None,
        *,
        any_length: bool = False,
    ) -> range:
        """Write the records as one batch; BrokerError if it may or can not be done.

        With `any_length` it may be as long as `LENGTH_MAX`, whatever the topic's `max.message.bytes` (J5).
        """
        if self.partition.leader_epoch != self._leader_epoch:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the partition is in another leader epoch")
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
        if any_length and len(batch) > LENGTH_MAX:
            raise BrokerError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"batch of {len(batch)} bytes, and a coordinator writes no more than {LENGTH_MAX}",
            )
        appended = self.partition.append_own(batch, now, any_length=any_length)
        self.watch()
        return range(appended.base_offset, appended.end_offset)

    def watch(self) -> None:
        """Say so when all that is in the log is committed, whoever has appended it."""
        partition = self.partition
        end_offset = partition.log.end_offset
        if end_offset > partition.high_watermark:
            partition.when_durable(end_offset, self._committed)


class Replay:
    """Reads a partition's log into a machine, a piece at a time. `offset` is where the next batch begins."""

    __slots__ = ("_batch", "_kinds", "_machine", "_partition", "offset", "records", "unknown", "unknown_type")

    def __init__(self, partition: Partition, machine: Replica, kinds: Kinds) -> None:
        self._partition = partition
        self._machine = machine
        self._kinds = kinds
        self.offset = partition.log.start_offset
        self.records = 0
        self.unknown = 0  # records of types that nobody here knows
        self.unknown_type: int | None = None  # that of the first of them
        self._batch: _LongBatch | None = None  # one that takes several steps

    def step(self) -> bool:
        """Read one piece; False once the end is reached."""
        if self._batch is not None:
            self._go_on(self._batch)
            return True
        log = self._partition.log
        self.offset = max(self.offset, log.start_offset)
        if self.offset >= log.end_offset:
            return False
        data = log.read(self.offset, _PIECE_BYTES, log.end_offset)
        if not data:
            return False
        for position, batch in scan(data):
            if batch.is_control:
                marker = read_marker(data, position)
                if marker is not None:
                    self._machine.end_transaction(batch.producer_id, not marker.aborted)
            else:
                producer_id = batch.producer_id if batch.is_transactional else None
                if batch.record_count > _RECORDS_A_STEP:
                    self._batch = _LongBatch(data, position, batch, producer_id)
                    return True
                found = read_records(data, position, size_bytes_max=_BATCH_BYTES_MAX)
                self._take(((each.offset, each.key, each.value) for each in found), producer_id)
            self.offset = batch.end_offset
        return True

    def _go_on(self, long: "_LongBatch") -> None:
        self._take(islice(long.records, _RECORDS_A_STEP), long.producer_id)
        long.left -= _RECORDS_A_STEP
        if long.left <= 0:
            self._take(long.records, long.producer_id)  # there are none, or bytes follow, which is said here
            self.offset, self._batch = long.end_offset, None

    def _take(self, found: Iterable[tuple[int, bytes | None, bytes | None]], producer_id: int | None) -> None:
        for offset, key, value in found:
            if key is None:
                continue
            record = decode(self._kinds, key, value)
            if record is None:
                if not self.unknown:
                    self.unknown_type = type_of(key)
                self.unknown += 1
                continue
            self.records += 1
            if producer_id is None:
                self._machine.apply(offset, record)
            else:
                self._machine.apply_pending(producer_id, offset, record)


def check_batch(data: Bytes, kinds: Kinds, check: Callable[[KeyedRecord], object]) -> None:
    """Decode the records of a client's sound batch as `Replay` would, and have each looked at by `check` (J4).

    BrokerError names the first that cannot be read back. This may take long: it is for a thread.
    """
    number = -1
    try:
        for number, (key, value) in enumerate(_read(data)):  # noqa: B007  # the number is for the complaint
            if key is None:
                raise ProtocolError("it has no key")
            record = decode(kinds, key, value)
            if record is not None:
                check(record)
    except Exception as error:  # noqa: BLE001  # whatever it is, a load would break over it too
        if number < 0:
            raise BrokerError(ErrorCode.INVALID_RECORD, f"no coordinator could read the batch: {error}") from None
        raise BrokerError(
            ErrorCode.INVALID_RECORD, f"no coordinator could read record {number} of the batch: {error}", (number,)
        ) from None


def _read(data: Bytes) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Yield key and value of each record of the batch at the beginning of `data`."""
    batch = Batch.parse(data)
    if batch.record_count > _RECORDS_A_STEP:
        for _, key, value in _pairs(record_bytes(data, 0, batch, _BATCH_BYTES_MAX), batch):
            yield key, value
    else:
        for record in read_records(data, 0, size_bytes_max=_BATCH_BYTES_MAX):
            yield record.key, record.value


class _LongBatch:
    """A batch of so many records that one step would hold up the loop: they are made as they are asked for."""

    __slots__ = ("end_offset", "left", "producer_id", "records")

    def __init__(self, data: Bytes, position: int, batch: Batch, producer_id: int | None) -> None:
        body = record_bytes(data, position, batch, _BATCH_BYTES_MAX)
        self.records = _pairs(body, batch)
        self.left = batch.record_count
        self.end_offset = batch.end_offset
        self.producer_id = producer_id


def _pairs(body: bytes, batch: Batch) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    """Yield offset, key and value of each record."""
    for span in walk(body, batch.record_count):
        value = None
        if span.has_value:
            _, at = read_varint(body, span.tail)  # the offset, then the key
            size, at = read_varint(body, at)
            size, at = read_varint(body, at + max(size, 0))
            value = body[at : at + size]
        yield batch.base_offset + span.offset_delta, span.key, value
