"""Configurations that users changed at run time, by the resource they belong to."""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

_NONE: Mapping[str, str] = MappingProxyType({})
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

    by_resource: Mapping[Resource, Mapping[str, str]]

    def of(self, kind: int, name: str) -> Mapping[str, str]:
        """What was set on one resource; empty when nothing was."""
        return self.by_resource.get((kind, name), _NONE)

    def names(self, kind: int) -> list[str]:
        """The resources of a kind on which something is set."""
        return [name for each, name in self.by_resource if each == kind]
