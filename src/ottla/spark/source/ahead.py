"""Fetches the few records of a small micro-batch while Spark writes down that there will be one.

Between the question where a batch ends and its tasks lie some 20 ms, in which the planner has nothing to do. Records
that it fetches meanwhile travel to the tasks with their orders, which then begin with what they would have to wait for.

A1  Only ranges of few offsets, and of those only what comes with fetches of few bytes: all of it passes through
    Spark's driver.
A2  A range goes along whole or not at all. What is late, lost, refused or larger is left to its task, which meets
    whatever is wrong by itself, and says so.
A3  What a batch reads is settled by its two ends, and does not depend on who fetches it.
"""

from collections.abc import Iterable

from ottla.spark.connection import Connection
from ottla.spark.source.feed import Feed
from ottla.spark.source.offsets import Reached
from ottla.spark.source.options import SourceOptions
from ottla.spark.source.task import Portion, Task

_OFFSETS_MAX = 500
_FETCH_BYTES = 64 << 10
_BATCH_BYTES_MAX = 256 << 10

_Range = tuple[str, int, int, int]


class Ahead:
    """What was fetched for the batch that comes next."""

    def __init__(self, connection: Connection, options: SourceOptions) -> None:
        self._connection = connection
        self._options = options
        self._feeds: dict[_Range, Feed] = {}

    def begin(self, start: Reached, end: Reached) -> None:
        """Fetch what lies between two ends, if that is little."""
        self._drop()
        if self._options.partitions_min is not None:
            return  # ranges that small are cut smaller yet
        tasks = [
            Task(*each, start.offsets[each], offset, end.ids.get(each.topic, ""))
            for each, offset in end.offsets.items()
            if each in start.offsets and offset > start.offsets[each]
        ]
        if sum(each.size for each in tasks) > _OFFSETS_MAX or not _is_same(start, end):
            return
        for each in tasks:
            feed = Feed(self._connection, self._options, each, bytes_max=_FETCH_BYTES)
            self._feeds[_range(each)] = feed
            self._connection.call(feed.start)

    def give(self, tasks: Iterable[Task]) -> None:
        """Give tasks what is here of theirs."""
        left = _BATCH_BYTES_MAX
        for each in tasks:
            feed = self._feeds.get(_range(each))
            portions = () if feed is None else _whole(feed, each)
            size = sum(len(portion.chunk.data) for portion in portions)
            if size <= left:
                left -= size
                each.portions = portions
        self._drop()

    def _drop(self) -> None:
        for feed in self._feeds.values():
            self._connection.call(feed.stop)
        self._feeds = {}


def _range(task: Task) -> _Range:
    return task.topic, task.partition, task.start, task.end


def _is_same(start: Reached, end: Reached) -> bool:
    return all(end.ids.get(topic, id) == id for topic, id in start.ids.items())


def _whole(feed: Feed, task: Task) -> tuple[Portion, ...]:
    """Return what a feed has fetched, if it is all; in bytes of its own, for it is to travel."""
    portions: list[Portion] = []
    reached = task.start
    while not feed.portions.empty():
        portion = feed.portions.get_nowait()
        if not isinstance(portion, Portion) or portion.chunk.start_offset != reached:
            return ()
        portions.append(portion._replace(chunk=portion.chunk._replace(data=bytes(portion.chunk.data))))
        reached = portion.end_offset
        if reached >= task.end:
            return tuple(portions)
    return ()
