"""The way of an admin request to the active controller and back.

F1  An answer leaves once the controller's records are committed and this broker has taken over the image they make, so
    whoever created a topic can use it.
F2  A client's patience bounds the wait: after `timeout_ms` it hears REQUEST_TIMED_OUT. What it asked for may still
    happen, as in Kafka.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from ottla.broker.api import Pending
from ottla.broker.broker import Broker
from ottla.controller.controller import Controller
from ottla.replicated.decision import Decision
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message

R = TypeVar("R")


def forward(
    broker: Broker,
    decide: Callable[[Controller, int], Decision[R]],
    finish: Callable[[R | BrokerError], Message],
    timeout_ms: int | None = None,
) -> Pending:
    """Let the controller decide; `finish` turns its answer, or its refusal, into the response."""
    pending = Pending()
    timer: Any = None
    answered = False

    def done(outcome: R | BrokerError) -> None:
        nonlocal answered
        if answered:
            return
        answered = True
        if timer is not None:
            timer.cancel()
        pending.resolve(finish(outcome))

    broker.submit(decide, done)
    if timeout_ms is not None and not answered:
        late = BrokerError(ErrorCode.REQUEST_TIMED_OUT, "The controller did not commit the change in time.")
        timer = broker.call_later(max(0, timeout_ms) / 1000, lambda: done(late))
    return pending
