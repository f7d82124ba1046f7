r"""Writes records as a template says.

W1  A length is that of the raw bytes, -1 for null, whatever modifier the text has.
W2  Null is written as `null`, which is nothing unless the user says what stands for it.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from ottla.cli.amount import moment_text
from ottla.cli.formats.number import number_writer
from ottla.cli.formats.template import Field, Piece, TemplateError, parse_template
from ottla.cli.formats.text import text_writer
from ottla.client.record import Record

# The second argument counts the records written so far, from one.
Write = Callable[[Record, int], bytes]

_NUMBERS: dict[str, Callable[[Record, int], int]] = {
    "p": lambda record, _: record.partition,
    "o": lambda record, _: record.offset,
    "e": lambda record, _: record.leader_epoch,
    "i": lambda _, count: count,
    "K": lambda record, _: -1 if record.key is None else len(record.key),
    "V": lambda record, _: -1 if record.value is None else len(record.value),
    "H": lambda record, _: len(record.headers),
}
_TEXTS: dict[str, Callable[[Record], bytes | None]] = {
    "t": lambda record: record.topic.encode(),
    "k": lambda record: record.key,
    "v": lambda record: record.value,
}


def compile_writer(template: str, null: bytes = b"") -> Write:
    """Return what writes one record; TemplateError says what is wrong with the template."""
    pieces = [_piece(each, null) for each in parse_template(template)]

    def write(record: Record, count: int) -> bytes:
        return b"".join([piece(record, count) for piece in pieces])

    return write


def _piece(piece: Piece, null: bytes) -> Write:
    if isinstance(piece, bytes):
        return lambda record, count: piece
    if piece.letter == "h":
        return _headers(piece, null)
    if piece.letter == "d":
        return _timestamp(piece)
    if piece.letter == "R":
        encode = number_writer("big32")
        length = _NUMBERS["V"]
        return lambda record, count: encode(length(record, count))
    if piece.letter in _NUMBERS:
        return _number(_NUMBERS[piece.letter], piece)
    return _text(_TEXTS[piece.letter], piece, null)


def _number(value: Callable[[Record, int], int], piece: Field) -> Write:
    encode = number_writer(piece.modifier)
    return lambda record, count: encode(value(record, count))


def _text(value: Callable[[Record], bytes | None], piece: Field, null: bytes) -> Write:
    encode = text_writer(piece.modifier, piece.argument)

    def write(record: Record, count: int) -> bytes:
        data = value(record)
        return null if data is None else encode(data)

    return write


def _timestamp(piece: Field) -> Write:
    if piece.modifier == "iso":
        return lambda record, _: (moment_text(record.timestamp) or "").encode()
    if piece.modifier == "strftime":
        pattern = piece.argument
        if not pattern:
            raise TemplateError("strftime wants its format in brackets: %d{strftime[%F %T]}")
        return lambda record, _: _moment(record.timestamp, pattern)
    encode = number_writer(piece.modifier)
    return lambda record, _: encode(record.timestamp)


def _moment(timestamp: int, pattern: str) -> bytes:
    try:
        moment = datetime.fromtimestamp(timestamp // 1000, UTC).replace(microsecond=timestamp % 1000 * 1000)
        return moment.strftime(pattern).encode()
    except (OverflowError, ValueError, OSError):
        return b"%d" % timestamp


def _headers(piece: Field, null: bytes) -> Write:
    if piece.inner is None:
        return lambda record, _: headers_text(record.headers, null)
    pieces = [_piece(each, null) for each in piece.inner]

    def write(record: Record, count: int) -> bytes:
        # A header is written as a record of its own: name for key, value for value.
        return b"".join(
            each(record._replace(key=name.encode("utf-8", "surrogateescape"), value=value), count)
            for name, value in record.headers
            for each in pieces
        )

    return write


def headers_text(headers: Iterable[tuple[str, bytes | None]], null: bytes = b"") -> bytes:
    """Return headers as `name=value,name=value`."""
    return b",".join(
        name.encode("utf-8", "surrogateescape") + b"=" + (null if value is None else value)
        for name, value in headers
    )


FIELD_NAMES = {
    "topic": "%t",
    "partition": "%p",
    "offset": "%o",
    "timestamp": "%d",
    "key": "%k",
    "value": "%v",
    "headers": "%h",
    "epoch": "%e",
}


def fields_template(names: Iterable[str], separator: str, modifier: str = "") -> str:
    """Return the template that prints some fields, one behind the other; TemplateError for one that is none."""
    found = []
    for name in names:
        if name not in FIELD_NAMES:
            raise TemplateError(f"{name} is no field of a record; there are {', '.join(FIELD_NAMES)}")
        found.append(FIELD_NAMES[name] + (modifier if name in ("key", "value") else ""))
    return separator.replace("%", "%%").join(found)
