"""Streams and tables over topics, written in Python and run by Spark, as Kafka Streams is for Java.

from ottla.streams import App

app = App("word-count", "localhost:9092")
words = app.stream("lines").flat_map_values(lambda line: line.lower().split())
words.group_by(lambda word: word).count().to("counts")
app.start()

What says a topology, and `app.test`, need no Spark; what runs it on Spark says so where that is not installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.streams.app import App
    from ottla.streams.errors import StreamsError, TopologyChanged, TopologyError, TypeMismatch, Unreadable
    from ottla.streams.grouped import Cogrouped, GroupedStream, GroupedTable
    from ottla.streams.processor import Incoming, KeyValues, Processor, ProcessorContext, TimedValues, Timer
    from ottla.streams.running import Running
    from ottla.streams.stores import Store, WindowStore
    from ottla.streams.stream import Stream
    from ottla.streams.table import GlobalTable, Table
    from ottla.streams.trial import record
    from ottla.streams.types.serde import Serde, serde
    from ottla.streams.types.struct import Row, Window, Windowed
    from ottla.streams.windows import (
        HoppingWindow,
        JoinWindow,
        SessionWindow,
        SlidingWindow,
        Span,
        TimeLimit,
        TumblingWindow,
        WindowClose,
        within,
    )

# Imported when first used: Spark's Python processes, which come to operators by this package, need none of them.
_PLACES = {
    "app": ("App",),
    "errors": ("StreamsError", "TopologyChanged", "TopologyError", "TypeMismatch", "Unreadable"),
    "grouped": ("Cogrouped", "GroupedStream", "GroupedTable"),
    "processor": ("Incoming", "KeyValues", "Processor", "ProcessorContext", "TimedValues", "Timer"),
    "running": ("Running",),
    "stores": ("Store", "WindowStore"),
    "stream": ("Stream",),
    "table": ("GlobalTable", "Table"),
    "trial": ("record",),
    "types.serde": ("Serde", "serde"),
    "types.struct": ("Row", "Window", "Windowed"),
    "windows": (
        "HoppingWindow", "JoinWindow", "SessionWindow", "SlidingWindow",
        "Span", "TimeLimit", "TumblingWindow", "WindowClose", "within",
    ),
}  # fmt: skip
_MODULES = {name: module for module, names in _PLACES.items() for name in names}


_RENAMED = {
    "Hopping": "HoppingWindow",
    "Session": "SessionWindow",
    "Sliding": "SlidingWindow",
    "Tumbling": "TumblingWindow",
}


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        from ottla.client.deprecation import warn_of_attribute

        warn_of_attribute(__name__, name, _RENAMED[name])
        name = _RENAMED[name]
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)


__all__ = [
    "App",
    "Running",
    "Stream",
    "Table",
    "GlobalTable",
    "GroupedStream",
    "GroupedTable",
    "Cogrouped",
    "TumblingWindow",
    "HoppingWindow",
    "SlidingWindow",
    "SessionWindow",
    "JoinWindow",
    "within",
    "Span",
    "WindowClose",
    "TimeLimit",
    "Serde",
    "serde",
    "Processor",
    "ProcessorContext",
    "Incoming",
    "KeyValues",
    "TimedValues",
    "Timer",
    "Store",
    "WindowStore",
    "Row",
    "Window",
    "Windowed",
    "record",
    "StreamsError",
    "TopologyError",
    "TopologyChanged",
    "TypeMismatch",
    "Unreadable",
]
