"""Requests that are short and have a long answer: what few bytes name may be groups with many members or offsets.

A handler that sees so has the request served in steps (`long_requests.py`), as if it were long itself. What it looks at
is the coordinator on this broker; where there is none the answer is short.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from ottla.broker.api import Pending
from ottla.broker.broker import Broker
from ottla.broker.long_requests import AtOnce, serve_in_steps
from ottla.channel.connection import Connection
from ottla.groups.machine import Groups
from ottla.wire.message import Message

ANSWERED_A_TURN = 500  # members or offsets, or what costs as much


def in_steps_if_long(
    request: Any, costs: Iterable[int], connection: Connection, broker: Broker, at_once: AtOnce
) -> Message | Pending:
    """Answer `at_once`, or have a request served in steps if its parts cost too much for one turn."""
    total = 0
    for cost in costs:
        total += cost
        if total > ANSWERED_A_TURN:
            return serve_in_steps(request, connection, broker, at_once)
    return at_once()


def coordinated(broker: Broker, group_ids: Iterable[str]) -> Iterator[tuple[str, Groups | None]]:
    """Go through groups, each with the machine that knows it, if that is on this broker and has read its log."""
    coordination = broker.coordination
    for group_id in group_ids:
        yield group_id, coordination.groups.machine(coordination.index(group_id))
