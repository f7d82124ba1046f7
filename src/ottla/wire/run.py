"""Reads an array whose elements are all laid out like the first of them, in one sweep.

Partitions of a topic mostly differ in their numbers alone: they have as many replicas each, no error text, no tagged
fields. Their bytes are then a table, each row as long as the next. Two things are asked of it, whether it lies within
the frame, and whether each column of counts and markers says the same throughout; then `struct` reads row by row,
and no element is looked at for its lengths.

R1  The elements are those the general decoder would have read, or None says that it must.
R2  A reader is compiled for each combination of array lengths that comes by, up to SHAPES_MAX of them.
"""

import struct
from collections.abc import Callable
from typing import Any

from ottla.wire.field import Field
from ottla.wire.message import Struct, fields_of
from ottla.wire.source import Source
from ottla.wire.varint import Buffer

ROWS_MIN = 3
NUMBERS_MAX = 12
SHAPES_MAX = 32

# What stands in a row: the field (None for the count of tags), and the byte that a marker must be, or None.
Cell = tuple[Field | None, int | None]
Reader = Callable[[Buffer, int, int, int], tuple[list[Any], int] | None]


class Run:
    """The arrays of one struct in one version."""

    def __init__(self, cls: type[Struct], version: int, cells: tuple[Cell, ...]) -> None:
        self.cls = cls
        self.cells = cells
        self.title = f"{cls.__module__}.{cls.__qualname__} v{version} run"
        self.readers: dict[tuple[int, ...], Reader] = {}

    def reader(self) -> Reader:
        """A function (buf, pos, end, count) -> (structs, position after them), or None when they are not alike."""
        return self._chooser() if self._arrays() else self._compile(())

    def _chooser(self) -> Reader:
        """Looks at the arrays of numbers of the first element, and goes on with the reader of such lengths.

        Every byte looked at exists: it is where a count or a marker must be, if those before it are as expected.
        """
        source = Source("choose")
        source.bind("readers", self.readers)
        source.bind("learn", self._learn)
        source.line("def choose(buf, pos, end, count):")
        with source.block():
            lengths: list[str] = []
            place, skip = "pos", 0
            for field, expected in self.cells:
                if field is not None and field.fixed:
                    skip += field.kind.size
                elif expected is not None:
                    if len(lengths) < self._arrays():
                        source.line(f"if buf[{place} + {skip}] != {expected}:")
                        with source.block():
                            source.line("return None")
                    skip += 1
                else:
                    assert field is not None
                    lengths.append(source.fresh("n"))
                    source.line(f"{lengths[-1]} = buf[{place} + {skip}]")
                    place = f"{place} + {lengths[-1]} * {field.kind.size}"
                    skip += 1 - field.kind.size
            key = f"({', '.join(lengths)},)"
            source.line(f"read = readers.get({key}) or learn({key})")
            source.line("return read(buf, pos, end, count)")
        return source.load(self.title)

    def _arrays(self) -> int:
        return sum(1 for field, expected in self.cells if field and not field.fixed and expected is None)

    def _learn(self, lengths: tuple[int, ...]) -> Reader:
        if len(self.readers) >= SHAPES_MAX or not all(0 < each <= NUMBERS_MAX + 1 for each in lengths):
            return _unlike
        reader = self.readers[lengths] = self._compile(lengths)
        return reader

    def _compile(self, lengths: tuple[int, ...]) -> Reader:
        source = Source("read")
        source.bind("new", object.__new__)
        counts = iter(lengths)
        codes = ""
        columns: list[str] = []
        markers: list[tuple[int, int]] = []
        values: dict[str, str] = {}
        for field, expected in self.cells:
            if field is not None and field.fixed:
                columns.append(source.fresh("v"))
                codes += field.kind.code
                values[field.name] = columns[-1]
                continue
            found = next(counts) if expected is None else expected
            markers.append((struct.calcsize(">" + codes), found))
            codes += "x"
            if field is None:
                continue
            if expected is None:
                numbers = [source.fresh("v") for _ in range(found - 1)]
                columns += numbers
                codes += field.kind.code * len(numbers)
                values[field.name] = f"[{', '.join(numbers)}]"
            else:
                values[field.name] = "None" if expected == 0 else "[]"
        size = struct.calcsize(">" + codes)
        rows = source.struct(codes, "iter_unpack")
        source.line("def read(buf, pos, end, count):")
        with source.block():
            source.line(f"stop = pos + {size} * count")
            differ = [f"buf[pos + {at}:stop:{size}].count({byte}) != count" for at, byte in markers]
            source.line(f"if {' or '.join(['stop > end', *differ])}:")
            with source.block():
                source.line("return None")
            source.line("xs = []")
            source.line(
                f"for {', '.join(columns)}{',' if len(columns) == 1 else ''} in {rows}(buf[pos:stop]):"
            )
            with source.block():
                var = source.new(self.cls)
                for field in fields_of(self.cls):
                    source.line(f"{var}.{field.name} = {values.get(field.name) or source.default(field)}")
                source.line(f"{var}.unknown_tags = None")
                source.line(f"xs.append({var})")
            source.line("return xs, stop")
        return source.load(f"{self.title} of {lengths}" if lengths else self.title)


def _unlike(buf: Buffer, pos: int, end: int, count: int) -> None:
    """Reads nothing: the elements are of a shape not learnt."""
    return


def run_of(cls: type[Struct], version: int, flexible: bool) -> Run | None:
    """How to read many such structs at once; None when one of its fields never has the same size twice."""
    cells: list[Cell] = []
    for field in fields_of(cls):
        if version not in field.versions or field.tag is not None:
            continue
        if field.fixed:
            cells.append((field, None))
        elif not flexible or not field.flexible:
            return None
        elif field.array:
            if not field.is_struct and field.kind.code is None:
                return None
            cells.append((field, 1 if field.is_struct else None))
        elif not field.is_struct and field.kind.name == "string" and version in field.nullable:
            cells.append((field, 0))
        else:
            return None
    if flexible:
        cells.append((None, 0))
    return Run(cls, version, tuple(cells)) if any(field and field.fixed for field, _ in cells) else None
