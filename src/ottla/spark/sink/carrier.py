"""A producer of batches that are encoded already: the client's own parts, without the one that takes in records.

It lives as long as a transaction, or, without transactions, as long as its process. Every call is made on the loop.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress

from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError, TimedOut, TopicUnknown
from ottla.client.producer.batch import ProducerBatch
from ottla.client.producer.parts import ProducerParts
from ottla.client.producer.transaction_client import TransactionClient
from ottla.client.producer.transaction_offsets import GroupMember
from ottla.client.record import OffsetAndMetadata, TopicPartition
from ottla.client.settings.resolve import ClientSettings
from ottla.spark.sink.encoding import Sealed

# No more than this is on its way at a time: what waits longer than `delivery.timeout.ms` fails.
_UNDER_WAY_BYTES = 32 << 20

Ends = dict[TopicPartition, int]


class Carrier:
    """Takes batches to their partitions."""

    def __init__(self, settings: ClientSettings, cluster: Cluster) -> None:
        self._parts = ProducerParts.of(settings, cluster)
        self._cluster = cluster
        self._block_ms = self._parts.config.block_s * 1000
        self.transaction_s = self._parts.config.transaction_timeout_ms / 1000
        self._parts.sender.open()

    @property
    def transactor(self) -> TransactionClient:
        """What begins and ends transactions."""
        assert self._parts.transaction_client is not None
        return self._parts.transaction_client

    async def carry(self, batches: Iterable[Sealed]) -> Ends:
        """Write batches in their order; return where they end in each partition, or raise what went wrong first."""
        append = self._parts.accumulator.append_encoded
        ends: Ends = {}
        waiting: list[ProducerBatch] = []
        size = 0
        for topic, partition, filled in batches:
            try:
                batch = append(topic, partition, filled)
            except TopicUnknown:
                await self._cluster.topic(topic, self._block_ms)
                batch = append(topic, partition, filled)
            waiting.append(batch)
            size += len(filled.buffer)
            if size >= _UNDER_WAY_BYTES:
                await self._settle(waiting, ends)
                waiting, size = [], 0
        await self._settle(waiting, ends)
        return ends

    async def _settle(self, waiting: Iterable[ProducerBatch], ends: Ends) -> None:
        await self._parts.sender.flush()
        for batch in waiting:
            for leaf in batch.final_parts():
                if leaf.error is not None:
                    raise leaf.error
                place = leaf.queue.topic_partition
                ends[place] = max(ends.get(place, 0), leaf.base_offset + leaf.count)

    async def offsets(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Make a group's offsets part of the transaction."""
        await self.transactor.send_offsets(offsets, GroupMember(group))

    async def commit(self) -> None:
        """Commit, and insist for as long as a transaction may last; after TimedOut nobody knows the outcome."""
        try:
            async with asyncio.timeout(self.transaction_s):
                while True:
                    try:
                        return await self.transactor.commit()
                    except TimedOut:
                        continue
        except TimeoutError:
            raise TimedOut(f"the coordinator did not answer within {self.transaction_s:g} s") from None

    async def close(self) -> None:
        """End what is under way; connections stay."""
        transactor = self._parts.transaction_client
        for task in (*self._parts.sender.close(), *(() if transactor is None else transactor.cancel())):
            with suppress(asyncio.CancelledError, ClientError):
                await task
