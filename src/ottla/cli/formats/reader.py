r"""Reads records as a template says: `-f '%k\t%v\n'`, `-f '%K{big32}%k%V{big32}%v'`.

R1  A text whose length was read before it has that length; any other reaches to the literal bytes behind it, or, at the
    end of a template, to the end of the input.
R2  The template begins anew with every record. Input that ends inside one is an error, unless only the last literal
    of the template is missing, as the last line break of a file may be.
"""

from collections.abc import Callable, Iterator
from typing import Any

from ottla.cli.formats.entry import Entry, InputError
from ottla.cli.formats.number import binary_size, hex_digits
from ottla.cli.formats.template import Field, Piece, TemplateError, parse_template
from ottla.cli.formats.text import text_reader

_LENGTHS = {"K": "k", "V": "v", "R": "v"}
_TEXTS = "kvht"
_NUMBERS = "pdoe"


class _Short(Exception):
    """More bytes are needed."""


class TemplateReader:
    """Reads records one behind the other. `keep_partition` says whether %p counts."""

    def __init__(self, template: str, *, keep_partition: bool = False, empty_is_null: bool = False) -> None:
        self._pieces = parse_template(template)
        self._keep_partition = keep_partition
        self._empty_is_null = empty_is_null
        self._steps = [_step(self._pieces, number) for number in range(len(self._pieces))]
        if not any(isinstance(piece, Field) and piece.letter in "kv" for piece in self._pieces):
            raise TemplateError("a template to read with names %v or %k")
        self._buffer = b""
        self._count = 0

    def feed(self, data: bytes) -> Iterator[Entry]:
        """Take the next bytes, and yield the entries that are whole."""
        self._buffer += data
        return self._take(ended=False)

    def finish(self) -> Iterator[Entry]:
        """Yield what is left, if it is a whole record."""
        last = self._pieces[-1]
        if self._buffer and isinstance(last, bytes) and not self._buffer.endswith(last):
            self._buffer += last
        yield from self._take(ended=True)
        if self._buffer:
            raise InputError(f"record {self._count + 1}: the input ends inside it")

    def _take(self, *, ended: bool) -> Iterator[Entry]:
        at = 0
        while at < len(self._buffer):
            read: dict[str, Any] = {}
            here = at
            try:
                for step in self._steps:
                    here = step(self._buffer, here, read, ended)
            except _Short:
                break
            except ValueError as error:
                raise InputError(f"record {self._count + 1}: {error}") from None
            at = here
            self._count += 1
            yield self._entry(read)
        self._buffer = self._buffer[at:]

    def _entry(self, read: dict[str, Any]) -> Entry:
        value = read.get("v")
        return Entry(
            None if value == b"" and self._empty_is_null else value,
            read.get("k"),
            read.get("h", ()),
            read.get("p") if self._keep_partition else None,
            read.get("d"),
        )


# Reads at a position and returns the one behind; what it read goes into the dictionary.
_Step = Callable[[bytes, int, dict[str, Any], bool], int]


def _step(pieces: tuple[Piece, ...], number: int) -> _Step:
    piece = pieces[number]
    if isinstance(piece, bytes):
        return _literal(piece)
    behind = pieces[number + 1] if number + 1 < len(pieces) else None
    if piece.letter in _LENGTHS:
        return _number(_LENGTHS[piece.letter] + " size", "big32" if piece.letter == "R" else piece.modifier)
    if piece.letter in _NUMBERS:
        return _number(piece.letter, piece.modifier)
    if piece.letter not in _TEXTS or piece.inner is not None:
        raise TemplateError(f"%{piece.letter} cannot be read")
    sized = any(
        isinstance(each, Field) and _LENGTHS.get(each.letter) == piece.letter for each in pieces[:number]
    )
    if not sized and isinstance(behind, Field):
        raise TemplateError(
            f"nothing says where %{piece.letter} ends: put something between it and %{behind.letter}"
        )
    return _text(piece, behind if isinstance(behind, bytes) else None, sized=sized)


def _literal(expected: bytes) -> _Step:
    def step(data: bytes, at: int, read: dict[str, Any], ended: bool) -> int:
        found = data[at : at + len(expected)]
        if found == expected:
            return at + len(expected)
        if expected.startswith(found) and not ended:
            raise _Short
        raise ValueError(f"there is {found!r} where the format has {expected!r}")

    return step


def _number(name: str, modifier: str) -> _Step:
    if modifier in ("", "ascii"):
        return _digits(name)
    binary, digits = binary_size(modifier), hex_digits(modifier)
    if binary is None and digits is None:
        raise TemplateError(f"{{{modifier}}} is no way to read a number")
    width = binary[0] if binary is not None else digits or 0

    def step(data: bytes, at: int, read: dict[str, Any], ended: bool) -> int:
        raw = data[at : at + width]
        if len(raw) < width:
            raise _Short
        if binary is None:
            read[name] = int(raw, 16)
        else:
            # A length of -1 is null; nothing else here is negative.
            read[name] = int.from_bytes(raw, binary[1], signed=name.endswith("size"))
        return at + width

    return step


def _digits(name: str) -> _Step:
    def step(data: bytes, at: int, read: dict[str, Any], ended: bool) -> int:
        end = at + 1 if data[at : at + 1] == b"-" else at
        while data[end : end + 1].isdigit():
            end += 1
        if end == len(data) and not ended:
            raise _Short
        if not data[at:end].strip(b"-"):
            raise ValueError(f"there is {data[at : at + 1]!r} where a number should be")
        read[name] = int(data[at:end])
        return end

    return step


def _text(piece: Field, behind: bytes | None, *, sized: bool) -> _Step:
    decode = text_reader(piece.modifier)
    letter = piece.letter

    def step(data: bytes, at: int, read: dict[str, Any], ended: bool) -> int:
        if sized:
            size: int = read[letter + " size"]
            if size < 0:
                return at
            end = at + size
            if end > len(data):
                raise _Short
        elif behind is not None:
            end = data.find(behind, at)
            if end < 0:
                raise _Short
        elif ended:
            end = len(data)
        else:
            raise _Short
        text = decode(data[at:end])
        read[letter] = read_headers(text) if letter == "h" else text
        return end

    return step


def read_headers(text: bytes) -> tuple[tuple[str, bytes | None], ...]:
    """Return the headers behind `name=value,name=value`; ValueError when they are none."""
    headers = []
    for part in filter(None, text.split(b",")):
        name, found, value = part.partition(b"=")
        if not found or not name:
            raise ValueError(f"{part!r} is not a header, as name=value is")
        headers.append((name.decode("utf-8", "surrogateescape"), value))
    return tuple(headers)
