"""Records written from columns are the records written one by one: `wire.record` is the model."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.wire.columns_encoding import encode_columns, encode_headers
from ottla.wire.record import Record, decode_records, encode_records

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

timestamps = st.integers(0, 1 << 50) | st.integers(1_000, 1_200)
payloads = st.none() | st.binary(max_size=200) | st.sampled_from([b"a" * 3_000, bytes(70_000)])
headers = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=3)
rows = st.tuples(timestamps, payloads, payloads, st.none() | headers)


@st.composite
def tables(draw: st.DrawFn) -> list[list[tuple]]:
    """Batches of rows; some rows many times, so that numbers of two and three bytes are needed."""
    batches = []
    for some in draw(
        st.lists(st.lists(st.tuples(rows, st.integers(0, 5)), min_size=1, max_size=5), min_size=1, max_size=4)
    ):
        batch = []
        for row, times in some:
            small = len(row[1] or b"") + len(row[2] or b"") < 1_000
            batch += [row] * ((1, 1, 2, 70, 300, 8_300)[times] if small else 1)
        batches.append(batch)
    return batches


@settings(max_examples=30, deadline=None)
@given(
    tables(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([pa.binary(), pa.large_binary()]),
    st.integers(0, 3),
)
def test_as_one_by_one(
    batches: list[list[tuple]], keyed: bool, headed: bool, kind: pa.DataType, skipped: int
) -> None:
    # Columns that begin somewhere in their buffers, as slices do.
    filler = [(0, b"key", b"value", [("name", b"value")])] * skipped
    flat = filler + [row for batch in batches for row in batch]
    times, keys, values, extras = zip(*flat, strict=True)
    starts = np.cumsum([0, *map(len, batches[:-1])])

    def column(given: tuple, type_: pa.DataType) -> pa.Array:
        return pa.array(given, type_)[skipped:]

    listed = tuple(None if each is None else [{"key": k, "value": v} for k, v in each] for each in extras)
    encoded = encode_columns(
        column(keys, kind) if keyed else None,
        column(values, kind),
        encode_headers(column(listed, HEADERS), kind) if headed else None,
        np.array(times, np.int64)[skipped:],
        starts,
    )
    for number, batch in enumerate(batches):
        base = batch[0][0]
        wanted = [
            Record(index, time, key if keyed else None, value, tuple(extra or ()) if headed else ())
            for index, (time, key, value, extra) in enumerate(batch)
        ]
        body, latest = encode_records(wanted, 0, base)
        found = bytes(encoded.data[encoded.bounds[number] : encoded.bounds[number + 1]])
        assert found == body
        assert (encoded.base_timestamps[number], encoded.max_timestamps[number]) == (base, latest)
        assert decode_records(found, len(batch), 0, base) == wanted
