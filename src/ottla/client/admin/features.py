"""Features: what the brokers support, what the cluster has agreed on, and changing that."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ottla import __version__
from ottla.client.admin.request_router import RequestRouter, at_any_broker
from ottla.client.admin.response_errors import error_of
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration
from ottla.client.errors import ClientError
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse


class Levels(NamedTuple):
    """The lowest and the highest level of a feature."""

    lowest: int
    highest: int


@dataclass(frozen=True, slots=True)
class FeatureDescription:
    """The features of a cluster by name. `epoch` is the number of the last change, or None if it is not known yet."""

    finalized: Mapping[str, Levels]
    supported: Mapping[str, Levels]
    epoch: int | None


class Upgrade(enum.IntEnum):
    """Which changes of a level are allowed: only up, also down if no metadata is lost, or always."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@renamed_timeouts
class Features:
    """Features, as `admin.features`. Every call raises Refused, TimedOut or, for several features, SomeFailed."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    async def describe(self, *, timeout: Duration | None = None) -> FeatureDescription:
        """Return the features of the cluster."""
        answer = await self._router.request_one(
            ApiVersionsRequest(client_software_name="ottla", client_software_version=__version__),
            ApiVersionsResponse,
            "the features",
            timeout,
        )
        return FeatureDescription(
            {
                each.name: Levels(each.min_version_level, each.max_version_level)
                for each in answer.finalized_features
            },
            {each.name: Levels(each.min_version, each.max_version) for each in answer.supported_features},
            answer.finalized_features_epoch if answer.finalized_features_epoch >= 0 else None,
        )

    async def update(
        self,
        levels: Mapping[str, int],
        how: Upgrade = Upgrade.UPGRADE,
        *,
        validate_only: bool = False,
        timeout: Duration | None = None,
    ) -> None:
        """Set the levels of features: of all of them or of none. Level 0 disables a feature."""
        kind = UpdateFeaturesRequest.FeatureUpdateKey

        async def ask(node: int | None, keys: list[str]) -> dict[str, ClientError | None]:
            request = UpdateFeaturesRequest(
                timeout_ms=self._router.broker_timeout_ms(timeout),
                feature_updates=[
                    kind(feature=key, max_version_level=levels[key], upgrade_type=how) for key in keys
                ],
                validate_only=validate_only,
            )
            answer = await self._router.send(node, request, UpdateFeaturesResponse)
            refusal = error_of(answer, f"features {', '.join(keys)}")
            if refusal is not None:
                return dict.fromkeys(keys, refusal)
            # Later versions answer for all features at once.
            return dict.fromkeys(keys) | {
                each.feature: error_of(each, f"feature {each.feature}") for each in answer.results
            }

        await self._router.request_each(levels, at_any_broker, ask, timeout)
