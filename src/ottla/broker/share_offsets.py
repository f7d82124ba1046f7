"""What AlterShareGroupOffsets and DeleteShareGroupOffsets have in common: who is asked, and how it is refused."""

from collections.abc import Callable
from typing import Any, TypeVar

from ottla.broker.api import Pending
from ottla.broker.broker import Broker
from ottla.groups.machine import Groups
from ottla.replicated.decision import Decision
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message

R = TypeVar("R", bound=Message)

_REASONS = {
    ErrorCode.INVALID_GROUP_ID: "A group has a name.",
    ErrorCode.GROUP_ID_NOT_FOUND: "There is no share group of that name.",
    ErrorCode.NON_EMPTY_GROUP: "The group has members.",
}


def change_offsets(
    broker: Broker,
    request: Any,
    decide: Callable[[Groups, int, int], Decision[None]],
    response: Callable[..., R],
) -> R | Pending:
    """Ask the group's coordinator, which asks the share coordinators; `decide` is given a token for the answer."""

    def refuse(code: ErrorCode) -> R:
        return response(error_code=code, error_message=_REASONS.get(code))

    try:
        broker.share.check()
    except BrokerError as error:
        return refuse(error.code)
    if not request.group_id:
        return refuse(ErrorCode.INVALID_GROUP_ID)
    if not request.topics:
        return response()
    return broker.coordination.group_later(request.group_id, decide, refuse)
