"""The UpdateFeatures API, key 57."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int8, Int16, Int32, NullableString, String


class UpdateFeaturesRequest(Message, api=57, versions="0-2", flexible="0+"):
    """Raise or lower finalized feature levels of the cluster."""

    class FeatureUpdateKey(Struct):
        feature: String
        max_version_level: Int16
        allow_downgrade: Bool = since(0, until=0)
        upgrade_type: Int8 = since(1, default=1)

    timeout_ms: Int32 = 60000
    feature_updates: list[FeatureUpdateKey]
    validate_only: Bool = since(1)


class UpdateFeaturesResponse(Message, api=57, versions="0-2", flexible="0+"):
    """Whether the feature levels were changed."""

    class UpdatableFeatureResult(Struct):
        feature: String
        error_code: Int16
        error_message: NullableString

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
    results: list[UpdatableFeatureResult] = since(0, until=1, ignorable=True)
