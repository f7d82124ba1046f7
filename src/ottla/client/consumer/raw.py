"""Hands out fetched batches as they came, for those who make something else than objects of them."""

from typing import TYPE_CHECKING

from ottla.client.consumer.chunk import Chunk
from ottla.client.consumer.parcel import Parcel
from ottla.client.consumer.shelf import Shelf

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_of(shelf: Shelf, bytes_max: int, records_max: int | None) -> "tuple[pa.RecordBatch | None, bool]":
    """Return what waits on the shelf as one Arrow batch; also say whether a position moved."""
    from ottla.client.consumer.arrow import harvest

    parcels = shelf.take_raw(bytes_max)
    if not parcels:
        return None, False
    found = harvest([_chunk(each) for each in parcels], records_max)
    batch, next_offsets = found.batch, found.next_offsets
    if records_max is not None and batch.num_rows > records_max:
        next_offsets = _cut(parcels, batch, records_max, next_offsets)
        batch = batch.slice(0, records_max)
    for parcel, next_offset in reversed(list(zip(parcels, next_offsets, strict=True))):
        shelf.give_back(parcel, next_offset)
    if not batch.num_rows and found.fault is not None:
        raise found.fault
    shelf.records += batch.num_rows
    return (batch if batch.num_rows else None), True


def _chunk(parcel: Parcel) -> Chunk:
    assert parcel.chunk is not None
    return parcel.chunk


def _cut(
    parcels: list[Parcel], batch: "pa.RecordBatch", records_max: int, next_offsets: list[int]
) -> list[int]:
    """Return where each partition goes on when only the first few rows were taken."""
    topic, partition, offset = (
        batch.column(name)[records_max].as_py() for name in ("topic", "partition", "offset")
    )
    starts = [_chunk(each).start_offset for each in parcels]
    cut = next(
        place
        for place, each in enumerate(parcels)
        if each.reading.partition == (topic, partition) and starts[place] <= offset < each.end_offset
    )
    return [*next_offsets[:cut], offset, *starts[cut + 1 :]]
