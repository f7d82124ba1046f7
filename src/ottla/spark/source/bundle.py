"""Ranges of several partitions that one task reads.

A task costs Spark and its Python processes some 20 ms, whatever it reads: for the few records that a stream finds in
each partition that is most of the micro-batch. So small ranges share a task. Which do depends on the ranges and the
options alone, so a batch that is run again has the same tasks.
"""

from collections.abc import Sequence

from pyspark.sql.datasource import InputPartition

from ottla.spark.source.task import Task


class Bundle(InputPartition):
    """Ranges that one task reads, one after another; none at all is a task with nothing to read."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        super().__init__(None)
        self.tasks = tuple(tasks)


def bundled(tasks: Sequence[Task], few: int) -> list[InputPartition]:
    """Put ranges of fewer offsets than `few` together, in their order, until they are so many."""
    found: list[InputPartition] = []
    small: list[Task] = []
    held = 0
    for each in tasks:
        if each.size >= few:
            found.append(each)
            continue
        if held + each.size > few:
            found.append(_one(small))
            small, held = [], 0
        small.append(each)
        held += each.size
    return [*found, _one(small)] if small else found


def _one(tasks: list[Task]) -> InputPartition:
    return tasks[0] if len(tasks) == 1 else Bundle(tasks)


def ranges_of(partition: InputPartition) -> tuple[Task, ...]:
    """Return what a task is to read."""
    if isinstance(partition, Bundle):
        return partition.tasks
    assert isinstance(partition, Task)
    return (partition,)
