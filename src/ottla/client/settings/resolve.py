"""Resolves the settings that an application gives into typed values.

Invariants
1  A value may be given as Python has it or as text; text is read as Kafka reads it. None means not given.
2  A keyword goes before the same name in the mapping. A keyword is Kafka's name with underscores for the dots.
3  An invalid value raises SettingError before any connection is made. A note says what to do.
4  A setting of Kafka that has no effect here is accepted. One line in the log says so.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ottla.client.serializer import deserializer, serializer
from ottla.client.settings.admin import ADMIN
from ottla.client.settings.combination import LOGGER, combine
from ottla.client.settings.consumer import CONSUMER
from ottla.client.settings.honoured import HONOURED
from ottla.client.settings.producer import PRODUCER
from ottla.client.settings.rule import ignores_case
from ottla.metadata.settings.definition import Setting, Type
from ottla.metadata.settings.error import InvalidValue, SettingError, UnknownSetting
from ottla.metadata.settings.rule import Servers

TABLES: dict[str, dict[str, Setting]] = {
    "producer": PRODUCER,
    "consumer": CONSUMER,
    "share": CONSUMER,
    "admin": ADMIN,
}

# What reads better as a keyword than Kafka's name, and what Kafka has no name for.
SHORT_NAMES = {"partitioner": "partitioner.class", "interceptors": "interceptor.classes"}
OWN: dict[str, frozenset[str]] = {"producer": frozenset({"on.delivery"})}

_OBJECTS = frozenset({"interceptor.classes", "partition.assignment.strategy"})
_ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}
_JAVA_CONSUMER = "org.apache.kafka.clients.consumer."
_INTEGERS = {Type.SHORT: 16, Type.INT: 32, Type.LONG: 64}


class ClientSettings(Mapping[str, Any]):
    """The typed value of every setting of a client, under Kafka's names. `given` are those that the application set."""

    __slots__ = ("_values", "given", "kind")

    def __init__(self, kind: str, values: Mapping[str, Any], given: frozenset[str] = frozenset()) -> None:
        self.kind = kind
        self._values = dict(values)
        self.given = given

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        chosen = ", ".join(f"{name}={self._values[name]!r}" for name in sorted(self.given))
        return f"ClientSettings({self.kind}: {chosen})"


def resolve(
    kind: str,
    bootstrap: str | Sequence[str] | None = None,
    given: Mapping[str, Any] | None = None,
    keywords: Mapping[str, Any] | None = None,
) -> ClientSettings:
    """Return the settings of a producer, consumer, share consumer or admin client; SettingError says what is wrong."""
    try:
        return _resolve(kind, bootstrap, given or {}, keywords or {})
    except SettingError as error:
        if error.hint:
            error.add_note(f"hint: {error.hint}")
        raise


def _resolve(
    kind: str, bootstrap: str | Sequence[str] | None, given: Mapping[str, Any], keywords: Mapping[str, Any]
) -> ClientSettings:
    table = TABLES[kind]
    own = OWN.get(kind, frozenset())
    chosen: dict[str, Any] = {}
    for name, value in given.items():
        _take(kind, table, own, name, value, chosen)
    for name, value in keywords.items():
        _take(kind, table, own, SHORT_NAMES.get(name, name.replace("_", ".")), value, chosen)
    if bootstrap is not None:
        _take(kind, table, own, "bootstrap.servers", bootstrap, chosen)
    values: dict[str, Any] = {name: setting.default_value for name, setting in table.items()}
    values.update(dict.fromkeys(own))
    values.update(chosen)
    if kind != "admin" and not values["bootstrap.servers"]:
        hint = "give the address of a broker first, as in localhost:9092"
        raise SettingError("bootstrap.servers is missing", name="bootstrap.servers", hint=hint)
    for name in ("bootstrap.servers", "bootstrap.controllers"):
        Servers().check(name, values.get(name, ()))
    for name, setting in table.items():
        if ignores_case(setting.valid):
            values[name] = _spelled(setting, values[name])
    for name in ("key.serializer", "value.serializer"):
        if name in values:
            values[name] = serializer(values[name], name)
    for name in ("key.deserializer", "value.deserializer"):
        if name in values:
            values[name] = deserializer(values[name], name)
    combine(kind, values, frozenset(chosen))
    _warn(kind, table, chosen)
    return ClientSettings(kind, values, frozenset(chosen))


def _take(
    kind: str,
    table: Mapping[str, Setting],
    own: frozenset[str],
    name: str,
    value: Any,
    chosen: dict[str, Any],
) -> None:
    if name.startswith("config.providers."):
        name = "config.providers"
    setting = table.get(name)
    if setting is None and name not in own:
        raise _unknown(kind, table, own, name)
    if value is not None:
        chosen[name] = value if setting is None else typed(setting, value)


def _unknown(kind: str, table: Mapping[str, Setting], own: frozenset[str], name: str) -> SettingError:
    others = [other for other, names in TABLES.items() if name in names and other != "share"]
    if others:
        who = {"share": "a share consumer", "admin": "an admin client"}.get(kind, f"a {kind}")
        message = f"{who} has no setting {name}: it is for {' and '.join(others)}"
        return SettingError(message, name=name, hint="leave it out here")
    return UnknownSetting(kind, name, [*table, *SHORT_NAMES, *own])


def typed(setting: Setting, value: Any) -> Any:
    """Return the value of a setting in its own type, checked."""
    kind, name = setting.type, setting.name
    if kind is Type.CLASS:
        return value
    if name in _OBJECTS:
        return _objects(setting, value)
    if isinstance(value, str):
        return setting.parse(value)
    if name == "acks" and isinstance(value, int) and not isinstance(value, bool):
        return setting.parse(str(value))
    if kind is Type.LIST and isinstance(value, Iterable):
        entries = tuple(value)
        if all(isinstance(entry, str) for entry in entries):
            return setting.parse(",".join(entries))
    fits = {
        Type.BOOLEAN: isinstance(value, bool),
        Type.DOUBLE: isinstance(value, int | float) and not isinstance(value, bool),
    }.get(kind, kind in _INTEGERS and isinstance(value, int) and not isinstance(value, bool))
    if not fits:
        raise InvalidValue(name, repr(value), f"it is {type(value).__name__}", setting.allowed)
    if kind in _INTEGERS and not -(1 << (_INTEGERS[kind] - 1)) <= value < 1 << (_INTEGERS[kind] - 1):
        raise InvalidValue(name, value, f"Not a number of type {kind.name}", setting.allowed)
    setting.valid.check(name, value)
    return value


def _objects(setting: Setting, value: Any) -> tuple[Any, ...]:
    """The entries of a list that may hold names and objects."""
    if isinstance(value, str):
        entries: tuple[Any, ...] = tuple(each.strip() for each in value.split(",")) if value.strip() else ()
    elif isinstance(value, Iterable) and not isinstance(value, type):
        entries = tuple(value)
    else:
        entries = (value,)
    named = tuple(
        _ASSIGNORS.get(each.removeprefix(_JAVA_CONSUMER), each) if isinstance(each, str) else each
        for each in entries
    )
    setting.valid.check(setting.name, tuple(each for each in named if isinstance(each, str)))
    return named


def _spelled(setting: Setting, value: str) -> str:
    """A word in any case, in the case of the default."""
    return value.lower() if str(setting.default_value).islower() else value.upper()


def _warn(kind: str, table: Mapping[str, Setting], chosen: Mapping[str, Any]) -> None:
    idle = sorted(
        name
        for name, value in chosen.items()
        if name in table and name not in HONOURED[kind] and value != table[name].default_value
    )
    if idle:
        LOGGER.warning("without effect in this client: %s", ", ".join(idle))
