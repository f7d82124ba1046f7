"""What hinders a streams group without being an error: told to members in the answers to their heartbeats."""

from enum import IntEnum

from ottla.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse


class StatusCode(IntEnum):
    """The kinds of hindrance."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


Status = StreamsGroupHeartbeatResponse.Status


def status(code: StatusCode, detail: str) -> Status:
    """Return one hindrance, as it is told."""
    return Status(status_code=code, status_detail=detail)
