"""How groups of a protocol with epochs are described: each by its coordinator, and all in one answer."""

from collections.abc import Callable
from typing import Any, TypeVar

from ottla.broker.api import Pending
from ottla.broker.apis.describe_groups import GROUP_OPERATIONS
from ottla.broker.broker import Broker
from ottla.groups.machine import Groups
from ottla.replicated.decision import Decision
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message

M = TypeVar("M", bound=Message)


def describe_each(
    request: Any,
    broker: Broker,
    check: Callable[[], None],
    response: Callable[..., M],
    described: Callable[..., Any],
    describe: Callable[[Groups, list[str]], list[Any]],
) -> M | Pending:
    """Answer a request that `check` lets pass; `response` and `described` make the answer and a group of it."""

    def refuse(group_id: str, code: ErrorCode) -> Any:
        return described(group_id=group_id, error_code=code)

    def finish(groups: list[Any]) -> M:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = GROUP_OPERATIONS
        return response(groups=groups)

    try:
        check()
    except BrokerError as error:
        return response(groups=[refuse(group_id, error.code) for group_id in request.group_ids])
    return broker.coordination.each_group(
        request.group_ids, lambda groups, ids, now: Decision(describe(groups, ids)), refuse, finish
    )
