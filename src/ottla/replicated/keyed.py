"""Records with a key, as coordinators keep their state: the newest of a key holds, and none means it is gone.

On disk the key begins with the type of the record, the value with the version it is written at, both in two bytes.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.replicated.decision import Effect
from ottla.wire.errors import ProtocolError
from ottla.wire.message import Message

_SHORT = struct.Struct(">h")
_OVERHEAD = 12  # of a record: lengths, and its place in the batch

# The classes of key and value of each type of record.
Kinds = Mapping[int, tuple[type[Message], type[Message]]]


class KeyedRecord(NamedTuple):
    """One record of a coordinator's log; without a value it says that the key is gone."""

    key: Message
    value: Message | None
    version: int = 0

    def encode(self) -> tuple[bytes, bytes | None]:
        """Return key and value as they are stored."""
        kind = self.key.api_key
        assert kind is not None, "keys of records have a type"
        key = _SHORT.pack(kind) + self.key.encode(0)
        if self.value is None:
            return key, None
        return key, _SHORT.pack(self.version) + self.value.encode(self.version)


def stored_bytes(records: Iterable[object]) -> int:
    """Return about how many bytes records take. One that cannot be encoded counts for nothing: it is never written."""
    size_bytes = 0
    for record in records:
        assert isinstance(record, KeyedRecord)
        try:
            key, value = record.encode()
        except Exception:  # noqa: BLE001  # whoever is to write it finds that out, and says so
            continue
        size_bytes += len(key) + len(value or b"") + _OVERHEAD
    return size_bytes


def type_of(key: bytes) -> int:
    """Return the type of a stored record."""
    if len(key) < _SHORT.size:
        raise ProtocolError(f"a key of {len(key)} bytes names no type of record")
    kind: int = _SHORT.unpack_from(key)[0]
    return kind


def decode(kinds: Kinds, key: bytes, value: bytes | None) -> KeyedRecord | None:
    """Read a stored record; None when its type is one that nobody here knows, as a newer release may write."""
    found = kinds.get(type_of(key))
    if found is None:
        return None
    name = found[0].decode(key[_SHORT.size :], 0)
    if value is None:
        return KeyedRecord(name, None)
    if len(value) < _SHORT.size:
        raise ProtocolError(f"a value of {len(value)} bytes names no version")
    version = _SHORT.unpack_from(value)[0]
    return KeyedRecord(name, found[1].decode(value[_SHORT.size :], version), version)


class Client(NamedTuple):
    """Who asks: the name a client gives itself, and where it comes from as Kafka writes it, `/127.0.0.1`."""

    client_id: str
    host: str


class Answer(Effect):
    """The answer to an earlier command, which was told to wait."""

    __slots__ = ("message", "token")

    def __init__(self, token: int, message: Message) -> None:
        self.token = token
        self.message = message

    def __repr__(self) -> str:
        return f"Answer({self.token}, {self.message!r})"
