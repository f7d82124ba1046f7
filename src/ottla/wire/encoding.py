"""Writes the source of an encoder: one function, one pack for each run of fixed fields and the length after it.

The common path carries no checks of its own. A value that does not fit its field makes `struct` or Python itself
raise, and only then is the message walked again, by `explain`, to say which field is to blame. What no one would
notice is asked: whether a field is set that the version lacks. (Not asked: whether a uuid has its sixteen bytes;
`struct` pads or cuts it.)

E1  When an encoder raises, it has taken back what it wrote.
"""

import struct
from typing import Any

from ottla.wire import tags, varint
from ottla.wire.diagnosis import explain
from ottla.wire.errors import ProtocolError
from ottla.wire.field import UNSET, Field
from ottla.wire.message import Message, Struct, fields_of
from ottla.wire.primitive import Primitive
from ottla.wire.source import Source

_COPIED_BYTES_MAX = 4 << 10
_PACKERS: dict[str, Any] = {}


def encoder_source(cls: type[Message], version: int, *, in_parts: bool) -> Source:
    """The source of `encode(message, out)`, where `out` is a bytearray, or a list of buffers when `in_parts`.

    A bytearray that such a list ends with is gone on with, and records too short to be worth a buffer are copied.
    """
    return _EncoderWriter(cls, version, in_parts).write()


class _EncoderWriter:
    def __init__(self, cls: type[Message], version: int, in_parts: bool) -> None:
        self.cls = cls
        self.version = version
        self.in_parts = in_parts
        self.flexible = cls.flexible is not None and version >= cls.flexible
        self.source = Source("encode")
        self.out = "out"
        self.run: list[tuple[str, str]] = []

    def write(self) -> Source:
        source = self.source
        for name, value in {
            "StructError": struct.error,
            "ProtocolError": ProtocolError,
            "explain": explain,
            "varint": varint.varint,
            "string_varint": varint.string_varint,
            "pack_many": varint.pack_many,
            "write_tags": tags.write_tags,
        }.items():
            source.bind(name, value)
        source.line(f"def encode(o, {'parts' if self.in_parts else 'out'}):")
        with source.block():
            source.line(f"start = len({'parts' if self.in_parts else 'out'})")
            if self.in_parts:
                source.line("out = parts.pop() if parts else bytearray()")
            source.line("try:")
            with source.block():
                self.struct(self.cls, "o", self.cls.__name__)
                self.flush()
                if self.in_parts:
                    source.line("if out:")
                    with source.block():
                        source.line("parts.append(out)")
            source.line(
                "except (StructError, AttributeError, TypeError, ValueError, OverflowError, ProtocolError) as cause:"
            )
            with source.block():
                source.line(f"del {'parts' if self.in_parts else 'out'}[start:]")
                source.line(f"raise explain(o, {self.version}, cause) from cause")
        return source

    def flush(self) -> None:
        """Pack the fixed values gathered so far."""
        if not self.run:
            return
        codes = "".join(code for code, _ in self.run)
        values = ", ".join(value for _, value in self.run)
        if codes == "B":
            self.source.line(f"{self.out}.append({values})")
        else:
            self.source.line(f"{self.out} += {self.source.struct(codes, 'pack')}({values})")
        self.run = []

    def length(self, size: str, code: str, compact: bool, long: str = "varint") -> None:
        """Pack a length together with the run before it."""
        if not compact:
            self.run.append((code, size))
            self.flush()
            return
        source = self.source
        run = tuple(self.run)
        source.line(f"if {size} < 128:")
        with source.block():
            self.run = [*run, ("B", size)]
            self.flush()
        source.line("else:")
        with source.block():
            self.run = [*run]
            self.flush()
            source.line(f"{self.out} += {long}({size})")

    def struct(self, cls: type[Struct], var: str, path: str) -> None:
        fields = fields_of(cls)
        lacking = [
            _differs(self.source, field, var)
            for field in fields
            if self.version not in field.versions and not field.ignorable
        ]
        if not self.flexible:
            lacking.append(f"{var}.unknown_tags")
        if lacking:
            self.source.line(f"if {' or '.join(lacking)}:")
            with self.source.block():
                self.source.line(f"raise ProtocolError('{path}')")
        present = [field for field in fields if self.version in field.versions]
        for field in present:
            if field.tag is None:
                self.field(field, var, path)
        if self.flexible:
            self.tags([field for field in present if field.tag is not None], var, path)

    def tags(self, tagged: list[Field], var: str, path: str) -> None:
        source = self.source
        conditions = [_differs(source, field, var) for field in tagged]
        source.line(f"if {' or '.join([*conditions, f'{var}.unknown_tags'])}:")
        run = tuple(self.run)
        with source.block():
            self.flush()
            found, outer = source.fresh("tags"), self.out
            source.line(f"{found} = dict({var}.unknown_tags or ())")
            for field, condition in zip(tagged, conditions, strict=True):
                source.line(f"if {condition}:")
                with source.block():
                    self.out = source.fresh("value")
                    source.line(f"{self.out} = bytearray()")
                    self.field(field, var, path)
                    self.flush()
                    source.line(f"{found}[{field.tag}] = {self.out}")
                    self.out = outer
            source.line(f"write_tags({self.out}, {found})")
        source.line("else:")
        with source.block():
            self.run = [*run, ("B", "0")]
            self.flush()

    def field(self, field: Field, var: str, path: str) -> None:
        value = f"{var}.{field.name}"
        path = f"{path}.{field.name}"
        if field.fixed:
            self.run.append((field.kind.code, value))
        elif field.array:
            self.array(field, value, path)
        elif field.is_struct:
            self.inline_struct(field, value, path)
        else:
            self.bytes_like(field.kind, self.compact(field), self.nullable(field), value)

    def compact(self, field: Field) -> bool:
        return self.flexible and field.flexible

    def nullable(self, field: Field) -> bool:
        return self.version in field.nullable

    def inline_struct(self, field: Field, value: str, path: str) -> None:
        source = self.source
        var = source.fresh("v")
        source.line(f"{var} = {value}")
        if not self.nullable(field):
            self.struct(field.kind, var, path)
            return
        self.flush()
        source.line(f"if {var} is None:")
        with source.block():
            source.line(f"{self.out}.append({0 if field.tag is not None else 255})")
        source.line("else:")
        with source.block():
            self.run.append(("B", "1"))
            self.struct(field.kind, var, path)
            self.flush()

    def bytes_like(self, kind: Primitive, compact: bool, nullable: bool, value: str) -> None:
        source = self.source
        text = kind.name == "string"
        data, size = source.fresh("b"), source.fresh("n")
        one = " + 1" if compact else ""
        if nullable:
            source.line(f"{data} = {value}")
            source.line(f"if {data} is None:")
            with source.block():
                source.line(f"{size} = {0 if compact else -1}")
                source.line(f"{data} = b''")
            source.line("else:")
            with source.block():
                if text:
                    source.line(f"{data} = {data}.encode()")
                source.line(f"{size} = len({data}){one}")
        else:
            source.line(f"{data} = {value}{'.encode()' if text else ''}")
            source.line(f"{size} = len({data}){one}")
        self.length(size, "h" if text else "i", compact, "string_varint" if text else "varint")
        if kind.name == "records" and self.in_parts:
            source.line(f"if {size} > {_COPIED_BYTES_MAX}:")
            with source.block():
                source.line(f"parts.append({self.out})")
                source.line(f"parts.append({data})")
                source.line(f"{self.out} = bytearray()")
            source.line("else:")
            with source.block():
                source.line(f"{self.out} += {data}")
        else:
            source.line(f"{self.out} += {data}")

    def array(self, field: Field, value: str, path: str) -> None:
        source = self.source
        compact = self.compact(field)
        items, count = source.fresh("xs"), source.fresh("n")
        source.line(f"{items} = {value}")
        one = " + 1" if compact else ""
        if self.nullable(field):
            source.line(f"if {items} is None:")
            with source.block():
                source.line(f"{count} = {0 if compact else -1}")
                source.line(f"{items} = ()")
            source.line("else:")
            with source.block():
                source.line(f"{count} = len({items}){one}")
        else:
            source.line(f"{count} = len({items}){one}")
        self.length(count, "i", compact)
        if not field.is_struct and field.kind.code is not None:
            self.numbers(field.kind.code, items, count, 1 if compact else 0)
            return
        item = source.fresh("v")
        source.line(f"for {item} in {items}:")
        with source.block():
            if field.is_struct:
                self.struct(field.kind, item, path)
            else:
                self.bytes_like(field.kind, compact, False, item)
            self.flush()

    def numbers(self, code: str, items: str, count: str, extra: int) -> None:
        source = self.source
        if code not in _PACKERS:
            _PACKERS[code] = varint.packers(code), (None, *varint.packers(code))
        table = source.bind(f"pack_some_{code}_{extra}", _PACKERS[code][extra])
        source.line(f"if {extra} < {count} < 128:")
        with source.block():
            source.line(f"{self.out} += {table}[{count}](*{items})")
        source.line(f"elif {count} > 127:")
        with source.block():
            source.line(f"{self.out} += pack_many('{code}', {items})")


def _differs(source: Source, field: Field, var: str) -> str:
    """A condition: the field has another value than its default."""
    value = f"{var}.{field.name}"
    if field.default is None:
        return f"{value} is not None"
    if field.default is UNSET:
        if field.array:
            return f"({value} is None or {value})" if field.nullable else value
        default = source.bind(f"DEFAULT_{field.kind.__name__}", field.kind())
        return f"{value} != {default}"
    if isinstance(field.default, bool):
        return f"not {value}" if field.default else value
    return f"{value} != {field.default!r}"
