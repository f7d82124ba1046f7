"""Reading the log for a share partition: what a fetch finds there, and the part of it that is handed out."""

from typing import NamedTuple

from ottla.broker.share_partitions import Seat
from ottla.share.acquire import Acquired, BatchFacts, Fetched
from ottla.wire.batch import Batch, read_control_batch, scan
from ottla.wire.control import ControlType, control_type
from ottla.wire.errors import BrokerError, ErrorCode, ProtocolError


class Reading(NamedTuple):
    """Batches as they are in the log, what a share partition wants to know of them, and where each begins."""

    data: bytes | bytearray | memoryview
    fetched: Fetched
    positions: list[int]

    def only(self, acquired: list[Acquired]) -> bytes | bytearray | memoryview:
        """Return the batches from the first to the last that have an acquired record."""
        batches = self.fetched.batches
        first, last = acquired[0].start_offset, acquired[-1].end_offset - 1
        kept = [
            at for at, batch in enumerate(batches) if batch.last_offset >= first and batch.base_offset <= last
        ]
        if not kept or len(kept) == len(batches):
            return self.data
        low, after = self.positions[kept[0]], kept[-1] + 1
        high = self.positions[after] if after < len(batches) else len(self.data)
        return memoryview(self.data)[low:high]


def read(seat: Seat, *, committed: bool, size_bytes_max: int, at_least_one: bool) -> Reading | None:
    """Read where the share partition goes on; None when there is nothing.

    BrokerError when the log cannot be read. Records that the log no longer has are passed over.
    """
    share, partition = seat.share, seat.partition
    log = partition.log
    if share.next_offset() < log.start_offset:
        share.log_start_moved(log.start_offset)
    offset = share.next_offset()
    end_offset = partition.last_stable_offset if committed else partition.high_watermark
    if offset >= end_offset or not share.can_acquire():
        return None
    partition.fetch_requests += 1
    try:
        data = log.read(offset, size_bytes_max, end_offset, at_least_one=at_least_one)
        aborted = log.aborted_transactions(offset, end_offset, data) if committed else []
        found = list(scan(data))
        batches = [_facts(data, position, batch, committed) for position, batch in found]
    except ProtocolError as error:
        partition.fetch_failures += 1
        raise BrokerError(ErrorCode.INVALID_RECORD, f"a batch from offset {offset} on: {error}") from None
    except OSError as error:
        partition.fetch_failures += 1
        refused = log.storage_error(error)
        raise refused from error
    if not found:
        return None
    return Reading(data, Fetched(offset, batches, aborted), [position for position, _ in found])


def _facts(data: bytes | bytearray | memoryview, position: int, batch: Batch, committed: bool) -> BatchFacts:
    aborts = False
    if committed and batch.is_control:
        records = read_control_batch(data, position)
        aborts = bool(records) and control_type(records[0].key) is ControlType.ABORT
    return BatchFacts(batch.base_offset, batch.last_offset, batch.producer_id, batch.is_transactional, aborts)
