"""A store as an operator sees it: keys are bytes, values anything that can be pickled.

S1  What was put is what is read, at once; it reaches the backing with `flush` and not before.
S2  The backing is asked for many keys at a time: an operator says before a micro-batch which ones it will want
    (`fetch`). One that it did not foresee is asked for alone, which costs a round trip of its own.
S3  A key is asked for once in a micro-batch.
"""

import pickle
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

_GONE = object()


class Backing(Protocol):
    """Where a store keeps its bytes."""

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """Return the value of each key, None where there is none."""

    def put_many(self, entries: list[tuple[bytes, bytes]]) -> None:
        """Keep values under their keys."""

    def remove_many(self, keys: list[bytes]) -> None:
        """Forget keys, which need not be there."""

    def items(self) -> Iterable[tuple[bytes, bytes]]:
        """Return all entries, in no order."""


class Store:
    """What an operator keeps, with the changes of one micro-batch in memory."""

    def __init__(self, backing: Backing) -> None:
        self._backing = backing
        self._known: dict[bytes, Any] = {}
        self._stored: set[bytes] = set()  # of the known ones, those that the backing has
        self._changed: dict[bytes, None] = {}

    def fetch(self, keys: Iterable[bytes]) -> None:
        """Read keys ahead."""
        known = self._known
        unknown = [key for key in dict.fromkeys(keys) if key not in known]
        if not unknown:
            return
        for key, data in zip(unknown, self._backing.get_many(unknown), strict=True):
            if data is None:
                known[key] = _GONE
            else:
                known[key] = pickle.loads(data)
                self._stored.add(key)

    def get(self, key: bytes) -> Any:
        """Return the value of a key, or None."""
        try:
            found = self._known[key]
        except KeyError:
            self.fetch((key,))
            found = self._known[key]
        return None if found is _GONE else found

    def put(self, key: bytes, value: Any) -> None:
        """Give a key a value."""
        self._known[key] = value
        self._changed[key] = None

    def delete(self, key: bytes) -> None:
        """Forget a key."""
        if key not in self._known:
            self._stored.add(key)  # perhaps: to remove what is not there does no harm
        self._known[key] = _GONE
        self._changed[key] = None

    def items(self) -> Iterator[tuple[bytes, Any]]:
        """Yield every entry, in no order. It reads the whole store."""
        seen = dict(self._known)
        for key, data in self._backing.items():
            if key not in seen:
                yield key, pickle.loads(data)
        for key, value in seen.items():
            if value is not _GONE:
                yield key, value

    def flush(self) -> None:
        """Write what has changed, and forget what was read."""
        puts: list[tuple[bytes, bytes]] = []
        removes: list[bytes] = []
        for key in self._changed:
            value = self._known[key]
            if value is not _GONE:
                puts.append((key, pickle.dumps(value, pickle.HIGHEST_PROTOCOL)))
            elif key in self._stored:
                removes.append(key)
        if puts:
            self._backing.put_many(puts)
        if removes:
            self._backing.remove_many(removes)
        self._known.clear()
        self._stored.clear()
        self._changed.clear()


class MemoryBacking:
    """A backing that is a dict: for tests."""

    def __init__(self) -> None:
        self.entries: dict[bytes, bytes] = {}

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """Return the value of each key."""
        return [self.entries.get(key) for key in keys]

    def put_many(self, entries: list[tuple[bytes, bytes]]) -> None:
        """Keep values."""
        self.entries.update(entries)

    def remove_many(self, keys: list[bytes]) -> None:
        """Forget keys."""
        for key in keys:
            self.entries.pop(key, None)

    def items(self) -> Iterable[tuple[bytes, bytes]]:
        """Return all entries."""
        return list(self.entries.items())
