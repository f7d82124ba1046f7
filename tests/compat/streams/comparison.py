"""What is compared: a topology said with `ottla.streams`, whose twin in `java/` has the same name, and its records.

C1  For each topic and key the values and timestamps are equal, in their order. Values and keys are compared as text,
    since serdes are not what this is about. Records without a key have no order among them.
C2  Where Ottla differs from Kafka Streams on purpose, the records of that topology are such that it does not matter, or
    both sides go through one function first, `reduced`, whose docstring says why.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ottla.client.record import Record
from ottla.streams import App, Windowed
from tests.compat.streams.records import Row, Shape, Topic

Results = dict[tuple[str, str | None], list[tuple[str | None, int]]]
Changes = list[tuple[str | None, int]]

ONE = Shape((Topic("in"),))
# Without values that are missing.
WITHOUT_NULL_VALUES = Shape((Topic("in", null_values=0.0),))
WITH_KEYS = Shape((Topic("in", null_keys=0.0),))
# Without anything that is missing.
COMPLETE = Shape((Topic("in", null_keys=0.0, null_values=0.0),))
TWO = Shape((Topic("one"), Topic("two")))
PAIR = Shape((Topic("left"), Topic("right")))


@dataclass(frozen=True)
class Comparison:
    """A topology, the records it is given, and how its results are compared."""

    name: str
    build: Callable[[App], None]
    shape: Shape = ONE
    reduced: Callable[[Changes], Changes] = field(default=lambda changes: changes)
    # Which stores Kafka Streams uses: those in memory are quicker.
    stores: str = "memory"
    # Whether records come late on Spark, too.
    late_on_spark: bool = True

    def shape_on(self, place: str) -> Shape:
        """Return what records are like where the topology runs.

        On Spark operators take their turns at the records of a micro-batch. One with several inputs goes by timestamps:
        what was filtered out before does not count, and what another operator has made counts by its own timestamp. So
        with records that are late, or filtered out for want of a key, it may take them in another order than Kafka
        Streams, where each record goes all its way before the next begins.
        """
        if place != "spark":
            return self.shape
        shape = replace(self.shape, null_keys_move_time=len(self.shape.topics) == 1)
        return shape if self.late_on_spark else replace(shape, late=0.0)


class Comparisons(dict[str, Comparison]):
    """Topologies by their names, which are those of the functions that build them."""

    def add(
        self,
        shape: Shape = ONE,
        reduced: Callable[[Changes], Changes] = lambda changes: changes,
        stores: str = "memory",
        late_on_spark: bool = True,
    ) -> Callable[[Callable[[App], None]], None]:
        """Take the function below it for the topology of its name."""

        def take(build: Callable[[App], None]) -> None:
            name = build.__name__
            assert name not in self, name
            self[name] = Comparison(name, build, shape, reduced, stores, late_on_spark)

        return take


def given(rows: list[Row], shape: Shape) -> dict[str, list[tuple[str | None, str | None, int]]]:
    """Return records as `app.test` takes them."""
    found: dict[str, list[tuple[str | None, str | None, int]]] = {each.name: [] for each in shape.topics}
    for topic, key, value, timestamp in rows:
        found[topic].append((key, value, timestamp))
    return found


def written(records: Mapping[str, list[Record]]) -> list[Row]:
    """Return what `app.test` returns, as text."""
    return [
        (topic, _text(each.key), _text(each.value), each.timestamp)
        for topic, found in records.items()
        for each in found
    ]


def _text(given: object) -> str | None:
    if given is None:
        return None
    if isinstance(given, Windowed):
        return f"{given.key}@{given.window.start}/{given.window.end}"
    return str(given)


def results(rows: list[Row], reduced: Callable[[Changes], Changes]) -> Results:
    """Return the changes of each topic and key, in their order."""
    found: Results = {}
    for topic, key, value, timestamp in rows:
        found.setdefault((topic, key), []).append((value, timestamp))
    for (_, key), changes in found.items():
        if key is None:
            changes.sort(key=str)
    return {name: kept for name, changes in sorted(found.items(), key=_order) if (kept := reduced(changes))}


def _order(item: tuple[tuple[str, str | None], Changes]) -> tuple[str, str]:
    (topic, key), _ = item
    return topic, key or ""


def difference(wanted: Results, found: Results) -> str | None:
    """Return the first change in which two results differ, in words; None when they are equal."""
    for name in [*wanted, *(each for each in found if each not in wanted)]:
        there, here = wanted.get(name, []), found.get(name, [])
        for at in range(max(len(there), len(here))):
            one, other = there[at : at + 1], here[at : at + 1]
            if one != other:
                before = there[max(0, at - 3) : at]
                return (
                    f"topic {name[0]}, key {name[1]}, change {at}, after {before}:\n"
                    f"  Kafka Streams {there[at : at + 3]}\n  Ottla         {here[at : at + 3]}"
                )
    return None


def without_deletions_of_nothing(changes: Changes) -> Changes:
    """Leave out a deletion where no row is.

    A join of Kafka Streams' tables does not know its last result, so it may delete a row that never was. Here it does
    know, and says nothing; a reader who keeps the rows has the same.
    """
    kept: Changes = []
    for value, timestamp in changes:
        if value is not None or (kept and kept[-1][0] is not None):
            kept.append((value, timestamp))
    return kept


def with_the_lone_apart(changes: Changes) -> Changes:
    """Put what a join of streams has shown alone behind the pairs, by time.

    Here a record that has met nobody leaves alone as soon as its window and the grace are over. Kafka Streams looks for
    such records only now and then: after a look it waits until the latest of those that are left is due.
    """
    lone = [each for each in changes if "-" in str(each[0])]
    return [each for each in changes if each not in lone] + sorted(lone, key=lambda each: each[1])
