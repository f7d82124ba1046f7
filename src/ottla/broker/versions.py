"""The answer to ApiVersions, made once for each image of the metadata.

The epoch of the features is the image's offset, as in Kafka. kraft.version is none of the image's, and may change a
moment before it.
"""

from collections.abc import Callable, Iterable

from ottla.broker.api import Api
from ottla.metadata.feature import SUPPORTED
from ottla.metadata.image import Image
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse


class ApiVersions:
    """What is advertised, as a message."""

    def __init__(self, apis: Iterable[Api], finalized: Callable[[], dict[str, int]]) -> None:
        self._finalized = finalized
        self._keys = [
            ApiVersionsResponse.ApiVersion(
                api_key=api.key, min_version=api.advertised_from, max_version=api.versions.stop - 1
            )
            for api in sorted(apis, key=lambda api: api.key)
        ]
        supported = ApiVersionsRequest.versions
        own = ApiVersionsResponse.ApiVersion(
            api_key=ApiVersionsRequest.api_key, min_version=supported.start, max_version=supported.stop - 1
        )
        self.unsupported = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own])
        self._made_of: tuple[int, dict[str, int]] | None = None
        self._answers: dict[bool, ApiVersionsResponse] = {}

    def answer(self, image: Image, version: int) -> ApiVersionsResponse:
        """Return the response for the features finalized in `image`."""
        made_of = (image.offset, self._finalized())
        if self._made_of != made_of:
            self._made_of, self._answers = made_of, {}
        # A minimum of 0 is left out below v4, since older clients refuse it (KAFKA-17011).
        whole = version >= 4
        if whole not in self._answers:
            self._answers[whole] = self._response(*made_of, whole)
        return self._answers[whole]

    def _response(self, epoch: int, finalized: dict[str, int], whole: bool) -> ApiVersionsResponse:
        return ApiVersionsResponse(
            api_keys=self._keys,
            supported_features=[
                ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=low, max_version=high)
                for name, (low, high) in sorted(SUPPORTED.items())
                if whole or low > 0
            ],
            finalized_features_epoch=epoch,
            finalized_features=[
                ApiVersionsResponse.FinalizedFeatureKey(
                    name=name, max_version_level=level, min_version_level=level
                )
                for name, level in sorted(finalized.items())
                if level > 0
            ],
        )
