"""The BrokerHeartbeat API, key 63."""

from ottla.wire.field import since
from ottla.wire.message import Message
from ottla.wire.primitive import Bool, Int16, Int32, Int64, Uuid


class BrokerHeartbeatRequest(Message, api=63, versions="0-2", flexible="0+"):
    """A broker tells the controller that it is alive, how far it has read, and what it wants."""

    broker_id: Int32
    broker_epoch: Int64 = -1
    current_metadata_offset: Int64
    want_fence: Bool
    want_shut_down: Bool
    offline_log_dirs: list[Uuid] = since(1, tag=0)
    cordoned_log_dirs: list[Uuid] | None = since(2, default=None, tag=1)


class BrokerHeartbeatResponse(Message, api=63, versions="0-2", flexible="0+"):
    """Whether the broker is caught up, fenced, or may shut down."""

    throttle_time_ms: Int32
    error_code: Int16
    is_caught_up: Bool
    is_fenced: Bool = True
    should_shut_down: Bool
