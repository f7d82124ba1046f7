"""Operators that remember nothing."""

from ottla.streams import App, Stream
from tests.compat.streams.comparison import COMPLETE, TWO, WITH_KEYS, Changes, Comparisons
from tests.compat.streams.texts import digits, group, number, pair

STATELESS = Comparisons()


@STATELESS.add()
def filter(app: App) -> None:
    app.stream("in").filter(lambda value: number(value) % 2 == 0).to("out")


@STATELESS.add()
def filter_not(app: App) -> None:
    app.stream("in").filter_not(lambda value: number(value) % 2 == 0).to("out")


@STATELESS.add(COMPLETE)
def filter_plain(app: App) -> None:
    app.stream("in").filter(lambda value: (len(value) == 2) & (value != "13")).to("out")


@STATELESS.add()
def filter_by_key(app: App) -> None:
    app.stream("in").filter(lambda key, value: key is None or key == "a").to("out")


@STATELESS.add()
def map(app: App) -> None:
    app.stream("in").map(lambda key, value: (value, key)).to("out")


@STATELESS.add()
def map_values(app: App) -> None:
    def joined(key: str, value: str) -> str | None:
        return None if value is None else pair(value, key)

    app.stream("in").map_values(joined, value=str).to("out")


@STATELESS.add(COMPLETE)
def map_values_plain(app: App) -> None:
    app.stream("in").map_values(lambda value: value + "!" + str(len(value))).to("out")


@STATELESS.add()
def flat_map(app: App) -> None:
    def several(key: str, value: str) -> list[tuple[str, str]]:
        return [(f"k{n}", pair(key, value)) for n in range(number(value) % 3)]

    app.stream("in").flat_map(several).to("out")


@STATELESS.add()
def flat_map_values(app: App) -> None:
    app.stream("in").flat_map_values(digits).to("out")


@STATELESS.add()
def select_key(app: App) -> None:
    app.stream("in").select_key(lambda value: None if value is None else group(value), key=str).to("out")


@STATELESS.add()
def branch(app: App) -> None:
    even, third = app.stream("in").branch(
        lambda value: number(value) % 2 == 0, lambda value: number(value) % 3 == 0
    )
    even.to("even")
    third.to("third")


@STATELESS.add()
def split_with_default(app: App) -> None:
    ways = {"big": lambda value: number(value) > 60, "middle": lambda value: number(value) > 30}
    for name, stream in app.stream("in").split(ways, default="rest").items():
        stream.to(name)


def each_stream_by_itself(changes: Changes) -> Changes:
    """Put what came by one stream before what came by the other.

    Kafka Streams promises no order between the streams of a merge, only within each.
    """
    return sorted(changes, key=lambda each: str(each[0])[0])


@STATELESS.add(TWO, each_stream_by_itself)
def merge(app: App) -> None:
    one = app.stream("one").map_values(lambda value: pair("1", value), value=str)
    two = app.stream("two").map_values(lambda value: pair("2", value), value=str)
    one.merge(two).to("out")


@STATELESS.add()
def peek(app: App) -> None:
    app.stream("in").peek(lambda value: None).to("out")


def even_and_odd(app: App) -> tuple[Stream, Stream]:
    ways = app.stream("in").split({"even": lambda value: number(value) % 2 == 0}, default="odd")
    return ways["even"], ways["odd"]


@STATELESS.add(COMPLETE)
def branch_to_one_topic(app: App) -> None:
    even, odd = even_and_odd(app)
    even.map_values(lambda value: value + "e").to("out")
    odd.map_values(lambda value: value + "o").to("out")


@STATELESS.add(COMPLETE)
def branch_and_merge(app: App) -> None:
    even, odd = even_and_odd(app)
    even.map_values(lambda value: value + "e").merge(odd).to("out")


@STATELESS.add(COMPLETE)
def two_ways_to_one_topic(app: App) -> None:
    read = app.stream("in")
    read.map_values(lambda value: value + "x").to("out")
    read.map_values(lambda value: value + "y").to("out")


# Kafka Streams drops records without a key here, unless a left join follows.
@STATELESS.add(WITH_KEYS)
def repartition(app: App) -> None:
    app.stream("in").repartition(1).to("out")


@STATELESS.add()
def chain_of_stateless(app: App) -> None:
    (
        app.stream("in")
        .filter(lambda value: value is not None)
        .map_values(lambda value: value + value)
        .select_key(lambda value: value[0], key=str)
        .filter_not(lambda key, value: key == "3")
        .flat_map_values(digits)
        .to("out")
    )
