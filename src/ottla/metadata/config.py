"""Configurations that users changed at run time, by the resource they belong to."""

import enum
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

_NONE: Mapping[str, str] = MappingProxyType({})
_NO_RESOURCES: Mapping[str, Mapping[str, str]] = MappingProxyType({})
DEFAULT_BROKER = ""


class ConfigType(enum.IntEnum):
    """Kafka's kinds of configurable resource."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


Resource = tuple[int, str]


class Configs(NamedTuple):
    """Every configuration that differs from its default. The broker of the empty name stands for all brokers."""

    # By kind, so that a change of one group's settings does not copy those of all topics.
    by_kind: Mapping[int, Mapping[str, Mapping[str, str]]]

    def of(self, kind: int, name: str) -> Mapping[str, str]:
        """What was set on one resource; empty when nothing was."""
        return self.of_kind(kind).get(name, _NONE)

    def of_kind(self, kind: int) -> Mapping[str, Mapping[str, str]]:
        """What was set on resources of a kind. While nothing of it changes this is the same object."""
        return self.by_kind.get(kind, _NO_RESOURCES)

    def names(self, kind: int) -> list[str]:
        """The resources of a kind on which something is set."""
        return list(self.of_kind(kind))

    def items(self) -> Iterator[tuple[Resource, Mapping[str, str]]]:
        """Every resource on which something is set, with its settings."""
        for kind, resources in self.by_kind.items():
            for name, values in resources.items():
                yield (kind, name), values

    def changed(self, changes: Mapping[Resource, Mapping[str, str | None]]) -> "Configs":
        """Return these with settings changed; those of None fall back to their defaults."""
        if not changes:
            return self
        by_kind = dict(self.by_kind)
        for kind in dict.fromkeys(kind for kind, _ in changes):
            by_kind[kind] = dict(self.of_kind(kind))
        for (kind, name), change in changes.items():
            resources: dict[str, Mapping[str, str]] = by_kind[kind]  # type: ignore[assignment]  # copied above
            values = {**resources.get(name, _NONE), **change}
            kept = {key: value for key, value in values.items() if value is not None}
            if kept:
                resources[name] = kept
            else:
                resources.pop(name, None)
        return Configs({kind: resources for kind, resources in by_kind.items() if resources})
