"""Requests whose arrays hold as many elements as one may: every array of every API, of names that are known or not."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from ottla.broker.api import Api
from ottla.wire.elements import ELEMENTS_MAX
from ottla.wire.message import Struct, fields_of
from tests.peers.connection import request_frame

Path = tuple[str, ...]


class LongCase(NamedTuple):
    """One array of one API, full of what is known, or of what is not."""

    api: Api
    path: Path
    known: bool

    def __str__(self) -> str:
        return f"{self.api.name} v{self.version} {'.'.join(self.path)} {'known' if self.known else 'unknown'}"

    @property
    def version(self) -> int:
        return self.api.versions[-1]

    def frame(self, topic: str, topic_id: bytes, elements: int = ELEMENTS_MAX) -> bytes:
        """The request, with as many elements as fit beside what they need within them."""
        count = (elements - len(self.path)) // self._elements_of_each()
        request = _Filling(self, topic, topic_id, count).of(self.api.request, ())
        return request_frame(request, self.version, 7)

    def _elements_of_each(self) -> int:
        """How many elements each element of the array is, with those within it."""
        cls: Any = self.api.request
        for name in self.path:
            [field] = [each for each in fields_of(cls) if each.name == name]
            cls = field.kind
        return 1 + (_inner(cls, self.version) if field.is_struct else 0)


def _inner(cls: type[Struct], version: int) -> int:
    return sum(
        1 + (_inner(field.kind, version) if field.is_struct else 0)
        for field in fields_of(cls)
        if field.array and version in field.versions
    )


def cases(table: tuple[Api, ...]) -> Iterator[LongCase]:
    """All of them, at the newest version of each API."""
    for api in table:
        for path in _arrays(api.request, api.versions[-1]):
            yield LongCase(api, path, known=True)
            yield LongCase(api, path, known=False)


def _arrays(cls: type[Struct], version: int, above: Path = ()) -> Iterator[Path]:
    for field in fields_of(cls):
        if version in field.versions and field.array:
            yield (*above, field.name)
        if version in field.versions and field.is_struct:
            yield from _arrays(field.kind, version, (*above, field.name))


class _Filling:
    """Makes a request with one array full."""

    def __init__(self, case: LongCase, topic: str, topic_id: bytes, count: int) -> None:
        self._case = case
        self._topic = topic
        self._topic_id = topic_id
        self._count = count

    def of(self, cls: type[Struct], above: Path, number: int = 0) -> Struct:
        """A request, or an element."""
        values: dict[str, Any] = {}
        target, version = self._case.path, self._case.version
        for field in fields_of(cls):
            here = (*above, field.name)
            if version not in field.versions or (field.tag is not None and target[: len(here)] != here):
                continue
            if field.array:
                on_the_way, inside = target[: len(here)] == here, here[: len(target)] == target
                if not on_the_way and not (inside and above):
                    continue
                numbers = range(self._count) if here == target else [number]
                values[field.name] = [self._element(field, here, each) for each in numbers]
            elif field.is_struct:
                if version not in field.nullable:
                    values[field.name] = self.of(field.kind, here, number)
            elif above:
                values[field.name] = self._value(field, number)
            elif field.name in ("group_id", "transactional_id"):
                values[field.name] = "g"
            elif field.name.endswith("max_bytes"):
                values[field.name] = 1 << 20
        return cls(**values)

    def _element(self, field: Any, here: Path, number: int) -> Any:
        return self.of(field.kind, here, number) if field.is_struct else self._value(field, number)

    def _value(self, field: Any, number: int) -> Any:
        known, kind = self._case.known, field.kind.name
        if kind == "string":
            return self._topic if known else f"n{number}"
        if kind == "uuid":
            return self._topic_id if known else number.to_bytes(16, "big")
        if kind in ("bytes", "records"):
            return b""
        if field.name == "resource_type":
            return 2
        if kind in ("int8", "int16", "bool"):
            return field.default or 0 if isinstance(field.default, int) else 0
        if kind == "int32" and field.name != "leader_epoch":
            return 0 if known or "epoch" in field.name or "bytes" in field.name else number
        return field.default if isinstance(field.default, int) else 0
