"""Follows topics for a stream: what there is to read next, and whether what was there before still is.

S1  What a batch reads, and in which tasks, is settled before it runs, and can be planned again after a crash: by its
    two ends alone, whatever the options say by then. Writers count on tasks that come again with the same rows.
S2  A loss is noticed before a batch is written down, where that is possible, so that the next start does not meet it
    again: deleted partitions, topics that were made anew, offsets that went back.
S3  A partition that is new is read from its beginning. If that is not offset 0, something was lost already.
S4  An end is worked out by one question to each leader. Whether there are new partitions is asked at the same time.
S5  Where the group is told of, it is told of what is finished, and nothing else: the start of the next batch.
"""

import asyncio
from collections.abc import Iterable, Mapping

from ottla.client.errors import ClientError
from ottla.client.record import TopicPartition
from ottla.spark.source.offsets import Division, Reached
from ottla.spark.source.options import SourceOptions
from ottla.spark.source.ranges import OffsetRange, divide, ration, waiting
from ottla.spark.source.refusal import LOGGER, GroupRefused, Losses
from ottla.spark.source.survey import Survey, Surveyor
from ottla.spark.source.task import Task
from ottla.spark.source.whence import LATEST, Everywhere, places
from ottla.world.clock import Clock, RealClock


class Follower:
    """What one stream knows. Everything here runs on the connection's loop."""

    def __init__(self, options: SourceOptions, surveyor: Surveyor, clock: Clock | None = None) -> None:
        self._options = options
        self._surveyor = surveyor
        self._losses = Losses(options.fails_on_data_loss)
        self._clock: Clock = clock or RealClock()
        self._survey: Survey | None = None
        self._surveyed_at = 0.0
        self._initial: Reached | None = None
        self._triggered_at: float | None = None
        self._told: Mapping[TopicPartition, int] | None = None
        self._is_verified = False
        self._stops_at: Reached | None = None  # the end of all that is to be read, once that is known
        self._stops = False
        self.latest: Reached | None = None

    def stop_at_end(self) -> None:
        """Read what is there when it is next asked for, and nothing that comes later."""
        self._stops = True

    # Where a stream begins

    async def initial(self) -> Reached:
        """Return where a new query begins; the same each time it is asked."""
        if self._initial is None:
            whence = self._options.starting or Everywhere(LATEST)
            survey = await self._look()
            extent = await self._surveyor.extent(survey.partitions)
            offsets = await self._surveyor.resolve(whence, survey.partitions, extent, is_start=True)
            # Nobody writes down where a query begins before its first batch is done. If that was the end of the topic,
            # it would be another one after a crash; so the first batch is empty, and its end is where the query begins.
            self._initial = Reached(offsets, survey.ids, is_initial=LATEST in places(whence))
        return self._initial

    # Where a batch ends

    async def advance(self, start: Reached, *, limited: bool) -> Reached:
        """Return the end of the batch that begins at `start`, which is `start` itself if there is nothing to do."""
        telling = asyncio.create_task(self.tell(start)) if self._is_news(start) else None
        try:
            return await self._advance(start, limited)
        finally:
            if telling is not None:
                await telling

    async def _advance(self, start: Reached, limited: bool) -> Reached:
        if start.is_initial:
            self.latest = Reached(start.offsets, start.ids)
            return self.latest
        self.latest = latest = await self._latest(start)
        starts = await self._starts(start, latest)
        ends = latest.offsets
        if limited and not self._is_enough(waiting(starts, ends)):
            return start
        if limited and self._options.offsets_per_trigger_max is not None:
            ends = ration(self._options.offsets_per_trigger_max, starts, ends)
        if (ends, latest.ids) == (start.offsets, start.ids):
            return start
        return Reached(ends, latest.ids, division=self._division)

    def _is_enough(self, count: int) -> bool:
        """Whether there is enough for a batch, or it has been waited for long enough."""
        least, now = self._options.offsets_per_trigger_min, self._clock.monotonic()
        since = self._triggered_at
        if least is not None and not self._stops and since is not None and count < least:
            if (now - since) * 1000 < self._options.trigger_delay_max_ms:
                return False
        self._triggered_at = now
        return True

    async def _latest(self, start: Reached) -> Reached:
        if self._stops_at is not None:
            return self._stops_at
        found = await self._ends(start)
        if self._stops:
            self._stops_at = found
        return found

    async def _ends(self, start: Reached) -> Reached:
        for tries in range(self._options.offset_tries, 0, -1):
            survey, ends = await self._ask_ends()
            self._check_there(start, survey)
            back = [
                each
                for each, offset in start.offsets.items()
                if offset > ends.get(each, offset) and not _is_new(each, start, survey.ids)
            ]
            if not back:
                break
            # A broker that has just become the leader may not know yet how far the partition was.
            if tries > 1:
                LOGGER.warning("%s ends before where it was read to; asking again", back[0])
                await asyncio.sleep(self._options.offset_retry_ms / 1000)
        for each in back:
            self._losses.report(
                f"{each} ends at offset {ends[each]}, and was read up to {start.offsets[each]} before",
                hint="its leader lost records, or startingOffsets lies behind its end",
            )
        return Reached(ends, survey.ids)

    async def _ask_ends(self) -> tuple[Survey, dict[TopicPartition, int]]:
        """Ask for the ends of the partitions that are known, and for those that are not."""
        known = self._survey
        if known is None:
            known = await self._look()
        age_ms = (self._clock.monotonic() - self._surveyed_at) * 1000
        looking = None
        if age_ms >= self._options.metadata_age_max_ms:
            looking = asyncio.create_task(self._look())
        ends = await self._surveyor.ends_soon(known.partitions)
        if ends is None and looking is None:
            looking = asyncio.create_task(self._look())
        if looking is not None:
            known = await looking
        lacking = [each for each in known.partitions if ends is None or each not in ends]
        found = {**(ends or {}), **await self._surveyor.ends(lacking)}
        return known, {each: found[each] for each in known.partitions}

    async def _look(self) -> Survey:
        survey = await self._surveyor.look(self._survey)
        self._survey, self._surveyed_at = survey, self._clock.monotonic()
        return survey

    def _check_there(self, start: Reached, survey: Survey) -> None:
        """Complain of partitions that are gone."""
        gone = sorted(start.offsets.keys() - set(survey.partitions))
        if gone:
            self._losses.report(
                f"{_listed(gone)} {'is' if len(gone) == 1 else 'are'} there no more, and may have had records that"
                " were not read",
                hint="if this was meant, begin again with a new checkpoint",
            )
        anew = sorted({each.topic for each in start.offsets if _is_new(each, start, survey.ids)})
        if anew:
            self._losses.report(
                f"topic {', '.join(anew)} was deleted and made anew since it was last read",
                hint="begin again with a new checkpoint",
            )

    async def _starts(self, start: Reached, end: Reached) -> dict[TopicPartition, int]:
        """Return where each partition of a batch begins; new ones at their beginning."""
        new = [each for each in end.offsets if each not in start.offsets or _is_new(each, start, end.ids)]
        begins = await self._surveyor.starts(new)
        return {**{each: start.offsets[each] for each in end.offsets if each in start.offsets}, **begins}

    # What a batch reads

    async def plan(self, start: Reached, end: Reached) -> list[Task]:
        """Return the tasks of the batch between two ends."""
        if start.is_initial:
            return []
        survey = self._survey if self._is_verified else await self._look()
        assert survey is not None
        # What a batch that is run again was to read may have gone since.
        self._check_there(end, survey)
        self._check_there(start, Survey(tuple(end.offsets), end.ids))
        there = set(survey.partitions)
        offsets = {each: offset for each, offset in end.offsets.items() if each in there}
        end = Reached(offsets, end.ids, division=end.division)
        new = [each for each in end.offsets if each not in start.offsets or _is_new(each, start, end.ids)]
        starts = await self._starts(start, end)
        for each in new:
            if starts[each]:
                self._losses.report(
                    f"{each} is new, and begins at offset {starts[each]}: what was before is gone",
                    hint="read more often, or raise retention.ms and retention.bytes of the topic",
                )
        if not self._is_verified:
            await self._verify(starts, end)
            self._is_verified = True
        ranges = [OffsetRange(each, begin, end.offsets[each]) for each, begin in starts.items()]
        for back in (each for each in ranges if each.size < 0):
            self._losses.report(
                f"{back.partition} was read up to offset {back.start}, and ends at {back.end}",
                hint="its leader lost records, or startingOffsets lies behind its end",
            )
        division = end.division or self._division
        parts = divide(ranges, division.partitions_min, division.records_max)
        return [Task.of(each, end.ids.get(each.partition.topic, "")) for each in parts]

    @property
    def _division(self) -> Division:
        options = self._options
        return Division(
            options.partitions_min, options.records_per_partition_max, options.records_per_partition_min
        )

    async def _verify(self, starts: dict[TopicPartition, int], end: Reached) -> None:
        """Look whether what the last run left is still there; what goes later is noticed by the tasks."""
        wanted = [each for each, offset in starts.items() if end.offsets[each] > offset]
        for each, begin in (await self._surveyor.starts(wanted)).items():
            if starts[each] < begin:
                lost = min(begin, end.offsets[each])
                self._losses.report(
                    f"{each} has lost the offsets from {starts[each]} up to {lost} before they were read;"
                    f" it begins at {begin} now",
                    hint="read more often, or raise retention.ms and retention.bytes of the topic",
                )
                starts[each] = lost

    # What is finished

    def _is_news(self, finished: Reached) -> bool:
        if self._options.group is None or finished.is_initial or finished.offsets == self._told:
            return False
        return self._initial is None or finished.offsets != self._initial.offsets

    async def tell(self, finished: Reached) -> None:
        """Commit what is finished to the group; what fails for the moment is made good by the next commit."""
        if not self._is_news(finished):
            return
        self._told = finished.offsets
        try:
            await self._surveyor.commit(finished.offsets)
        except ClientError as error:
            self._told = None
            if not error.retriable:
                raise GroupRefused(
                    f"offsets cannot be committed to group {self._options.group}: {str(error).partition(chr(10))[0]}",
                    hint="give the query a group that no consumer is a member of, and that it may write to",
                ) from error
            LOGGER.warning("offsets were not committed to group %s: %s", self._options.group, error)


def _is_new(partition: TopicPartition, start: Reached, ids: Mapping[str, str]) -> bool:
    """Whether a partition is of a topic that was made anew."""
    before, now = start.ids.get(partition.topic), ids.get(partition.topic)
    return before is not None and now is not None and before != now


def _listed(partitions: Iterable[TopicPartition]) -> str:
    names = [str(each) for each in partitions]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
