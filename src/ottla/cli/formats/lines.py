"""Input cut at a delimiter, one record a piece.

The last piece needs no delimiter behind it, and an empty one at the end is no record.
"""

from collections.abc import Callable, Iterator

from ottla.cli.formats.entry import Entry, InputError

Decode = Callable[[bytes], Entry]


class Lines:
    """Reads records that a delimiter ends; `decode` makes an entry of a piece."""

    def __init__(self, decode: Decode, delimiter: bytes = b"\n") -> None:
        self._decode = decode
        self._delimiter = delimiter
        self._rest = b""
        self._count = 0

    def feed(self, data: bytes) -> Iterator[Entry]:
        """Take the next bytes, and yield the entries that are whole."""
        *pieces, self._rest = (self._rest + data).split(self._delimiter)
        return map(self._entry, pieces)

    def finish(self) -> Iterator[Entry]:
        """Yield the last entry, if nothing ended it."""
        rest, self._rest = self._rest, b""
        return map(self._entry, [rest] if rest else [])

    def _entry(self, piece: bytes) -> Entry:
        self._count += 1
        if self._delimiter == b"\n":
            # What was written on Windows is meant the same.
            piece = piece.removesuffix(b"\r")
        try:
            return self._decode(piece)
        except ValueError as error:
            raise InputError(f"record {self._count}: {error}") from None


class Whole:
    """Takes everything that comes in as one record, as a file is."""

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> Iterator[Entry]:
        """Keep the bytes."""
        self._parts.append(data)
        return iter(())

    def finish(self) -> Iterator[Entry]:
        """Yield the one entry."""
        whole, self._parts = b"".join(self._parts), []
        try:
            return iter([self._decode(whole)])
        except ValueError as error:
            raise InputError(str(error)) from None


def keyed(
    separator: bytes | None,
    read: Callable[[bytes], bytes],
    *,
    empty_is_null: bool = False,
    keyless: bool = False,
) -> Decode:
    """Return what cuts a piece into key and value, where there is a separator, and reads both.

    `keyless` says whether a piece may lack the separator, and is a value then.
    """

    def value(text: bytes) -> bytes | None:
        return None if empty_is_null and not text else read(text)

    if separator is None:
        return lambda piece: Entry(value(piece))

    def decode(piece: bytes) -> Entry:
        key, found, text = piece.partition(separator)
        if not found and keyless:
            return Entry(value(piece))
        if not found:
            # As for Kafka's console producer: without its key the record would be another one.
            raise ValueError(f"no key separator {separator.decode('utf-8', 'backslashreplace')!r} in it")
        return Entry(value(text), read(key))

    return decode
