"""Calls about settings, without asyncio."""

from collections.abc import Collection, Iterable, Mapping

from ottla.client.admin.configs import ConfigEntry, Resource, ResourceKind
from ottla.client.admin.configs import Configs as AsyncConfigs
from ottla.client.blocking.part import BlockingPart
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration


@renamed_timeouts
class Configs(BlockingPart[AsyncConfigs]):
    """Settings, as `admin.configs`. Every call raises Refused, TimedOut or, for several resources, SomeFailed."""

    def describe(
        self,
        resources: Resource | Iterable[Resource],
        *,
        names: Collection[str] | None = None,
        synonyms: bool = False,
        documentation: bool = False,
        timeout: Duration | None = None,
    ) -> dict[Resource, dict[str, ConfigEntry]]:
        """Return the settings of resources by name: all of them, or those in `names`."""
        return self._run(
            self._part.describe(
                resources, names=names, synonyms=synonyms, documentation=documentation, timeout=timeout
            )
        )

    def alter(
        self,
        changes: Mapping[Resource, Mapping[str, object]],
        *,
        validate_only: bool = False,
        timeout: Duration | None = None,
    ) -> None:
        """Change settings of resources. None resets a setting to its default. Append and Subtract change lists."""
        self._run(self._part.alter(changes, validate_only=validate_only, timeout=timeout))

    def resources(
        self, kinds: Iterable[ResourceKind] = (), *, timeout: Duration | None = None
    ) -> tuple[Resource, ...]:
        """Return the resources that have settings: all, or those of some kinds."""
        return self._run(self._part.resources(kinds, timeout=timeout))
