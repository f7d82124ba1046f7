"""The stores of a processor: typed, and forgetful where they are told to be.

Values are loaded anew at each reading, so what a processor changes without putting it back is not changed.
"""

from collections.abc import Callable, Iterator
from typing import Any

from ottla.streams.errors import FunctionFailed, TypeMismatch
from ottla.streams.reference.calling import loaded
from ottla.streams.reference.keys import key_bytes
from ottla.streams.stores import Store, WindowStore
from ottla.streams.types.type import Type

StreamTime = Callable[[], int]


class _Typed:
    """Keys and values of a store, plain and as a processor has them."""

    def __init__(self, node: Store | WindowStore) -> None:
        self._name, self._key, self._value = node.name, node.key_type, node.value_type

    def at(self, key: Any) -> bytes:
        return key_bytes(self._key, self.key(key))

    def key(self, key: Any) -> Any:
        return self._plain(self._key, key, "key")

    def value(self, value: Any) -> Any:
        return self._plain(self._value, value, "value")

    def load_key(self, key: Any) -> Any:
        return loaded(self._key, key)

    def load(self, value: Any) -> Any:
        return loaded(self._value, value)

    def _plain(self, type: Type, given: Any, what: str) -> Any:
        if given is None:
            raise FunctionFailed(self._name, "the store", f"None is no {what} of a store")
        try:
            return type.dump(given)
        except TypeMismatch as error:
            raise FunctionFailed(self._name, "the store", f"the {what} is wrong: {error.args[0]}") from None


class KeyValues:
    """Keys and values, each with the stream time when it was written."""

    def __init__(self, node: Store, stream_time: StreamTime) -> None:
        self._typed = _Typed(node)
        self._ttl = node.ttl_ms
        self._stream_time = stream_time
        self._rows: dict[bytes, tuple[Any, Any, int]] = {}  # key as bytes → key, value, written

    def _found(self, at: bytes) -> Any:
        _, value, written = self._rows.get(at, (None, None, 0))
        return None if self._is_over(written) else value

    def _is_over(self, written: int) -> bool:
        return self._ttl is not None and written + self._ttl < self._stream_time()

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key."""
        found = self._found(self._typed.at(key))
        return default if found is None else self._typed.load(found)

    def __getitem__(self, key: Any) -> Any:
        found = self._found(self._typed.at(key))
        if found is None:
            raise KeyError(key)
        return self._typed.load(found)

    def __contains__(self, key: object) -> bool:
        return self._found(self._typed.at(key)) is not None

    def __setitem__(self, key: Any, value: Any) -> None:
        row = (self._typed.key(key), self._typed.value(value), self._stream_time())
        self._rows[self._typed.at(key)] = row

    def __delitem__(self, key: Any) -> None:
        self._rows.pop(self._typed.at(key), None)

    def pop(self, key: Any, default: Any = None) -> Any:
        """Take a key out and return its value."""
        found = self.get(key, default)
        del self[key]
        return found

    def setdefault(self, key: Any, default: Any) -> Any:
        """Return the value of a key, after giving it one if it had none."""
        if key not in self:
            self[key] = default
        return self[key]

    def range(self, first: Any = None, last: Any = None) -> Iterator[tuple[Any, Any]]:
        """Go through entries by the bytes of their keys."""
        low = None if first is None else self._typed.at(first)
        high = None if last is None else self._typed.at(last)
        for at, (key, value, written) in sorted(self._rows.items(), key=lambda row: row[0]):
            is_within = (low is None or at >= low) and (high is None or at <= high)
            if is_within and not self._is_over(written):
                yield self._typed.load_key(key), self._typed.load(value)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Go through all entries."""
        return self.range()

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self.range())


class TimedValues:
    """Values by key and time. What is older than the retention is not there, and is not taken."""

    def __init__(self, node: WindowStore, stream_time: StreamTime) -> None:
        self._typed = _Typed(node)
        self._retention = node.retention_ms
        self._stream_time = stream_time
        self._rows: dict[bytes, dict[int, tuple[Any, Any]]] = {}  # key as bytes → time → key, value

    def _is_there(self, time: int) -> bool:
        return time > self._stream_time() - self._retention

    def put(self, key: Any, value: Any, time: int) -> None:
        """Keep a value; None takes one out."""
        rows = self._rows.setdefault(self._typed.at(key), {})
        if value is None:
            rows.pop(time, None)
        elif self._is_there(time):
            rows[time] = (self._typed.key(key), self._typed.value(value))

    def get(self, key: Any, time: int) -> Any:
        """Return the value at that very time."""
        return next((value for _, value in self.fetch(key, time, time)), None)

    def fetch(self, key: Any, first: int, last: int) -> list[tuple[int, Any]]:
        """Return times and values of a key."""
        rows = self._rows.get(self._typed.at(key), {})
        times = sorted(time for time in rows if first <= time <= last and self._is_there(time))
        return [(time, self._typed.load(rows[time][1])) for time in times]

    def items(self) -> Iterator[tuple[Any, int, Any]]:
        """Go through all entries by key and time."""
        for _, rows in sorted(self._rows.items(), key=lambda entry: entry[0]):
            for time, (key, value) in sorted(rows.items(), key=lambda entry: entry[0]):
                if self._is_there(time):
                    yield self._typed.load_key(key), time, self._typed.load(value)
