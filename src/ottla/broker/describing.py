"""How groups are described: each by its coordinator, and all in one answer.

Where there is much to say the members of a group are described in several turns of the loop (`long_answers.py`). Who
joins or leaves in between may be missing, or be there twice.
"""

import copy
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from ottla.broker.api import Handler, Pending
from ottla.broker.broker import Broker
from ottla.broker.long_answers import ANSWERED_A_TURN, coordinated, in_steps_if_long
from ottla.broker.mentions import mentions
from ottla.channel.connection import Connection
from ottla.groups.description import ALL, costs, parts
from ottla.groups.group import Group
from ottla.groups.machine import Groups
from ottla.replicated.decision import Decision
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message

M = TypeVar("M", bound=Message)

# Bit n stands for Kafka's AclOperation n; without an authorizer everybody may do everything.
GROUP_OPERATIONS = 0b1101_0100_1000

# Describes the groups of a request, with some of their members: (request, version, broker, members).
Describe = Callable[[Any, int, Broker, slice], "Message | Pending"]


class Descriptions:
    """How requests are served that `describe` serves; `ids` is the field in which they name groups."""

    __slots__ = ("_describe", "_ids")

    def __init__(self, describe: Describe, ids: str) -> None:
        self._describe = describe
        self._ids = ids

    def handle(self, request: Any, version: int, connection: Connection, broker: Broker) -> Message | Pending:
        """Answer at once, or in steps if there is much to tell."""
        found = (group for _, group in self._groups(request, broker))
        return in_steps_if_long(
            request, costs(found), connection, broker, lambda: self._describe(request, version, broker, ALL)
        )

    def in_steps(
        self, handle: Handler, request: Any, version: int, connection: Connection, broker: Broker
    ) -> Generator[None, None, Any]:
        """Answer in steps, each of which describes some members."""
        answers = _Answers()
        for group_ids, members in parts(self._groups(request, broker), ANSWERED_A_TURN):
            part = copy.copy(request)
            setattr(part, self._ids, group_ids)
            answers.expect(self._describe(part, version, broker, members), goes_on=bool(members.start))
            yield
        return answers.all_begun()

    def _groups(self, request: Any, broker: Broker) -> Iterator[tuple[str, Group | None]]:
        for group_id, machine in coordinated(broker, mentions(getattr(request, self._ids), str)):
            yield group_id, None if machine is None else machine.shelf.groups.get(group_id)


class _Answers:
    """What the parts were answered, until all are there."""

    __slots__ = ("_found", "_left", "_pending")

    def __init__(self) -> None:
        self._found: list[tuple[Any, bool]] = []
        self._left = 0
        self._pending: Pending | None = None

    def expect(self, reply: "Message | Pending", *, goes_on: bool) -> None:
        """Take the reply for the next part, now or later; it may go on with the group of the part before."""
        number = len(self._found)
        self._found.append((None, goes_on))
        self._left += 1
        if isinstance(reply, Pending):
            reply.then(partial(self._take, number), self._failed)
        else:
            self._take(number, reply)

    def _take(self, number: int, message: Message) -> None:
        self._found[number] = message, self._found[number][1]
        self._left -= 1
        if not self._left and self._pending is not None:
            self._pending.resolve(self._joined())

    def _failed(self, error: Exception) -> None:
        if self._pending is not None:
            self._pending.fail(error)

    def all_begun(self) -> "Message | Pending":
        """Return the answer, or the promise of one."""
        if not self._left:
            return self._joined()
        self._pending = Pending()
        return self._pending

    def _joined(self) -> Message:
        (whole, _), *others = self._found
        for message, goes_on in others:
            groups = message.groups
            if goes_on:
                (group,) = groups
                if not group.error_code and not whole.groups[-1].error_code:
                    whole.groups[-1].members += group.members
            else:
                whole.groups += groups
        assert isinstance(whole, Message)
        return whole


def describe_each(
    request: Any,
    broker: Broker,
    check: Callable[[], None],
    response: Callable[..., M],
    described: Callable[..., Any],
    describe: Callable[[Groups, Iterable[str]], list[Any]],
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
