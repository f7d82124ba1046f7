"""From options to ranges of offsets: what a batch reads, and in how many tasks."""

from ottla.client.record import TopicPartition
from ottla.spark.connection import Connection
from ottla.spark.source.options import SourceOptions
from ottla.spark.source.ranges import OffsetRange, divide
from ottla.spark.source.refusal import Losses, OptionError
from ottla.spark.source.survey import Extent, Surveyor
from ottla.spark.source.task import Task
from ottla.spark.source.whence import EARLIEST, LATEST, Everywhere, check_order


async def plan_batch(options: SourceOptions, connection: Connection) -> list[Task]:
    """Return the tasks of a batch; called on the connection's loop."""
    start = options.starting or Everywhere(EARLIEST)
    end = options.ending or Everywhere(LATEST)
    check_order(start, end)
    surveyor = Surveyor(options, connection)
    survey = await surveyor.look()
    extent = await surveyor.extent(survey.partitions)
    starts = await surveyor.resolve(start, survey.partitions, extent, is_start=True)
    ends = await surveyor.resolve(end, survey.partitions, extent, is_start=False)
    losses = Losses(options.fails_on_data_loss)
    ranges = [within(each, starts[each], ends[each], extent, losses) for each in survey.partitions]
    return [
        Task.of(part, survey.ids.get(part.partition.topic, ""))
        for part in divide(ranges, options.partitions_min, options.records_per_partition_max)
    ]


def within(partition: TopicPartition, start: int, end: int, extent: Extent, losses: Losses) -> OffsetRange:
    """Return the range from start to end as far as it is there; the rest is lost."""
    first, last = extent.starts[partition], extent.ends[partition]
    if start > end:
        raise OptionError(
            f"{partition} is to be read from offset {start}, which lies behind {end}, where the read ends;"
            f" it has the offsets from {first} to {last}",
            hint="check starting and ending offsets; a topic that was made anew begins at 0",
        )
    if end > last:
        losses.report(
            f"{partition} is to be read up to offset {end}, and ends at {last}",
            hint="lower endingOffsets, or wait for records",
        )
    if start < first:
        losses.report(
            f"{partition} is to be read from offset {start}, and begins at {first}: what was before is gone",
            hint="raise startingOffsets, or retention.ms and retention.bytes of the topic",
        )
    return OffsetRange(partition, max(start, first), min(end, last))
