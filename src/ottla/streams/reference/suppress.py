"""Changes held back: until a window can change no more, or until some time has passed since the first of them.

Of each key the last change is held, at the place in time of the first. It leaves when stream time, the latest timestamp
of changes, has come to that time and the wait: the earliest first, of one time by key. A deletion that was held until a
window closed is dropped.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.streams.errors import StreamsError, TopologyError
from ottla.streams.plan.node import Node
from ottla.streams.plan.tables import Suppress
from ottla.streams.reference.change import Change, Operator
from ottla.streams.reference.keys import key_bytes
from ottla.streams.reference.time_windows import NOT_YET
from ottla.streams.windows import SessionWindow, SlidingWindow, TimeLimit, Window


class _Held(NamedTuple):
    due: int
    change: Change


class HoldBack(Operator):
    """What is held, by key."""

    def __init__(self, node: Suppress) -> None:
        self._node = node
        self._limit = node.until if isinstance(node.until, TimeLimit) else None
        self._wait = _wait_for_close(node) if self._limit is None else self._limit.wait_ms
        self._now = NOT_YET
        self._held: dict[bytes, _Held] = {}

    def take(self, side: int, change: Change) -> Iterable[Change]:
        """Hold a change, and let go what has been held long enough."""
        if change.key is None:
            return []
        self._now = max(self._now, change.timestamp)
        at = key_bytes(self._node.key, change.key)
        before = self._held.get(at)
        if before is None:
            since = change.key[2] if self._limit is None else change.timestamp
            self._held[at] = _Held(since + self._wait, change)
        else:
            self._held[at] = _Held(before.due, change._replace(old=before.change.old))
        released = self._released([name for name, held in self._held.items() if held.due <= self._now])
        if self._limit is None:
            return [each for each in released if each.value is not None]
        room = self._limit.records_max
        if room is not None and len(self._held) > room:
            if self._limit.when_full == "fail":
                raise StreamsError(
                    f"{self._node.name}: more than {room} keys are held back",
                    hint="allow more with records_max, or let the oldest go with when_full='emit'",
                )
            oldest = sorted(self._held, key=lambda name: (self._held[name].due, name))
            released += self._released(oldest[: len(self._held) - room])
        return released

    def _released(self, names: list[bytes]) -> list[Change]:
        order = sorted(names, key=lambda name: (self._held[name].due, name))
        return [self._held.pop(name).change for name in order]


def _wait_for_close(node: Suppress) -> int:
    """How long after its end a window may still change. Those whose ends belong to them may at that very time."""
    window = _window_above(node.input)
    if window is None:
        raise TopologyError(
            f"{node.name}: there is no window to wait for",
            hint="suppress until window close after a windowed aggregate",
        )
    if isinstance(window, SessionWindow):
        return window.gap_ms + window.grace_ms + 1
    return window.grace_ms + (1 if isinstance(window, SlidingWindow) else 0)


def _window_above(node: Node) -> Window | None:
    window: Window | None = getattr(node, "window", None)
    return window if window is not None or not node.inputs else _window_above(node.inputs[0])
