"""Takes fetched batches from the buffer as one Arrow record batch."""

from typing import TYPE_CHECKING

from ottla.client.consumer.completed_fetch import CompletedFetch
from ottla.client.consumer.fetch_buffer import FetchBuffer
from ottla.client.consumer.fetched_batches import FetchedBatches

if TYPE_CHECKING:
    import pyarrow as pa


def take_record_batch(
    buffer: FetchBuffer, bytes_max: int, records_max: int | None
) -> "tuple[pa.RecordBatch | None, bool]":
    """Return the buffered records as one Arrow record batch, and whether a position moved."""
    from ottla.client.consumer.arrow_records import arrow_records_of

    fetches = buffer.take_unopened(bytes_max)
    if not fetches:
        return None, False
    found = arrow_records_of([_fetched(each) for each in fetches], records_max)
    batch, next_offsets = found.batch, found.next_offsets
    if records_max is not None and batch.num_rows > records_max:
        next_offsets = _cut(fetches, batch, records_max, next_offsets)
        batch = batch.slice(0, records_max)
    for fetch, next_offset in reversed(list(zip(fetches, next_offsets, strict=True))):
        buffer.give_back(fetch, next_offset)
    if not batch.num_rows and found.fault is not None:
        raise found.fault
    buffer.records += batch.num_rows
    return (batch if batch.num_rows else None), True


def _fetched(fetch: CompletedFetch) -> FetchedBatches:
    assert fetch.unopened is not None
    return fetch.unopened


def _cut(
    fetches: list[CompletedFetch], batch: "pa.RecordBatch", records_max: int, next_offsets: list[int]
) -> list[int]:
    """Return the next offset of each fetch if only the first rows are returned."""
    topic, partition, offset = (
        batch.column(name)[records_max].as_py() for name in ("topic", "partition", "offset")
    )
    starts = [_fetched(each).start_offset for each in fetches]
    cut = next(
        place
        for place, each in enumerate(fetches)
        if each.assigned.partition == (topic, partition) and starts[place] <= offset < each.end_offset
    )
    return [*next_offsets[:cut], offset, *starts[cut + 1 :]]
