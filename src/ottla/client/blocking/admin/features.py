"""Calls about features, without asyncio."""

from collections.abc import Mapping

from ottla.client.admin.features import FeatureDescription, Upgrade
from ottla.client.admin.features import Features as AsyncFeatures
from ottla.client.blocking.part import BlockingPart
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration


@renamed_timeouts
class Features(BlockingPart[AsyncFeatures]):
    """Features, as `admin.features`. Every call raises Refused, TimedOut or, for several features, SomeFailed."""

    def describe(self, *, timeout: Duration | None = None) -> FeatureDescription:
        """Return the features of the cluster."""
        return self._run(self._part.describe(timeout=timeout))

    def update(
        self,
        levels: Mapping[str, int],
        how: Upgrade = Upgrade.UPGRADE,
        *,
        validate_only: bool = False,
        timeout: Duration | None = None,
    ) -> None:
        """Set the levels of features: of all of them or of none. Level 0 disables a feature."""
        self._run(self._part.update(levels, how, validate_only=validate_only, timeout=timeout))
