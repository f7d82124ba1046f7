"""A record on its way in: what a line, a JSON object or a template told of it."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from ottla.wire.record import Headers


class Entry(NamedTuple):
    """What is to be produced; None for a partition or timestamp leaves the choice to the producer."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    timestamp: int | None = None


class InputError(Exception):
    """Input that is not what the format promises; the text says which record, counted from one."""


class Reader(Protocol):
    """Makes entries of bytes as they come in. What lies before something wrong is yielded before that is said."""

    def feed(self, data: bytes) -> Iterator[Entry]:
        """Take the next bytes, and yield the entries that are whole; InputError for what is none."""
        ...

    def finish(self) -> Iterator[Entry]:
        """Yield what the last bytes make up; InputError when they make up nothing."""
        ...
