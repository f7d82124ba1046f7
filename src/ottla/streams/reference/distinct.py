"""The first record of each key: others are dropped, for good or for a span of event time.

With a span, a record is dropped when one with its key has passed that is no further away in time, earlier or later.
What is further back than two spans of stream time is forgotten. Records without a key are dropped.
"""

from collections.abc import Iterable

from ottla.streams.plan.distinct import Distinct
from ottla.streams.reference.change import Change, Operator
from ottla.streams.reference.keys import key_bytes
from ottla.streams.reference.time_windows import NOT_YET


class FirstOfEachKey(Operator):
    """The times of records that have passed, by key."""

    def __init__(self, node: Distinct) -> None:
        self._node = node
        self._now = NOT_YET
        self._passed: dict[bytes, list[int]] = {}

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Let a record pass, or not."""
        self._now = max(self._now, change.timestamp)
        if change.key is None:
            return ()
        at, span = key_bytes(self._node.key, change.key), self._node.within_ms
        passed = self._passed.get(at, [])
        if span is not None:
            passed = [each for each in passed if each >= self._now - 2 * span]
        if any(span is None or abs(change.timestamp - each) <= span for each in passed):
            return ()
        self._passed[at] = [*passed, change.timestamp]
        return (change,)
