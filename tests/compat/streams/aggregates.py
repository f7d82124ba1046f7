"""Aggregates of streams without windows, and of several streams together."""

from dataclasses import replace

from ottla.streams import App, SessionWindow, SlidingWindow, TumblingWindow
from ottla.streams.grouped import Cogrouped
from tests.compat.streams.comparison import COMPLETE, TWO, Comparisons
from tests.compat.streams.records import Shape, Topic
from tests.compat.streams.texts import chain, group, number
from tests.compat.streams.texts import merge as merged

AGGREGATES = Comparisons()

# A cogroup of Kafka Streams judges by each stream's own time what is late; here the streams have one time. Nothing
# comes so late that it would be dropped by either.
COGROUPED = Shape((Topic("one", null_values=0.0), Topic("two", null_values=0.0)))


@AGGREGATES.add()
def count(app: App) -> None:
    app.stream("in").group_by_key().count().to("out")


@AGGREGATES.add()
def reduce(app: App) -> None:
    app.stream("in").group_by_key().reduce(chain).to("out")


@AGGREGATES.add()
def aggregate(app: App) -> None:
    app.stream("in").group_by_key().aggregate(
        str, lambda key, value, so_far: chain(so_far, f"{key}{value}")
    ).to("out")


@AGGREGATES.add()
def aggregate_that_deletes(app: App) -> None:
    app.stream("in").group_by_key().aggregate(
        str, lambda value, so_far: None if number(value) % 5 == 0 else chain(so_far, value)
    ).to("out")


@AGGREGATES.add()
def group_by_and_count(app: App) -> None:
    app.stream("in").group_by(lambda value: None if value is None else group(value), key=str).count().to(
        "out"
    )


@AGGREGATES.add()
def group_by_and_reduce(app: App) -> None:
    grouped = app.stream("in").group_by(lambda value: None if value is None else group(value), key=str)
    grouped.reduce(chain).to("out")


@AGGREGATES.add(COMPLETE)
def count_of_a_count(app: App) -> None:
    counts = app.stream("in").group_by_key().count().to_stream()
    counts.map_values(lambda count: f"n{count}", value=str).group_by(lambda value: value).count().to("out")


def cogrouped(app: App) -> Cogrouped:
    one, two = app.stream("one").group_by_key(), app.stream("two").group_by_key()
    first = one.cogroup(lambda value, so_far: chain(so_far, f"1:{value}"), value=str)
    return first.cogroup(two, lambda value, so_far: chain(so_far, f"2:{value}"))


@AGGREGATES.add(TWO)
def cogroup(app: App) -> None:
    cogrouped(app).aggregate(str).to("out")


@AGGREGATES.add(COGROUPED)
def cogroup_tumbling(app: App) -> None:
    cogrouped(app).windowed_by(TumblingWindow(20, grace=400)).aggregate(str).to("out")


@AGGREGATES.add(COGROUPED)
def cogroup_sliding(app: App) -> None:
    cogrouped(app).windowed_by(SlidingWindow(20, grace=400)).aggregate(str).to("out")


@AGGREGATES.add(replace(COGROUPED, leap=0.05))
def cogroup_session(app: App) -> None:
    cogrouped(app).windowed_by(SessionWindow(10, grace=400)).aggregate(
        str, lambda key, one, other: merged(one, other)
    ).to("out")
