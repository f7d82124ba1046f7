"""Asks the cluster what there is to read: partitions, where they begin and end, what lies where, how far a group is.

V1  The end of a partition is what may be read of it: with read_committed it lies before the first open transaction.
V2  A topic that is not there is asked for a few times (`fetchOffset.numRetries`), since brokers hear of a new one late.
V3  Nothing is created by asking.
"""

import asyncio
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ottla.client.cluster import NO_TOPIC_ID
from ottla.client.consumer.offset_lookup import OffsetLookup
from ottla.client.errors import TimedOut, refused
from ottla.client.record import TopicPartition
from ottla.spark.connection import Connection
from ottla.spark.source.choice import Assigned, Matching
from ottla.spark.source.options import SourceOptions
from ottla.spark.source.refusal import NothingThere, OptionError
from ottla.spark.source.whence import EARLIEST, GROUP, LATEST, AtOffsets, AtTime, Everywhere, Whence
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.uuid import uuid_text

if TYPE_CHECKING:
    from ottla.client.admin.offsets import Offsets

# After so long without an answer about an offset, it is worth asking whether the partition is still there.
_DOUBT_MS = 3000.0


class Survey(NamedTuple):
    """The partitions that are to be read, in their order, and the ids of their topics where brokers have some."""

    partitions: tuple[TopicPartition, ...]
    ids: Mapping[str, str]


class Extent(NamedTuple):
    """Where each partition begins and ends."""

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]


class Surveyor:
    """Answers for one read. Everything here runs on the connection's loop."""

    def __init__(self, options: SourceOptions, connection: Connection) -> None:
        self._options = options
        self._cluster = connection.cluster
        self._finder = OffsetLookup(options.settings, connection.cluster)
        self._connection = connection
        self._timeout_ms: float = options.settings["default.api.timeout.ms"]

    @cached_property
    def _groups(self) -> "Offsets":
        # A query without a group does without the admin client, and starts sooner for it.
        from ottla.client.admin.offsets import Offsets

        return Offsets(self._connection.desk)

    # Partitions

    async def look(self, before: Survey | None = None) -> Survey:
        """Return the partitions as they are now; NothingThere when one that was named does not exist.

        With what was there before, it is only waited for that, and what is gone is left out.
        """
        tries = self._options.offset_tries
        while True:
            names = await self._names()
            await self._refresh(names)
            absent = self._absent(names)
            survey = self._survey(names)
            lacks = absent if before is None else set(before.partitions) - set(survey.partitions)
            tries -= 1
            if not lacks or tries <= 0:
                break
            await asyncio.sleep(self._options.offset_retry_ms / 1000)
        if absent and before is None:
            raise absent[0]
        return survey

    async def _names(self) -> tuple[str, ...]:
        choice = self._options.choice
        if not isinstance(choice, Matching):
            return choice.topics
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False)

        async def ask() -> MetadataResponse:
            return await self._cluster.ask_any(request, MetadataResponse)

        heard = await self._cluster.retry_until(ask, self._timeout_ms, "listing topics")
        found = [each.name for each in heard.topics if each.name is not None and not each.is_internal]
        return tuple(sorted(name for name in found if choice.match(name)))

    async def _refresh(self, names: Iterable[str]) -> None:
        async def ask() -> None:
            await self._cluster.refresh(names, auto_create=False)

        await self._cluster.retry_until(ask, self._timeout_ms, "asking about topics")

    def _absent(self, names: Iterable[str]) -> list[NothingThere]:
        """Complain of what is not there; what may not be seen is an error at once."""
        found: list[NothingThere] = []
        for name in names:
            topic = self._cluster.topics.get(name)
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.error
            if error and not error.retriable:
                raise refused(error, about=f"topic {name}")
            if error or topic is None or not topic.leaders:
                found.append(
                    NothingThere(f"topic {name} does not exist", hint="create it, or check its name")
                )
        choice = self._options.choice
        if isinstance(choice, Assigned) and not found:
            for partition in choice.partitions:
                leaders = self._cluster.topics[partition.topic].leaders
                if partition.partition not in leaders:
                    has = f"it has {len(leaders)}, from 0 to {max(leaders)}"
                    found.append(NothingThere(f"there is no partition {partition}", hint=has))
        return found

    def _survey(self, names: Iterable[str]) -> Survey:
        choice = self._options.choice
        wanted = set(choice.partitions) if isinstance(choice, Assigned) else None
        partitions: list[TopicPartition] = []
        ids: dict[str, str] = {}
        for name in names:
            topic = self._cluster.topics.get(name)
            if topic is None or topic.error:
                continue
            if topic.id != NO_TOPIC_ID:
                ids[name] = uuid_text(topic.id)
            partitions += (TopicPartition(name, number) for number in topic.leaders)
        return Survey(tuple(sorted(each for each in partitions if wanted is None or each in wanted)), ids)

    # Offsets

    async def extent(self, partitions: Iterable[TopicPartition]) -> Extent:
        """Return where partitions begin and end."""
        known = tuple(partitions)
        return Extent(*await asyncio.gather(self.starts(known), self.ends(known)))

    async def starts(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where partitions begin."""
        return await self._find(dict.fromkeys(partitions, EARLIEST), self._timeout_ms)

    async def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where partitions end, for those who may read them."""
        return await self._find(dict.fromkeys(partitions, LATEST), self._timeout_ms)

    async def ends_soon(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int] | None:
        """Return where partitions end; None when somebody is slow to answer, and things may have changed."""
        try:
            return await self._find(dict.fromkeys(partitions, LATEST), min(_DOUBT_MS, self._timeout_ms))
        except TimedOut:
            return None

    async def _find(
        self, moments: Mapping[TopicPartition, int], timeout_ms: float
    ) -> dict[TopicPartition, int]:
        if not moments:
            return {}
        found = await self._finder.offsets(moments, timeout_ms)
        return {partition: each.offset for partition, each in found.items()}

    async def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return how far the group is, in the partitions where it has committed something."""
        assert self._options.group is not None
        found = await self._groups.committed(self._options.group, partitions)
        return {partition: each.offset for partition, each in found.items()}

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Tell the group how far the stream has come."""
        if self._options.group is not None and offsets:
            await self._groups.alter(self._options.group, offsets)

    async def resolve(
        self, whence: Whence, partitions: tuple[TopicPartition, ...], extent: Extent, *, is_start: bool
    ) -> dict[TopicPartition, int]:
        """Return the offsets that are meant; OptionError when there are none."""
        if isinstance(whence, Everywhere):
            offsets: Mapping[TopicPartition, int] = dict.fromkeys(partitions, whence.place)
        elif isinstance(whence, AtOffsets):
            offsets = whence.offsets
            _check_same("startingOffsets" if is_start else "endingOffsets", offsets, partitions)
        else:
            offsets = await self._at_times(whence, partitions, is_start)
        committed = await self.committed(partitions) if GROUP in offsets.values() else {}
        return {
            partition: {
                LATEST: extent.ends[partition],
                EARLIEST: extent.starts[partition],
                # What the group has never heard of it has not read.
                GROUP: committed.get(partition, extent.starts[partition]),
            }.get(offset, offset)
            for partition, offset in offsets.items()
        }

    async def _at_times(
        self, whence: Whence, partitions: tuple[TopicPartition, ...], is_start: bool
    ) -> Mapping[TopicPartition, int]:
        assert not isinstance(whence, Everywhere | AtOffsets)
        if isinstance(whence, AtTime):
            times = dict.fromkeys(partitions, whence.time_ms)
        else:
            times = dict(whence.times_ms)
            name = "startingOffsetsByTimestamp" if is_start else "endingOffsetsByTimestamp"
            _check_same(name, times, partitions)
        found = await self._find(times, self._timeout_ms)
        lacking = next((each for each in partitions if each not in found), None)
        if lacking is not None and not whence.or_latest:
            raise OptionError(
                f"{lacking} has no record from {times[lacking]} ms on, where the read is to begin",
                hint="to begin at the end there, set startingOffsetsByTimestampStrategy to latest",
            )
        return {partition: found.get(partition, LATEST) for partition in partitions}


def _check_same(
    option: str, given: Mapping[TopicPartition, int], partitions: tuple[TopicPartition, ...]
) -> None:
    odd = sorted(set(partitions) ^ given.keys())
    if odd:
        lacks, names = [each for each in odd if each not in given], [each for each in odd if each in given]
        what = " and ".join(
            f"{verb} {', '.join(map(str, these[:5]))}{' and more' if len(these) > 5 else ''}"
            for verb, these in (("lacks", lacks), ("names", names))
            if these
        )
        raise OptionError(
            f"option {option} has to name every partition that is read, and no other: it {what}",
            hint="give each an offset, where -1 is the end and -2 the beginning"
            if "Timestamp" not in option
            else "give each a time, or use one time for all",
        )
