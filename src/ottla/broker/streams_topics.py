"""The topics that streams groups need for themselves, between their subtopologies and for their state.

S1  Every heartbeat names them while they are missing, but the controller is asked once: not again while they are being
    made, nor for a while after that failed.
S2  Why a topic could not be made is told to whoever misses it, until it is tried again.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.broker.broker import Broker
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

CreatableTopic = CreateTopicsRequest.CreatableTopic

# A topic that somebody else made meanwhile is as good.
_MADE = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
_FAILURES_MAX = 1_000


class _Failure(NamedTuple):
    """Why a topic could not be made, and until when it is not tried again."""

    reason: str
    until_ms: int


class StreamsTopics:
    """What is being made on behalf of streams groups, and what could not be."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._making: set[str] = set()
        self._failures: dict[str, _Failure] = {}

    def make(self, topics: Iterable[CreatableTopic], patience_ms: int) -> dict[str, str]:
        """Have topics made; return why some of them can not be. What fails is tried again after `patience_ms`."""
        topics = list(topics)
        wanted = [
            topic for topic in topics if topic.name not in self._making and not self._reason(topic.name)
        ]
        if wanted:
            self._ask(wanted, patience_ms)
        return {topic.name: reason for topic in topics if (reason := self._reason(topic.name))}

    def _ask(self, topics: list[CreatableTopic], patience_ms: int) -> None:
        names = [topic.name for topic in topics]
        self._making.update(names)
        request = CreateTopicsRequest(topics=topics)

        def done(outcome: CreateTopicsResponse | BrokerError) -> None:
            self._making.difference_update(names)
            if isinstance(outcome, BrokerError):
                failed = dict.fromkeys(names, (outcome.code, outcome.message))
            else:
                failed = {
                    topic.name: (ErrorCode(topic.error_code), topic.error_message)
                    for topic in outcome.topics
                    if topic.error_code not in _MADE
                }
            until_ms = int(self._broker.clock.monotonic() * 1000) + patience_ms
            for name, (code, message) in failed.items():
                self._note(name, _Failure(message or code.name, until_ms))

        self._broker.ask_controller(
            request, CreateTopicsResponse, lambda controller, now: controller.create_topics(request, now), done
        )

    def _note(self, name: str, failure: _Failure) -> None:
        failures = self._failures
        if len(failures) >= _FAILURES_MAX:
            now = int(self._broker.clock.monotonic() * 1000)
            failures = {each: known for each, known in failures.items() if known.until_ms > now}
            if len(failures) >= _FAILURES_MAX:
                del failures[min(failures, key=lambda each: failures[each].until_ms)]
            self._failures = failures
        failures[name] = failure

    def _reason(self, name: str) -> str | None:
        failure = self._failures.get(name)
        if failure is None:
            return None
        if failure.until_ms <= int(self._broker.clock.monotonic() * 1000):
            del self._failures[name]
            return None
        return failure.reason
