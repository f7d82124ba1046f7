"""Columns of Arrow as lists of plain values, and back: structs are tuples, maps are dicts, everything else is as
Python has it.

Structs as tuples are smaller and faster than the dicts that Arrow itself makes of them, and Arrow takes them back.
"""

from typing import Any

import pyarrow as pa


def values(column: pa.Array) -> list[Any]:
    """Return what is in a column."""
    count = len(column)
    if column.null_count == count:
        return [None] * count
    type = column.type
    if not pa.types.is_nested(type):
        found: list[Any] = column.to_pylist()
        return found
    if pa.types.is_struct(type):
        fields = [values(column.field(n)) for n in range(type.num_fields)]
        rows: list[Any] = list(zip(*fields, strict=True)) if fields else [()] * count
        return _with_nulls(column, rows)
    if pa.types.is_map(type):
        keys, items = values(column.keys), values(column.items)
        offsets = column.offsets.to_pylist()
        first = offsets[0] if offsets else 0
        spans = [(offsets[n] - first, offsets[n + 1] - first) for n in range(count)]
        if len(keys) != (offsets[-1] - first if offsets else 0):  # they are not cut to the slice
            spans = [(start + first, end + first) for start, end in spans]
        return _with_nulls(
            column, [dict(zip(keys[start:end], items[start:end], strict=True)) for start, end in spans]
        )
    inside = values(column.flatten())
    rows, at = [], 0
    for size in column.value_lengths().to_pylist():
        rows.append(inside[at : at + (size or 0)])
        at += size or 0
    return _with_nulls(column, rows)


def _with_nulls(column: pa.Array, rows: list[Any]) -> list[Any]:
    if not column.null_count:
        return rows
    valid = column.is_valid().to_pylist()
    return [row if there else None for row, there in zip(rows, valid, strict=True)]


def column(given: list[Any], type: pa.DataType) -> pa.Array:
    """Return a column of plain values."""
    return pa.array(given, type)
