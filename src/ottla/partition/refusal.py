"""Why a partition cannot be used here.

A new exception each time: one that is raised again and again keeps every frame it has passed through.
"""

from ottla.wire.errors import BrokerError, ErrorCode


def unknown_partition() -> BrokerError:
    """No such partition is here."""
    return BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "this broker has no such partition")


def moved_away() -> BrokerError:
    """The replica was here, and is not any more."""
    return BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the replica of this broker was moved away")


def unknown_topic_id() -> BrokerError:
    """No topic of this id is here."""
    return BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, "this broker has no topic of this id")


def directory_offline() -> BrokerError:
    """The files cannot be reached."""
    return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "the log directory of this partition is offline")
