"""What a user's function says of a record's time, topic or partition: checked, with one wording for whoever runs it."""

import datetime
from typing import Any

from ottla.streams.errors import FunctionFailed, TypeMismatch
from ottla.streams.types.type import Instant

# Spark counts microseconds in 64 bits.
TIMESTAMP_MAX = ((1 << 63) - 1) // 1000
PARTITION_MAX = (1 << 31) - 1
NO_TIME = f" is no timestamp: give milliseconds from 0 to {TIMESTAMP_MAX}, or a datetime since 1970"
NO_TOPIC = " is no name of a topic"
NO_PARTITION = " is no number of a partition"
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLISECOND = datetime.timedelta(milliseconds=1)


def timestamp_ms(found: Any, operator: str, place: str) -> int:
    """Return the time that a function says, in milliseconds; FunctionFailed where it is none.

    As by Kafka Streams' FailOnInvalidTimestamp there are no times before 1970.
    """
    said = found
    if isinstance(found, datetime.datetime):
        try:
            said = (Instant().dump(found) - _EPOCH) // _MILLISECOND
        except TypeMismatch as error:
            raise FunctionFailed(operator, place, str(error.args[0])) from None
    if isinstance(said, int) and not isinstance(said, bool) and 0 <= said <= TIMESTAMP_MAX:
        return said
    raise FunctionFailed(operator, place, f"{said!r:.100}{NO_TIME}")


def topic_name(found: Any, operator: str, place: str) -> str:
    """Return the topic that a function names; FunctionFailed where it is none."""
    if not isinstance(found, str) or not found:
        raise FunctionFailed(operator, place, f"{found!r:.100}{NO_TOPIC}")
    return found


def partition_number(found: Any, operator: str, place: str) -> int | None:
    """Return the partition that a function chooses, None where it leaves that open; FunctionFailed where it is none."""
    if found is None:
        return None
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= PARTITION_MAX:
        raise FunctionFailed(operator, place, f"{found!r:.100}{NO_PARTITION}")
    return found
