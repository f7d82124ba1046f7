"""A random plan as data: the lines of a program, and the records that it is given. Printed it is a Python program.

The records stand in one order, in which all sides take them: by time between queues, by offset within one. Where
micro-batches end is said by numbers of records; `restart` is the micro-batch before which the program begins anew.
"""

import linecache
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from ottla.client.record import Record
from ottla.streams import App
from tests.agreement import vocabulary

HEAD = "from ottla.client.record import Record\nfrom tests.agreement.vocabulary import *\n"


@dataclass(frozen=True)
class Program:
    """A topology, its records, and how they are cut.

    `unordered` are the topics it writes to in which a key's records have no order that is promised; `why` says the
    reasons.
    """

    lines: tuple[str, ...]
    records: tuple[Record, ...]
    settings: tuple[tuple[str, Any], ...] = ()
    partitions: int = 1
    cuts: tuple[int, ...] = ()
    restart: int = 0
    unordered: frozenset[str] = field(default=frozenset())

    def app(self, name: str = "plan") -> App:
        """The topology, built anew."""
        app = App(name, **dict(self.settings))
        self.build(app)
        return app

    def build(self, app: App) -> None:
        """Say the topology in an app."""
        text = "".join(f"{line}\n" for line in self.lines)
        file = f"<plan {hash(text) & 0xFFFF_FFFF:08x}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        # What is pickled by value, as functions of a program are.
        space: dict[str, Any] = {name: getattr(vocabulary, name) for name in vocabulary.__all__}
        space |= {"__name__": "random_plan", "app": app}
        exec(compile(text, file, "exec"), space)

    @property
    def updates(self) -> str:
        """Which changes a table shows."""
        return str(dict(self.settings).get("updates", "all"))

    @property
    def batches(self) -> list[tuple[Record, ...]]:
        """The records of each micro-batch."""
        edges = [0, *(min(cut, len(self.records)) for cut in sorted(self.cuts)), len(self.records)]
        return [self.records[start:end] for start, end in pairwise(edges)]

    def without(self, topic: str, partition: int, offset: int) -> "Program":
        """The same without one record. Offsets stay as they are, as after a compaction."""
        place = (topic, partition, offset)
        return replace(
            self,
            records=tuple(
                each for each in self.records if (each.topic, each.partition, each.offset) != place
            ),
        )

    def renamed(self, before: str, after: str) -> "Program":
        """The same with topics whose names begin otherwise."""
        return replace(
            self,
            lines=tuple(each.replace(before, after) for each in self.lines),
            records=tuple(each._replace(topic=each.topic.replace(before, after)) for each in self.records),
            unordered=frozenset(each.replace(before, after) for each in self.unordered),
        )

    def __str__(self) -> str:
        settings = "".join(f", {name}={value!r}" for name, value in self.settings)
        lines = [HEAD, f'app = App("plan"{settings})', *self.lines, "", "given = ["]
        lines += [f"    {tuple(each[:7])!r}," for each in self.records]
        lines.append("]")
        lines.append("records = {}")
        lines.append("for each in (Record(*each) for each in given):")
        lines.append("    records.setdefault(each.topic, []).append(each)")
        lines.append(f"# partitions={self.partitions}, cuts={self.cuts}, restart={self.restart}")
        lines.append("for topic, found in app.test(records).items():")
        lines.append("    print(topic, *found, sep='\\n    ')")
        return "\n".join(lines)


def by_topic(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Records as the reference takes them."""
    found: dict[str, list[Record]] = {}
    for each in records:
        found.setdefault(each.topic, []).append(each)
    return found
