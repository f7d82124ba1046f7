"""Settings of topics, brokers, groups and subscriptions to client metrics: describe and alter them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.client.admin.request_router import Destination, RequestRouter
from ottla.client.admin.response_errors import error_of
from ottla.client.admin.setting_text import setting_text
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration
from ottla.client.errors import ClientError
from ottla.metadata.config import ConfigType
from ottla.metadata.settings.definition import Type
from ottla.metadata.settings.layers import Source
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from ottla.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

ResourceKind = ConfigType
"""The type of a resource that has settings. The values are those of Kafka's protocol."""


class Resource(NamedTuple):
    """A resource that has settings. A broker with an empty name stands for the defaults of all brokers."""

    kind: ResourceKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind.name.replace('_', ' ').lower()} {self.name}".strip()

    @classmethod
    def topic(cls, name: str) -> "Resource":
        """Return a topic."""
        return cls(ResourceKind.TOPIC, name)

    @classmethod
    def broker(cls, node: int | None = None) -> "Resource":
        """Return a broker, or without a node the defaults of all brokers."""
        return cls(ResourceKind.BROKER, "" if node is None else str(node))

    @classmethod
    def broker_logger(cls, node: int) -> "Resource":
        """Return the log levels of a broker."""
        return cls(ResourceKind.BROKER_LOGGER, str(node))

    @classmethod
    def group(cls, name: str) -> "Resource":
        """Return a group."""
        return cls(ResourceKind.GROUP, name)

    @classmethod
    def client_metrics(cls, name: str) -> "Resource":
        """Return a subscription to client metrics."""
        return cls(ResourceKind.CLIENT_METRICS, name)


class ConfigSynonym(NamedTuple):
    """A name that the value of a setting can come from, with its value there."""

    name: str
    value: str | None
    source: Source


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A setting of a resource. The value of a secret is None.

    `documentation` and `synonyms` are empty unless the call asked for them.
    """

    name: str
    value: str | None
    source: Source
    is_sensitive: bool = False
    is_read_only: bool = False
    type: Type | None = None
    documentation: str | None = None
    synonyms: tuple[ConfigSynonym, ...] = ()

    @property
    def is_default(self) -> bool:
        """Whether the value is the default."""
        return self.source is Source.DEFAULT_CONFIG


@dataclass(frozen=True, slots=True)
class Append:
    """A change that adds entries to a setting that is a list."""

    entries: object


@dataclass(frozen=True, slots=True)
class Subtract:
    """A change that removes entries from a setting that is a list."""

    entries: object


_KINDS, _TYPES, _SOURCES = frozenset(ResourceKind), frozenset(Type), frozenset(Source)
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_AT_BROKER = {ResourceKind.BROKER, ResourceKind.BROKER_LOGGER}


@renamed_timeouts
class Configs:
    """Settings, as `admin.configs`. Every call raises Refused, TimedOut or, for several resources, SomeFailed."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    async def describe(
        self,
        resources: Resource | Iterable[Resource],
        *,
        names: Collection[str] | None = None,
        synonyms: bool = False,
        documentation: bool = False,
        timeout: Duration | None = None,
    ) -> dict[Resource, dict[str, ConfigEntry]]:
        """Return the settings of resources by name: all of them, or those in `names`."""
        kind = DescribeConfigsRequest.DescribeConfigsResource

        async def ask(
            node: int | None, keys: list[Resource]
        ) -> dict[Resource, dict[str, ConfigEntry] | ClientError]:
            request = DescribeConfigsRequest(
                resources=[
                    kind(
                        resource_type=key.kind,
                        resource_name=key.name,
                        configuration_keys=None if names is None else list(names),
                    )
                    for key in keys
                ],
                include_synonyms=synonyms,
                include_documentation=documentation,
            )
            answer = await self._router.send(node, request, DescribeConfigsResponse)
            outcomes: dict[Resource, dict[str, ConfigEntry] | ClientError] = {}
            for each in answer.results:
                key = _resource(each)
                outcomes[key] = error_of(each, str(key)) or {
                    config.name: _entry(config) for config in each.configs
                }
            return outcomes

        return await self._router.request_each(_several(resources), self._locate, ask, timeout)

    async def alter(
        self,
        changes: Mapping[Resource, Mapping[str, object]],
        *,
        validate_only: bool = False,
        timeout: Duration | None = None,
    ) -> None:
        """Change settings of resources. None resets a setting to its default. Append and Subtract change lists."""
        kind = IncrementalAlterConfigsRequest.AlterConfigsResource

        async def ask(node: int | None, keys: list[Resource]) -> dict[Resource, ClientError | None]:
            request = IncrementalAlterConfigsRequest(
                resources=[
                    kind(
                        resource_type=key.kind,
                        resource_name=key.name,
                        configs=[_alterable(name, value) for name, value in changes[key].items()],
                    )
                    for key in keys
                ],
                validate_only=validate_only,
            )
            answer = await self._router.send(node, request, IncrementalAlterConfigsResponse)
            outcomes: dict[Resource, ClientError | None] = {}
            for each in answer.responses:
                key = _resource(each)
                outcomes[key] = error_of(each, str(key))
            return outcomes

        await self._router.request_each(changes, self._locate, ask, timeout)

    async def resources(
        self, kinds: Iterable[ResourceKind] = (), *, timeout: Duration | None = None
    ) -> tuple[Resource, ...]:
        """Return the resources that have settings: all, or those of some kinds."""
        wanted = list(kinds)
        answer = await self._router.request_one(
            # The first version knows client metrics only, and so has no room for kinds.
            ListConfigResourcesRequest(
                resource_types=[] if wanted == [ResourceKind.CLIENT_METRICS] else wanted
            ),
            ListConfigResourcesResponse,
            "the list of resources",
            timeout,
        )
        found = (_resource(each) for each in answer.config_resources)
        return tuple(sorted(each for each in found if not wanted or each.kind in wanted))

    async def _locate(self, keys: Collection[Resource]) -> dict[Resource, Destination]:
        named = {key: int(key.name) for key in keys if key.kind in _AT_BROKER and key.name}
        destinations = await self._router.at_broker(set(named.values()))
        return {key: destinations[named[key]] if key in named else None for key in keys}


def _several(resources: Resource | Iterable[Resource]) -> Iterable[Resource]:
    return [resources] if isinstance(resources, Resource) else resources


def _entry(
    config: DescribeConfigsResponse.DescribeConfigsResult.DescribeConfigsResourceResult,
) -> ConfigEntry:
    return ConfigEntry(
        config.name,
        config.value,
        _source(config.config_source),
        config.is_sensitive,
        config.read_only,
        Type(config.config_type) if config.config_type in _TYPES else None,
        config.documentation,
        tuple(ConfigSynonym(each.name, each.value, _source(each.source)) for each in config.synonyms),
    )


def _resource(said: Any) -> Resource:
    known = said.resource_type in _KINDS
    return Resource(ResourceKind(said.resource_type) if known else ResourceKind.UNKNOWN, said.resource_name)


def _source(number: int) -> Source:
    return Source(number) if number in _SOURCES else Source.UNKNOWN


def _alterable(
    name: str, value: object
) -> IncrementalAlterConfigsRequest.AlterConfigsResource.AlterableConfig:
    operation = _DELETE if value is None else _SET
    if isinstance(value, Append | Subtract):
        operation = _APPEND if isinstance(value, Append) else _SUBTRACT
        value = value.entries
    return IncrementalAlterConfigsRequest.AlterConfigsResource.AlterableConfig(
        name=name, config_operation=operation, value=setting_text(value)
    )
