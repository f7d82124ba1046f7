"""Aggregates of streams for each window apart; final results; and changes held back.

Kafka Streams says that records without a value are ignored, but to most windows it adds them; so there are none.
"""

from dataclasses import replace

from ottla.streams import (
    App,
    HoppingWindow,
    SessionWindow,
    SlidingWindow,
    TimeLimit,
    TumblingWindow,
    WindowClose,
)
from ottla.streams.grouped import GroupedStream
from tests.compat.streams.comparison import WITHOUT_NULL_VALUES, Comparisons
from tests.compat.streams.texts import chain
from tests.compat.streams.texts import merge as merged

WINDOWS = Comparisons()

TUMBLING = TumblingWindow(20, grace=15)
HOPPING = HoppingWindow(30, 10, grace=10)
SLIDING = SlidingWindow(20, grace=15)
SESSION = SessionWindow(10, grace=15)
# In the very millisecond until which it can still change, a session is out of reach of Kafka Streams' stores, and its
# suppress lets sessions and sliding windows go. With these times that millisecond never comes.
EVEN_TIMES = replace(WITHOUT_NULL_VALUES, unit_ms=2)
TIMES_OF_THREE = replace(WITHOUT_NULL_VALUES, unit_ms=3)


def grouped(app: App) -> GroupedStream:
    return app.stream("in").group_by_key()


@WINDOWS.add(WITHOUT_NULL_VALUES)
def tumbling_count(app: App) -> None:
    grouped(app).windowed_by(TUMBLING).count().to("out")


@WINDOWS.add(WITHOUT_NULL_VALUES)
def tumbling_reduce(app: App) -> None:
    grouped(app).windowed_by(TUMBLING).reduce(chain).to("out")


@WINDOWS.add(WITHOUT_NULL_VALUES)
def tumbling_without_grace(app: App) -> None:
    grouped(app).windowed_by(TumblingWindow(20)).count().to("out")


@WINDOWS.add(WITHOUT_NULL_VALUES)
def hopping_count(app: App) -> None:
    grouped(app).windowed_by(HOPPING).count().to("out")


@WINDOWS.add(WITHOUT_NULL_VALUES)
def hopping_reduce(app: App) -> None:
    grouped(app).windowed_by(HOPPING).reduce(chain).to("out")


@WINDOWS.add(WITHOUT_NULL_VALUES)
def hopping_uneven(app: App) -> None:
    grouped(app).windowed_by(HoppingWindow(25, 10)).count().to("out")


@WINDOWS.add(WITHOUT_NULL_VALUES)
def sliding_count(app: App) -> None:
    grouped(app).windowed_by(SLIDING).count().to("out")


@WINDOWS.add(WITHOUT_NULL_VALUES)
def sliding_reduce(app: App) -> None:
    grouped(app).windowed_by(SLIDING).reduce(chain).to("out")


@WINDOWS.add(WITHOUT_NULL_VALUES)
def sliding_aggregate(app: App) -> None:
    grouped(app).windowed_by(SLIDING).aggregate(str, lambda value, so_far: chain(so_far, value)).to("out")


@WINDOWS.add(EVEN_TIMES)
def session_count(app: App) -> None:
    grouped(app).windowed_by(SESSION).count().to("out")


@WINDOWS.add(EVEN_TIMES)
def session_reduce(app: App) -> None:
    grouped(app).windowed_by(SESSION).reduce(chain).to("out")


@WINDOWS.add(EVEN_TIMES)
def session_aggregate(app: App) -> None:
    grouped(app).windowed_by(SESSION).aggregate(
        str, lambda value, so_far: chain(so_far, value), lambda key, one, other: merged(one, other)
    ).to("out")


@WINDOWS.add(WITHOUT_NULL_VALUES)
def tumbling_emit_on_close(app: App) -> None:
    grouped(app).windowed_by(TUMBLING, emit="close").reduce(chain).to("out")


@WINDOWS.add(WITHOUT_NULL_VALUES)
def hopping_emit_on_close(app: App) -> None:
    grouped(app).windowed_by(HOPPING, emit="close").reduce(chain).to("out")


@WINDOWS.add(WITHOUT_NULL_VALUES)
def sliding_emit_on_close(app: App) -> None:
    grouped(app).windowed_by(SLIDING, emit="close").reduce(chain).to("out")


# The stores in memory forget sessions before they are given out.
@WINDOWS.add(EVEN_TIMES, stores="rocksdb")
def session_emit_on_close(app: App) -> None:
    grouped(app).windowed_by(SESSION, emit="close").reduce(chain).to("out")


@WINDOWS.add(WITHOUT_NULL_VALUES)
def suppress_until_window_closes(app: App) -> None:
    grouped(app).windowed_by(TUMBLING).reduce(chain).suppress(WindowClose()).to("out")


@WINDOWS.add(WITHOUT_NULL_VALUES)
def suppress_hopping_until_window_closes(app: App) -> None:
    grouped(app).windowed_by(HOPPING).reduce(chain).suppress(WindowClose()).to("out")


@WINDOWS.add(EVEN_TIMES)
def suppress_sessions_until_window_closes(app: App) -> None:
    grouped(app).windowed_by(SESSION).reduce(chain).suppress(WindowClose()).to("out")


@WINDOWS.add(TIMES_OF_THREE)
def suppress_sliding_until_window_closes(app: App) -> None:
    grouped(app).windowed_by(SlidingWindow(20, grace=17)).reduce(chain).suppress(WindowClose()).to("out")


@WINDOWS.add()
def suppress_until_time_limit(app: App) -> None:
    grouped(app).count().suppress(TimeLimit(25)).to("out")


@WINDOWS.add()
def suppress_until_time_limit_or_full(app: App) -> None:
    grouped(app).count().suppress(TimeLimit(60, records_max=3)).to("out")


@WINDOWS.add()
def suppress_a_table(app: App) -> None:
    app.table("in").suppress(TimeLimit(25)).to("out")


@WINDOWS.add(WITHOUT_NULL_VALUES)
def windows_counted_again(app: App) -> None:
    counts = grouped(app).windowed_by(TUMBLING).count().to_stream()
    again = counts.map(lambda key, count: (f"w{key.window.start % 60}", f"n{count}"), key=str, value=str)
    again.group_by_key().reduce(chain).to("out")
