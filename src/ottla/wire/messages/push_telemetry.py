"""The PushTelemetry API, key 72."""

from ottla.wire.message import Message
from ottla.wire.primitive import Bool, Bytes, Int8, Int16, Int32, Uuid


class PushTelemetryRequest(Message, api=72, versions="0", flexible="0+"):
    """A client hands over its metrics."""

    client_instance_id: Uuid
    subscription_id: Int32
    terminating: Bool
    compression_type: Int8
    metrics: Bytes


class PushTelemetryResponse(Message, api=72, versions="0", flexible="0+"):
    """Whether the metrics were taken."""

    throttle_time_ms: Int32
    error_code: Int16
