"""What a broker's settings are at this moment, and which layer each value comes from.

Laws
1  A value is that of the first layer that has one: dynamic for this broker, dynamic for the cluster, the properties
   file, the default.
2  A stored dynamic value that does not parse, or that may not be dynamic, is passed over, as if it were not there:
   metadata written by others must not stop a broker. One that nobody knows is kept and shown, and means nothing: it
   may be for a plugin.
3  A BrokerValues never changes; `with_dynamic` gives a new one.
"""

import enum
from collections.abc import Iterator, Mapping
from typing import Any

from ottla.metadata.settings.broker import BROKER, DYNAMIC, LISTENER_ONLY, broker_setting, listener_setting
from ottla.metadata.settings.definition import Update, Value
from ottla.metadata.settings.error import ConflictingSettings, SettingError


class Source(enum.IntEnum):
    """Where a value comes from; the numbers are those of DescribeConfigs."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


# Dynamic listener settings that hold for the whole cluster.
_CLUSTER_LEVEL = {"max.connections", "max.connection.creation.rate", "num.network.threads"}

DEFAULT_TEXTS: dict[str, str] = {
    name: text
    for name, setting in BROKER.items()
    if (text := setting.text(setting.default_value)) is not None
}
_DEFAULTS: dict[str, Value] = {name: setting.default_value for name, setting in BROKER.items()}


class BrokerValues(Mapping[str, Any]):
    """The typed value of every broker setting; `layers` keeps the text of each layer, the strongest first."""

    __slots__ = ("_values", "dynamic_broker", "dynamic_default", "static")

    def __init__(
        self,
        static: Mapping[str, str],
        dynamic_default: Mapping[str, str] | None = None,
        dynamic_broker: Mapping[str, str] | None = None,
    ) -> None:
        self.static = dict(static)
        self.dynamic_default = usable(dynamic_default or {}, per_broker=False)
        self.dynamic_broker = usable(dynamic_broker or {}, per_broker=True)
        values = dict(_DEFAULTS)
        for layer in (self.static, self.dynamic_default, self.dynamic_broker):
            for name, text in layer.items():
                setting = broker_setting(name)
                if setting is not None:
                    values[name] = setting.parse(text)
        self._values = values

    def with_dynamic(
        self, dynamic_default: Mapping[str, str], dynamic_broker: Mapping[str, str]
    ) -> "BrokerValues":
        """The same properties file under other dynamic values."""
        return BrokerValues(self.static, dynamic_default, dynamic_broker)

    def is_set(self, name: str) -> bool:
        """Whether any layer above the defaults has a value."""
        return any(name in layer for layer in (self.dynamic_broker, self.dynamic_default, self.static))

    @property
    def layers(self) -> tuple[tuple[Source, Mapping[str, str]], ...]:
        """Each source with its texts, the strongest first."""
        return (
            (Source.DYNAMIC_BROKER_CONFIG, self.dynamic_broker),
            (Source.DYNAMIC_DEFAULT_BROKER_CONFIG, self.dynamic_default),
            (Source.STATIC_BROKER_CONFIG, self.static),
            (Source.DEFAULT_CONFIG, DEFAULT_TEXTS),
        )

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def validate_broker(overrides: Mapping[str, str], *, per_broker: bool) -> None:
    """Raise SettingError, worded as Kafka does, unless `overrides` may be set on a running broker (or on all)."""
    frozen = sorted(name for name in overrides if name in BROKER and name not in DYNAMIC)
    if frozen:
        raise _refused("Cannot update these configs dynamically", frozen)
    bare = sorted(LISTENER_ONLY & overrides.keys())
    if bare:
        raise _refused(
            "These security configs can be dynamically updated only per-listener using the listener prefix", bare
        )
    for name, text in overrides.items():
        setting = broker_setting(name)
        if setting is not None:
            setting.parse(text)
    if not per_broker:
        own = sorted(name for name in overrides if _is_per_broker(name))
        if own:
            raise _refused("Cannot update these configs at default cluster level, broker id must be specified", own)


def usable(stored: Mapping[str, str], *, per_broker: bool) -> dict[str, str]:
    """The stored dynamic values that may take effect on a broker."""
    kept: dict[str, str] = {}
    for name, text in stored.items():
        setting = broker_setting(name)
        if name in LISTENER_ONLY or (name in BROKER and name not in DYNAMIC):
            continue
        if not per_broker and _is_per_broker(name):
            continue
        try:
            if setting is not None:
                setting.parse(text)
        except SettingError:
            continue
        kept[name] = text
    return kept


def _is_per_broker(name: str) -> bool:
    overridden = listener_setting(name)
    if overridden is not None:
        return overridden not in _CLUSTER_LEVEL
    setting = DYNAMIC.get(name)
    return setting is not None and setting.update is Update.PER_BROKER


def _refused(reason: str, names: list[str]) -> ConflictingSettings:
    return ConflictingSettings(f"{reason}: [{', '.join(names)}]", name=names[0])
