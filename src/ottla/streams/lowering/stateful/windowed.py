"""Aggregates for each key and window: which operator serves which kind of window."""

from typing import TYPE_CHECKING

from ottla.streams.lowering.stateful.session_window import SessionWindows
from ottla.streams.lowering.stateful.sliding_window import SlidingWindows
from ottla.streams.lowering.stateful.time_window import TimeWindows
from ottla.streams.windows import SessionWindow, SlidingWindow, Window

if TYPE_CHECKING:
    from ottla.streams.lowering.context import Context
    from ottla.streams.lowering.stateful.fold import Fold
    from ottla.streams.lowering.stateful.keycode import KeyCode
    from ottla.streams.lowering.stateful.stage import Stage
    from ottla.streams.plan.aggregates import Aggregate, Cogroup


def windows(
    window: Window, fold: "Fold", code: "KeyCode", *, closing: bool = False
) -> TimeWindows | SlidingWindows | SessionWindows:
    """Return the operator of a kind of window. `code` is that of the keys without windows."""
    if isinstance(window, SessionWindow):
        return SessionWindows(fold, code, window.gap_ms, window.grace_ms, closing=closing)
    if isinstance(window, SlidingWindow):
        return SlidingWindows(fold, code, window.difference_ms, window.grace_ms, closing=closing)
    return TimeWindows(fold, code, window.size_ms, window.advance_ms, window.grace_ms, closing=closing)


def windowed_stages(node: "Aggregate | Cogroup", context: "Context") -> "list[Stage]":
    """Return an aggregate with windows."""
    from ottla.streams.lowering.stateful.fold import fold_of
    from ottla.streams.lowering.stateful.keycode import key_code
    from ottla.streams.lowering.stateful.stage import stage

    assert node.window is not None
    key = node.inputs[0].key
    fold = fold_of(node, key)
    closing = getattr(node, "emit", "update") == "close"
    operator = windows(node.window, fold, key_code(key), closing=closing)
    return [stage(node, operator, values=fold.method != "count")]
