"""Streams joined with streams, with tables, and with global tables."""

from dataclasses import replace

from ottla.streams import App, JoinWindow, Stream, within
from tests.compat.streams.comparison import PAIR, Comparisons, with_the_lone_apart
from tests.compat.streams.records import Shape, Topic
from tests.compat.streams.texts import pair, reference

STREAM_JOINS = Comparisons()

AT_ONCE = within(15)
WITH_GRACE = within(15, grace=20)
LATER = JoinWindow(5, 20)
# Of what may be shown alone nothing comes later than its window, or without a grace nothing late: Kafka Streams shows a
# late record alone as soon as its window is over, and one that has been shown alone may meet somebody late.
NOT_TOO_LATE = replace(PAIR, late_ms_max=15)
IN_ORDER = replace(PAIR, late_ms_max=0)
# A record meets a global table as it is then in Kafka Streams, and as it is in the end in a test here.
TABLE_FIRST = replace(PAIR, last_topic_first=True)


def left(app: App) -> Stream:
    return app.stream("left")


def right(app: App) -> Stream:
    return app.stream("right")


@STREAM_JOINS.add(PAIR)
def join_streams(app: App) -> None:
    left(app).join(right(app), pair, within=WITH_GRACE).to("out")


@STREAM_JOINS.add(PAIR)
def join_streams_without_grace(app: App) -> None:
    left(app).join(right(app), pair, within=AT_ONCE).to("out")


@STREAM_JOINS.add(PAIR)
def join_streams_one_after_the_other(app: App) -> None:
    left(app).join(right(app), pair, within=LATER).to("out")


@STREAM_JOINS.add(IN_ORDER, with_the_lone_apart)
def left_join_streams(app: App) -> None:
    left(app).left_join(right(app), pair, within=AT_ONCE).to("out")


@STREAM_JOINS.add(IN_ORDER, with_the_lone_apart)
def left_join_streams_one_after_the_other(app: App) -> None:
    left(app).left_join(right(app), pair, within=LATER).to("out")


@STREAM_JOINS.add(NOT_TOO_LATE, with_the_lone_apart)
def left_join_streams_with_grace(app: App) -> None:
    left(app).left_join(right(app), pair, within=WITH_GRACE).to("out")


@STREAM_JOINS.add(IN_ORDER, with_the_lone_apart)
def outer_join_streams(app: App) -> None:
    left(app).outer_join(right(app), pair, within=AT_ONCE).to("out")


@STREAM_JOINS.add(NOT_TOO_LATE, with_the_lone_apart)
def outer_join_streams_with_grace(app: App) -> None:
    left(app).outer_join(right(app), pair, within=WITH_GRACE).to("out")


@STREAM_JOINS.add(Shape((Topic("left"),)), late_on_spark=False)
def join_stream_with_itself(app: App) -> None:
    left(app).join(left(app), pair, within=AT_ONCE).to("out")


@STREAM_JOINS.add(PAIR)
def join_stream_with_table(app: App) -> None:
    left(app).join(app.table("right"), pair).to("out")


@STREAM_JOINS.add(PAIR)
def left_join_stream_with_table(app: App) -> None:
    left(app).left_join(app.table("right"), pair).to("out")


@STREAM_JOINS.add(PAIR, late_on_spark=False)
def join_stream_with_a_count(app: App) -> None:
    left(app).join(right(app).group_by_key().count(), lambda value, count: f"{value}+{count}", value=str).to(
        "out"
    )


@STREAM_JOINS.add(TABLE_FIRST)
def join_stream_with_global_table(app: App) -> None:
    left(app).join(app.global_table("right"), pair, on=reference).to("out")


@STREAM_JOINS.add(TABLE_FIRST)
def left_join_stream_with_global_table(app: App) -> None:
    left(app).left_join(app.global_table("right"), pair, on=reference).to("out")
