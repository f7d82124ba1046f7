"""Tables: what is made of their rows, joins of two of them, and aggregates of their rows by other keys."""

from ottla.streams import App
from ottla.streams.grouped import GroupedTable
from tests.compat.streams.comparison import PAIR, Comparisons, without_deletions_of_nothing
from tests.compat.streams.records import Shape, Topic
from tests.compat.streams.texts import chain, group, number, pair, reference

TABLES = Comparisons()

THREE = Shape((Topic("left"), Topic("right"), Topic("third")))
# Half of the right rows are referred to by nobody, and some references lead nowhere.
REFERRING = Shape((Topic("left", keys=10), Topic("right", keys=9, null_values=0.2)))


@TABLES.add()
def table(app: App) -> None:
    app.table("in").to("out")


@TABLES.add()
def to_table(app: App) -> None:
    app.stream("in").to_table().to("out")


@TABLES.add()
def to_table_by_another_key(app: App) -> None:
    other = app.stream("in").select_key(lambda key, value: key if value is None else group(value), key=str)
    other.to_table().to("out")


@TABLES.add()
def table_filter(app: App) -> None:
    app.table("in").filter(lambda value: number(value) % 2 == 0).to("out")


@TABLES.add()
def table_filter_not(app: App) -> None:
    app.table("in").filter_not(lambda value: number(value) % 2 == 0).to("out")


@TABLES.add()
def table_map_values(app: App) -> None:
    app.table("in").map_values(lambda key, value: value + key).to("out")


@TABLES.add()
def table_filter_and_map_values(app: App) -> None:
    app.table("in").filter(lambda value: number(value) % 3 > 0).map_values(lambda value: value + "!").to(
        "out"
    )


@TABLES.add()
def filtered_count(app: App) -> None:
    # In Kafka Streams a count of 1 was 0 before, so what holds for 0 would delete a row that never was.
    app.stream("in").group_by_key().count().filter(lambda count: count % 3 == 2).to("out")


@TABLES.add(PAIR, without_deletions_of_nothing)
def join_tables(app: App) -> None:
    app.table("left").join(app.table("right"), pair).to("out")


@TABLES.add(PAIR, without_deletions_of_nothing)
def left_join_tables(app: App) -> None:
    app.table("left").left_join(app.table("right"), pair).to("out")


@TABLES.add(PAIR, without_deletions_of_nothing)
def outer_join_tables(app: App) -> None:
    app.table("left").outer_join(app.table("right"), pair).to("out")


@TABLES.add(THREE, without_deletions_of_nothing, late_on_spark=False)
def join_of_joined_tables(app: App) -> None:
    both = app.table("left").join(app.table("right"), pair)
    both.left_join(app.table("third"), pair).to("out")


@TABLES.add(REFERRING, late_on_spark=False)
def join_by_foreign_key(app: App) -> None:
    app.table("left").join(app.table("right"), pair, on=reference).to("out")


@TABLES.add(REFERRING, late_on_spark=False)
def left_join_by_foreign_key(app: App) -> None:
    app.table("left").left_join(app.table("right"), pair, on=reference).to("out")


def regrouped(app: App) -> GroupedTable:
    return app.table("in").group_by(lambda key, value: (group(value), f"{value}{key}"), key=str, value=str)


@TABLES.add()
def table_group_by_and_count(app: App) -> None:
    regrouped(app).count().to("out")


@TABLES.add()
def table_group_by_and_reduce(app: App) -> None:
    regrouped(app).reduce(
        lambda so_far, value: chain(so_far, f"+{value}"), lambda so_far, value: chain(so_far, f"-{value}")
    ).to("out")


@TABLES.add()
def table_group_by_and_aggregate(app: App) -> None:
    regrouped(app).aggregate(
        str,
        lambda value, so_far: chain(so_far, f"+{value}"),
        lambda value, so_far: chain(so_far, f"-{value}"),
    ).to("out")


@TABLES.add(PAIR)
def joined_tables_grouped(app: App) -> None:
    both = app.table("left").join(app.table("right"), pair)
    both.group_by(lambda value: (f"g{len(value)}", value), key=str, value=str).aggregate(
        str,
        lambda value, so_far: chain(so_far, f"+{value}"),
        lambda value, so_far: chain(so_far, f"-{value}"),
    ).to("out")
