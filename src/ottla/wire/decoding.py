"""Writes the source of a decoder: one function, one unpack for each run of fixed fields, no calls on the common path.

The commonest message is tried first without loops (`lone.py`), and arrays of alike elements are read as tables
(`run.py`); what is written here reads everything. Four habits make the code quick, and explain its looks.

- Lengths and counts of one byte, nearly all of them, are read with the fixed fields before them. A first byte above
  127 means a longer varint, which is then read again from its start.
- `pos` moves only where it must: between moves, positions are `pos` plus a number known when the source is written.
- Nothing checks a string against `end`: a slice cannot reach past the buffer, and the position it leaves behind is
  checked at the end of the message at the latest. Whatever was misread until then is thrown away.
- Objects are made without their constructor, and every slot is stored.
"""

import struct
from typing import Any

from ottla.wire import tags, varint
from ottla.wire.cursor import Cursor
from ottla.wire.elements import elements_max, too_many_elements
from ottla.wire.errors import ProtocolError
from ottla.wire.field import Field
from ottla.wire.layout import has_records, minimum_size
from ottla.wire.lone import write_lone
from ottla.wire.message import Message, Struct, fields_of
from ottla.wire.primitive import Primitive
from ottla.wire.run import ROWS_MIN, Run, run_of
from ottla.wire.source import Source

# Arrays of structs inside what is itself inside two arrays, such as the aborted transactions of a partition.
ROWS_LEVEL = 2
_UNPACKERS: dict[str, Any] = {}


def decoder_source(cls: type[Message], version: int) -> Source:
    """The source of `decode(buf, pos, end) -> (message, pos)` for one version."""
    return _DecoderWriter(cls, version).write()


class _DecoderWriter(Cursor):
    def __init__(self, cls: type[Message], version: int) -> None:
        super().__init__(Source("decode"))
        self.cls = cls
        self.version = version
        self.flexible = cls.flexible is not None and version >= cls.flexible
        self.elements_max = elements_max(cls, version)

    def write(self) -> Source:
        source = self.source
        for name, value in {
            "new": object.__new__,
            "ProtocolError": ProtocolError,
            "StructError": struct.error,
            "read_varint": varint.read_varint,
            "read_string_length": varint.read_string_length,
            "read_many": varint.read_many,
            "too_many": varint.too_many,
            "read_tag": tags.read_tag,
            "read_unknown": tags.read_unknown,
            "keep_unknown": tags.keep_unknown,
            "too_many_elements": too_many_elements,
        }.items():
            source.bind(name, value)
        source.line("def decode(buf, pos, end):")
        with source.block():
            write_lone(source, self.cls, self.version, self.flexible)
            source.line("try:")
            with source.block():
                if self.flexible:
                    source.line(f"budget = {tags.BUDGET}")
                if self.elements_max is not None:
                    source.line(f"left = {self.elements_max}")
                if has_records(self.cls):
                    source.line("view = memoryview(buf)")
                root = self.source.new(self.cls)
                self.struct(self.cls, root, self.cls.__name__)
                self.settle()
            source.line("except (IndexError, StructError, UnicodeDecodeError) as cause:")
            with source.block():
                source.line(
                    f"raise ProtocolError(f'{self.cls.__name__} v{self.version}: {{cause}}') from None"
                )
            source.line("if pos > end:")
            with source.block():
                source.line(
                    f"raise ProtocolError(f'{self.cls.__name__} v{self.version} ends {{pos - end}} bytes too late')"
                )
            source.line(f"return {root}, pos")
        return source

    def struct(self, cls: type[Struct], var: str, path: str) -> None:
        """Read every field of a struct into `var`."""
        tagged: list[Field] = []
        plain: list[Field] = []
        for field in fields_of(cls):
            if self.version in field.versions and field.tag is None:
                plain.append(field)
                continue
            self.store_default(field, var)
            if self.version in field.versions:
                tagged.append(field)
        while plain:
            field = plain.pop(0)
            deep = self.flexible and path.count(".") >= ROWS_LEVEL
            if deep and field.array and field.is_struct and self.ahead is None:
                self.past_empty(field, plain, var, path)
            else:
                self.field(field, var, path)
        if self.flexible:
            self.tags(cls, tagged, var, path)
        else:
            self.source.line(f"{var}.unknown_tags = None")

    def past_empty(self, field: Field, after: list[Field], var: str, path: str) -> None:
        """An array inside a row, which is mostly empty: what follows it is read along, as if it were.

        An array that is not empty has only more bytes before those, so that reading them too early is harmless.
        The fields read leave `after`.
        """
        source = self.source
        count = source.fresh("n")
        follows: list[tuple[str, str]] = []
        while after and after[0].fixed:
            follows.append((after[0].kind.code, f"{var}.{after.pop(0).name}"))
        if not after or (self.compact(after[0]) and (after[0].array or not after[0].is_struct)):
            follows.append(("B", source.fresh("n")))
        size = struct.calcsize(">" + "".join(code for code, _ in follows))
        self.run += ("B", count), *follows
        self.flush()
        offset = self.offset
        source.line(f"if {count} < 2:" if self.nullable(field) else f"if {count} == 1:")
        with source.block():
            source.line(
                f"{var}.{field.name} = []" + (f" if {count} else None" if self.nullable(field) else "")
            )
        source.line("else:")
        with source.block():
            self.offset -= size
            self.ahead = count
            self.field(field, var, path)
            self.settle()
            self.run += follows
            self.flush()
            source.line(f"pos -= {offset - size}")
        self.offset = offset
        if follows and not follows[-1][1].startswith(f"{var}."):
            self.ahead = follows[-1][1]

    def store_default(self, field: Field, var: str) -> None:
        self.source.line(f"{var}.{field.name} = {self.source.default(field)}")

    def tags(self, cls: type[Struct], tagged: list[Field], var: str, path: str) -> None:
        source = self.source
        count = self.length("B", compact=True)
        source.line(f"if {count}:")
        start = self.offset
        with source.block():
            known = [field for field in fields_of(cls) if field.tag is not None]
            if known:
                self.known_tags(count, known, tagged, var, path)
            else:
                source.line(
                    f"{var}.unknown_tags, pos, budget = read_unknown(buf, {self.at(-1)}, end, budget)"
                )
                if start:
                    source.line(f"pos -= {start}")
        source.line("else:")
        with source.block():
            source.line(f"{var}.unknown_tags = None")
        self.offset = start

    def known_tags(self, count: str, known: list[Field], tagged: list[Field], var: str, path: str) -> None:
        source = self.source
        start = self.offset
        kept, tag, stop = source.fresh("kept"), source.fresh("tag"), source.fresh("stop")
        self.long_length(count)
        self.settle()
        source.line(f"{kept} = None")
        source.line(f"{tag} = -1")
        source.line(f"for _ in range({count}):")
        with source.block():
            source.line(f"{tag}, pos, {stop} = read_tag(buf, pos, end, {tag})")
            branch = "if"
            for field in sorted(known, key=lambda field: field.tag or 0):
                source.line(f"{branch} {tag} == {field.tag}:")
                branch = "elif"
                with source.block():
                    if field in tagged:
                        self.field(field, var, path)
                        self.settle()
                    else:
                        source.line(
                            f"raise ProtocolError('{path}.{field.name} is not in version {self.version}')"
                        )
            source.line("else:")
            with source.block():
                source.line(f"{kept}, budget = keep_unknown({kept}, budget, {tag}, buf, pos, {stop})")
                source.line(f"pos = {stop}")
            source.line(f"if pos != {stop}:")
            with source.block():
                source.line(f"raise ProtocolError(f'tag {{{tag}}} of {path} is not as long as it says')")
        source.line(f"{var}.unknown_tags = {kept}")
        if start:
            source.line(f"pos -= {start}")

    def field(self, field: Field, var: str, path: str) -> None:
        path = f"{path}.{field.name}"
        target = f"{var}.{field.name}"
        if field.fixed:
            self.run.append((field.kind.code, target))
        elif field.array:
            if field.is_struct:
                self.structs(field, target, path)
            elif field.kind.code is not None:
                self.numbers(field, target, path)
            else:
                self.strings(field, target, path)
        elif field.is_struct:
            self.inline_struct(field, target, path)
        else:
            self.bytes_like(field.kind, self.compact(field), self.nullable(field), target, path)

    def compact(self, field: Field) -> bool:
        return self.flexible and field.flexible

    def nullable(self, field: Field) -> bool:
        return self.version in field.nullable

    def null(self, nullable: bool, target: str, path: str) -> None:
        """What a null means: None, or a complaint."""
        self.source.line(f"{target} = None" if nullable else f"raise ProtocolError('{path} is null')")

    def inline_struct(self, field: Field, target: str, path: str) -> None:
        if not self.nullable(field):
            var = self.source.new(field.kind)
            self.source.line(f"{target} = {var}")
            self.struct(field.kind, var, path)
            return
        # A nullable struct is led by a byte; among tagged fields the same byte is a varint, where 0 is null.
        marker = self.length("B" if field.tag is not None else "b", compact=False)
        self.settle()
        self.source.line(f"if {marker} {'== 0' if field.tag is not None else '< 0'}:")
        with self.source.block():
            self.source.line(f"{target} = None")
        self.source.line("else:")
        with self.source.block():
            var = self.source.new(field.kind)
            self.source.line(f"{target} = {var}")
            self.struct(field.kind, var, path)
            self.settle()

    def bytes_like(self, kind: Primitive, compact: bool, nullable: bool, target: str, path: str) -> None:
        """A string, bytes or records: a length and that much of the buffer."""
        source = self.source
        size = self.length("h" if kind.name == "string" else "i", compact)
        if compact and kind.name == "string":
            self.long_length(size, "read_string_length")
        elif compact:
            self.inline_long_length(size)
        stop = source.fresh("q")
        extent = f"{self.at()}:{stop}"
        value = {
            "string": f"buf[{extent}].decode()",
            "bytes": f"bytes(buf[{extent}])",
            "records": f"view[{extent}]",
        }[kind.name]
        source.line(f"if {size}:" if compact else f"if {size} >= 0:")
        with source.block():
            source.line(f"{stop} = {self.at(-1 if compact else 0)} + {size}")
            source.line(f"{target} = {value}")
            source.line(f"pos = {stop}")
        source.line("else:")
        with source.block():
            self.null(nullable, target, path)
            if nullable and self.offset:
                source.line(f"pos += {self.offset}")
        self.offset = 0

    def numbers(self, field: Field, target: str, path: str) -> None:
        """An array of fixed-size values: one prepared unpack when there are fewer than 127."""
        source = self.source
        code, size = field.kind.code, field.kind.size
        compact = self.compact(field)
        count = self.length("i", compact)
        extra = 1 if compact else 0
        elements = f"{count} - 1" if compact else count
        if code not in _UNPACKERS:
            _UNPACKERS[code] = (None, *varint.unpackers(code)), varint.unpackers(code)
        table = source.bind(f"unpack_some_{code}_{extra}", _UNPACKERS[code][1 - extra])
        source.line(f"if {extra} < {count} < 128:")
        with source.block():
            self.charge(elements)
            source.line(f"{target} = [*{table}[{count}](buf, {self.at()})]")
            advance = f"{count} * {size}" if size > 1 else count
            source.line(f"pos += {advance}{_signed(self.offset - extra * size)}")
        source.line(f"elif {count} == {extra}:")
        with source.block():
            source.line(f"{target} = []")
            if self.offset:
                source.line(f"pos += {self.offset}")
        source.line(f"elif {count} < {extra}:")
        with source.block():
            self.null(self.nullable(field), target, path)
            if self.nullable(field) and self.offset:
                source.line(f"pos += {self.offset}")
        source.line("else:")
        with source.block():
            if compact:
                source.line(f"{count}, pos = read_varint(buf, {self.at(-1)})")
                self.charge(elements)
                source.line(f"{target}, pos = read_many(buf, pos, end, {count} - 1, '{code}', {size})")
            else:
                self.charge(elements)
                source.line(f"{target}, pos = read_many(buf, {self.at()}, end, {count}, '{code}', {size})")
        self.offset = 0

    def strings(self, field: Field, target: str, path: str) -> None:
        items = self.begin_array(field, 1 if self.compact(field) else 2, target, path)
        with self.source.block():
            item = self.source.fresh("s")
            self.bytes_like(field.kind, self.compact(field), False, item, path)
            self.settle()
            self.source.line(f"{items}.append({item})")

    def structs(self, field: Field, target: str, path: str) -> None:
        least = minimum_size(field.kind, self.version, self.flexible)
        items = self.begin_array(field, least, target, path, run_of(field.kind, self.version, self.flexible))
        with self.source.block():
            var = self.source.new(field.kind)
            self.source.line(f"{items}.append({var})")
            self.struct(field.kind, var, path)
            self.settle()

    def begin_array(self, field: Field, least: int, target: str, path: str, run: Run | None = None) -> str:
        """Read a count and open the loop over its elements.

        Elements are made one by one as their bytes are read, so a count by itself allocates nothing; one
        that takes more than a byte is still held against the bytes left, to fail early.
        """
        source = self.source
        compact = self.compact(field)
        count = self.length("i", compact)
        elements = f"{count} - 1" if compact else count
        source.line(f"if {count} > 127:")
        with source.block():
            if compact:
                source.line(f"{count}, pos = read_varint(buf, {self.at(-1)})")
                if self.offset:
                    source.line(f"pos -= {self.offset}")
            source.line(f"if {elements} > (end - ({self.at()})) // {least}:")
            with source.block():
                source.line(f"raise too_many({elements}, end - ({self.at()}))")
        items = source.fresh("xs")
        null = f"{count} == 0" if compact else f"{count} < 0"
        if self.nullable(field):
            source.line(f"{target} = {items} = None if {null} else []")
        else:
            source.line(f"elif {null}:")
            with source.block():
                self.null(False, target, path)
            source.line(f"{target} = {items} = []")
        self.settle()
        if self.elements_max is not None:
            source.line(f"if {count} > {1 if compact else 0}:")
            with source.block():
                self.charge(elements)
        if run is not None:
            rows = source.fresh("rows")
            read = source.bind(f"run_of_{field.kind.__name__}", run.reader())
            source.line(f"if {count} > {ROWS_MIN if compact else ROWS_MIN - 1}:")
            with source.block():
                source.line(f"{rows} = {read}(buf, pos, end, {elements})")
                source.line(f"if {rows}:")
                with source.block():
                    source.line(f"{target}, pos = {rows}")
                    source.line(f"{count} = 0")
        source.line(f"while {count} > {1 if compact else 0}:")
        with source.block():
            source.line(f"{count} -= 1")
        return items


    def charge(self, elements: str) -> None:
        """Take elements, of which there are some, off what a request may still have."""
        if self.elements_max is not None:
            self.source.line(f"left -= {elements}")
            self.source.line("if left < 0:")
            with self.source.block():
                self.source.line("raise too_many_elements()")


def _signed(number: int) -> str:
    return f" + {number}" if number > 0 else f" - {-number}" if number else ""
