"""The first record of each key: others are dropped, for good or for a span of event time.

With a span, a record is dropped when one with its key has passed that is no further away in time, earlier or later.
Records without a key are dropped.
"""

from typing import TYPE_CHECKING

from ottla.streams.lowering.stateful.operator import Operator
from ottla.streams.lowering.stateful.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.streams.lowering.context import Context
    from ottla.streams.lowering.stateful.record import Record
    from ottla.streams.lowering.stateful.stage import Stage
    from ottla.streams.lowering.stateful.store import Store
    from ottla.streams.plan.distinct import Distinct as DistinctNode


class Distinct(Operator):
    """rows: key → the timestamps of records that have passed; timeline: rows to forget."""

    stores = ("rows", "timeline")

    def __init__(self, within_ms: int | None = None) -> None:
        self._within = within_ms

    def open(self, stores: "Mapping[str, Store]") -> None:
        """Begin a micro-batch."""
        super().open(stores)
        self._timeline = Timeline(stores["timeline"], (self._within or 0) // 4)

    def step(self, record: "Record") -> None:
        """Let a record pass, or not."""
        self._timeline.advance(record.timestamp)
        if record.at is None:
            return
        passed: list[int] = self.rows.get(record.at) or []
        if self._within is None:
            if passed:
                return
        else:
            # What is further back than two spans is forgotten, so a record that is very late passes.
            passed = [each for each in passed if each >= self._timeline.now - 2 * self._within]
            if any(abs(record.timestamp - each) <= self._within for each in passed):
                return
            self._timeline.add(record.timestamp + 2 * self._within + 1, record.at)
        self.rows.put(record.at, [*passed, record.timestamp])
        self.emit(record.key, record.value, None, record.timestamp, record.headers)

    def finish(self) -> None:
        """Forget keys whose spans are over."""
        if self._within is not None:
            due = [at for _, at in self._timeline.pop(self._timeline.now, whole=True)]
            self.rows.fetch(due)
            for at in due:
                passed = self.rows.get(at)
                if passed and max(passed) + 2 * self._within < self._timeline.now:
                    self.rows.delete(at)
        self._timeline.flush()


def distinct_stages(node: "DistinctNode", context: "Context") -> "list[Stage]":
    """Return a distinct."""
    from ottla.streams.lowering.stateful.stage import stage

    return [stage(node, Distinct(node.within_ms))]
