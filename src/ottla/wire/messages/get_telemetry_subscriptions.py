"""The GetTelemetrySubscriptions API, key 71."""

from ottla.wire.message import Message
from ottla.wire.primitive import Bool, Int8, Int16, Int32, String, Uuid


class GetTelemetrySubscriptionsRequest(Message, api=71, versions="0", flexible="0+"):
    """A client asks which metrics it should push."""

    client_instance_id: Uuid


class GetTelemetrySubscriptionsResponse(Message, api=71, versions="0", flexible="0+"):
    """The metrics wanted, how often, and how compressed."""

    throttle_time_ms: Int32
    error_code: Int16
    client_instance_id: Uuid
    subscription_id: Int32
    accepted_compression_types: list[Int8]
    push_interval_ms: Int32
    telemetry_max_bytes: Int32
    delta_temporality: Bool
    requested_metrics: list[String]
