"""The stores that a user's processor sees, over those of an operator: typed, like dicts, and forgetful where they
are told to be.

Values are loaded anew at each reading, so what a processor changes without putting it back is not changed.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from ottla.streams.errors import FunctionFailed, TypeMismatch
from ottla.streams.lowering.calling import loader
from ottla.streams.lowering.stateful.keycode import key_code
from ottla.streams.lowering.stateful.store import Store
from ottla.streams.lowering.stateful.timeline import Timeline
from ottla.streams.stores import Store as StoreNode
from ottla.streams.stores import WindowStore
from ottla.streams.types.type import Type


class Typed:
    """Keys and values of a store, both ways."""

    def __init__(self, name: str, key: Type, value: Type) -> None:
        self._name = name
        self._key = key
        self._value = value
        self._code = key_code(key)
        self.load_key = loader(key)
        self.load = loader(value)

    def encode(self, key: Any) -> bytes:
        """Return a key as bytes."""
        return self._code.encode(self._dumped(self._key, key, "key"))

    def decode(self, at: bytes) -> Any:
        """Return the key of some bytes."""
        return self.load_key(self._code.decode(at))

    def dump(self, value: Any) -> Any:
        """Return a value as it is kept."""
        return self._dumped(self._value, value, "value")

    def _dumped(self, type: Type, given: Any, what: str) -> Any:
        if given is None:
            raise FunctionFailed(self._name, "the store", f"None is no {what} of a store")
        try:
            return type.dump(given)
        except TypeMismatch as error:
            raise FunctionFailed(self._name, "the store", f"the {what} is wrong: {error.args[0]}") from None


class KeyValues:
    """rows: key → (value, stream time when it was written); times, where entries are forgotten: when to look at a row.

    With `times` each row has one look ahead of it, however often it is written: at that look it is forgotten, or the
    next one arranged. One that was deleted stays as a row without a value until then, so that it gets no second look.
    """

    def __init__(self, node: StoreNode, rows: Store, times: Timeline | None) -> None:
        self._typed = Typed(node.name, node.key_type, node.value_type)
        self._ttl = node.ttl_ms
        self._rows = rows
        self.times = times

    def foresee(self, keys: Iterable[bytes]) -> None:
        """Read keys ahead."""
        self._rows.fetch(keys)

    def _plain(self, at: bytes) -> Any:
        row = self._rows.get(at)
        return None if row is None or self._over(row[1]) else row[0]

    def _over(self, written: int) -> bool:
        return self.times is not None and written + (self._ttl or 0) < self.times.now

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key."""
        found = self._plain(self._typed.encode(key))
        return default if found is None else self._typed.load(found)

    def __getitem__(self, key: Any) -> Any:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        return self._plain(self._typed.encode(key)) is not None

    def __setitem__(self, key: Any, value: Any) -> None:
        at = self._typed.encode(key)
        dumped, times = self._typed.dump(value), self.times
        if times is None:
            self._rows.put(at, (dumped, 0))
            return
        if self._rows.get(at) is None:
            times.add(times.now + (self._ttl or 0) + 1, at)
        self._rows.put(at, (dumped, times.now))

    def __delitem__(self, key: Any) -> None:
        at = self._typed.encode(key)
        row = None if self.times is None else self._rows.get(at)
        if row is None:
            self._rows.delete(at)
        else:
            self._rows.put(at, (None, row[1]))

    def pop(self, key: Any, default: Any = None) -> Any:
        """Take a key out and return its value."""
        found = self.get(key)
        if found is None:
            return default
        del self[key]
        return found

    def setdefault(self, key: Any, default: Any) -> Any:
        """Return the value of a key, after giving it one if it had none."""
        found = self.get(key)
        if found is None:
            self[key] = default
            found = self.get(key)
        return found

    def range(self, first: Any = None, last: Any = None) -> Iterator[tuple[Any, Any]]:
        """Go through entries by the bytes of their keys."""
        low = None if first is None else self._typed.encode(first)
        high = None if last is None else self._typed.encode(last)
        found = sorted(
            (at, row[0])
            for at, row in self._rows.items()
            if row[0] is not None
            and not self._over(row[1])
            and (low is None or at >= low)
            and (high is None or at <= high)
        )
        for at, value in found:
            yield self._typed.decode(at), self._typed.load(value)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Go through all entries."""
        return self.range()

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self.range())

    def finish(self) -> None:
        """Forget what is over."""
        if self.times is None:
            return
        due = [at for _, at in self.times.pop(self.times.now, whole=True)]
        self._rows.fetch(due)
        for at in due:
            row = self._rows.get(at)
            if row is None:
                continue
            value, written = row
            if value is None or self._over(written):
                self._rows.delete(at)
            else:
                self.times.add(written + (self._ttl or 0) + 1, at)
        self.times.flush()


class TimedValues:
    """rows: key → {time: value}; times: when to look at a row.

    Each row has one look ahead of it: at that look what is over is forgotten, and the next one is when all of the rest
    will be over. A row may be empty until then.
    """

    def __init__(self, node: WindowStore, rows: Store, times: Timeline) -> None:
        self._typed = Typed(node.name, node.key_type, node.value_type)
        self._retention = node.retention_ms
        self._rows = rows
        self.times = times

    def foresee(self, keys: Iterable[bytes]) -> None:
        """Read keys ahead."""
        self._rows.fetch(keys)

    def _alive(self, time: int) -> bool:
        return time > self.times.now - self._retention

    def put(self, key: Any, value: Any, time: int) -> None:
        """Keep a value; None takes one out."""
        at = self._typed.encode(key)
        before = self._rows.get(at)
        row = {when: each for when, each in (before or {}).items() if self._alive(when)}
        if value is None:
            row.pop(time, None)
        elif self._alive(time):
            row[time] = self._typed.dump(value)
            if before is None:
                self.times.add(time + self._retention, at)
                before = {}
        if before is not None:
            self._rows.put(at, row)

    def get(self, key: Any, time: int) -> Any:
        """Return the value at that very time."""
        row = self._rows.get(self._typed.encode(key)) or {}
        return self._typed.load(row[time]) if time in row and self._alive(time) else None

    def fetch(self, key: Any, first: int, last: int) -> list[tuple[int, Any]]:
        """Return times and values of a key."""
        row = self._rows.get(self._typed.encode(key)) or {}
        times = sorted(time for time in row if first <= time <= last and self._alive(time))
        return [(time, self._typed.load(row[time])) for time in times]

    def items(self) -> Iterator[tuple[Any, int, Any]]:
        """Go through all entries."""
        for at, row in sorted(self._rows.items(), key=lambda entry: entry[0]):
            for time in sorted(row):
                if self._alive(time):
                    yield self._typed.decode(at), time, self._typed.load(row[time])

    def finish(self) -> None:
        """Forget what is over."""
        due = [at for _, at in self.times.pop(self.times.now, whole=True)]
        self._rows.fetch(due)
        for at in due:
            row = {time: value for time, value in (self._rows.get(at) or {}).items() if self._alive(time)}
            if row:
                self.times.add(max(row) + self._retention, at)
                self._rows.put(at, row)
            else:
                self._rows.delete(at)
        self.times.flush()
