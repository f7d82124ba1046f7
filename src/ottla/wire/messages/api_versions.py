"""The ApiVersions API, key 18."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int16, Int32, Int64, NullableString, String


class ApiVersionsRequest(Message, api=18, versions="0-5", flexible="3+"):
    """Ask which APIs and versions a broker speaks; the first request of nearly every connection."""

    client_software_name: String = since(3, ignorable=True)
    client_software_version: String = since(3, ignorable=True)
    cluster_id: NullableString = since(5, default=None, ignorable=True)
    node_id: Int32 = since(5, default=-1, ignorable=True)


class ApiVersionsResponse(Message, api=18, versions="0-5", flexible="3+"):
    """The version range of each API, and the cluster's feature levels."""

    class ApiVersion(Struct):
        api_key: Int16
        min_version: Int16
        max_version: Int16

    class SupportedFeatureKey(Struct):
        name: String
        min_version: Int16
        max_version: Int16

    class FinalizedFeatureKey(Struct):
        name: String
        max_version_level: Int16
        min_version_level: Int16

    error_code: Int16
    api_keys: list[ApiVersion]
    throttle_time_ms: Int32 = since(1, ignorable=True)
    supported_features: list[SupportedFeatureKey] = since(3, tag=0, ignorable=True)
    finalized_features_epoch: Int64 = since(3, default=-1, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = since(3, tag=2, ignorable=True)
    zk_migration_ready: Bool = since(3, tag=3, ignorable=True)
