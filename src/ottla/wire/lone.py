"""Writes the straight-line part of a decoder: the guess that a message holds one topic of one partition.

Most requests and responses of the data path name one topic, with one partition, and leave everything optional
out. Such a message needs no loop, and what lies between two texts is read by one unpack, counts and markers
included, and then held against the guess:

- The first array of structs holds one of them, and the first array in that one does too; other arrays are empty.
- Nullable strings are null, or empty when that is their default; other strings take less than 127 bytes, and none
  when they stand behind the array.
- There are no tagged fields.

G1  When any of it proves wrong, whatever was read is dropped, and the general decoder starts over from the front.
G2  A guess can only give what the general decoder would have given.
"""

import struct

from ottla.wire.field import Field
from ottla.wire.message import Message, Struct, fields_of
from ottla.wire.source import Source

LEVELS = 2
TEXT_BYTES_MAX = 126


def write_lone(source: Source, cls: type[Message], version: int, flexible: bool) -> None:
    """Add the guess to a decoder; add nothing when the message has not that form."""
    if _fits(cls, version, 0):
        _LoneWriter(source, version, flexible).write(cls)


def _first_array(cls: type[Struct], version: int, level: int) -> Field | None:
    """The field that is taken to hold one struct."""
    if level == LEVELS:
        return None
    present = (field for field in fields_of(cls) if version in field.versions and field.tag is None)
    return next((field for field in present if field.array and field.is_struct), None)


def _fits(cls: type[Struct], version: int, level: int) -> bool:
    for field in fields_of(cls):
        if version in field.versions and field.tag is None:
            if field.array and not field.is_struct:
                return False
            if field.is_struct and not field.array:
                return False
    one = _first_array(cls, version, level)
    return level > 0 if one is None else _fits(one.kind, version, level + 1)


class _LoneWriter:
    def __init__(self, source: Source, version: int, flexible: bool) -> None:
        self.source = source
        self.version = version
        self.flexible = flexible
        self.base = "pos"
        self.offset = 0
        self.least = 0
        self.most: int | None = 0
        self.run: list[tuple[str, str]] = []
        self.wrong: list[str] = []
        self.exact: dict[str, int] = {}
        self.stores: list[tuple[str, str]] = []

    def write(self, cls: type[Message]) -> None:
        source = self.source
        # The length is known when everything is written, but the line comes first.
        guard = source.reserve()
        with source.block():
            source.line("try:")
            with source.block():
                source.line("while True:")
                with source.block():
                    root = self.struct(cls, 0, behind=False)
                    self.flush()
                    for target, value in self.stores:
                        source.line(f"{target} = {value}")
                    source.line(f"if {self.at()} > end:")
                    with source.block():
                        source.line("break")
                    source.line(f"return {root}, {self.at()}")
            source.line("except (IndexError, StructError, UnicodeDecodeError):")
            with source.block():
                source.line("pass")
        bounds = f"if {self.least} <= end - pos" + ("" if self.most is None else f" <= {self.most}")
        source.fill(guard, f"{bounds}:")

    def at(self) -> str:
        """The current position as an expression."""
        return f"{self.base} + {self.offset}" if self.offset else self.base

    def read(self, code: str, target: str) -> None:
        self.run.append((code, target))
        self.takes(struct.calcsize(">" + code))

    def takes(self, least: int, most: int | None = None) -> None:
        """Keep count of the bytes such a message takes; a longer one, of many partitions, is not worth a try."""
        self.least += least
        self.most = None if self.most is None else self.most + (least if most is None else most)

    def length(self, code: str, compact: bool) -> str:
        name = self.source.fresh("n")
        self.read("B" if compact else code, name)
        return name

    def marker(self, code: str, compact: bool, expected: int) -> None:
        """A count or length that must have this very value."""
        name = self.length(code, compact)
        self.exact[name] = expected

    def flush(self) -> None:
        """Read what was gathered, and leave when a guess was wrong."""
        if not self.run:
            return
        run = _merged(self.run, self.exact)
        codes = "".join(code for code, _ in run)
        targets = ", ".join(target for _, target in run)
        comma = "," if len(run) == 1 else ""
        if codes in ("B", "BB"):
            for place, (_, target) in enumerate(run, self.offset):
                self.source.line(
                    f"{target} = buf[{self.base} + {place}]" if place else f"{target} = buf[{self.base}]"
                )
        else:
            unpack = self.source.struct(codes, "unpack_from")
            self.source.line(f"{targets}{comma} = {unpack}(buf, {self.at()})")
        self.offset += struct.calcsize(">" + codes)
        wrong = [f"{name} != {value}" if value else name for name, value in self.exact.items()] + self.wrong
        if wrong:
            self.source.line(f"if {' or '.join(wrong)}:")
            with self.source.block():
                self.source.line("break")
        self.run, self.wrong, self.exact = [], [], {}

    def struct(self, cls: type[Struct], level: int, behind: bool) -> str:
        """Read a struct, and return the variable that holds it."""
        var = self.source.new(cls)
        one = _first_array(cls, self.version, level)
        for field in fields_of(cls):
            target = f"{var}.{field.name}"
            if self.version not in field.versions or field.tag is not None:
                self.stores.append((target, self.source.default(field)))
            elif field is one:
                self.marker("i", self.compact(field), 2 if self.compact(field) else 1)
                item = self.struct(field.kind, level + 1, behind=behind)
                self.stores.append((target, f"[{item}]"))
                behind = True
            else:
                self.field(field, target, behind)
        if self.flexible:
            self.marker("B", True, 0)
        self.stores.append((f"{var}.unknown_tags", "None"))
        return var

    def compact(self, field: Field) -> bool:
        return self.flexible and field.flexible

    def field(self, field: Field, target: str, behind: bool) -> None:
        if field.fixed:
            self.read(field.kind.code, target)
        elif field.array:
            self.empty_array(field, target)
        elif field.kind.name == "records":
            self.records(self.compact(field), target)
        elif self.version in field.nullable or behind:
            self.empty_text(field, target)
        else:
            self.text(field.kind.name == "string", self.compact(field), target)

    def empty_array(self, field: Field, target: str) -> None:
        """An array taken to be empty, or null where that is allowed."""
        zero = 1 if self.compact(field) else 0
        if self.version in field.nullable:
            count = self.length("i", self.compact(field))
            self.wrong.append(f"{count} > {zero}")
            self.stores.append((target, f"[] if {count} == {zero} else None"))
        else:
            self.marker("i", self.compact(field), zero)
            self.stores.append((target, "[]"))

    def empty_text(self, field: Field, target: str) -> None:
        """A string or bytes taken to be null when that is its default, else to be empty."""
        text = field.kind.name == "string"
        null = self.version in field.nullable and field.default is None
        self.marker("h" if text else "i", self.compact(field), (1 if self.compact(field) else 0) - null)
        self.stores.append((target, "None" if null else "''" if text else "b''"))

    def text(self, decoded: bool, compact: bool, target: str) -> None:
        size = self.length("h" if decoded else "i", compact)
        self.takes(0, TEXT_BYTES_MAX)
        self.wrong.append(f"not 0 < {size} < 128" if compact else f"not 0 <= {size} < 127")
        self.flush()
        stop = self.source.fresh("q")
        start = self.at()
        self.offset -= 1 if compact else 0
        self.source.line(f"{stop} = {self.at()} + {size}")
        self.source.line(
            f"{target} = buf[{start}:{stop}].decode()"
            if decoded
            else f"{target} = bytes(buf[{start}:{stop}])"
        )
        self.base, self.offset = stop, 0

    def records(self, compact: bool, target: str) -> None:
        """A length of one to three bytes, the latter two read in advance: tag counts stand there at the least."""
        source = self.source
        self.most = None
        size, start, stop = self.length("i", compact), source.fresh("p"), source.fresh("q")
        if not compact:
            self.wrong.append(f"{size} < 0")
            self.flush()
            source.line(f"{stop} = {self.at()} + {size}")
            source.line(f"{target} = memoryview(buf)[{self.at()}:{stop}]")
        else:
            second, third = source.fresh("b"), source.fresh("b")
            self.run += ("B", second), ("B", third)
            self.wrong.append(f"not {size}")
            self.flush()
            self.offset -= 2
            source.line(f"if {size} < 128:")
            with source.block():
                source.line(f"{start} = {self.at()}")
            source.line(f"elif {second} < 128:")
            with source.block():
                source.line(f"{size} += ({second} << 7) - {1 << 7}")
                source.line(f"{start} = {self.at()} + 1")
            source.line(f"elif {third} < 128:")
            with source.block():
                source.line(f"{size} += ({second} << 7) + ({third} << 14) - {(1 << 7) + (1 << 14)}")
                source.line(f"{start} = {self.at()} + 2")
            source.line("else:")
            with source.block():
                source.line("break")
            source.line(f"{stop} = {start} + {size} - 1")
            source.line(f"{target} = memoryview(buf)[{start}:{stop}]")
        self.base, self.offset = stop, 0


def _merged(run: list[tuple[str, str]], exact: dict[str, int]) -> list[tuple[str, str]]:
    """The same run with markers of one byte that stand together read, and expected, as one number."""
    merged: list[tuple[str, str]] = []
    for code, name in run:
        merged.append((code, name))
        for narrow, wide, bits in ("B", "H", 8), ("H", "I", 16), ("I", "Q", 32):
            if len(merged) > 1 and all(each[0] == narrow and each[1] in exact for each in merged[-2:]):
                (_, first), (_, second) = merged[-2:]
                exact[first] = exact[first] << bits | exact.pop(second)
                merged[-2:] = [(wide, first)]
    return merged
